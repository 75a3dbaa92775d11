"""Losses of all cuts of a shape, which the published trees choose from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from isotone.array_types import Ints
from isotone.curves.cuts import ChainProblem
from isotone.curves.losses import ROWS
from isotone.curves.shapes import (
    Concave,
    ConstantPieces,
    Convex,
    LinearPieces,
    Lipschitz,
    all_pieces,
    piece_costs,
)
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.published.curves.threshold import (
    IMPOSSIBLE,
    ShapeTree,
    Splits,
    Splitter,
    crossings,
    refuse_large,
)

# Splits for increasing curves with few constant pieces (docs/theory/curves.md, section 9.1).


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


# Splits for increasing convex curves (docs/theory/curves.md, section 9.3).


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


# Splits for increasing curves with few linear pieces between knots (docs/theory/curves.md, section 9.4).

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
    return _least_line(losses, node.first, node.last, node.low, node.high, node.pieces, node.starts)


def _from_right(losses: Ints, node: LinearNode) -> Ints:
    """The least losses from the other end, with knots and values reversed."""
    knots, values = losses.shape[0] - 1, losses.shape[2] - 1
    turned = np.ascontiguousarray(losses.transpose(1, 0, 3, 2)[::-1, ::-1, ::-1, ::-1])
    least = _least_line(
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
def _least_line(losses: Ints, first: int, last: int, low: int, high: int, pieces: int, starts: bool) -> Ints:
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


# Splits for increasing curves of bounded slope (docs/theory/curves.md, section 9.2).


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
        below = _least_slope(part[:, node.low : mid + 1], self.steps, node.starts)
        above = _least_slope(part[::-1, mid + 1 : node.high + 1][:, ::-1], self.steps, node.ends)[:, ::-1]
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
def _least_slope(losses: Ints, steps: int, starts: bool) -> Ints:
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


# The published tree for each shape.


def _convex(shape: Convex, problem: ChainProblem, values: int) -> Splitter:
    return ConvexSplitter(problem.points, values + 1, values)


def _constant(shape: ConstantPieces, problem: ChainProblem, values: int) -> Splitter:
    return ConstantSplitter(problem.points, values + 1, shape.pieces)


def _lipschitz(shape: Lipschitz, problem: ChainProblem, values: int) -> Splitter:
    return LipschitzSplitter(problem.points, values + 1, shape.rise(problem.grid, values, problem.height))


def _linear(shape: LinearPieces, problem: ChainProblem, values: int) -> Splitter:
    return LinearSplitter(problem.points, values + 1, shape.pieces, shape.places(problem.points))


SPLITTERS: dict[type, Callable[[Any, ChainProblem, int], Splitter]] = {
    ConstantPieces: _constant,
    LinearPieces: _linear,
    Lipschitz: _lipschitz,
    Convex: _convex,
    Concave: _convex,
}


def shape_tree(problem: ChainProblem) -> ShapeTree:
    """The published tree for the shape of a problem."""
    shape = problem.shape
    assert shape is not None
    splitter = SPLITTERS.get(type(shape))
    if splitter is None:
        raise InputError(f"There is no published tree for the shape {shape.name!r}. Use method='auto'.")
    values = shape.steps(problem)
    columns = ROWS if isinstance(shape, LinearPieces) else values
    levels = problem.levels or max(1, math.ceil(math.log2(max(2.0, problem.strength))))
    return ShapeTree(
        problem.setting,
        problem.points,
        splitter(shape, problem, values),
        min(levels, values.bit_length() - 1),
        values + 1,
        problem.table(columns),
        shape.interpolated,
        problem.unit(columns),
        problem.steepest,
    )
