"""A hierarchy whose root is a public number of records, and whose leaf for everything else takes what is left.

The mechanism within releases the hierarchy without that leaf, in which a record may be counted nowhere. The leaf is the public
number less the noisy root of that: a function of what was released (docs/theory/hierarchies.md, section 7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.hierarchy import TreeGaussianMechanism, require_hierarchy
from isotone.counts.mechanism import AdditiveMechanism, Care, Counts, care_of, check_counts
from isotone.counts.tree_field import TreeFieldMechanism
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated, refuse_simulated
from isotone.order import Poset
from isotone.privacy.checks import Number, did_you_mean, exact, whole_number
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Neighbours, adjacency

T = TypeVar("T", np.int64, np.float64)

_MOST_RECORDS = 10**12


@dataclass(frozen=True, init=False)
class FixedRootMechanism(AdditiveMechanism):
    """Counts of a hierarchy whose root is ``records``, a public number, without noise.

    ``catch_all`` is a leaf directly below the root. It receives every record that is in no other leaf: it is
    ``records`` less the noisy count of all others, and what the data say about it is not used. All counts add up.
    The noise is that of :class:`TreeFieldMechanism`, or of :class:`TreeGaussianMechanism` if ``rho`` or ``delta`` is
    given, on the hierarchy without that leaf; ``shares`` are those of its nodes, with that of the root under the
    root's name.

    Only for ``replace`` neighbours: stating the number of records gives away whether a unit is there at all.

    Guarantee: that of the noise, for ``replace`` (docs/theory/hierarchies.md, section 7).
    Error: exact for the tree field; for Gaussian noise exact before rounding.

    >>> T = Poset.from_mapping({"a": "all", "b": "all", "other": "all"}, children="partition")
    >>> m = FixedRootMechanism(T, epsilon=1, records=100, catch_all="other")
    >>> out = dict(zip(T.elements, m.release({"a": 5, "b": 3, "other": 92, "all": 100}), strict=True))
    >>> int(out["all"]), bool(out["a"] + out["b"] + out["other"] == 100)
    (100, True)
    """

    records: int
    catch_all: str
    care: str | dict[str, str] = field(hash=False)
    shares: dict[str, str] = field(hash=False)
    within: TreeFieldMechanism | TreeGaussianMechanism = field(repr=False, compare=False)

    def __init__(
        self,
        P: Poset,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: Neighbours = "replace",
        contributions: int = 1,
        max_size: int | None = None,
        care: Care = "nodes",
        shares: Mapping[Any, Any] | None = None,
        *,
        records: int,
        catch_all: Any,
    ) -> None:
        if not adjacency(neighbours).exchanges:
            raise InputError(
                "The root is fixed to a public number of records for replace neighbours only: a unit that is added or "
                "removed changes that number. Say neighbours='replace', or leave out records and catch_all."
            )
        leaf = _catch_all(P, catch_all)
        rest, plain = _without(P, leaf), care_of(P, care)
        unit: dict[str, Any] = {
            "neighbours": neighbours,
            "contributions": contributions,
            "max_size": max_size,
        }
        unit |= {"care": _care_of_rest(P, rest, leaf, plain), "shares": shares}
        if rho is None and (delta is None or exact(delta, "delta") == 0):
            if epsilon is None:
                raise InputError("Give epsilon, epsilon and delta, or rho.")
            within: TreeFieldMechanism | TreeGaussianMechanism = TreeFieldMechanism(rest, epsilon, **unit)
        else:
            within = TreeGaussianMechanism(rest, epsilon, delta, rho, **unit)
        self._settle(P, within.guarantee, within.contributions, within.max_size)
        number = whole_number(records, "records", least=0, most=_MOST_RECORDS)
        self._set(records=number, catch_all=str(leaf), care=plain, shares=within.shares, within=within)

    @property
    def method(self) -> str:
        """What is fixed, and how many draws of leaves a release takes."""
        drawn = f", {self.within.method}" if isinstance(self.within, TreeFieldMechanism) else ""
        return f"root fixed to {self.records:,}, {self.catch_all} takes the rest{drawn}"

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """The place in the order within of each element, or that of its root for the leaf that takes the rest."""
        rest, names = self.within.P, {str(x): i for i, x in enumerate(self.within.P.elements)}
        top = rest.index(rest.maximal[0])
        return np.array([names.get(str(x), top) for x in self.P.elements], np.int64)

    @cached_property
    def _signs(self) -> NDArray[np.int64]:
        """How the noise of an element follows from that within, 0 at the root, and -1 where it takes the rest."""
        tree = require_hierarchy(self.P)
        signs = np.where(tree.node == 0, 0, 1)  # all elements of the root's node have its count
        signs[[str(x) for x in self.P.elements].index(self.catch_all)] = -1
        return signs

    def _spread(self, noise: NDArray[T]) -> NDArray[T]:
        """Noise (last axis) of the order within, as noise on all counts."""
        return (noise[..., self._places] * self._signs).astype(noise.dtype)

    def _inside(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts without those of the leaf that takes the rest. The root has what is in all others."""
        inside = np.zeros((*counts.shape[:-1], len(self.within.P)), np.int64)
        own = self._signs >= 0
        inside[..., self._places[own]] = counts[..., own]
        tops = self._places[self._signs == 0]
        inside[..., tops] -= counts[..., self._signs < 0]
        return inside

    def _outside(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of all elements, from those released within."""
        return np.where(self._signs == 1, 0, self.records) + self._spread(values)

    def with_root(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts that add up from their leaves to the public number. The catch-all is what the others leave of it."""
        tree = require_hierarchy(self.P)
        return self._outside(self._inside(tree.sums(tree.leaves_of(counts))[tree.node]))

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers that add up to the public number.

        Exactly private, from cryptographic bits.
        """
        return self._outside(self.within.release(self._inside(check_counts(self.P, counts))))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        refuse_simulated(rows)
        return self._outside(self.within.release_rows(self._inside(rows)))

    def part(self, share: Fraction) -> FixedRootMechanism:
        """Refuse, since the public number is that of one table."""
        raise InputError("A fixed root is for one table of counts, and not for parts of a breakdown.")

    def possible_outputs(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Whole outputs near those given that add up to the public number, one per row."""
        inside = self.within.possible_outputs(self._inside(np.rint(outputs).astype(np.int64)).astype(float))
        return self._outside(inside.astype(np.int64)).astype(float)

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts, one per row, under the tree field.

        Minus infinity where they do not add up to the public number. Without counts it is that of noise.
        """
        if not isinstance(self.within, TreeFieldMechanism):
            raise InputError("Gaussian noise with least squares has no simple probability.")
        y = np.rint(np.asarray(output, dtype=float)).astype(np.int64)
        number = 0 if counts is None else self.records
        given = None if counts is None else self._inside(check_counts(self.P, counts))
        inside = np.zeros((*y.shape[:-1], len(self.within.P)), np.int64)
        inside[..., self._places[self._signs == 1]] = y[..., self._signs == 1]
        inside[..., self._places[self._signs == 0]] = number - y[..., self._signs < 0]
        adds_up = np.all(np.where(self._signs == 1, 0, number) + self._spread(inside) == output, axis=-1)
        return np.where(adds_up, self.within.log_probability(inside, given), -np.inf)

    def error(self) -> Error:
        """The variance of the noise on each count, 0 at the root."""
        result, squares = self.within.error(), self._signs**2
        return Error(result.variance[self._places] * squares, result.method)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        return Simulated.wrap(self._spread(np.asarray(self.within.simulate(size, rng))))

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the whole numbers that a release adds to the counts, which add up to 0."""
        return Simulated.wrap(self._spread(np.asarray(self.within.simulate_released(size, rng))))

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._spread(self.within._integer_noise(draws))  # pyright: ignore[reportPrivateUsage]

    @property
    def law_draws(self) -> int:
        """That of the noise within."""
        return self.within.law_draws

    @property
    def rounding(self) -> float:
        """That of the noise within."""
        return self.within.rounding

    def quantiles(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """Quantiles of the noise on each count, which is symmetric, one row per probability."""
        return self._wide(self.within.quantiles(probabilities))

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far a release stays from the truth with at least the given probability."""
        return self._wide(self.within.half_widths(confidence))

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        return self.within.simultaneous_half_width(confidence)

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding to integers."""
        return self._wide(self.within.unrounded_half_widths(confidence))

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, before rounding to integers."""
        return self.within.unrounded_simultaneous_half_width(confidence)

    def _wide(self, widths: NDArray[np.float64]) -> NDArray[np.float64]:
        return widths[..., self._places] * np.abs(self._signs)


def _catch_all(P: Poset, name: Any) -> Hashable:
    """The leaf directly below the root that takes everything else, or an error."""
    tree = require_hierarchy(P)
    names = {str(x): x for x in P.elements}
    if str(name) not in names:
        raise InputError(
            f"catch_all names {name!r}, which is not an element{did_you_mean(str(name), names) or '.'}"
        )
    if tree.roots > 1:
        raise InputError(
            "A root is fixed where there is one: put an element above all others, of which these are a partition."
        )
    node = int(tree.node[P.index(names[str(name)])])
    if not tree.leaf[node] or tree.parent[node] != 0:
        raise InputError(
            f"catch_all must be a leaf directly below the root, beside other elements, and {name!r} is not."
        )
    return names[str(name)]


def _without(P: Poset, leaf: Hashable) -> Poset:
    """The order without one leaf."""
    covers = [(low, high) for low, high in P.covers if low != leaf]
    kept = ((choice.kind, [x for x in choice.options if x != leaf]) for choice in P.choices)
    rest = Poset([x for x in P.elements if x != leaf], covers, [(kind, x) for kind, x in kept if x])
    if not rest.choices:
        raise InputError("A hierarchy with a fixed root needs an element beside the one that takes the rest.")
    return rest


def _care_of_rest(P: Poset, rest: Poset, leaf: Hashable, care: str | dict[str, str]) -> Care:
    """What is cared for without the leaf. The root then has its error, and no other."""
    if care in ("nodes", "worst"):
        return care
    if isinstance(care, str):
        depth = {x: len(P.up_set(x)) for x in P.elements}
        sizes = Counter(depth.values())
        weights: dict[Any, Any] = {x: Fraction(1, sizes[depth[x]]) for x in P.elements}
    else:
        weights = {x: care.get(str(x), "0") for x in P.elements}
    top = rest.maximal[0]
    result = {x: weights[x] for x in rest.elements} | {top: weights[leaf]}
    return result if any(exact(weight) for weight in result.values()) else "nodes"
