"""Least squares along the levels of one attribute, where all nodes of a level are measured alike.

For each level it says how much of the variance of an estimate comes from the noise of that level
(docs/theory/breakdowns.md, section 3). An attribute without levels is a tree of one node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isotone.array_types import Floats
from isotone.counts.breakdowns.cells import Attribute
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares

__all__ = ["LevelFit", "Levels"]


@dataclass(frozen=True, eq=False)
class Levels:
    """The nodes of an attribute with levels, below one node for all of its values."""

    tree: Hierarchy

    @classmethod
    def of(cls, attribute: Attribute | None) -> Levels:
        """The tree of an attribute, or one node if there is none."""
        parents = [np.array([-1])]
        start = 0
        for level in range(1, 1 + (0 if attribute is None else len(attribute.names))):
            assert attribute is not None
            above = (
                np.zeros(attribute.size(1), np.int64)
                if level == 1
                else np.array(attribute.parents[level - 2])
            )
            parents.append(above + start)
            start += attribute.size(level - 1)
        return cls(Hierarchy(np.concatenate(parents).astype(np.int64), np.empty(0, np.int64)))

    def __len__(self) -> int:
        return len(self.tree.levels)

    @cached_property
    def _cut(self) -> list[Hierarchy]:
        """The tree without what is finer than each level."""
        nowhere = np.empty(0, np.int64)
        return [Hierarchy(self.tree.parent[: level.stop], nowhere) for level in self.tree.levels]

    def fit(self, precision: Floats) -> LevelFit:
        """Least squares for one precision a level, down to the finest level that is measured."""
        tree = self._cut[int(np.flatnonzero(precision)[-1])]
        return LevelFit(TreeLeastSquares.of(tree, precision[tree.depth]), precision)


@dataclass(frozen=True, eq=False)
class LevelFit:
    """Estimates of all nodes, and where their variance comes from."""

    fit: TreeLeastSquares
    precision: Floats

    @property
    def tree(self) -> Hierarchy:
        """The nodes, down to the finest level that is measured."""
        return self.fit.tree

    @cached_property
    def contributions(self) -> Floats:
        """The part of each node's variance that the noise of each level has, a row a node."""
        tree, fit, levels = self.tree, self.fit, len(self.tree.levels)
        if levels == 1:
            return fit.variance[:, None]
        n = len(tree)
        upward, gap = np.zeros((n, levels)), np.zeros((n, levels))
        weight = np.where(tree.leaf, 0.0, fit.precision * fit.spread)
        for depth, level in reversed(list(enumerate(tree.levels))):
            leaf = tree.leaf[level]
            own = np.where(leaf, 1.0, weight[level] * fit.spread[level])  # weight² over the precision
            own = np.where(leaf, fit.upward[level], own)
            upward[level] = gap[level]
            upward[level, depth] += own
            upward[level] /= (1 + weight[level])[:, None] ** 2
            if level.start:
                above = tree.parent[level]
                first = np.flatnonzero(np.diff(above, prepend=-1))
                gap[above[first]] = np.add.reduceat(upward[level], first, axis=0)
        final = upward.copy()
        pull = 1 / (1 + weight)  # how much of what its children say is in the estimate of a node
        for level in tree.levels[1:]:
            above, share = tree.parent[level], fit.share[level][:, None]
            less = share * (1 - pull[above][:, None])
            others = gap[above] - upward[level]
            elsewhere = final[above] - pull[above][:, None] ** 2 * gap[above]
            final[level] = (1 - less) ** 2 * upward[level] + less**2 * others + share**2 * elsewhere
            pull[level] *= 1 - less[:, 0]
        return final

    def means(self) -> Floats:
        """The mean of the contributions over the nodes of each level, a row a level."""
        return np.array([self.contributions[level].mean(axis=0) for level in self.tree.levels])

    def estimate(self, measured: Floats) -> Floats:
        """The estimate of all nodes (last axis), which add up, from one measured number a node."""
        return self.fit.estimate(measured)
