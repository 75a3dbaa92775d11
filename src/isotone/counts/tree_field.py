"""TreeFieldMechanism: noise on a hierarchy that adds up, under pure differential privacy, with its law, its draws and its shares.

The exact law of the noise of :class:`~isotone.counts.TreeFieldMechanism` on every node.

Noise ``h`` on the leaves has probability proportional to ``exp(-rate · Σ share(v)·|h(v)|)``, where ``h(v)`` is the
sum of the leaves below v. Messages up the tree (what a subtree says about its root) and down (what the rest says)
give the exact law of each node; sums of independent numbers are products of Fourier transforms on a grid that is
so wide that what wraps around is negligible (docs/theory/hierarchies.md, section 5).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.hierarchy import (
    WORST_POWER,
    AddsUp,
    exact_shares,
    gaussian_shares,
    replacing_cost,
    require_hierarchy,
    shares_by_element,
    shares_by_node,
    uniform_shares,
    worst_weights,
)
from isotone.counts.mechanism import Care, Counts, care_of, care_weights, check_counts, deviation
from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy
from isotone.mechanism import Error
from isotone.noise.laplace import LEAST_RATE, LEAST_SUM_RATE, MOST_TERMS
from isotone.noise.simulate import Simulated, refuse_simulated
from isotone.order import Poset
from isotone.privacy.checks import Number, confidence_level
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Neighbours

_WIDEST = 1 << 14
"""The largest grid. Noise that needs more is that of a larger rate, spread out: to about one part in a thousand."""

_NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False)
class FieldTypes:
    """The different subtrees, with their shares, their children as pairs (type, number), and how many leaves they have.

    Types are numbered from the leaves up; ``of`` is the type of each node.
    """

    tree: Hierarchy
    of: Ints
    shares: tuple[Fraction, ...]
    children: tuple[tuple[tuple[int, int], ...], ...]
    leaves: Ints

    @classmethod
    def find(cls, tree: Hierarchy, shares: list[Fraction]) -> FieldTypes:
        """The subtrees of a tree with these shares by node."""
        below: list[Counter[int]] = [Counter() for _ in range(len(tree))]
        known: dict[tuple[Fraction, tuple[tuple[int, int], ...]], int] = {}
        of = np.zeros(len(tree), np.int64)
        for x in range(len(tree) - 1, -1, -1):
            key = shares[x], tuple(sorted(below[x].items()))
            of[x] = known.setdefault(key, len(known))
            if tree.parent[x] >= 0:
                below[tree.parent[x]][int(of[x])] += 1
        leaves: list[int] = []
        for _, children in known:
            leaves.append(sum(leaves[t] * k for t, k in children) if children else 1)
        return cls(
            tree, of, tuple(s for s, _ in known), tuple(c for _, c in known), np.array(leaves, np.int64)
        )

    @cached_property
    def rejects(self) -> bool:
        """Whether a node above leaves has a share, so that draws may be made in vain."""
        return any(share and below for share, below in zip(self.shares, self.children, strict=True))

    @cached_property
    def contexts(self) -> tuple[Ints, Ints, Ints]:
        """Nodes that are alike, seen from below and from above.

        The context of each node, and for each context its type and the context of its parent, or -1.
        """
        known: dict[tuple[int, int], int] = {}
        of = np.zeros(len(self.tree), np.int64)
        for x, above in enumerate(self.tree.parent.tolist()):
            key = (int(of[above]) if above >= 0 else -1), int(self.of[x])
            of[x] = known.setdefault(key, len(known))
        return of, np.array([t for _, t in known], np.int64), np.array([up for up, _ in known], np.int64)


def leaf_sums(types: FieldTypes, rate: float, t: int, number: int) -> list[int]:
    """The numbers of leaves, of so many of one type below one node, whose sums are drawn in place of the leaves.

    None where only leaves have shares, since nothing is drawn in vain there, and none at small rates. Public numbers decide.
    """
    leaf = not types.children[t] and number > 1
    if not leaf or not types.rejects or rate * float(types.shares[t]) < 1.001 * LEAST_SUM_RATE:
        return []
    return [min(MOST_TERMS, number - start) for start in range(0, number, MOST_TERMS)]


class FieldLaw:
    """The law of every node at one rate."""

    def __init__(self, types: FieldTypes, rate: float) -> None:
        self.types = types
        spread = self._largest_spread()
        expected = spread / rate
        self.scale = max(1.0, expected / (_WIDEST / 2))
        """How many times wider the noise is than on the grid."""
        self.rate = rate * self.scale
        self.size = 1 << max(6, math.ceil(math.log2(2 * expected / self.scale)))
        place = np.arange(self.size)
        self.distance = np.minimum(place, self.size - place).astype(float)
        self._climb()

    def _largest_spread(self) -> float:
        """A half-width at rate 1 that hardly any sum of leaves leaves, even where nothing but leaves has a share."""
        types = self.types
        squares, longest = np.zeros(len(types.shares)), 0.0
        for t, children in enumerate(types.children):
            own = float(types.shares[t])
            squares[t] = sum(squares[c] * k for c, k in children) if children else 2 / own**2
            longest = longest if children else max(longest, 33 / own)
        roots = types.of[: types.tree.roots]
        return max(7 * math.sqrt(float(squares[roots].max())), longest)

    def _climb(self) -> None:
        """Messages up, and how often the sums of the children are kept."""
        types, size = self.types, self.size
        count = len(types.shares)
        self.messages = np.empty((count, size))
        self.transforms = np.empty((count, size // 2 + 1))
        self.acceptance = np.ones(count)
        self.log_total = np.zeros(count)
        for t, children in enumerate(types.children):
            weight = self._weight(t)
            if children:
                product = np.ones(size // 2 + 1)
                for c, k in children:
                    product *= self.transforms[c] ** k
                sums = np.maximum(np.fft.irfft(product, size), 0)
                self.log_total[t] = sum(self.log_total[c] * k for c, k in children)
                weight = weight * (sums / sums.sum())
                self.acceptance[t] = weight.sum()
            total = float(weight.sum())
            self.log_total[t] += math.log(total)
            self.messages[t] = weight / total
            self.transforms[t] = np.fft.rfft(self.messages[t]).real

    def _weight(self, t: int) -> Floats:
        return np.exp(-self.rate * float(self.types.shares[t]) * self.distance)

    @cached_property
    def draws(self) -> float:
        """The expected number of draws of leaves, or of sums of them, for one draw of the field by rejection."""
        needed, rate = np.ones(len(self.types.shares)), self.rate / self.scale
        for t, children in enumerate(self.types.children):
            if children:
                each = (2 * len(leaf_sums(self.types, rate, c, k)) or needed[c] * k for c, k in children)
                needed[t] = sum(each) / self.acceptance[t]
        return float(needed[self.types.of[: self.types.tree.roots]].sum())

    @property
    def log_normaliser(self) -> float:
        """The logarithm of the sum of all weights."""
        return float(self.log_total[self.types.of[: self.types.tree.roots]].sum())

    @cached_property
    def _laws(self) -> tuple[Floats, list[Floats]]:
        """For each context the variance, and the probabilities that the noise is beyond 0, 1, 2, …"""
        _, kinds, above = self.types.contexts
        below: list[list[int]] = [[] for _ in kinds]
        waiting: list[tuple[int, Floats | None]] = []
        for context, up in enumerate(above.tolist()):
            if up >= 0:
                below[up].append(context)
            else:
                waiting.append((context, None))
        variances, tails = np.empty(len(kinds)), [np.zeros(0)] * len(kinds)
        while waiting:
            context, outside = waiting.pop()
            t = int(kinds[context])
            law = self.messages[t] if outside is None else self.messages[t] * outside
            law = law / law.sum()
            variances[context] = law @ self.distance**2
            tails[context] = _tail(law)
            if below[context]:
                waiting += self._descend(t, outside, {int(kinds[c]): c for c in below[context]})
        return variances, tails

    def _descend(self, t: int, outside: Floats | None, contexts: dict[int, int]) -> list[tuple[int, Floats]]:
        """What the rest of the tree says about each kind of child."""
        weight = self._weight(t) if outside is None else self._weight(t) * outside
        given = np.fft.rfft(weight / weight.sum()).real
        children = self.types.children[t]
        powers = [self.transforms[c] ** k for c, k in children]
        after = [np.ones_like(given)]
        for power in reversed(powers):
            after.append(after[-1] * power)
        before, result = given, list[tuple[int, Floats]]()
        for place, (c, k) in enumerate(children):
            rest = before * self.transforms[c] ** (k - 1) * after[len(children) - 1 - place]
            message = np.maximum(np.fft.irfft(rest, self.size), 0)
            result.append((contexts[c], message / message.max()))
            before = before * powers[place]
        return result

    @cached_property
    def variance(self) -> Floats:
        """The variance of each node."""
        of, _, _ = self.types.contexts
        return self._laws[0][of] * self.scale**2

    def half_widths(self, level: float) -> Floats:
        """For each node the least number that its noise stays within with this probability."""
        of, _, _ = self.types.contexts
        result = [int(np.argmax(tail <= 1 - level)) for tail in self._laws[1]]
        return np.ceil(np.array(result, float) * self.scale)[of]

    def quantiles(self, probability: float) -> Floats:
        """For each node the quantile of its noise, which is symmetric."""
        if probability == 0.5:
            return np.zeros(len(self.types.of))
        beyond = 2 * min(probability, 1 - probability)
        of, _, _ = self.types.contexts
        result = np.array([int(np.argmax(tail <= beyond)) for tail in self._laws[1]], float)
        return math.copysign(1, probability - 0.5) * np.ceil(result * self.scale)[of]

    def common_half_width(self, level: float, nodes: Ints) -> float:
        """A number that all these nodes stay within at once with at least this probability.

        The probabilities that one leaves it are added up.
        """
        of, kinds, _ = self.types.contexts
        number = np.bincount(of[nodes], minlength=len(kinds))
        total = np.zeros(max(tail.size for tail in self._laws[1]) + 1)
        for tail, k in zip(self._laws[1], number, strict=True):
            total[: tail.size] += k * tail
            total[tail.size :] += k * _NEGLIGIBLE
        return float(np.ceil(int(np.argmax(total <= 1 - level)) * self.scale))


def _tail(law: Floats) -> Floats:
    """The probabilities that symmetric noise is beyond 0, 1, 2, …, down to a negligible one."""
    half = law[: law.size // 2].copy()
    half[1:] *= 2
    beyond = np.append(np.cumsum(half[::-1])[::-1][1:], 0.0)
    return beyond[: int(np.argmax(beyond <= _NEGLIGIBLE)) + 1]


# Exact draws of the noise of :class:`~isotone.counts.TreeFieldMechanism` by rejection.
#
# To draw a subtree draw all its children, and keep them with probability ``exp(-rate·share·|sum|)``; otherwise draw
# them again (docs/theory/hierarchies.md, section 4). Draws that are kept are independent, so many are made at a time, and a type of subtree that
# occurs several times is drawn once for all its places. Leaves of one parent and one share are the differences of two geometric
# numbers each. Only the two sums of these matter for what is kept, so that they alone are drawn; what is kept in the end
# is split between the leaves, all ways alike.

_CELLS = 1 << 18
"""Numbers of one part of the tree that are tried at a time: of a large tree few, since most of them are in vain."""


@dataclass(frozen=True, eq=False)
class FieldSampler:
    """Draws noise on the leaves of a tree. ``acceptance`` by type only says how many to try at a time."""

    types: FieldTypes
    rate: Fraction
    acceptance: NDArray[np.float64]
    sums: bool = True
    """Whether leaves may be drawn as sums, which saves exact draws. To split them takes longer than seeded draws of all leaves."""

    def draw(self, size: int, draws: Draws) -> Ints:
        """``size`` rows of noise on the nodes of the tree, which add up."""
        tree, result = self.types.tree, np.zeros((size, len(self.types.tree)), np.int64)
        for t, leaves in self._places:
            drawn = self._subtrees(t, size * len(leaves), draws)
            result[:, leaves.reshape(-1)] = self._split(t, drawn, draws).reshape(size, -1)
        return tree.sums(result)

    def _subtrees(self, t: int, size: int, draws: Draws) -> Ints:
        """``size`` independent draws of a type of subtree in rows, its leaves, or sums of them and minus such sums."""
        children, rate = self.types.children[t], self.rate * self.types.shares[t]
        if not children:
            return draws.lazy_geometrics(rate, size)[:, None]
        width = sum(2 if terms else 1 for terms in self._columns[t])
        result, filled = np.empty((size, width), np.int64), 0
        while filled < size:
            tries = int((size - filled) * 1.05 / self.acceptance[t]) + 1
            tries = min(tries, max(1, _CELLS // width))
            rows = np.concatenate([self._children(c, k, tries, draws) for c, k in children], axis=1)
            if rate:
                rows = rows[draws.coins(rate, np.abs(rows.sum(axis=1)))]
            kept = rows[: size - filled]
            result[filled : filled + len(kept)] = kept
            filled += len(kept)
        return result

    def _children(self, c: int, k: int, size: int, draws: Draws) -> Ints:
        """``size`` rows of the draws of k children of one type."""
        sums = self._sums(c, k)
        if not sums:
            return self._subtrees(c, size * k, draws).reshape(size, -1)
        rate, signs = self.rate * self.types.shares[c], np.array([1, -1])
        parts = [draws.geometric_sums(rate, terms, 2 * size).reshape(size, 2) * signs for terms in sums]
        return np.concatenate(parts, axis=1)

    def _sums(self, c: int, k: int) -> list[int]:
        return leaf_sums(self.types, float(self.rate), c, k) if self.sums else []

    @cached_property
    def _columns(self) -> list[list[int]]:
        """What the draws of each type hold. For a sum and minus a sum the number of their leaves, for a leaf 0."""
        result: list[list[int]] = []
        for children in self.types.children:
            row: list[int] = []
            for c, k in children:
                row += self._sums(c, k) or result[c] * k
            result.append(row or [0])
        return result

    def _split(self, t: int, rows: Ints, draws: Draws) -> Ints:
        """The leaves of each row. Sums are split between theirs."""
        terms = np.array(self._columns[t])
        summed, plain = terms > 0, terms == 0
        ends = np.cumsum(np.where(summed, 2, 1))
        result = np.empty((len(rows), int(np.maximum(terms, 1).sum())), np.int64)
        places = np.repeat(summed, np.maximum(terms, 1))
        result[:, ~places] = rows[:, ends[plain] - 1]
        if summed.any():
            bins = np.tile(terms[summed], len(rows))
            ups, downs = rows[:, ends[summed] - 2].reshape(-1), -rows[:, ends[summed] - 1].reshape(-1)
            difference = _scattered(ups, bins, draws) - _scattered(downs, bins, draws)
            result[:, places] = difference.reshape(len(rows), -1)
        return result

    @cached_property
    def _places(self) -> list[tuple[int, Ints]]:
        """For each type of root the leaves of its roots, in the sequence in which a draw gives them."""
        tree, of = self.types.tree, self.types.of.tolist()
        children: list[list[int]] = [[] for _ in range(len(tree))]
        for x, above in enumerate(tree.parent.tolist()):
            if above >= 0:
                children[above].append(x)
        leaves: list[list[int]] = [[]] * len(tree)
        for x in range(len(tree) - 1, -1, -1):
            row = sorted(children[x], key=of.__getitem__)  # stable: those of one type side by side
            leaves[x] = [y for c in row for y in leaves[c]] if row else [x]
        roots: dict[int, list[list[int]]] = {}
        for x in range(tree.roots):
            roots.setdefault(of[x], []).append(leaves[x])
        return [(t, np.array(rows, np.int64)) for t, rows in roots.items()]


def _scattered(totals: Ints, bins: Ints, draws: Draws) -> Ints:
    """Each total as a sum of ``bins`` numbers at or above 0, all such ways alike.

    Ball after ball is put into a bin, or where one of the balls before it is, each with the same chance.
    """
    before = np.repeat(np.cumsum(totals) - totals, totals)
    number = np.repeat(bins, totals)
    place = draws.below(number + np.arange(before.size) - before)
    waiting = np.flatnonzero(place >= number)
    while waiting.size:
        place[waiting] = place[before[waiting] + place[waiting] - number[waiting]]
        waiting = waiting[place[waiting] >= number[waiting]]
    first = np.repeat(np.cumsum(bins) - bins, totals)
    return np.bincount(first + place, minlength=int(bins.sum())).astype(np.int64)


# Shares for a tree field, those that are best for Gaussian noise, bent until they are good for the field.
#
# The best shares of a field are no convex problem. With those of Gaussian noise, what is left below each node raised to
# a power is tried, by the exact law; the power 0 leaves everything to the leaves, so the result is never worse than that.
# Then what the nodes of a level keep is raised or lowered, level by level. All of it depends on public numbers only.

_POWERS = (0.0, 0.35, 0.7, 1.0, 1.3)
_COARSE, _LESS = (0.0, 0.7, 1.0), (0.5, 0.35, 0.2)
_BENDS = (0.6, 0.3, 0.15, 0.07, 0.04)
_SHARP = 60
"""The largest variance of the levels is approached by the mean of this power of them."""

_LARGE = 8_000
"""Larger trees are tried with fewer powers and coarser shares."""


def field_shares(
    tree: Hierarchy, weights: Floats, worst: bool, rate: float, exchanges: bool, most_draws: float
) -> list[Fraction]:
    """The best shares found whose sampler stays within the draws allowed."""
    if worst:
        weights = worst_weights(tree, weights)
    search = _ShareSearch(tree, weights, worst, rate, exchanges, most_draws)
    start = gaussian_shares(tree, weights, WORST_POWER if worst else 1).shares
    small = len(tree) <= _LARGE
    better = [search.attempt(start, power) for power in (_POWERS if small else _COARSE)]
    if not small and not any(
        better[1:]
    ):  # they would take too many draws: less above the leaves, until it fits
        for power in _LESS:
            if search.attempt(start, power):
                break
    if exchanges and tree.roots == 1:
        for root in (0.25, 0.5):  # a larger share of the root makes replacing cheaper
            search.attempt(_with_root(start, root), 1.0)
    if worst:
        search.attempt(uniform_shares(tree))
    for bend in _BENDS if small else ():
        for depth in range(len(tree.levels) - 1):
            if not search.bend(depth, bend):
                search.bend(depth, -bend)
    return search.shares


@dataclass(eq=False)
class _ShareSearch:
    """The best shares so far."""

    tree: Hierarchy
    weights: Floats
    worst: bool
    rate: float
    exchanges: bool
    most_draws: float
    value: float = np.inf
    shares: list[Fraction] = field(default_factory=list[Fraction])

    def attempt(self, near: Floats, power: float = 1.0) -> bool:
        """Try shares. True if they are better than all before."""
        step = 0.003 if len(self.tree) <= _LARGE else 0.05
        shares = exact_shares(self.tree, near, power, step)
        cost = float(replacing_cost(self.tree, shares)) if self.exchanges else 1.0
        law = FieldLaw(FieldTypes.find(self.tree, shares), self.rate / cost)
        if law.draws > self.most_draws:
            return False
        variance = law.variance
        value = self._worst(variance) if self.worst else float(self.weights @ variance)
        better = value < self.value * (1 - 1e-6)
        if better:
            self.value, self.shares = value, shares
        return better

    def _worst(self, variance: Floats) -> float:
        """Nearly the largest variance, but smooth in those of the levels, so that a search does not stop at a corner."""
        of_levels = [float(np.max(variance[level] * (self.weights[level] > 0))) for level in self.tree.levels]
        largest = max(of_levels) or 1.0  # powers of shares of it cannot overflow; 0 where epsilon is huge
        return largest * float(np.mean((np.array(of_levels) / largest) ** _SHARP)) ** (1 / _SHARP)

    def bend(self, depth: int, by: float) -> bool:
        """Let the nodes of one level keep more or less of what is left to them, and go on while that helps."""
        bent = False
        while self.attempt(_bent(self.tree, np.array([float(s) for s in self.shares]), depth, by)):
            bent = True
        return bent


def _bent(tree: Hierarchy, shares: Floats, depth: int, by: float) -> Floats:
    """The shares after the odds of keeping at one level are multiplied by ``exp(by)``."""
    left, result = np.ones(len(tree)), shares.copy()
    old = np.ones(len(tree))
    for level in tree.levels:
        above = tree.parent[level]
        if level.start:
            old[level] = np.maximum(old[above] - shares[above], 1e-9)
            left[level] = np.maximum(left[above] - result[above], 1e-9)
        kept = np.clip(shares[level] / old[level], 1e-4, 1 - 1e-4)
        if int(tree.depth[level.start]) == depth:
            kept = 1 / (1 + (1 / kept - 1) * np.exp(-by))
        result[level] = np.where(tree.leaf[level], left[level], kept * left[level])
    return result


def _with_root(shares: Floats, root: float) -> Floats:
    """The shares with another one for the root."""
    rest = shares * (1 - root) / max(1 - shares[0], 1e-9)
    rest[0] = root
    return rest


# Noise on a hierarchy that adds up, under pure differential privacy.

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

    care: str | dict[str, str] = field(hash=False)
    shares: dict[str, str] = field(hash=False)
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
