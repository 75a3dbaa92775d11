"""Increasing curves with few constant pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from isotone.curves.grids import Grid
from isotone.curves.shapes.graphs import CurveGraph, refuse_many_edges
from isotone.curves.shapes.shape import CurveShape, whole

__all__ = ["ConstantPieces", "constant_graph"]


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
