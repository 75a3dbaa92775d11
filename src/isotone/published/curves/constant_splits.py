"""Splits for increasing curves with few constant pieces (docs/theory/curves.md, section 9.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.published.curves.shape_tree import IMPOSSIBLE, Splits, refuse_large

__all__ = ["ConstantSplitter"]


class ConstantNode(NamedTuple):
    """Points ``first, …, last``, values ``low, …, high``, at most ``pieces`` pieces."""

    first: int
    last: int
    low: int
    high: int
    pieces: int


@dataclass(frozen=True)
class ConstantSplitter:
    """At most ``pieces`` constant pieces."""

    points: int
    values: int
    pieces: int

    def __post_init__(self) -> None:
        refuse_large(self.points * self.values * self.pieces, self.points, self.values)

    def root(self) -> ConstantNode:
        """All curves."""
        return ConstantNode(0, self.points - 1, 0, self.values - 1, self.pieces)

    def interval(self, node: ConstantNode) -> tuple[int, int]:
        """The lowest and the highest value."""
        return node.low, node.high

    def settled(self, node: ConstantNode) -> bool:
        """Whether one value is left."""
        return node.low == node.high

    def prepare(self, table: Ints) -> Ints:
        """The losses themselves."""
        return table

    def splits(self, node: ConstantNode, losses: Ints) -> Splits:
        """Rows ``(points below, pieces below)``.

        A side has pieces exactly if it has points.
        """
        size = node.last - node.first + 1
        mid, start = _halves(node)
        part = losses[node.first : node.last + 1]
        below = _least(part[:, node.low : mid + 1], node.pieces)
        above = _least(part[::-1, start : node.high + 1][:, ::-1], node.pieces)
        count, used = (grid.ravel() for grid in np.mgrid[0 : size + 1, 0 : node.pieces + 1])
        rest = node.pieces - used
        scores = np.minimum(below[used, count] + above[rest, size - count], IMPOSSIBLE)
        fits = ((count == 0) == (used == 0)) & ((count == size) == (rest == 0))
        return Splits(np.where(fits, scores, IMPOSSIBLE), np.stack([count, used], axis=1))

    def children(self, node: ConstantNode, row: Ints) -> list[ConstantNode]:
        """The two sides that have points."""
        count, used = int(row[0]), int(row[1])
        mid, start = _halves(node)
        cut = node.first + count
        sides = [
            ConstantNode(node.first, cut - 1, node.low, mid, used),
            ConstantNode(cut, node.last, start, node.high, node.pieces - used),
        ]
        return [side for side in sides if side.first <= side.last]

    def fixed(self, node: ConstantNode, row: Ints) -> list[tuple[int, int]]:
        """Nothing."""
        return []

    def fill(self, node: ConstantNode) -> list[tuple[int, int]]:
        """One piece in the middle of the interval."""
        return [(point, (node.low + node.high) // 2) for point in range(node.first, node.last + 1)]


def _halves(node: ConstantNode) -> tuple[int, int]:
    """The highest value of the lower half, and the lowest of the upper.

    They are the same, unless only two values are left.
    """
    mid = (node.low + node.high) // 2
    return mid, mid if node.high - node.low > 1 else node.high


@kernel
def _least(losses: Ints, pieces: int) -> Ints:
    """The least loss with at most ``r`` pieces.

    Entry ``(r, l)`` is the least loss over the first ``l`` rows with at most ``r`` pieces and rising columns.
    """
    size, values = losses.shape
    out = np.full((pieces + 1, size + 1), IMPOSSIBLE)
    out[:, 0] = 0
    best = np.full((pieces + 1, values), IMPOSSIBLE)
    for row in range(size):
        for used in range(pieces, 0, -1):
            smaller = IMPOSSIBLE
            least = IMPOSSIBLE
            for value in range(values):
                start = 0 if row == 0 else min(best[used, value], smaller)
                if used > 1:
                    smaller = min(smaller, best[used - 1, value])
                best[used, value] = min(start + losses[row, value], IMPOSSIBLE)
                least = min(least, best[used, value])
            out[used, row + 1] = least
    return out
