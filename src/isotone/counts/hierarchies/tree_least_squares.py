"""Least squares on a tree whose nodes are measured with independent noise, and its derivative, in O(n).

Up the tree the best estimate of each node from its own subtree, and down the best of all
(docs/theory/hierarchies.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats
from isotone.counts.hierarchies.hierarchy_tree import Hierarchy

__all__ = ["TreeLeastSquares"]


@dataclass(frozen=True, eq=False)
class TreeLeastSquares:
    """The estimate from measurements whose precisions are ``precision``, zero where nothing is measured.

    ``upward`` is the variance of each node from its subtree alone, ``spread`` the sum of those of its children,
    ``share`` the part of a correction of its parent that it takes, ``variance`` that of the final estimate.
    """

    tree: Hierarchy
    precision: Floats
    upward: Floats
    spread: Floats
    share: Floats
    variance: Floats

    @classmethod
    def of(cls, tree: Hierarchy, precision: Floats) -> TreeLeastSquares:
        """The passes up and down. Leaves must be measured."""
        n = len(tree)
        upward, spread = np.zeros(n), np.zeros(n)
        for level in reversed(tree.levels):
            leaf, own, wide = tree.leaf[level], precision[level], spread[level]
            upward[level] = np.where(leaf, 1 / np.where(leaf, own, 1.0), wide / (1 + own * wide))
            if level.start:
                spread += tree.below(upward[level], level)
        variance, share = upward.copy(), np.zeros(n)
        for level in tree.levels[1:]:
            above = tree.parent[level]
            share[level] = upward[level] / spread[above]
            variance[level] = upward[level] * (1 - share[level]) + share[level] ** 2 * variance[above]
        return cls(tree, precision, upward, spread, share, variance)

    def derivative(self, weights: Floats) -> Floats:
        """The derivative of ``weights @ variance`` in each precision."""
        tree, n = self.tree, len(self.tree)
        passed = weights.copy()
        for level in reversed(tree.levels[1:]):
            passed += tree.below(self.share[level] ** 2 * passed[level], level)
        by_spread = np.zeros(n)
        for level in tree.levels[1:]:
            above = tree.parent[level]
            ratio = self.variance[above] / self.spread[above]
            by_spread += tree.below(passed[level] * self.share[level] ** 2 * (1 - 2 * ratio), level)
        result, from_above = np.empty(n), np.zeros(n)
        for level in tree.levels:
            if level.start == 0:
                by_upward = passed[level]
            else:
                above, share = tree.parent[level], self.share[level]
                ratio = self.variance[above] / self.spread[above]
                by_upward = from_above[above] + passed[level] * (1 - 2 * share + 2 * share * ratio)
            result[level] = -by_upward * self.upward[level] ** 2
            wide = np.where(tree.leaf[level], 1.0, self.spread[level])
            from_above[level] = np.where(tree.leaf[level], 0.0, -result[level] / wide**2 + by_spread[level])
        return result

    def estimate(self, measured: Floats) -> Floats:
        """The estimate of each node (last axis) from the measured values, which add up afterwards."""
        tree = self.tree
        best = measured.astype(np.float64)
        gap = np.zeros_like(best)
        for level in reversed(tree.levels):
            inner = ~tree.leaf[level]
            if inner.any():
                nodes = np.arange(level.start, level.stop)[inner]
                weight = self.precision[nodes] * self.spread[nodes]
                best[..., nodes] = (weight * best[..., nodes] + gap[..., nodes]) / (1 + weight)
            if level.start:
                above = tree.parent[level]
                first = np.flatnonzero(np.diff(above, prepend=-1))
                gap[..., above[first]] = np.add.reduceat(best[..., level], first, axis=-1)
        for level in tree.levels[1:]:
            above = tree.parent[level]
            best[..., level] += self.share[level] * (best[..., above] - gap[..., above])
        return best
