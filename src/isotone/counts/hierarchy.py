"""Counts of hierarchies: the tree of an order, shares of a budget, noise on nodes, and counts that add up."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.counts.mechanism import (
    AdditiveMechanism,
    Care,
    LinearCounts,
    care_of,
    care_weights,
    gaussian_guarantee,
    gaussian_variance,
)
from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares, round_tree
from isotone.linear.strategy import Gaussian, Geometric, MeasuredTree
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.order.building import children_of, hierarchy_problem
from isotone.privacy.checks import Number, exact
from isotone.privacy.draws import SeededDraws
from isotone.privacy.guarantee import Guarantee, Neighbours

# The tree behind an order whose records have one leaf each.
#
# In a hierarchy the children of every element exclude each other. Where they are no partition, a record may stop at
# the element itself: it is then in a *remainder*, a leaf that is not published. An element whose only child is a
# partition has the same count as the child, and both are one node.


def require_hierarchy(P: Poset) -> Hierarchy:
    """The tree of a hierarchy, or an error that says what is missing."""
    problem = hierarchy_problem(P)
    if problem is not None:
        raise InputError(
            f"This order is no hierarchy, in which a record has one leaf: {problem}. Build it with "
            'Poset.from_mapping(parents, children="partition"), or use PosetMechanism.'
        )
    return _plant(P)


def _plant(P: Poset) -> Hierarchy:
    children = children_of(P, P.canonical.positions.tolist())
    kinds = {option: choice.kind for choice in P.choices for option in choice.options}
    parent: list[int] = []
    node: dict[Hashable, int] = {}
    waiting: deque[tuple[Hashable | None, int]] = deque((x, -1) for x in children[None])
    while waiting:
        x, above = waiting.popleft()
        here = len(parent)
        parent.append(above)
        if x is None:  # a remainder
            continue
        node[x] = here
        while len(children.get(x, ())) == 1 and kinds.get(children[x][0]) == "partition":
            x = children[x][0]
            node[x] = here
        below = children.get(x, [])
        waiting.extend((y, here) for y in below)
        if below and kinds.get(below[0]) != "partition":
            waiting.append((None, here))
    return Hierarchy(np.array(parent, np.int64), np.array([node[x] for x in P.elements], np.int64))


# Shares by element, as they stand in a manifest, and as shares of the nodes of a tree.


def shares_by_node(P: Poset, tree: Hierarchy, shares: Mapping[Any, Any]) -> list[Fraction]:
    """The shares of the nodes, given those of elements (0 where none is given).

    A remainder has what is left of 1.
    """
    place = {str(x): int(tree.node[i]) for i, x in enumerate(P.elements)}
    result = [Fraction(0)] * len(tree)
    for name, number in shares.items():
        if str(name) not in place:
            raise InputError(f"shares= names {name!r}, which is not an element of this order.")
        share = exact(number, f"the share of {name!r}")
        if share < 0:
            raise InputError(f"The share of {name!r} must not be negative.")
        result[place[str(name)]] += share
    published = set(place.values())
    used = list(result)
    for x, above in enumerate(tree.parent.tolist()):
        if x not in published:
            result[x] = 1 - used[above]
        elif above >= 0:
            used[x] += used[above]
    check_paths(tree, result)
    return result


def check_paths(tree: Hierarchy, shares: list[Fraction]) -> None:
    """Refuse shares that add up to more than 1 on some way, or leave a leaf without noise."""
    used = list(shares)
    for x, above in enumerate(tree.parent.tolist()):
        if above >= 0:
            used[x] += used[above]
        if tree.leaf[x] and shares[x] <= 0:
            raise InputError("Every leaf, and every remainder, needs a share above 0.")
        if tree.leaf[x] and used[x] > 1:
            raise InputError(f"The shares on the way to a leaf add up to {used[x]}, which is more than 1.")


def shares_by_element(P: Poset, tree: Hierarchy, shares: list[Fraction]) -> dict[str, str]:
    """The shares that are not 0, as exact text. A node of several elements is named by the highest."""
    names: dict[int, str] = {}
    for x in P.linear_order[::-1].tolist():
        names.setdefault(int(tree.node[x]), str(P.elements[x]))
    return {name: str(shares[node]) for node, name in sorted(names.items()) if shares[node]}


def replacing_cost(tree: Hierarchy, shares: list[Fraction]) -> Fraction:
    """How far replacing one record moves the counts, in the norm of the shares.

    It may leave one leaf for another, which moves all but the root twice, or be dropped, which moves one whole way.
    """
    return max(Fraction(1), 2 - 2 * shares[0]) if tree.roots == 1 else Fraction(2)


# How the budget is shared between the nodes of a hierarchy.
#
# A record is in one node of each level, so the shares on the way from a root to a leaf add up to 1 at most. Say
# ``left`` of a node is what is left for all that is below its parent; a node keeps a part of it, a leaf all. For
# Gaussian noise the best shares are a smooth convex problem, with a bound for every other choice of shares, and a
# closed form if all nodes of a level are alike (docs/theory/hierarchies.md, sections 2 and 3).

WORST_POWER = 24
"""The worst node is approached by the mean of this power of the variances."""

_UNIT = 1 << 24
"""Shares are multiples of one over this."""

_SMALLEST = 1e-4
"""No less than this is left for what is below a node."""

_STEPS = 400


@dataclass(frozen=True)
class GaussianShares:
    """Shares by node, and how far the weighted variance is above that of the best shares, at most."""

    shares: Floats
    gap: float


def gaussian_shares(tree: Hierarchy, weights: Floats, power: int = 1) -> GaussianShares:
    """The shares with the nearly least ``weights @ variance**power`` for Gaussian noise.

    The gap is known for power 1; otherwise it is NaN.
    """
    closed = _closed_form(tree, weights) if power == 1 else None
    if closed is not None:
        return GaussianShares(closed, _gap(tree, weights, closed))
    from scipy.optimize import minimize
    from scipy.special import expit

    inner = ~tree.leaf

    def shares_at(logits: Floats) -> tuple[Floats, Floats, Floats]:
        kept = np.ones(len(tree))
        kept[inner] = expit(logits)
        left = np.ones(len(tree))
        for level in tree.levels[1:]:
            above = tree.parent[level]
            left[level] = left[above] * (1 - kept[above])
        return left * kept, left, kept

    def objective(logits: Floats) -> tuple[float, Floats]:
        shares, left, kept = shares_at(logits)
        fit = TreeLeastSquares.of(tree, shares)
        largest = float((weights * fit.variance).max())
        scaled = (weights * fit.variance / largest) ** power
        value = np.log(largest) + np.log(scaled.sum()) / power
        outer = weights * (weights * fit.variance / largest) ** (power - 1) / (largest * scaled.sum())
        return float(value), _by_logit(tree, fit.derivative(outer), left, kept)[inner]

    begin = -np.log(np.maximum(_heights(tree), 1.0))[inner]
    if begin.size == 0:
        return GaussianShares(np.ones(len(tree)), 0.0)
    result = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-25, 25)] * begin.size,
        options={"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 1e-12, "gtol": 1e-9},
    )
    shares, _, _ = shares_at(result.x)
    return GaussianShares(shares, _gap(tree, weights, shares) if power == 1 else float("nan"))


def _by_logit(tree: Hierarchy, by_share: Floats, left: Floats, kept: Floats) -> Floats:
    """The derivative in the logit of what each node keeps, given that in its share."""
    from_below, result = np.zeros(len(tree)), np.zeros(len(tree))
    for level in reversed(tree.levels):
        passed = from_below[level]
        result[level] = (by_share[level] - passed) * left[level] * kept[level] * (1 - kept[level])
        if level.start:
            from_below += tree.below(by_share[level] * kept[level] + passed * (1 - kept[level]), level)
    return result


def _gap(tree: Hierarchy, weights: Floats, shares: Floats) -> float:
    """A bound on how far the weighted variance is above the best, as a fraction.

    One over it is concave and homogeneous in the shares, so the best linear gain bounds it.
    """
    fit = TreeLeastSquares.of(tree, shares)
    best = -fit.derivative(weights)
    for level in reversed(tree.levels[1:]):
        below = tree.below(best[level], level)
        best = np.where(tree.leaf, best, np.maximum(best, below))
    return float(best[tree.levels[0]].sum() / (weights @ fit.variance)) - 1


def _closed_form(tree: Hierarchy, weights: Floats) -> Floats | None:
    """The best shares if all nodes of a level have as many children and the same weight, else None."""
    sizes = np.array([level.stop - level.start for level in tree.levels], float)
    if tree.leaf[: tree.levels[-1].start].any() or len(sizes) < 2:
        return None
    for level in tree.levels[1:]:
        if len(set(np.bincount(tree.parent[level] - tree.parent[level][0]).tolist())) > 1:
            return None
    by_level = [weights[level] for level in tree.levels]
    if any(np.ptp(part) > 1e-12 * np.max(part) for part in by_level):
        return None
    each, block = np.array([part[0] for part in by_level]), sizes[-1] / sizes
    gain = np.sqrt(np.cumsum((each * block)[::-1])[::-1])  # of a contrast between the nodes of each level
    dimensions = np.diff(sizes, prepend=0.0)
    eigenvalues = gain * sizes[-1] / (dimensions @ gain)
    return ((eigenvalues - np.append(eigenvalues[1:], 0.0)) / block)[tree.depth]


def _heights(tree: Hierarchy) -> Floats:
    """The number of levels below each node."""
    height = np.zeros(len(tree))
    for level in reversed(tree.levels[1:]):
        np.maximum.at(height, tree.parent[level], height[level] + 1)
    return height


def worst_weights(tree: Hierarchy, weights: Floats) -> Floats:
    """Weights under which a mean of powers looks at the worst node of every level, however many it has."""
    sizes = np.bincount(tree.depth)[tree.depth]
    return np.where(weights > 0, sizes ** (-1 / WORST_POWER), 0.0)


def uniform_shares(tree: Hierarchy) -> Floats:
    """As much for each level of the longest way. What is over goes to the leaves."""
    share = np.full(len(tree), 1 / len(tree.levels))
    return np.where(tree.leaf, 1 - tree.depth / len(tree.levels), share)


def exact_shares(tree: Hierarchy, shares: Floats, power: float = 1.0, step: float = 0.01) -> list[Fraction]:
    """Fractions near ``shares`` whose sum on every way from a root to a leaf is exactly 1.

    What is left below each node is rounded to powers of ``1 - step``, so that there are few different shares, and
    raised to ``power``: 1 keeps it, 0 leaves all to the leaves.
    """
    above = np.zeros(len(tree))
    for level in tree.levels[1:]:
        parents = tree.parent[level]
        above[level] = above[parents] + shares[parents]
    rest = np.clip(1 - above - np.where(tree.leaf, 0.0, shares), _SMALLEST, 1.0) ** power
    steps = np.rint(np.log(rest) / np.log1p(-step))
    left = np.maximum(np.floor(_UNIT * (1 - step) ** steps), 1).astype(np.int64)
    result: list[Fraction] = []
    known: dict[int, Fraction] = {}
    for x, up in enumerate(tree.parent.tolist()):
        before = _UNIT if up < 0 else int(left[up])
        left[x] = min(int(left[x]), before)  # rounding keeps the sequence, whatever the shares were
        units = before if tree.leaf[x] else before - int(left[x])
        result.append(known.setdefault(units, Fraction(units, _UNIT)))
    return result


# Counts of a hierarchy that are not negative and still add up.
#
# The closest such counts in weighted least squares, exactly: the price of one more record below a node is a piecewise
# linear function of its count; children's counts at a price add up, and a node's own weight moves the prices
# (docs/theory/hierarchies.md, section 6).


@dataclass(frozen=True, init=False)
class AddsUp(AdditiveMechanism):
    """What mechanisms for hierarchies have in common. Their outputs add up."""

    tree: Hierarchy

    def possible_outputs(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Whole outputs near those given that add up, one per row."""
        leaves = self.tree.leaves_of(np.rint(outputs).astype(np.int64))
        return self.tree.sums(leaves)[..., self.tree.node].astype(float)


def consistent_hierarchy(
    P: Poset,
    values: ArrayLike,
    weights: ArrayLike | None = None,
    upper: float | None = None,
    *,
    integers: bool = False,
) -> NDArray[np.float64] | NDArray[np.int64]:
    """The nonnegative counts of a hierarchy closest to released ``values`` that add up, none above ``upper``.

    Where many counts are near 0 this takes noise away from leaves, and makes the sums above them too large.
    """
    tree = require_hierarchy(P)
    given = np.asarray(values, dtype=float)
    if given.shape != (len(P),):
        raise InputError(f"Values must be one number for each of the {len(P)} elements.")
    weight = np.ones(len(P)) if weights is None else np.asarray(weights, dtype=float)
    # elements that share a node have the same count
    on_node = np.bincount(tree.node, weight, len(tree)).astype(np.float64)
    mean = np.bincount(tree.node, weight * given, len(tree)) / np.where(on_node > 0, on_node, 1)
    fitted = project_tree(tree, mean, on_node, upper)
    return round_tree(tree, fitted)[tree.node] if integers else fitted[tree.node]


def project_tree(tree: Hierarchy, values: Floats, weights: Floats, upper: float | None = None) -> Floats:
    """The values by node closest to those given whose leaves are not negative, and which add up.

    With ``upper`` no root, and so no node, is above it.
    Nodes of weight 0, such as remainders, are free; a free leaf below a measured node takes what is left over.
    """
    n = len(tree)
    prices: list[Floats] = [np.zeros(0)] * n
    amounts: list[Floats] = [np.zeros(0)] * n
    slopes = np.zeros(n)
    children: list[list[int]] = [[] for _ in range(n)]
    for x, above in enumerate(tree.parent.tolist()):
        if above >= 0:
            children[above].append(x)
    scale = float(weights[weights > 0].max()) if np.any(weights > 0) else 1.0
    weight = np.maximum(weights, 1e-9 * scale)  # a free node hardly resists
    for x in range(n - 1, -1, -1):
        if not children[x]:
            prices[x], amounts[x], slopes[x] = np.array([-weight[x] * values[x]]), np.zeros(1), 1 / weight[x]
            continue
        at = np.unique(np.concatenate([prices[c] for c in children[x]]))
        total, slope = np.zeros(at.size), 0.0
        for c in children[x]:
            total += _at(prices[c], amounts[c], slopes[c], at)
            slope += slopes[c]
        own = weights[x]
        prices[x], amounts[x], slopes[x] = at + own * (total - values[x]), total, slope / (1 + own * slope)
    result, price = np.zeros(n), np.zeros(n)
    for x, above in enumerate(tree.parent.tolist()):
        own_price = price[above] if above >= 0 else _root_price(prices[x], amounts[x], slopes[x], upper)
        result[x] = _at(prices[x], amounts[x], slopes[x], np.array([own_price]))[0]
        price[x] = own_price - weights[x] * (result[x] - values[x])
    return _added(tree, result)


def _at(prices: Floats, amounts: Floats, slope: float, at: Floats) -> Floats:
    """A piecewise linear amount at the prices asked, 0 before the first."""
    beyond = np.maximum(at - prices[-1], 0.0) * slope
    return np.interp(at, prices, amounts) + beyond


def _root_price(prices: Floats, amounts: Floats, slope: float, upper: float | None) -> float:
    """The price at the root, 0, or below it the one at which the amount is ``upper``."""
    if upper is None:
        return 0.0
    beyond = max(upper - amounts[-1], 0.0) / slope
    return min(0.0, float(np.interp(upper, amounts, prices)) + beyond)


def _added(tree: Hierarchy, leaves: Floats) -> Floats:
    """Each node as the sum of its leaves, so that rounding does not show."""
    total = np.where(tree.leaf, np.maximum(leaves, 0.0), 0.0)
    for level in reversed(tree.levels[1:]):
        total += tree.below(total[level], level)
    return total


# Independent noise on the nodes of a hierarchy, then least squares, for zCDP and (ε, δ), and to compare with.
#
# A record is in one node of each level. The noisy integers are all that is used after the draw: least squares, and the
# rounding that makes integers add up, are post-processing.


@dataclass(frozen=True, init=False)
class NodeMechanism(LinearCounts, AddsUp):
    """Noise of its own on each node that has a share, and the best estimate from all of them, in integers that add up."""

    care: str | dict[str, str] = field(hash=False)
    shares: dict[str, str] = field(hash=False)
    strategy: MeasuredTree = field(repr=False, compare=False)

    def _share(self, chosen: list[Fraction], care: str | dict[str, str], tree: Hierarchy) -> None:
        exchanges = self.unit.adjacency.exchanges
        cost = replacing_cost(tree, chosen) if exchanges else Fraction(1)
        self._set(strategy=MeasuredTree(tree, tuple(chosen), cost), tree=tree)
        self._set(care=care, shares=shares_by_element(self.P, tree, chosen))

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the whole numbers that a release adds to the counts, which add up."""
        rows = self.tree.leaves_of(np.asarray(self.simulate_independent(size, rng)))
        return Simulated.wrap(self.strategy.rounded(rows, SeededDraws(rng)).astype(float))

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far a release stays from the truth with at least the given probability.

        Rounding so that integers add up moves a count by a half at the top, and by at most 1 more a level.
        """
        return np.floor(self.unrounded_half_widths(confidence) + self.tree.depth[self.tree.node] + 0.5)

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        depth = int(self.tree.depth[self.tree.node].max())
        return float(np.floor(self.unrounded_simultaneous_half_width(confidence) + depth + 0.5))

    @property
    def rounding(self) -> float:
        """Rounding so that integers add up moves a count by a half at the top, and by at most 1 more a level."""
        return 0.5 + int(self.tree.depth.max())

    @property
    def whole_parts(self) -> float:
        """The least variance of a measured node."""
        return self.noise.part(max(self.strategy.shares)).variance


@dataclass(frozen=True, init=False)
class TreeGaussianMechanism(NodeMechanism):
    """Counts of a hierarchy from Gaussian noise on its nodes and least squares, as integers that add up.

    Give ``epsilon`` and ``delta``, or ``rho``. A node with share s has noise of variance ``variance / s``, and the shares
    on the way to a leaf add up to 1 at most. ``care`` says which error is to be small: the shares are then within
    ``gap`` of the best for Gaussian noise on nodes. ``shares`` gives them by element instead.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours`` (docs/theory/hierarchies.md, section 3).
    Error: exact, before rounding.

    >>> from isotone.order import Poset
    >>> T = Poset.from_mapping({"a": "all", "b": "all", "c": "all"}, children="partition")
    >>> m = TreeGaussianMechanism(T, rho="0.5")
    >>> m.release({"a": 5, "b": 3, "c": 0, "all": 8}).shape
    (4,)
    """

    noise: Gaussian
    gap: float = field(repr=False, compare=False)

    def __init__(
        self,
        P: Poset,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        care: Care = "nodes",
        shares: Mapping[Any, Any] | None = None,
    ) -> None:
        guarantee = gaussian_guarantee(epsilon, delta, rho, neighbours)
        self._settle(P, guarantee, contributions, max_size)
        tree, plain, gap = require_hierarchy(P), care_of(P, care), math.nan
        if shares is None:
            weights = np.bincount(tree.node, care_weights(P, plain), len(tree)).astype(np.float64)
            weights = worst_weights(tree, weights) if plain == "worst" else weights
            best = gaussian_shares(tree, weights, WORST_POWER if plain == "worst" else 1)
            chosen, gap = exact_shares(tree, best.shares), best.gap
        else:
            chosen = shares_by_node(P, tree, shares)
        self._share(chosen, plain, tree)
        variance = gaussian_variance(guarantee, self.strategy.sensitivity * self.unit.changes**2)
        self._set(noise=Gaussian(variance, guarantee.kind == "zcdp"), gap=gap)

    @property
    def variance(self) -> Fraction:
        """The variance of the noise on a node that has everything."""
        return self.noise.sigma2

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding."""
        rounding = self.tree.depth[self.tree.node]  # by at most 1 a level, and 1/2 at the top
        return super().unrounded_half_widths(confidence) + rounding


@dataclass(frozen=True, init=False)
class TreeLaplaceMechanism(NodeMechanism):
    """Counts of a hierarchy from two-sided geometric noise on its nodes and least squares, as integers that add up.

    The usual way (Hay, Rastogi, Miklau and Suciu 2010), with as much for each level unless ``shares`` says otherwise.
    :class:`TreeFieldMechanism` was better in every case tried.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/hierarchies.md, section 3).
    Error: exact, before rounding.

    >>> from isotone.order import Poset
    >>> T = Poset.from_mapping({"a": "all", "b": "all", "c": "all"}, children="partition")
    >>> TreeLaplaceMechanism(T, epsilon=1).shares["all"]
    '1/2'
    """

    noise: Geometric

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        shares: Mapping[Any, Any] | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        tree = require_hierarchy(P)
        self._share(_level_shares(tree) if shares is None else shares_by_node(P, tree, shares), "nodes", tree)

        rate = self.epsilon / (self.strategy.sensitivity * self.unit.changes)
        self._set(noise=Geometric(rate, lazy=True))

    @property
    def rate(self) -> Fraction:
        """Epsilon over the records of a unit, and over what replacing one costs."""
        return self.noise.rate


def _level_shares(tree: Hierarchy) -> list[Fraction]:
    """As much for each level of the longest way, what is over for the leaves."""
    levels = len(tree.levels)
    return [
        1 - Fraction(depth, levels) if leaf else Fraction(1, levels)
        for depth, leaf in zip(tree.depth.tolist(), tree.leaf.tolist(), strict=True)
    ]
