"""From rows to a public grid of (x, y) points with counts, at most k points per privacy unit.

x and y are snapped to grids that were declared before anything was read, so the whole data set becomes a
table of how many records fell on each grid point; that table is all that leaves the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.reading.columns import ColumnRule, read_numbers, whole_steps
from isotone.reading.contributions import RowsOfUnits, UnitKey, check_contributions
from isotone.reading.questions import Codes, is_one_of
from isotone.reading.sources import Frame, collect, open_source

_X, _Y, _COUNT = "isotone_x", "isotone_y", "isotone_count"
_MOST_MARKS = 1000
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Points:
    """Distinct grid points (as indices 0..steps on each axis) and how many records fell on each."""

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    count: NDArray[np.int64]


@dataclass(frozen=True)
class PointSource(RowsOfUnits):
    """Two columns, their public ranges, and into how many steps each range is cut.

    A value goes to the nearest grid point; values outside a range go to its end. Rows whose x or y is missing
    or not a number are dropped; with ``labels``, those whose y is not exactly an end of its range. ``marks`` lists the points of x where they are not evenly spaced. Of a unit with more
    than ``contributions`` rows that many count, chosen with equal probability.
    """

    data: Any
    x: str
    y: str
    bounds: Interval
    y_range: Interval
    x_steps: int
    y_steps: int
    unit: UnitKey = None
    contributions: int = 1
    marks: tuple[float, ...] = ()
    labels: bool = False
    words: Codes | None = None
    """Which words of y mean the ends of its range. Without them y is a number."""

    def __post_init__(self) -> None:
        for name, (low, high) in (("bounds", self.bounds), ("y_range", self.y_range)):
            if not low < high:
                raise InputError(f"{name} must be (low, high) with low below high, not ({low}, {high}).")
        if self.unit is not None:
            object.__setattr__(self, "contributions", check_contributions(self.contributions, self.unit))
        if len(self.marks) > _MOST_MARKS:
            raise InputError(
                f"A list of points for x has at most {_MOST_MARKS:,} here, not {len(self.marks):,}. Give a number of points."
            )

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        y = "answer" if self.words is not None else "label" if self.labels else "number"
        numbers = [self.x, *([self.y] if y == "number" else [])]
        return open_source(self.data, {**self.unit_roles, y: [self.y], "number": numbers})


def count_points(source: PointSource, frame: Frame, salt: bytes | None = None) -> Points:
    """The grid points and their counts.

    ``frame`` is what ``source.open`` returned.

    ``salt`` is for tests: a release draws its own.
    """
    x = ColumnRule(_place, source.x, (source.marks, source.bounds, source.x_steps))
    if source.words is None:
        y = ColumnRule(_outcome, source.y, (source.labels, source.y_range, source.y_steps))
        rows = read_numbers(frame, {_X: x, _Y: y}, source.unit_keys())
    else:
        y = ColumnRule(read_either, source.y, (source.words.yes, source.words.no, source.y_steps))
        rows = read_numbers(frame, {_X: x}, {_Y: y, **source.unit_keys()})
    rows = rows.filter(~nw.col(_X).is_null(), ~nw.col(_Y).is_null())
    counted = collect(source.bounded(rows, [_X, _Y], salt).group_by(_X, _Y).agg(nw.len().alias(_COUNT)))
    x_index, y_index, count = (np.array(counted[name], dtype=np.int64) for name in (_X, _Y, _COUNT))
    order = np.lexsort((y_index, x_index))  # engines return groups in any order
    return Points(x_index[order], y_index[order], count[order])


def _place(number: str, _: Any, marks: tuple[float, ...], bounds: Interval, steps: int) -> nw.Expr:
    value = nw.col(number)
    return nearest_mark(value, marks) if marks else _snap(value, bounds, steps)


def _outcome(number: str, _: Any, labels: bool, limits: Interval, steps: int) -> nw.Expr:
    outcome = nw.col(number)
    if labels:
        low, high = map(float, limits)
        outcome = nw.when((outcome == low) | (outcome == high)).then(outcome)
    return _snap(outcome, limits, steps)


def read_either(column: str, dtype: Any, yes: tuple[str, ...], no: tuple[str, ...], steps: int) -> nw.Expr:
    """So many steps where a value is a word of the first list, 0 where it is one of the second, and null elsewhere."""
    says_yes, says_no = (is_one_of(column, dtype, words, (*yes, *no)) for words in (yes, no))
    low = nw.when(says_no.fill_null(False)).then(nw.lit(0))
    return nw.when(says_yes.fill_null(False)).then(nw.lit(steps)).otherwise(low)


def _snap(value: nw.Expr, bounds: Interval, steps: int) -> nw.Expr:
    low, high = map(float, bounds)
    return whole_steps(value, low, high, steps, 0.5).clip(0, steps)


def nearest_mark(value: nw.Expr, marks: tuple[float, ...]) -> nw.Expr:
    """The index of the mark nearest to the value, by bisection. Null stays null."""
    middles = [(low + high) / 2 for low, high in pairwise(marks)]

    def among(first: int, last: int) -> nw.Expr:
        if first == last:
            return nw.lit(first)
        middle = (first + last) // 2
        return nw.when(value < middles[middle]).then(among(first, middle)).otherwise(among(middle + 1, last))

    return nw.when(~value.is_null()).then(among(0, len(marks) - 1)).cast(nw.Int64)


# From rows to a public grid of cells of several columns with y, at most k rows per privacy unit.
#
# Every column is cut into equal bins between public limits, so the whole data set becomes a table of how many records fell in
# each cell with each y; that table is all that leaves the engine.


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
        return open_source(self.data, {"number": [*self.x, self.y], **self.unit_roles})


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
