"""Noise on a hierarchy that adds up, under pure differential privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.caring import Care, care_of, care_weights
from isotone.counts.hierarchies.field_draws import FieldSampler
from isotone.counts.hierarchies.field_law import FieldLaw, FieldTypes
from isotone.counts.hierarchies.field_shares import field_shares
from isotone.counts.hierarchies.hierarchy_tree import require_hierarchy
from isotone.counts.hierarchies.projection import AddsUp
from isotone.counts.hierarchies.stated_shares import replacing_cost, shares_by_element, shares_by_node
from isotone.counts.statistic import Counts, check_counts, deviation
from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy
from isotone.mechanism import Error
from isotone.noise.laplace import LEAST_RATE
from isotone.noise.simulate import Simulated, refuse_simulated
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, confidence_level
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee

__all__ = ["TreeFieldMechanism"]

MOST_DRAWS, CHOSEN_DRAWS = 6e7, 3e7
"""More expected draws of leaves, or of sums of leaves, for one release are refused, and shares that need more than the second are not chosen."""

_CHUNK = 1 << 22


@dataclass(frozen=True, init=False)
class TreeFieldMechanism(AddsUp):
    """Counts of a hierarchy with integer noise that adds up.

    The noise ``h`` on the leaves has probability proportional to ``exp(-rate · Σ share(v)·|h(v)|)``, where ``h(v)`` is
    the sum of the leaves below v, and the shares on the way to a leaf add up to 1 at most. Every released count is
    the sum of its leaves. Where the children of an element are exclusive but no partition, a record that has none of
    them is in a remainder, a leaf that is not published.

    ``care`` says which error is to be small. ``shares`` gives the shares by element instead, as exact numbers.
    ``rate`` is epsilon over ``contributions``; for ``replace`` over ``contributions · max(1, 2 - 2·share of the root)``,
    and over twice the contributions if there are several roots.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/hierarchies.md, section 4).
    Error: exact, that of the released integers.
    Cost: about ``node_law.draws`` draws of geometric numbers a release, refused above a public limit.

    >>> from isotone.order import Poset
    >>> T = Poset.from_mapping({"a": "all", "b": "all", "c": "all"}, children="partition")
    >>> m = TreeFieldMechanism(T, epsilon=1, care="levels")
    >>> out = dict(zip(T.elements, m.release({"a": 5, "b": 3, "c": 0, "all": 8}), strict=True))
    >>> bool(out["a"] + out["b"] + out["c"] == out["all"])
    True
    """

    care: str | dict[str, str]
    shares: dict[str, str]
    tree: Hierarchy = field(repr=False, compare=False)
    node_law: FieldLaw = field(repr=False, compare=False)
    rate: Fraction = field(repr=False, compare=False)

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        care: Care = "nodes",
        shares: Mapping[Any, Any] | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        tree = require_hierarchy(P)
        plain = care_of(P, care)
        exchanges, per_record = self.unit.adjacency.exchanges, self.epsilon / self.unit.changes
        _require_rate(per_record)  # the search for shares computes with floats
        if shares is None:
            chosen = field_shares(
                tree,
                _node_weights(P, tree, plain),
                plain == "worst",
                float(per_record),
                exchanges,
                CHOSEN_DRAWS,
            )
        else:
            chosen = shares_by_node(P, tree, shares)
        rate = per_record / (replacing_cost(tree, chosen) if exchanges else 1)
        _require_rate(min(share for share in chosen if share) * rate)
        law = FieldLaw(FieldTypes.find(tree, chosen), float(rate))
        if law.draws > MOST_DRAWS:
            raise InputError(
                f"These shares need about {law.draws:.2g} draws a release, and the limit is {MOST_DRAWS:.2g}. Give more "
                "to the leaves, or leave the shares to the plan."
            )
        self._set(care=plain, shares=shares_by_element(P, tree, chosen), tree=tree, node_law=law, rate=rate)

    @property
    def method(self) -> str:
        """How many draws of leaves, or of sums of leaves, a release takes by rejection."""
        shares, children = self.node_law.types.shares, self.node_law.types.children
        if any(share for share, below in zip(shares, children, strict=True) if below):
            return f"about {self.node_law.draws:,.0f} draws"
        return "leaves only, added up"

    def error(self) -> Error:
        """The variance of the noise on each count, exact, or to one part in a thousand for very small rates."""
        how = "exact" if self.node_law.scale == 1 else "scaled"
        return Error(self.node_law.variance[self.tree.node], how)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        draws, step = SeededDraws(rng), max(1, _CHUNK // len(self.tree))
        sampler = replace(self._sampler, sums=False)
        rows = [
            sampler.draw(min(step, size - start), draws)[:, self.tree.node] for start in range(0, size, step)
        ]
        return Simulated.wrap(np.concatenate(rows).astype(float) if rows else np.empty((0, len(self.P))))

    @property
    def _sampler(self) -> FieldSampler:
        return FieldSampler(self.node_law.types, self.rate, self.node_law.acceptance)

    def _node_noise(self, draws: Draws) -> NDArray[np.int64]:
        return self._sampler.draw(1, draws)[0]

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._node_noise(draws)[self.tree.node]

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers.

        Exactly private, from cryptographic bits. All counts are sums of leaves, also where the counts given are not.
        """
        leaves = self.tree.leaves_of(check_counts(self.P, counts))
        return self.tree.sums(leaves + self._node_noise(require_exact(ExactDraws())))[self.tree.node]

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        refuse_simulated(rows)
        leaves = self.tree.leaves_of(rows)
        noise = self._sampler.draw(len(rows), require_exact(ExactDraws()))
        return self.tree.sums(leaves + noise)[:, self.tree.node]

    def part(self, share: Fraction) -> TreeFieldMechanism:
        """One of several draws from the same records, with the same shares of nodes and a part of epsilon."""
        unit = (self.neighbours, self.contributions)
        return TreeFieldMechanism(self.P, self.epsilon * share, *unit, care=self.care, shares=self.shares)

    @property
    def rounding(self) -> float:
        """Nothing is rounded."""
        return 0.0

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of noise), one per row.

        Minus infinity where they do not add up.
        """
        y = deviation(self.P, output, counts)
        nodes = self.tree.leaves_of(np.rint(y).astype(np.int64))
        shares = np.array([float(self.node_law.types.shares[t]) for t in self.node_law.types.of])
        adds_up = np.all(self.tree.sums(nodes)[..., self.tree.node] == y, axis=-1)
        weight = -float(self.rate) * (np.abs(nodes) @ shares) - self.node_law.log_normaliser
        return np.where(adds_up, weight, -np.inf)

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([self.node_law.quantiles(float(q))[self.tree.node] for q in p])

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within."""
        return self.node_law.half_widths(confidence_level(confidence))[self.tree.node]

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, with at least the given probability."""
        return self.node_law.common_half_width(confidence_level(confidence), np.unique(self.tree.node))


def _node_weights(P: Poset, tree: Hierarchy, care: str | dict[str, str]) -> NDArray[np.float64]:
    """The weights of the elements, by node."""
    return np.bincount(tree.node, care_weights(P, care), len(tree)).astype(np.float64)


def _require_rate(rate: Fraction) -> None:
    """Refuse noise that does not fit 64 bits."""
    if rate < LEAST_RATE:
        raise InputError("A share of epsilon is too small. Give larger shares or a larger epsilon.")
