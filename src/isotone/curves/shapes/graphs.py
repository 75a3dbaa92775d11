"""Graphs whose paths are the increasing curves of a shape, on a grid of ``points`` by ``values``.

In each graph every path from a source to the sink is one curve. A *value node* ``(point, value)`` carries the loss of
the records at that point; the other nodes only add up totals, so that a sum over all smaller values costs one
addition instead of many (docs/theory/curves.md, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isotone.array_types import Ints
from isotone.curves.circuits.circuit import MOST_EDGES, Circuit
from isotone.errors import InputError

__all__ = ["CurveGraph", "refuse_many_edges"]


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
