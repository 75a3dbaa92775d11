"""How the budget is shared between the nodes of a hierarchy.

A record is in one node of each level, so the shares on the way from a root to a leaf add up to 1 at most. Say
``left`` of a node is what is left for all that is below its parent; a node keeps a part of it, a leaf all. For
Gaussian noise the best shares are a smooth convex problem, with a bound for every other choice of shares, and a
closed form if all nodes of a level are alike (docs/theory/hierarchies.md, sections 2 and 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares

__all__ = ["GaussianShares", "exact_shares", "gaussian_shares", "uniform_shares", "worst_weights"]

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
    found = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-25, 25)] * begin.size,
        options={"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 1e-12, "gtol": 1e-9},
    )
    shares, _, _ = shares_at(found.x)
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
