"""Increasing curves with few linear pieces.

Knots are public points of the grid of ``x``. A curve is continuous, linear between the knots it uses, and has a value
of a grid at each of them. The losses of a piece are looked up at its values rounded to the fine grid of the loss
table: a public change of the loss by less than one part in a thousand of its range (docs/theory/curves.md, section 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.array_types import Ints
from isotone.curves.circuits.circuit import MOST_EDGES, Circuit
from isotone.curves.shapes.shape import CurveShape, whole
from isotone.errors import InputError
from isotone.kernels import kernel

if TYPE_CHECKING:
    from isotone.curves.chain.problem import ChainProblem
    from isotone.curves.shapes.curve_draws import PieceDraw

__all__ = ["LinearGraph", "LinearPieces", "all_pieces", "linear_graph", "piece_costs", "spread_knots"]

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
        from isotone.curves.shapes.curve_draws import PieceDraw

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
