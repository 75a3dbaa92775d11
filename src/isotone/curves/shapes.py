"""Shapes of a curve: pieces, lines, slopes, convex and concave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from isotone.array_types import Ints
from isotone.curves.circuits import MOST_EDGES, Circuit
from isotone.curves.losses import ROWS
from isotone.curves.problem import Grid
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.privacy.checks import exact, positive, shown

if TYPE_CHECKING:
    from isotone.curves.cuts import ChainProblem
    from isotone.curves.shape_posterior import CurveDraw, PieceDraw

# Graphs whose paths are the increasing curves of a shape, on a grid of ``points`` by ``values``.
#
# In each graph every path from a source to the sink is one curve. A *value node* ``(point, value)`` carries the loss of
# the records at that point; the other nodes only add up totals, so that a sum over all smaller values costs one
# addition instead of many (docs/theory/curves.md, section 7).


@dataclass(frozen=True)
class CurveGraph:
    """A path graph with, for every node, its point and its value (−1 for nodes that carry no loss)."""

    graph: Circuit
    point: Ints = field(repr=False)
    value: Ints = field(repr=False)

    @classmethod
    def of(cls, nodes: int, edges: list[tuple[Ints, Ints]], source: Ints, loaded: Ints) -> CurveGraph:
        """A graph from its edges.

        ``loaded`` has the value nodes by point (first axis) and value (last).
        """
        lower = np.concatenate([pair[0].ravel() for pair in edges])
        upper = np.concatenate([pair[1].ravel() for pair in edges])
        marks = np.zeros(nodes, dtype=np.bool_)
        marks[source.ravel()] = True
        point, value = np.full((2, nodes), -1, dtype=np.int64)
        column = np.arange(loaded.shape[0]).reshape((-1,) + (1,) * (loaded.ndim - 1))
        point[loaded] = np.broadcast_to(column, loaded.shape)
        value[loaded] = np.broadcast_to(np.arange(loaded.shape[-1]), loaded.shape)
        return cls(Circuit.of_paths(nodes, lower, upper, marks), point, value)

    def costs(self, table: Ints) -> Ints:
        """The cost of every node, from the losses of all points and values."""
        costs = np.zeros(self.graph.nodes, dtype=np.int64)
        loaded = self.value >= 0
        costs[loaded] = table[self.point[loaded], self.value[loaded]]
        return costs

    def curve(self, path: Ints) -> Ints:
        """The value at every point, from the nodes of a path."""
        loaded = path[self.value[path] >= 0]
        return self.value[loaded[np.argsort(self.point[loaded])]]


def refuse_many_edges(edges: int, points: int, values: int) -> None:
    """Raise an error if the graph of a shape would be too large.

    Only public numbers decide.
    """
    if edges > MOST_EDGES:
        raise InputError(
            f"This shape on {points} points of x and {values} values needs a graph of {edges:,} edges, and "
            f"{MOST_EDGES:,} is the limit: take fewer points (x_grid) or fewer values (value_levels)."
        )


# What a shape of curves says about itself. Each shape is one file with its parser, grid sizes and graph.
#
# Increasing curves without further demands are a shape like any other (:class:`~isotone.curves.shapes.Monotone`).


@dataclass(frozen=True)
class CurveShape:
    """A shape that a curve may be required to have, besides rising.

    ``points`` and ``values`` are the sizes of the grids when the user gives none: few enough to draw in a second,
    with a discretisation error of half a step of the values (docs/theory/curves.md, section 7).
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    """How users write the shape."""
    points: ClassVar[int]
    values: ClassVar[int]
    interpolated: ClassVar[bool] = True
    """Whether curves of this shape are continuous."""
    upside_down: ClassVar[bool] = False
    """Whether this is another shape with both axes turned: its graph is that of the other one."""

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> Self | None:
        """The shape with these arguments.

        None if their number is wrong. Wrong arguments raise an error.
        """
        raise NotImplementedError

    def graph(self, grid: Grid, values: int, height: Fraction) -> CurveGraph:
        """All curves of the shape with ``values + 1`` values, of which the highest is ``height`` above the lowest."""
        raise NotImplementedError

    def steps(self, problem: ChainProblem) -> int:
        """Steps of the grid of values."""
        return problem.value_levels or self.values

    def drawn(self, problem: ChainProblem) -> CurveDraw | PieceDraw:
        """The mechanism that draws one of all curves of the shape, by default from their graph."""
        from isotone.curves.shape_posterior import CurveDraw

        return CurveDraw.of(problem)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number between two limits, for the arguments of shapes."""
    number = exact(value, f"the number of {what}")
    if number.denominator != 1 or not least <= number <= most:
        raise InputError(
            f"The number of {what} must be a whole number from {least} to {most}, not {value!r}."
        )
    return int(number)


# Increasing curves with few constant pieces.


@dataclass(frozen=True)
class ConstantPieces(CurveShape):
    """At most ``pieces`` constant pieces."""

    pieces: int

    name = "constant"
    usage = "('constant', pieces)"
    points = 256
    values = 64
    interpolated = False

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> ConstantPieces | None:
        """The shape from its number of pieces."""
        return cls(whole(arguments[0], "constant pieces", 1, 64)) if len(arguments) == 1 else None

    def graph(self, grid: Grid, values: int, height: Fraction) -> CurveGraph:
        """All curves of the shape."""
        return constant_graph(grid.points, values + 1, self.pieces)


@lru_cache(maxsize=2)
def constant_graph(points: int, values: int, pieces: int) -> CurveGraph:
    """Increasing curves with at most ``pieces`` different values. Each is on one path."""
    refuse_many_edges(4 * points * values * pieces, points, values)
    here = 2 * np.arange(points * pieces * values, dtype=np.int64).reshape(points, pieces, values)
    upto = here + 1
    sink = 2 * here.size
    edges = [
        (here[:-1], here[1:]),
        (upto[:-1, :-1, :-1], here[1:, 1:, 1:]),
        (upto[:, :, :-1], upto[:, :, 1:]),
        (here, upto),
        (upto[-1, :, -1], np.full(pieces, sink)),
    ]
    return CurveGraph.of(sink + 1, edges, here[0, 0], here)


# Increasing curves that rise ever faster, or ever more slowly.


@dataclass(frozen=True)
class Convex(CurveShape):
    """Convex curves."""

    name = "convex"
    usage = "'convex'"
    points = 33
    values = 64

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> Self | None:
        """The shape, which takes no arguments."""
        return None if arguments else cls()

    def graph(self, grid: Grid, values: int, height: Fraction) -> CurveGraph:
        """All curves of the shape."""
        return convex_graph(grid.points, values + 1, values)


@dataclass(frozen=True)
class Concave(Convex):
    """Concave curves, which are convex ones with both axes turned."""

    name = "concave"
    usage = "'concave'"
    upside_down = True


@lru_cache(maxsize=2)
def convex_graph(points: int, values: int, steepest: int) -> CurveGraph:
    """Increasing convex curves that never rise by more than ``steepest`` values from a point to the next."""
    slopes = min(steepest, values - 1) + 1
    refuse_many_edges(3 * points * values * slopes, points, values)
    here = 2 * np.arange(points * values * slopes, dtype=np.int64).reshape(points, slopes, values)
    upto = here + 1  # totals over all last slopes up to this one
    sink = 2 * here.size
    edges = [(upto[:-1, s, : values - s], here[1:, s, s:]) for s in range(slopes)]
    edges += [(upto[:, :-1], upto[:, 1:]), (here, upto), (upto[-1, -1], np.full(values, sink))]
    return CurveGraph.of(sink + 1, edges, here[0, 0], here)


# Increasing curves with few linear pieces.
#
# Knots are public points of the grid of ``x``. A curve is continuous, linear between the knots it uses, and has a value
# of a grid at each of them. The losses of a piece are looked up at its values rounded to the fine grid of the loss
# table: a public change of the loss by less than one part in a thousand of its range (docs/theory/curves.md, section 7).

MOST_POINTS = 1 << 14
"""Between two knots a curve is straight: more points than these make it no better, and tables of losses too large."""


@dataclass(frozen=True)
class LinearPieces(CurveShape):
    """At most ``pieces`` linear pieces, which end at ``knots`` spread evenly over the points.

    A curve that bends elsewhere is met up to a knot's distance.
    """

    pieces: int
    knots: int = 17

    name = "linear"
    usage = "('linear', pieces) or ('linear', pieces, knots)"
    points = 257
    values = 32

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> LinearPieces | None:
        """The shape from its number of pieces and, if given, of knots."""
        if len(arguments) not in (1, 2):
            return None
        knots = [whole(number, "knots", 2, 1025) for number in arguments[1:]]
        return cls(whole(arguments[0], "linear pieces", 1, 64), *knots)

    def places(self, points: int) -> Ints:
        """The points at which pieces may end."""
        return spread_knots(points, min(self.knots, points) - 1)

    def drawn(self, problem: ChainProblem) -> PieceDraw:
        """The mechanism that draws piece by piece."""
        from isotone.curves.shape_posterior import PieceDraw

        return PieceDraw.of(problem)


def spread_knots(points: int, intervals: int) -> Ints:
    """``intervals + 1`` knots, as evenly spread over the points as whole numbers allow."""
    if points > MOST_POINTS:
        raise InputError(
            f"Linear pieces on {points:,} points of x are too many, and {MOST_POINTS:,} is the limit: take fewer (x_grid). "
            "Their ends are on a few points anyway."
        )
    return np.arange(intervals + 1, dtype=np.int64) * (points - 1) // intervals


@dataclass(frozen=True)
class LinearGraph:
    """A path graph. ``pieces[node]`` is the index of a piece, or −1."""

    graph: Circuit
    pieces: Ints = field(repr=False)
    ends: Ints = field(repr=False)

    def costs(self, table: Ints) -> Ints:
        """The cost of every node, from the costs of all pieces."""
        costs = np.zeros(self.graph.nodes, dtype=np.int64)
        loaded = self.pieces >= 0
        costs[loaded] = table[self.pieces[loaded]]
        return costs

    def curve(self, path: Ints) -> tuple[Ints, Ints]:
        """The knots that a path uses, and the values there. The path comes from its end."""
        used = [int(self.pieces[node]) for node in path[::-1].tolist() if self.pieces[node] >= 0]
        knots = [int(self.ends[used[0], 0])] + [int(self.ends[piece, 1]) for piece in used]
        values = [int(self.ends[used[0], 2])] + [int(self.ends[piece, 3]) for piece in used]
        return np.array(knots), np.array(values)


def all_pieces(knots: int, values: int) -> Ints:
    """All pieces ``(s, e, u, v)`` with ``s < e`` and ``u <= v``, sorted by ``e``."""
    s, e = np.triu_indices(knots, 1)
    order = np.argsort(e, kind="stable")
    u, v = np.triu_indices(values)
    pairs = np.stack([s[order], e[order]], axis=1)
    return np.concatenate(
        [np.repeat(pairs, u.size, axis=0), np.tile(np.stack([u, v], axis=1), (pairs.shape[0], 1))], axis=1
    ).astype(np.int64)


@lru_cache(maxsize=4)
def linear_graph(knots: int, values: int, most: int) -> LinearGraph:
    """Increasing curves with at most ``most`` linear pieces."""
    count = knots * (knots - 1) // 2 * (values * (values + 1) // 2)
    if 2 * count * most > MOST_EDGES:
        raise InputError(
            f"{most} linear pieces over {knots} knots and {values} values need a graph of {2 * count * most:,} "
            f"edges, and {MOST_EDGES:,} is the limit: take fewer pieces, knots or values (value_levels)."
        )
    ends = all_pieces(knots, values)
    # nodes: by knot, first the pieces that end there (for each number of pieces), then the knot's states
    per_knot = np.bincount(ends[:, 1], minlength=knots)
    starts = np.concatenate([[0], np.cumsum(per_knot * most + values * (most + 1))])[:-1]
    state = (starts + per_knot * most)[:, None, None] + np.arange((most + 1) * values).reshape(
        most + 1, values
    )
    first_piece = np.concatenate([[0], np.cumsum(per_knot)])[:-1]
    place = np.arange(count) - first_piece[ends[:, 1]]
    lower, upper, pieces = [], [], []
    for used in range(1, most + 1):
        nodes = starts[ends[:, 1]] + place * most + used - 1
        pieces.append(nodes)
        lower += [state[ends[:, 0], used - 1, ends[:, 2]], nodes]
        upper += [nodes, state[ends[:, 1], used, ends[:, 3]]]
    sink = int(state[-1, -1, -1]) + 1
    finals = state[-1, 1:].ravel()
    lower.append(finals)
    upper.append(np.full(finals.size, sink))
    source = np.zeros(sink + 1, dtype=np.bool_)
    source[state[0, 0]] = True
    labels = np.full(sink + 1, -1, dtype=np.int64)
    for nodes in pieces:
        labels[nodes] = np.arange(count)
    graph = Circuit.of_paths(sink + 1, np.concatenate(lower), np.concatenate(upper), source)
    return LinearGraph(graph, labels, ends)


@kernel(steps=lambda table, knots, ends, values: 8 * ends.shape[0] * table.shape[0])
def piece_costs(table: Ints, knots: Ints, ends: Ints, values: int) -> Ints:
    """The loss of every piece over its points, all after its first knot, and the very first point of the domain."""
    costs = np.zeros(ends.shape[0], np.int64)
    fine = table.shape[1] - 1
    top = values - 1
    for piece in range(ends.shape[0]):
        a, b = knots[ends[piece, 0]], knots[ends[piece, 1]]
        u, v = ends[piece, 2], ends[piece, 3]
        total = 0
        for point in range(a if ends[piece, 0] == 0 else a + 1, b + 1):
            share = u * (b - a) + (v - u) * (point - a)  # the value, times top·(b − a)
            total += table[point, (2 * share * fine + top * (b - a)) // (2 * top * (b - a))]
        costs[piece] = total
    return costs


# Increasing curves without further demands.


@dataclass(frozen=True)
class Monotone(CurveShape):
    """Every increasing curve."""

    name = "any"
    usage = "None"
    points = 256
    values = 64
    interpolated = False

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> Monotone | None:
        """No shape is asked for by None, not by a name."""
        return None

    def graph(self, grid: Grid, values: int, height: Fraction) -> CurveGraph:
        """All increasing curves."""
        return monotone_graph(grid.points, values + 1)

    def steps(self, problem: ChainProblem) -> int:
        """The number of steps of the grid of values.

        It grows with the number of records and epsilon.
        """
        if problem.value_levels is not None:
            return problem.value_levels
        size = math.sqrt(problem.strength / math.log(problem.points + 1))
        return 1 << min(7, max(1, round(math.log2(max(2.0, size)))))


@lru_cache(maxsize=4)  # the largest have millions of edges
def monotone_graph(points: int, values: int) -> CurveGraph:
    """All increasing curves.

    >>> from isotone.curves.circuits import CircuitTables
    >>> g = monotone_graph(3, 2)  # 000, 001, 011, 111
    >>> round(np.exp(CircuitTables(g.graph, np.zeros(g.graph.nodes, np.int64), Fraction(1)).log_total()))
    4
    """
    refuse_many_edges(3 * points * values, points, values)
    here = 2 * np.arange(points * values, dtype=np.int64).reshape(points, values)
    upto = here + 1
    edges = [(upto[:-1], here[1:]), (upto[:, :-1], upto[:, 1:]), (here, upto)]
    return CurveGraph.of(2 * here.size, edges, here[0], here)


# Increasing curves of bounded slope.


@dataclass(frozen=True)
class Lipschitz(CurveShape):
    """A slope of at most ``slope``."""

    slope: Fraction

    name = "lipschitz"
    usage = "('lipschitz', slope)"
    points = 65
    values = 256

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> Lipschitz | None:
        """The shape from its largest slope."""
        if len(arguments) != 1:
            return None
        return cls(positive(arguments[0], "the largest slope of a Lipschitz curve"))

    def graph(self, grid: Grid, values: int, height: Fraction) -> CurveGraph:
        """All curves of the shape."""
        return lipschitz_graph(grid.points, values + 1, self.rise(grid, values, height))

    def rise(self, grid: Grid, values: int, height: Fraction) -> int:
        """How many values a curve may rise from a point to the next."""
        rise = self.slope * grid.step / (height / values)
        if rise < 1:
            fewer = int((grid.points - 1) * rise) + 1
            finer = 1 << math.ceil(math.log2(float(values / rise)))
            repairs = [f"at most {fewer} points (x_grid)"] * (fewer > 1)
            repairs += [f"at least {finer} steps of values (value_levels)"] * (finer <= ROWS)
            raise InputError(
                f"On {grid.points} points and {values} steps of values a curve of slope at most "
                f"{float(self.slope):g} cannot rise at all. Take {' or '.join(repairs) or 'a larger slope'}."
            )
        return int(rise)


@lru_cache(maxsize=2)
def lipschitz_graph(points: int, values: int, steps: int) -> CurveGraph:
    """Increasing curves that rise by at most ``steps`` values from a point to the next."""
    if steps >= values - 1:
        return monotone_graph(points, values)
    refuse_many_edges(points * values * (steps + 1), points, values)
    here = np.arange(points * values, dtype=np.int64).reshape(points, values)
    sink = here.size
    edges = [(here[:-1, : values - rise], here[1:, rise:]) for rise in range(steps + 1)]
    edges.append((here[-1], np.full(values, sink)))
    return CurveGraph.of(sink + 1, edges, here[0], here)


# The shapes by their names.

SHAPES: tuple[type[CurveShape], ...] = (ConstantPieces, LinearPieces, Lipschitz, Convex, Concave)


def parse_shape(spec: Any) -> CurveShape | None:
    """The shape that a name or a tuple stands for.

    None for no shape.

    >>> parse_shape(("linear", 4, 9))
    LinearPieces(pieces=4, knots=9)
    """
    if spec is None:
        return None
    parts: list[Any] = list(spec) if isinstance(spec, (tuple, list)) else [spec]
    for kind in SHAPES:
        if parts and isinstance(parts[0], str) and parts[0] == kind.name:
            result = kind.parse(parts[1:])
            if result is not None:
                return result
    usage = ", ".join(kind.usage for kind in SHAPES)
    raise InputError(f"There is no shape {shown(spec)}. Use None, {usage}.")
