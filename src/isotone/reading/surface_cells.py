"""From rows to a public grid of cells of several columns with y, at most k rows per privacy unit.

Every column is cut into equal bins between public limits, so the whole data set becomes a table of how many records fell in
each cell with each y; that table is all that leaves the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.reading.columns.numbers import whole_steps
from isotone.reading.columns.translated import ColumnRule, read_numbers
from isotone.reading.contributions import RowsOfUnits, UnitKey, check_contributions
from isotone.reading.sources.opening import Frame, collect, open_source

__all__ = ["CellSource", "Cells", "count_cells"]

_Y, _COUNT = "isotone_y", "isotone_count"

Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Cells:
    """Distinct cells (a row of bins for each) with a step of y, and how many records fell there."""

    bins: NDArray[np.int64]
    y: NDArray[np.int64]
    count: NDArray[np.int64]


@dataclass(frozen=True)
class CellSource(RowsOfUnits):
    """Columns with public limits and numbers of bins, and y with its range in so many steps.

    Values outside go to the ends. Rows that lack a number in any of the columns are dropped. Of a unit with more than ``contributions`` rows that many count, chosen with equal probability.
    """

    data: Any
    x: tuple[str, ...]
    y: str
    bounds: tuple[Interval, ...]
    bins: tuple[int, ...]
    y_range: Interval
    y_steps: int
    unit: UnitKey = None
    contributions: int = 1

    def __post_init__(self) -> None:
        if len({*self.x, self.y}) <= len(self.x):
            raise InputError(f"The columns {', '.join([*self.x, self.y])} must differ from each other.")
        if self.unit is not None:
            check_contributions(self.contributions, self.unit)

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        return open_source(self.data, [*self.x, self.y, *self.unit_columns])


def count_cells(source: CellSource, frame: Frame, salt: bytes | None = None) -> Cells:
    """The cells and their counts.

    ``frame`` is what ``source.open`` returned. ``salt`` is for tests: a release draws its own.
    """
    names = [f"isotone_x{place}" for place in range(len(source.x))]
    cells = {
        name: ColumnRule(_bin, column, (limits, bins))
        for name, column, limits, bins in zip(names, source.x, source.bounds, source.bins, strict=True)
    }
    y = ColumnRule(_step, source.y, (source.y_range, source.y_steps))
    rows = read_numbers(frame, {**cells, _Y: y}, source.unit_keys())
    rows = rows.filter(*(~nw.col(name).is_null() for name in [*names, _Y]))
    counted = collect(
        source.bounded(rows, [*names, _Y], salt).group_by(*names, _Y).agg(nw.len().alias(_COUNT))
    )
    bins = np.array([counted[name] for name in names], dtype=np.int64).T.reshape(-1, len(names))
    steps, count = (np.array(counted[name], dtype=np.int64) for name in (_Y, _COUNT))
    order = np.lexsort((steps, *bins.T[::-1]))  # engines return groups in any order
    return Cells(bins[order], steps[order], count[order])


def _bin(number: str, _: Any, limits: Interval, bins: int) -> nw.Expr:
    low, high = map(float, limits)
    return whole_steps(nw.col(number), low, high, bins).clip(0, bins - 1)


def _step(number: str, _: Any, limits: Interval, steps: int) -> nw.Expr:
    low, high = map(float, limits)
    return whole_steps(nw.col(number), low, high, steps, 0.5).clip(0, steps)
