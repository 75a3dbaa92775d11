"""Least squares on trees of sums, whose nodes are measured with independent noise, in O(n).

Up the tree the best estimate of each node from its own subtree, and down the best of all (docs/theory/hierarchies.md,
section 2). A tree over a line of cells gives running sums (docs/theory/baselines.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints

T = TypeVar("T", np.int64, np.float64)

_FRACTIONS = 1 << 20
"""Fractions that are equal to one part of these are equal: floats are no closer."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nodes numbered from the top, level by level, those with one parent side by side.

    ``parent`` is -1 for roots. ``node`` is the node of each element of the order.
    """

    parent: Ints
    node: Ints

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def leaf(self) -> NDArray[np.bool_]:
        """Which nodes have nothing below them."""
        leaf = np.ones(len(self), np.bool_)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf

    @cached_property
    def depth(self) -> Ints:
        """How many nodes are above each."""
        depth = np.zeros(len(self), np.int64)
        for x, above in enumerate(self.parent.tolist()):
            if above >= 0:
                depth[x] = depth[above] + 1
        return depth

    @cached_property
    def levels(self) -> list[slice]:
        """The nodes of each level, roots first."""
        ends = np.cumsum(np.bincount(self.depth)).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def roots(self) -> int:
        """How many nodes have nothing above them."""
        return self.levels[0].stop

    def sums(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of the leaves below each node (last axis), given values of which those at leaves count."""
        total = np.where(self.leaf, leaves, 0)
        for level in reversed(self.levels[1:]):
            above = self.parent[level]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            total[..., above[first]] += np.add.reduceat(total[..., level], first, axis=-1)
        return total

    def below(self, values: Floats, level: slice) -> Floats:
        """For each node the sum of the values at its children in one level, given those values."""
        return np.bincount(self.parent[level], values, len(self)).astype(np.float64)

    def leaves_of(self, counts: NDArray[T]) -> NDArray[T]:
        """Counts by element as values by node, in which remainders make nodes add up."""
        values = np.zeros((*counts.shape[:-1], len(self)), counts.dtype)
        values[..., self.node] = counts
        rest = values.copy()
        for level in self.levels[1:]:
            above = self.parent[level]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            rest[..., above[first]] -= np.add.reduceat(values[..., level], first, axis=-1)
        published = np.zeros(len(self), np.bool_)
        published[self.node] = True
        remainders = np.flatnonzero(~published)
        values[..., remainders] = rest[..., self.parent[remainders]]
        return values


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


@dataclass(frozen=True)
class SumTree:
    """The tree over ``cells`` cells of a line, in which a node has up to ``branching`` children.

    The lowest level holds the cells; each node above sums up to ``branching`` neighbours of the level below, up to one
    root (Hay, Rastogi, Miklau and Suciu 2010). Without a root it ends with the children of one, if these are sums of
    cells themselves. Every cell is in exactly one node of every level.

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

    @cached_property
    def fit(self) -> TreeLeastSquares:
        """Least squares where all nodes have noise of variance 1."""
        parents, start = [np.full(self.lengths[-1], -1)], 0
        for above, length in zip(self.lengths[:0:-1], self.lengths[-2::-1], strict=True):
            parents.append(start + np.arange(length) // self.branching)
            start += above
        tree = Hierarchy(np.concatenate(parents).astype(np.int64), np.empty(0, np.int64))
        return TreeLeastSquares.of(tree, np.ones(len(tree)))

    def sums(self, cells: Ints) -> Ints:
        """All nodes (last axis), the cells first and each level after the one below it, as exact integers."""
        levels = [cells]
        for below in self.lengths[:-1]:
            levels.append(np.add.reduceat(levels[-1], np.arange(0, below, self.branching), axis=-1))
        return np.concatenate(levels, axis=-1)

    @cached_property
    def _down(self) -> Ints:
        """The place among the nodes, cells first, of each node of the tree, which is numbered from the top."""
        ends = np.cumsum(self.lengths)
        return np.concatenate([np.arange(e - n, e) for e, n in zip(ends, self.lengths, strict=True)][::-1])

    def running_sums(self, nodes: Floats) -> Floats:
        """The least-squares running sums over the cells (last axis), given noisy nodes, cells first."""
        return np.cumsum(self.fit.estimate(nodes[..., self._down])[..., -self.cells :], axis=-1)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each least-squares running sum when every node has noise of variance 1.

        Given its whole, the running sum within a subtree is ``slope · whole`` plus an independent remainder;
        both are carried from the cell up to the highest level, whose nodes are independent.
        """
        levels = self.fit.tree.levels
        slope, remainder = np.ones(self.cells), np.zeros(self.cells)
        position = np.arange(self.cells)
        for level, above in zip(levels[:0:-1], levels[-2::-1], strict=True):
            upward = self.fit.upward[level]
            own, total = upward[position], self.fit.spread[above][position // self.branching]
            before = np.concatenate(([0.0], np.cumsum(upward)))
            left = before[position] - before[position // self.branching * self.branching]
            reach = left + slope * own
            remainder += left + slope**2 * own - reach**2 / total
            slope = reach / total
            position //= self.branching
        top = self.fit.upward[levels[0]]
        return remainder + slope**2 * top[position] + np.concatenate(([0.0], np.cumsum(top)))[position]


def round_tree(tree: Hierarchy, values: Floats, ties: NDArray[np.uint64] | None = None) -> NDArray[np.int64]:
    """Values that add up, rounded to integers that still do, from the top. Rows are rounded each by itself.

    The children of a node are rounded down, and those with the largest fractions up, until they add up; so each is off
    by less than 1 more than its parent. Of equal fractions those with the least number in ``ties`` are rounded up, or the
    first: with random numbers values and their negatives are rounded alike.
    """
    result = np.rint(values).astype(np.int64)
    break_ties = np.broadcast_to(np.arange(len(tree)) if ties is None else ties, result.shape)
    for level in tree.levels[1:]:
        above = tree.parent[level]
        low = np.floor(values[..., level])
        first = np.flatnonzero(np.diff(above, prepend=-1))
        size = np.diff(np.append(first, above.size))
        missing = result[..., above[first]] - np.add.reduceat(low, first, axis=-1).astype(np.int64)
        fraction = np.rint((low - values[..., level]) * _FRACTIONS)
        parents = np.broadcast_to(above, low.shape)
        order = np.lexsort((break_ties[..., level], fraction, parents))  # the largest fractions first
        rank = np.empty(low.shape, np.int64)
        place = np.broadcast_to(np.arange(above.size) - np.repeat(first, size), low.shape)
        np.put_along_axis(rank, order, place, axis=-1)
        share, more = (np.repeat(part, size, axis=-1) for part in np.divmod(missing, size))
        result[..., level] = low.astype(np.int64) + share + (rank < more)
    return result
