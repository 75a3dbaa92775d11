"""Splits for increasing curves of bounded slope (docs/theory/curves.md, section 9.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.published.curves.shape_tree import IMPOSSIBLE, Splits, crossings, refuse_large

__all__ = ["LipschitzSplitter"]


class LipschitzNode(NamedTuple):
    """Points ``first, …, last`` with values ``low, …, high``.

    ``starts`` forces the curve to begin at ``low``, ``ends`` to end at ``high``.
    """

    first: int
    last: int
    low: int
    high: int
    starts: bool
    ends: bool


@dataclass(frozen=True)
class LipschitzSplitter:
    """A rise of at most ``steps`` values from a point to the next."""

    points: int
    values: int
    steps: int

    def __post_init__(self) -> None:
        # no curve can rise by more than all values, and larger numbers may not fit 64 bits
        object.__setattr__(self, "steps", min(self.steps, self.values - 1))
        ways = min(self.steps, self.values // 2 + 1) ** 2
        refuse_large(self.points * max(self.values, ways), self.points, self.values)

    def root(self) -> LipschitzNode:
        """All curves."""
        return LipschitzNode(0, self.points - 1, 0, self.values - 1, starts=False, ends=False)

    def interval(self, node: LipschitzNode) -> tuple[int, int]:
        """The lowest and the highest value."""
        return node.low, node.high

    def settled(self, node: LipschitzNode) -> bool:
        """Whether one curve is left."""
        return node.low == node.high or node.last - node.first < node.starts + node.ends

    def prepare(self, table: Ints) -> Ints:
        """The losses themselves."""
        return table

    def splits(self, node: LipschitzNode, losses: Ints) -> Splits:
        """One for every way to pass the middle."""
        size = node.last - node.first + 1
        mid = (node.low + node.high) // 2
        part = losses[node.first : node.last + 1]
        below = _least(part[:, node.low : mid + 1], self.steps, node.starts)
        above = _least(part[::-1, mid + 1 : node.high + 1][:, ::-1], self.steps, node.ends)[:, ::-1]
        rows = crossings(size, (node.low, mid, node.high), (0, self.steps))
        count, last, following = rows.T
        lower = np.where(count > 0, below[np.maximum(count - 1, 0), last - node.low], 0)
        upper = np.where(count < size, above[np.maximum(size - count - 1, 0), following - mid - 1], 0)
        forbidden = ((count == 0) & node.starts) | ((count == size) & node.ends)
        return Splits(np.where(forbidden, IMPOSSIBLE, np.minimum(lower + upper, IMPOSSIBLE)), rows)

    def children(self, node: LipschitzNode, row: Ints) -> list[LipschitzNode]:
        """The two sides that have points."""
        count, last, following = (int(number) for number in row)
        cut = node.first + count
        sides = [
            LipschitzNode(node.first, cut - 1, node.low, last, node.starts, ends=True),
            LipschitzNode(cut, node.last, following, node.high, starts=True, ends=node.ends),
        ]
        return [side for side in sides if side.first <= side.last]

    def fixed(self, node: LipschitzNode, row: Ints) -> list[tuple[int, int]]:
        """No fixed points, since the endpoints are charged to the children."""
        return []

    def fill(self, node: LipschitzNode) -> list[tuple[int, int]]:
        """A straight rise between forced ends.

        Otherwise the values are as near to the middle as the slope allows.
        """
        size, rise = node.last - node.first, node.high - node.low
        mid = (node.low + node.high) // 2
        values: list[int] = []
        for place in range(size + 1):
            if node.starts and node.ends:
                values.append(node.low + (rise * place // size if size else 0))
            elif node.starts:
                values.append(min(node.low + self.steps * place, mid))
            elif node.ends:
                values.append(max(node.high - self.steps * (size - place), mid))
            else:
                values.append(mid)
        return [(node.first + place, value) for place, value in enumerate(values)]


@kernel
def _least(losses: Ints, steps: int, starts: bool) -> Ints:
    """The least loss up to each point and value.

    Entry ``(l, v)`` is the least loss over rows ``0, …, l`` with columns that rise by at most ``steps``,
    ending at ``v``.
    """
    size, values = losses.shape
    out = np.full((size, values), IMPOSSIBLE)
    for value in range(1 if starts else values):
        out[0, value] = losses[0, value]
    for row in range(1, size):
        for value in range(values):
            best = IMPOSSIBLE
            for before in range(max(0, value - steps), value + 1):
                best = min(best, out[row - 1, before])
            out[row, value] = min(best + losses[row, value], IMPOSSIBLE)
    return out
