"""Grids of a curve, and arrays that are checked against them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.noise import Simulated, refuse_simulated
from isotone.privacy.checks import Number, exact, shown
from isotone.reading.values import reals, values_of

__all__ = [
    "FINE",
    "LEVELS",
    "MOST_POINTS",
    "WHY_RANGE",
    "Grid",
    "GridSpec",
    "check_length",
    "columns_of",
    "make_grid",
    "numbers_of",
    "only_column",
    "parse_interval",
    "parse_y",
    "row_count",
    "shape_of",
]


# Public grids, of where a curve can change and which values a record can have.
#
# Everything a mechanism of this package sees of a record are two integers: the index of its ``x`` and the
# index of its ``y`` on grids that were fixed without looking at the data. Snapping is done record by record, so
# it needs no exactness: any fixed function of one record keeps the guarantee (docs/theory/curves.md, section 1).

GridSpec = int | Literal["integers"] | Sequence[Number]

LEVELS = 16
"""Binary digits of ``y``: records have one of 2**16 + 1 values."""
FINE = 1 << LEVELS
MOST_POINTS = 1 << 40
NARROWEST = Fraction(1, 1 << 36)
"""An interval is at least this share of its larger end wide: so floats tell all values of a record's ``y`` apart."""
WHY_RANGE = "The noise that hides one record depends on how far its y can lie from the others."
WHY_VALUES = "The two values of y are declared, lower first, as in y_values=(0, 1)."


@dataclass(frozen=True)
class Grid:
    """``points`` numbers from ``low`` to ``high``, evenly spaced or as listed.

    >>> grid = Grid(Fraction(0), Fraction(10), 11)
    >>> grid.snap(np.array([-5.0, 3.4, 1e300])), grid.step
    (array([ 0,  3, 10]), Fraction(1, 1))
    """

    low: Fraction
    high: Fraction
    points: int
    listed: tuple[float, ...] = ()

    @property
    def even(self) -> bool:
        """Whether the points are evenly spaced."""
        return not self.listed

    @property
    def step(self) -> Fraction:
        """The distance between two neighbouring points of an even grid."""
        return (self.high - self.low) / max(1, self.points - 1)

    def positions(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers at the given indices."""
        if self.listed:
            return np.array(self.listed)[indices]
        whole = self.low.denominator == self.step.denominator == 1
        if whole and max(abs(self.low), abs(self.high)) < 1 << 53:
            return float(self.low) + indices.astype(np.float64) * float(self.step)
        share = indices / max(1, self.points - 1)
        return float(self.low) * (1.0 - share) + float(self.high) * share

    def snap(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The index of the point nearest to each value. Values beyond an end go to that end."""
        low, high = float(self.low), float(self.high)
        inside = np.clip(values, low, high)
        if self.listed:
            marks = np.array(self.listed)
            return np.searchsorted((marks[1:] + marks[:-1]) / 2, inside, side="right").astype(np.int64)
        # the distance of the two floats, not of the exact ends: no share can be above 1, whatever was rounded
        return np.rint((inside - low) / (high - low) * (self.points - 1)).astype(np.int64)


def parse_interval(value: Any, name: str, why: str) -> tuple[Fraction, Fraction]:
    """The two ends of a public interval, refused with the reason if it is missing or reversed."""
    if value is None:
        raise InputError(
            f"{name}=(low, high) is missing. {why} Give limits that are known without the data: they must not "
            f"be the data's own minimum and maximum, because those belong to single records."
        )
    ends = _pair(value)
    if ends is None:
        raise InputError(f"{name} must be a pair (low, high), not {shown(value)}.")
    low, high = exact(ends[0], f"the lower end of {name}"), exact(ends[1], f"the upper end of {name}")
    if low >= high:
        raise InputError(f"{name}={shown(value)} is reversed or empty: give (low, high) with low below high.")
    if max(abs(low), abs(high), high - low) > Fraction(10) ** 300:
        raise InputError(
            f"{name}={shown(value)} is too wide for floating-point arithmetic: rescale the data."
        )
    if not high - low >= NARROWEST * max(abs(low), abs(high), Fraction(1, 10**280)):
        raise InputError(
            f"{name}={shown(value)} is too narrow for floating-point arithmetic: subtract a public number from the data and "
            "from the limits, or rescale both."
        )
    return low, high


def _pair(value: Any) -> list[Any] | None:
    """The two entries of something ordered, or None."""
    if isinstance(value, (str, bytes, Mapping, Set)) or not isinstance(value, Iterable):
        return None
    ends: list[Any] = list(value)
    return ends if len(ends) == 2 else None


def parse_y(y_range: Any, y_values: Any) -> tuple[tuple[Fraction, Fraction], bool]:
    """The public range of ``y``, and whether it has only the two ends of it as values.

    Such labels are declared by the user, never detected.
    """
    if y_values is None:
        return parse_interval(y_range, "y_range", WHY_RANGE), False
    ends = parse_interval(y_values, "y_values", WHY_VALUES)
    if any(Fraction(float(end)) != end for end in ends):
        raise InputError(
            f"y_values={shown(y_values)} are not floating-point numbers exactly, so no y could be told to equal them: use whole "
            "numbers, such as (0, 1)."
        )
    if y_range is not None and parse_interval(y_range, "y_range", WHY_RANGE) != ends:
        raise InputError(
            f"y_range={shown(y_range)} and y_values={shown(y_values)} contradict each other: leave out y_range, or y_values if y has "
            "other values too."
        )
    return ends, True


def make_grid(bounds: tuple[Fraction, Fraction], spec: GridSpec | None, default: int) -> Grid:
    """The public grid of ``x``. A number of even points, every integer, or a list of points.

    >>> make_grid((Fraction(1), Fraction(5)), "integers", 1024).points
    5
    """
    low, high = bounds
    if spec is None:
        return Grid(low, high, default)
    if isinstance(spec, str):
        return _integers(low, high, spec)
    if isinstance(spec, (int, np.integer)) and not isinstance(spec, (bool, np.timedelta64)):
        if not 2 <= spec <= MOST_POINTS:
            raise InputError(f"x_grid must have at least 2 and at most 2**40 points, not {shown(spec)}.")
        return Grid(low, high, int(spec))
    if isinstance(spec, (Mapping, Set)) or not isinstance(spec, Iterable):
        raise InputError(
            f"x_grid must be a number of points, 'integers' or a list of points, not {shown(spec)}."
        )
    return _listed(low, high, spec)


def _integers(low: Fraction, high: Fraction, spec: str) -> Grid:
    if spec != "integers":
        raise InputError(
            f"x_grid must be a number of points, 'integers' or a list of points, not {shown(spec)}."
        )
    if low.denominator != 1 or high.denominator != 1:
        raise InputError(f"x_grid='integers' needs whole bounds, not ({low}, {high}).")
    points = int(high - low) + 1
    if points > MOST_POINTS:
        raise InputError(
            f"x_grid='integers' would have {points:,} points, and 2**40 is the limit: give a number of points."
        )
    return Grid(low, high, points)


def _listed(low: Fraction, high: Fraction, spec: Sequence[Number]) -> Grid:
    marks = [exact(point, "a point of x_grid") for point in spec]
    if len(marks) < 2:
        raise InputError(f"A list of points for x_grid must have at least two, not {shown(spec)}.")
    if min(marks) < low or max(marks) > high:  # so that all are floats
        raise InputError(f"The points of x_grid must lie in bounds=({low}, {high}), not {shown(spec)}.")
    for a, b in pairwise(marks):
        if float(a) >= float(b):
            raise InputError(
                f"The points of x_grid must rise, but {float(b):g} comes after {float(a):g}: sort them, each once."
            )
    return Grid(low, high, len(marks), tuple(float(mark) for mark in marks))


# Columns of arrays, tables and lists of any library. Only types and shapes are looked at, never a value.
#
# What a container says of its own shape is public. A list has a length and nothing else: whether its entries are rows, and
# of what length, is a matter of contents.


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """The shape of a container. A list has one dimension."""
    if isinstance(values, Simulated):  # by the type of the container: what a list holds is contents
        refuse_simulated(values)
    if hasattr(values, "toarray"):
        raise InputError(f"{name} is a sparse matrix: pass a dense array, {name}.toarray().")
    shape = getattr(_array(values), "shape", None)
    if isinstance(shape, tuple):
        return tuple(int(size) for size in shape)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise InputError(
            f"{name} must have one dimension: pass an array or a list with one entry for each record."
        )
    return (len(values),)


def row_count(values: Any, name: str, hint: str = "") -> int:
    """The number of rows of a column. Several columns are refused, with a hint."""
    shape = shape_of(values, name)
    if len(shape) != 1 and not (len(shape) == 2 and shape[1] == 1):
        raise InputError(f"{name} must have one dimension, or two with one column, not shape {shape}.{hint}")
    return shape[0]


def check_length(values: Any, name: str, rows: int) -> None:
    """Refuse a column of another length or of several dimensions."""
    if row_count(values, name) != rows:
        raise InputError(f"X and {name} differ in length: every record needs one value in each.")


def only_column(values: Any, name: str) -> Any:
    """The column itself, from one dimension or from a table of one column."""
    return columns_of(values, name, 1)[0] if len(shape_of(values, name)) == 2 else _array(values)


def _array(values: Any) -> Any:
    """What can only be made an array, as an array, and everything else as it is."""
    return np.asarray(values) if hasattr(values, "__array__") and not hasattr(values, "__len__") else values


def columns_of(table: Any, name: str, count: int) -> list[Any]:
    """The columns of a table, or of a list of rows. A row of another length has no values."""
    table = _array(table)
    if len(shape_of(table, name)) == 1:
        rows = [_row(row, count) for row in values_of(table)]
        return [[row[place] for row in rows] for place in range(count)]
    if hasattr(table, "iloc"):
        return [table.iloc[:, place] for place in range(count)]
    if hasattr(table, "to_series"):
        return [table.to_series(place) for place in range(count)]
    if hasattr(table, "column"):
        return [table.column(place) for place in range(count)]
    return [table[:, place] for place in range(count)]


def _row(row: Any, count: int) -> list[Any]:
    flat = type(row) is list or type(row) is tuple or (type(row) is np.ndarray and row.ndim == 1)
    return list(row) if flat and len(row) == count else [None] * count


def numbers_of(column: Any, *, public: bool = False) -> Floats:
    """A column as floats, in which what cannot be read is NaN, and so is infinity unless the values are ``public``."""
    if isinstance(getattr(column, "dtype", None), np.dtype) and not isinstance(column, np.ma.MaskedArray):
        column = np.asarray(column)
    numbers = reals(column)
    if public:
        for row in np.flatnonzero(np.isnan(numbers)).tolist():
            value = values_of(column)[row]
            if isinstance(value, float) and math.isinf(value):
                numbers[row] = value
    return numbers
