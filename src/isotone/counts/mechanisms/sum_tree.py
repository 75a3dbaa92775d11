"""A tree of sums over a line of cells, and the best estimate of running sums from its noisy nodes.

The lowest level holds the cells; each node above sums up to ``branching`` neighbours of the level below, up
to one root, or up to the children of one that is left out. Every cell is in exactly one node of every level. When all nodes carry independent noise of one
variance, the least-squares estimate is two passes over the tree (Hay, Rastogi, Miklau and Suciu 2010; here
for levels of any length: docs/theory/baselines.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats

__all__ = ["SumTree"]

T = TypeVar("T", np.int64, np.float64)


@dataclass(frozen=True)
class SumTree:
    """The tree over ``cells`` cells in which a node has up to ``branching`` children.

    Without a root it ends with the children of one, if these are sums of cells themselves.

    >>> SumTree(5, 2).lengths, SumTree(5, 2, root=False).lengths
    ((5, 3, 2, 1), (5, 3, 2))
    """

    cells: int
    branching: int
    root: bool = True

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The number of nodes on each level, cells first."""
        lengths = [self.cells]
        while lengths[-1] > 1:
            lengths.append(-(-lengths[-1] // self.branching))
        return tuple(lengths if self.root or len(lengths) < 3 else lengths[:-1])

    def changed(self, exchanges: bool) -> int:
        """The most nodes that one record changes when it is added or removed, or also when it moves."""
        levels, shared = len(self.lengths), self.lengths[-1] == 1
        return max(levels, 2 * (levels - shared)) if exchanges else levels

    def sums(self, cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The nodes of every level, cells first, as exact integers."""
        levels = [cells]
        for _ in self.lengths[1:]:
            levels.append(self._grouped(levels[-1]))
        return levels

    def running_sums(self, nodes: list[Floats]) -> Floats:
        """The least-squares running sums over the cells, given noisy ``nodes``, level by level.

        The last axis is the position in a level; other axes are independent repetitions.
        """
        estimates = [nodes[0]]
        for level, measured in enumerate(nodes[1:]):
            below, spread = self._grouped(estimates[-1]), self._child_variance[level]
            estimates.append((measured * spread + below) / (1 + spread))
        best = estimates[-1]
        for level in range(len(nodes) - 2, -1, -1):
            share = self._variances[level] / self._spread_out(self._child_variance[level], level)
            missing = best - self._grouped(estimates[level])
            best = estimates[level] + share * self._spread_out(missing, level)
        return np.cumsum(best, axis=-1)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each least-squares running sum when every node has noise of variance 1.

        Given its whole, the running sum within a subtree is ``slope · whole`` plus an independent remainder;
        both are carried from the cell up to the highest level, whose nodes are independent.
        """
        slope, remainder = np.ones(self.cells), np.zeros(self.cells)
        position = np.arange(self.cells)
        for level in range(len(self.lengths) - 1):
            own = self._variances[level][position]
            total = self._child_variance[level][position // self.branching]
            before = np.concatenate(([0.0], np.cumsum(self._variances[level])))
            left = before[position] - before[position // self.branching * self.branching]
            reach = left + slope * own
            remainder += left + slope**2 * own - reach**2 / total
            slope = reach / total
            position //= self.branching
        top = self._variances[-1]
        return remainder + slope**2 * top[position] + np.concatenate(([0.0], np.cumsum(top)))[position]

    @cached_property
    def _variances(self) -> list[Floats]:
        """The variance of each node as estimated from its own subtree, level by level."""
        levels = [np.ones(self.cells)]
        for _ in self.lengths[1:]:
            spread = self._grouped(levels[-1])
            levels.append(spread / (1 + spread))
        return levels

    @cached_property
    def _child_variance(self) -> list[Floats]:
        """For each level but the cells, the variance of each node as the sum of its children."""
        return [self._grouped(level) for level in self._variances[:-1]]

    def _grouped(self, values: NDArray[T]) -> NDArray[T]:
        starts = np.arange(0, values.shape[-1], self.branching)
        return np.add.reduceat(values, starts, axis=-1)

    def _spread_out(self, values: Floats, level: int) -> Floats:
        return np.repeat(values, self.branching, axis=-1)[..., : self.lengths[level]]
