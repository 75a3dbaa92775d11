"""Fits to records that were counted where the data are, and each unit bounded there."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.grids import FINE
from isotone.reading.contributions import UnitKey
from isotone.reading.grids import PointSource

__all__ = ["fit_counted", "point_source"]


def point_source(data: Any, x: str, y: str, problem: ChainProblem, unit: UnitKey) -> PointSource:
    """How the records of a curve are counted, on the grids of the problem."""
    grid = problem.grid
    return PointSource(
        data,
        x,
        y,
        (grid.low, grid.high),
        problem.y_range,
        grid.points - 1,
        FINE,
        unit,
        problem.budget.whole.unit.contributions,
        grid.listed,
        problem.labels,
    )


def fit_counted(
    estimator: Any, x: Floats, levels: Ints, count: Ints, y_range: tuple[Fraction, Fraction]
) -> Any:
    """Fit to ``count`` records at each ``x`` and level of ``y``.

    Each record is a unit of its own, as all units are bounded already. The noise is still that for ``contributions`` records.
    """
    (low, high), share = map(float, y_range), levels / FINE
    y = (1.0 - share) * low + share * high  # exact at both ends
    rows = np.repeat(np.arange(levels.size), count)
    return estimator.fit(x[rows], y[rows], groups=np.arange(rows.size))
