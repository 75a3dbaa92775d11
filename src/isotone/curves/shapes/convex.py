"""Increasing curves that rise ever faster, or ever more slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from isotone.curves.grids import Grid
from isotone.curves.shapes.graphs import CurveGraph, refuse_many_edges
from isotone.curves.shapes.shape import CurveShape

__all__ = ["Concave", "Convex", "convex_graph"]


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
