"""Graphs whose paths are the increasing curves of a shape, on a grid of ``points`` by ``values``.

In each graph every path from a source to the sink is one curve. A *value node* ``(point, value)`` carries the loss of
the records at that point; the other nodes only add up totals, so that a sum over all smaller values costs one
addition instead of many. ``state`` tells for every node what it stands for (docs/theory/curves.md, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isotone.curves.circuits.circuit import MOST_EDGES, Circuit
from isotone.errors import InputError

__all__ = ["CurveGraph", "constant_graph", "convex_graph", "lipschitz_graph", "monotone_graph"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CurveGraph:
    """A path graph with, for every node, its point and its value (−1 for nodes that carry no loss)."""

    graph: Circuit
    point: Ints = field(repr=False)
    value: Ints = field(repr=False)

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


def _check_size(edges: int, points: int, values: int) -> None:
    if edges > MOST_EDGES:
        raise InputError(
            f"This shape on {points} points of x and {values} values needs a graph of {edges:,} edges, and "
            f"{MOST_EDGES:,} is the limit: take fewer points (x_grid) or fewer values (value_levels)."
        )


def _build(nodes: int, edges: list[tuple[Ints, Ints]], source: Ints, point: Ints, value: Ints) -> CurveGraph:
    lower = np.concatenate([pair[0].ravel() for pair in edges])
    upper = np.concatenate([pair[1].ravel() for pair in edges])
    marks = np.zeros(nodes, dtype=np.bool_)
    marks[source.ravel()] = True
    return CurveGraph(Circuit.of_paths(nodes, lower, upper, marks), point, value)


def _labels(nodes: int, loaded: Ints, points: int, values: int) -> tuple[Ints, Ints]:
    """Point and value of every node; ``loaded`` has the value nodes by point (first axis) and value (last)."""
    point, value = np.full(nodes, -1, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    shape = (points,) + (1,) * (loaded.ndim - 1)
    point[loaded] = np.broadcast_to(np.arange(points).reshape(shape), loaded.shape)
    value[loaded] = np.broadcast_to(np.arange(values), loaded.shape)
    return point, value


def monotone_graph(points: int, values: int) -> CurveGraph:
    """All increasing curves.

    >>> from fractions import Fraction
    >>> from isotone.curves.circuits.circuit import CircuitTables
    >>> g = monotone_graph(3, 2)  # 000, 001, 011, 111
    >>> round(np.exp(CircuitTables(g.graph, np.zeros(g.graph.nodes, np.int64), Fraction(1)).log_total()))
    4
    """
    _check_size(3 * points * values, points, values)
    here = 2 * np.arange(points * values, dtype=np.int64).reshape(points, values)
    upto = here + 1
    edges = [(upto[:-1], here[1:]), (upto[:, :-1], upto[:, 1:]), (here, upto)]
    return _build(2 * here.size, edges, here[0], *_labels(2 * here.size, here, points, values))


def constant_graph(points: int, values: int, pieces: int) -> CurveGraph:
    """Increasing curves with at most ``pieces`` different values; each is on one path."""
    _check_size(4 * points * values * pieces, points, values)
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
    return _build(sink + 1, edges, here[0, 0], *_labels(sink + 1, here, points, values))


def lipschitz_graph(points: int, values: int, steps: int) -> CurveGraph:
    """Increasing curves that rise by at most ``steps`` values from a point to the next."""
    if steps >= values - 1:
        return monotone_graph(points, values)
    _check_size(points * values * (steps + 1), points, values)
    here = np.arange(points * values, dtype=np.int64).reshape(points, values)
    sink = here.size
    edges = [(here[:-1, : values - rise], here[1:, rise:]) for rise in range(steps + 1)]
    edges.append((here[-1], np.full(values, sink)))
    return _build(sink + 1, edges, here[0], *_labels(sink + 1, here, points, values))


def convex_graph(points: int, values: int, steepest: int) -> CurveGraph:
    """Increasing convex curves that never rise by more than ``steepest`` values from a point to the next."""
    slopes = min(steepest, values - 1) + 1
    _check_size(3 * points * values * slopes, points, values)
    here = 2 * np.arange(points * values * slopes, dtype=np.int64).reshape(points, slopes, values)
    upto = here + 1  # totals over all last slopes up to this one
    sink = 2 * here.size
    edges = [(upto[:-1, s, : values - s], here[1:, s, s:]) for s in range(slopes)]
    edges += [(upto[:, :-1], upto[:, 1:]), (here, upto), (upto[-1, -1], np.full(values, sink))]
    return _build(sink + 1, edges, here[0, 0], *_labels(sink + 1, here, points, values))
