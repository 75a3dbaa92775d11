"""Splits for increasing curves with few linear pieces between knots (docs/theory/curves.md, section 9.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from isotone.array_types import Ints
from isotone.curves.shapes.linear import all_pieces, piece_costs
from isotone.kernels import kernel
from isotone.published.curves.shape_tree import IMPOSSIBLE, Splits, refuse_large

__all__ = ["LinearSplitter"]

BELOW, ABOVE, PIECE = 0, 1, 2


class LinearNode(NamedTuple):
    """Knots ``first, …, last`` (indices), values, at most ``pieces`` pieces, forced ends."""

    first: int
    last: int
    low: int
    high: int
    pieces: int
    starts: bool
    ends: bool


@dataclass(frozen=True)
class LinearSplitter:
    """At most ``pieces`` linear pieces between ``knots`` (points of ``x``)."""

    points: int
    values: int
    pieces: int
    knots: Ints = field(repr=False)

    def __post_init__(self) -> None:
        lower = (self.values + 1) // 2
        ways = (self.knots.size - 1) ** 2 * lower * (self.values - lower) * self.pieces
        refuse_large(ways, self.points, self.values)

    def root(self) -> LinearNode:
        """All curves."""
        return LinearNode(0, self.knots.size - 1, 0, self.values - 1, self.pieces, starts=False, ends=False)

    def interval(self, node: LinearNode) -> tuple[int, int]:
        """The lowest and the highest value."""
        return node.low, node.high

    def settled(self, node: LinearNode) -> bool:
        """Whether one curve is left."""
        return node.low == node.high or (node.pieces == 1 and node.starts and node.ends)

    def prepare(self, table: Ints) -> Ints:
        """The losses of all pieces, by first knot, last knot, first value, last value."""
        ends = all_pieces(self.knots.size, self.values)
        costs = np.full((self.knots.size,) * 2 + (self.values,) * 2, IMPOSSIBLE, dtype=np.int64)
        costs[tuple(ends.T)] = piece_costs(table, self.knots, ends, self.values)
        return costs

    def splits(self, node: LinearNode, losses: Ints) -> Splits:
        """Candidate splits by a piece across the middle, or none.

        Rows ``(kind, s, e, u, v, pieces before s, pieces after e)``.
        """
        below, above = _from_left(losses, node), _from_right(losses, node)
        mid = (node.low + node.high) // 2
        rows = self._pieces(node, mid)
        _, s, e, u, v, left, right = rows.T
        scores = losses[s, e, u, v] + below[s, u, left] + above[e, v, right]
        sides = np.zeros((2, 7), dtype=np.int64)
        sides[:, 0] = BELOW, ABOVE
        under = below[node.last, node.low : mid + 1, node.pieces].min()
        over = above[node.first, mid + 1 : node.high + 1, node.pieces].min()
        ends = [IMPOSSIBLE if node.ends else under, IMPOSSIBLE if node.starts else over]
        return Splits(
            np.minimum(np.concatenate([scores, np.array(ends, dtype=np.int64)]), IMPOSSIBLE),
            np.concatenate([rows, sides]),
        )

    @staticmethod
    def _pieces(node: LinearNode, mid: int) -> Ints:
        """All pieces across the middle, with all ways to share the other pieces between the two sides."""
        grid = np.meshgrid(
            np.arange(node.first, node.last),
            np.arange(node.first + 1, node.last + 1),
            np.arange(node.low, mid + 1),
            np.arange(mid + 1, node.high + 1),
            np.arange(node.pieces),
            indexing="ij",
        )
        s, e, u, v, left = (axis.ravel() for axis in grid)
        right = node.pieces - 1 - left
        # a side has pieces exactly if it has knots; pieces that neither side can use are given up
        right = np.where((s == node.first) & (e == node.last) & (left == 0), 0, right)
        fits = (s < e) & ((left == 0) == (s == node.first)) & ((right == 0) == (e == node.last))
        rows = np.stack([np.full_like(s, PIECE), s, e, u, v, left, right], axis=1)
        return rows[fits].astype(np.int64)

    def children(self, node: LinearNode, row: Ints) -> list[LinearNode]:
        """The stretches beside the piece.

        Without a piece, the same knots with half of the values.
        """
        kind, s, e, u, v, left, right = (int(number) for number in row)
        mid = (node.low + node.high) // 2
        if kind == BELOW:
            return [node._replace(high=mid)]
        if kind == ABOVE:
            return [node._replace(low=mid + 1)]
        sides = [
            LinearNode(node.first, s, node.low, u, left, node.starts, ends=True),
            LinearNode(e, node.last, v, node.high, right, starts=True, ends=node.ends),
        ]
        return [side for side in sides if side.first < side.last]

    def fixed(self, node: LinearNode, row: Ints) -> list[tuple[int, int]]:
        """The two ends of the piece."""
        kind, s, e, u, v, *_ = (int(number) for number in row)
        return [(int(self.knots[s]), u), (int(self.knots[e]), v)] if kind == PIECE else []

    def fill(self, node: LinearNode) -> list[tuple[int, int]]:
        """One piece between the forced ends, or the middle where an end is free."""
        mid = (node.low + node.high) // 2
        return [
            (int(self.knots[node.first]), node.low if node.starts else mid),
            (int(self.knots[node.last]), node.high if node.ends else mid),
        ]


def _from_left(losses: Ints, node: LinearNode) -> Ints:
    return _least(losses, node.first, node.last, node.low, node.high, node.pieces, node.starts)


def _from_right(losses: Ints, node: LinearNode) -> Ints:
    """The least losses from the other end, with knots and values reversed."""
    knots, values = losses.shape[0] - 1, losses.shape[2] - 1
    turned = np.ascontiguousarray(losses.transpose(1, 0, 3, 2)[::-1, ::-1, ::-1, ::-1])
    least = _least(
        turned,
        knots - node.last,
        knots - node.first,
        values - node.high,
        values - node.low,
        node.pieces,
        node.ends,
    )
    return least[::-1, ::-1]


@kernel
def _least(losses: Ints, first: int, last: int, low: int, high: int, pieces: int, starts: bool) -> Ints:
    """The least loss from knot ``first`` to each knot and value.

    Entry ``(e, v, r)`` is the least loss to ``(e, v)`` with at most ``r`` pieces. With 0 pieces nothing has
    begun yet.
    """
    knots, values = losses.shape[0], losses.shape[2]
    out = np.full((knots, values, pieces + 1), IMPOSSIBLE)
    for value in range(low, low + 1 if starts else high + 1):
        out[first, value, 0] = 0
    for e in range(first + 1, last + 1):
        for v in range(low, high + 1):
            for used in range(1, pieces + 1):
                best = out[e, v, used - 1] if used > 1 else IMPOSSIBLE
                for s in range(first, e):
                    for u in range(low, v + 1):
                        before = out[first, u, 0] if s == first else out[s, u, used - 1]
                        best = min(best, before + losses[s, e, u, v])
                out[e, v, used] = min(best, IMPOSSIBLE)
    return out
