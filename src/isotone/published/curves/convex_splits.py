"""Splits for increasing convex curves (docs/theory/curves.md, section 9.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.published.curves.shape_tree import IMPOSSIBLE, Splits, crossings, refuse_large

__all__ = ["ConvexSplitter"]


class ConvexNode(NamedTuple):
    """Points, values and slopes of one node.

    Points, values and forced ends as for bounded slopes, and slopes between ``least`` and ``most``.
    """

    first: int
    last: int
    low: int
    high: int
    least: int
    most: int
    starts: bool
    ends: bool


@dataclass(frozen=True)
class ConvexSplitter:
    """Slopes that never fall, of at most ``steepest`` values from a point to the next."""

    points: int
    values: int
    steepest: int

    def __post_init__(self) -> None:
        slopes = min(self.steepest, self.values - 1) + 1
        refuse_large(self.points * self.values * slopes, self.points, self.values)

    def root(self) -> ConvexNode:
        """All curves."""
        top = self.values - 1
        return ConvexNode(0, self.points - 1, 0, top, 0, min(self.steepest, top), starts=False, ends=False)

    def interval(self, node: ConvexNode) -> tuple[int, int]:
        """The lowest and the highest value."""
        return node.low, node.high

    def settled(self, node: ConvexNode) -> bool:
        """Whether one curve is left."""
        return node.low == node.high or node.last - node.first < node.starts + node.ends

    def prepare(self, table: Ints) -> Ints:
        """The losses themselves."""
        return table

    def splits(self, node: ConvexNode, losses: Ints) -> Splits:
        """Rows ``(points up to the middle, the last value up to it, the first value beyond)``."""
        size = node.last - node.first + 1
        mid = (node.low + node.high) // 2
        part = losses[node.first : node.last + 1]
        slopes = (node.least, node.most)
        # below[l, v, d]: l + 1 points that end at v with slopes of at most d; above: that start at v with at least d
        below = np.minimum.accumulate(_rising(part[:, node.low : mid + 1], *slopes, node.starts), axis=2)
        above = _falling(part[:, mid + 1 : node.high + 1], *slopes, node.ends)
        above = np.minimum.accumulate(above[:, :, ::-1], axis=2)[:, :, ::-1]
        rows = crossings(size, (node.low, mid, node.high), slopes)
        count, last, first = rows.T
        inner = (count > 0) & (count < size)
        slope = np.where(inner, first - last, 0) - node.least
        top = node.most - node.least
        lower = below[np.maximum(count - 1, 0), last - node.low, np.where(inner, slope, top)]
        upper = above[np.maximum(size - count - 1, 0), first - mid - 1, np.where(inner, slope, 0)]
        scores = np.where(count > 0, lower, 0) + np.where(count < size, upper, 0)
        forbidden = ((count == 0) & node.starts) | ((count == size) & node.ends)
        return Splits(np.where(forbidden, IMPOSSIBLE, np.minimum(scores, IMPOSSIBLE)), rows)

    def children(self, node: ConvexNode, row: Ints) -> list[ConvexNode]:
        """The two sides that have points.

        The slope of the crossing separates their slopes.
        """
        count, last, first = (int(number) for number in row)
        cut = node.first + count
        inner = node.first < cut <= node.last
        below = node._replace(last=cut - 1, high=last, most=first - last if inner else node.most, ends=True)
        above = node._replace(first=cut, low=first, least=first - last if inner else node.least, starts=True)
        return [side for side in (below, above) if side.first <= side.last]

    def fixed(self, node: ConvexNode, row: Ints) -> list[tuple[int, int]]:
        """No fixed points, since the endpoints are charged to the children."""
        return []

    def fill(self, node: ConvexNode) -> list[tuple[int, int]]:
        """Of all curves that the node allows, one that stays near the middle of the interval."""
        size = node.last - node.first + 1
        away = np.abs(np.arange(node.low, node.high + 1) - (node.low + node.high) // 2)
        best = _rising(np.tile(away, (size, 1)), node.least, node.most, node.starts)
        value, slope = node.high - node.low, node.most - node.least
        if not node.ends:
            value = int(best[-1].min(axis=1).argmin())
        values = [value]
        for row in range(size - 1, 0, -1):
            slope = int(best[row, value, : slope + 1].argmin())
            value -= slope + node.least
            values.append(value)
        return [(node.first + place, node.low + value) for place, value in enumerate(reversed(values))]


@kernel
def _rising(losses: Ints, least: int, most: int, starts: bool) -> Ints:
    """The least loss up to each point, value and last slope.

    Entry ``(l, v, s)`` is the least loss over rows ``0, …, l`` that ends at ``v`` with a last slope of
    ``least + s``.
    """
    size, values = losses.shape
    slopes = most - least + 1
    out = np.full((size, values, slopes), IMPOSSIBLE)
    for value in range(1 if starts else values):
        out[0, value, 0] = losses[0, value]
    for row in range(1, size):
        for value in range(values):
            for slope in range(min(slopes, value - least + 1)):
                before = value - least - slope
                best = IMPOSSIBLE
                for other in range(slope + 1):
                    best = min(best, out[row - 1, before, other])
                out[row, value, slope] = min(best + losses[row, value], IMPOSSIBLE)
    return out


@kernel
def _falling(losses: Ints, least: int, most: int, ends: bool) -> Ints:
    """The least loss from each point, value and first slope on.

    Entry ``(l, v, s)`` is the least loss over the last ``l + 1`` rows from ``v`` on, with a first slope of
    ``least + s``.
    """
    size, values = losses.shape
    slopes = most - least + 1
    out = np.full((size, values, slopes), IMPOSSIBLE)
    for value in range(values - 1 if ends else 0, values):
        out[0, value, slopes - 1] = losses[size - 1, value]
    for row in range(1, size):
        for value in range(values):
            for slope in range(slopes):
                after = value + least + slope
                if after >= values:
                    break
                best = IMPOSSIBLE
                for other in range(slope, slopes):
                    best = min(best, out[row - 1, after, other])
                out[row, value, slope] = min(best + losses[size - 1 - row, value], IMPOSSIBLE)
    return out
