"""Shares for a tree field, those that are best for Gaussian noise, bent until they are good for the field.

The best shares of a field are no convex problem. With those of Gaussian noise, what is left below each node raised to
a power is tried, by the exact law; the power 0 leaves everything to the leaves, so the result is never worse than that.
Then what the nodes of a level keep is raised or lowered, level by level. All of it depends on public numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats
from isotone.counts.hierarchies.field_law import FieldLaw, FieldTypes
from isotone.counts.hierarchies.node_shares import (
    WORST_POWER,
    exact_shares,
    gaussian_shares,
    uniform_shares,
    worst_weights,
)
from isotone.counts.hierarchies.stated_shares import replacing_cost
from isotone.linear.least_squares import Hierarchy

__all__ = ["field_shares"]

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
