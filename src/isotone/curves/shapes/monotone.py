"""Increasing curves without further demands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.curves.grids import Grid
from isotone.curves.shapes.graphs import CurveGraph, refuse_many_edges
from isotone.curves.shapes.shape import CurveShape

if TYPE_CHECKING:
    from isotone.curves.chain.problem import ChainProblem

__all__ = ["Monotone", "monotone_graph"]


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

    >>> from isotone.curves.circuits.circuit import CircuitTables
    >>> g = monotone_graph(3, 2)  # 000, 001, 011, 111
    >>> round(np.exp(CircuitTables(g.graph, np.zeros(g.graph.nodes, np.int64), Fraction(1)).log_total()))
    4
    """
    refuse_many_edges(3 * points * values, points, values)
    here = 2 * np.arange(points * values, dtype=np.int64).reshape(points, values)
    upto = here + 1
    edges = [(upto[:-1], here[1:]), (upto[:, :-1], upto[:, 1:]), (here, upto)]
    return CurveGraph.of(2 * here.size, edges, here[0], here)
