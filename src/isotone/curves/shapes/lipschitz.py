"""Increasing curves of bounded slope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from isotone.curves.grids import Grid
from isotone.curves.losses.known_losses import ROWS
from isotone.curves.shapes.graphs import CurveGraph, refuse_many_edges
from isotone.curves.shapes.monotone import monotone_graph
from isotone.curves.shapes.shape import CurveShape
from isotone.errors import InputError
from isotone.privacy.checks import positive

__all__ = ["Lipschitz", "lipschitz_graph"]


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
