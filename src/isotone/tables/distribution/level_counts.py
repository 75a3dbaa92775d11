"""Counts at every level of a tree, made consistent by least squares.

This is the hierarchical strategy.

Hay, Rastogi, Miklau and Suciu 2010; branching factor 16 as Qardaji, Yang and Li 2013 recommend.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["IntervalHierarchy"]


class IntervalHierarchy:
    """How many categories fall in each block of ``branching^h`` bins, for every height ``h`` below the root.

    The root is N, public. A step moves one category between bins that share a block from some height on:
    at each height below, one block loses it and another gains it, so ``l1`` is twice the number of levels.

    The estimate is the weighted least-squares fit: weighted averaging from the leaves up, mean consistency
    from the root down. Blocks at the right edge may have fewer children than ``branching``, so each block
    carries its own variance, and a discrepancy is shared among children in proportion to theirs.
    """

    def __init__(self, n: int, branching: int = 16) -> None:
        self.branching = branching
        self.widths = [n]  # number of blocks at each level, from the bins up to the level below the root
        while self.widths[-1] > branching:
            self.widths.append(-(-self.widths[-1] // branching))
        if n == 1:
            self.widths = []

    @property
    def l1(self) -> int:
        """Twice the number of measured levels."""
        return 2 * len(self.widths)

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The blocks, from the bins up, each level from left to right."""
        levels: list[NDArray[np.int64]] = []
        blocks = histogram
        for _ in self.widths:
            levels.append(blocks)
            blocks = self._children_sums(blocks)
        return np.concatenate(levels) if levels else np.zeros(0, np.int64)

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The least-squares fit of the bins, given that they sum to ``size``."""
        if not self.widths:
            return np.array([float(size)])
        measured = np.split(noisy, np.cumsum(self.widths)[:-1])
        values, variances = [measured[0]], [np.ones(self.widths[0])]
        for own in measured[1:]:  # weighted averaging: a block's own measurement against its children
            below, spread = self._children_sums(values[-1]), self._children_sums(variances[-1])
            values.append((own * spread + below) / (spread + 1))
            variances.append(spread / (spread + 1))
        parents = np.array([float(size)])
        for value, variance in zip(reversed(values), reversed(variances), strict=True):
            branching = len(value) if len(parents) == 1 else self.branching
            parent = np.arange(len(value)) // branching
            missing = parents - np.bincount(parent, value)
            parents = value + variance * (missing / np.bincount(parent, variance))[parent]
        return parents

    def _children_sums(self, blocks: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(blocks, np.arange(0, len(blocks), self.branching))
