"""Counts of a hierarchy that are not negative and still add up.

The closest such counts in weighted least squares, exactly: the price of one more record below a node is a piecewise
linear function of its count; children's counts at a price add up, and a node's own weight moves the prices
(docs/theory/hierarchies.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.counts.hierarchies.hierarchy_tree import require_hierarchy
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy, round_tree
from isotone.order import Poset

__all__ = ["AddsUp", "consistent_hierarchy", "project_tree"]


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
        asked = price[above] if above >= 0 else _root_price(prices[x], amounts[x], slopes[x], upper)
        result[x] = _at(prices[x], amounts[x], slopes[x], np.array([asked]))[0]
        price[x] = asked - weights[x] * (result[x] - values[x])
    return _added(tree, result)


def _at(prices: Floats, amounts: Floats, slope: float, asked: Floats) -> Floats:
    """A piecewise linear amount at the prices asked, 0 before the first."""
    beyond = np.maximum(asked - prices[-1], 0.0) * slope
    return np.interp(asked, prices, amounts) + beyond


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
