"""From rows to counts by cell of a public line, at most k rows per privacy unit.

The line is declared before anything is read: cells of one width, of one ratio, whole numbers, or a list of values. All that leaves
the engine is how many rows there are in each cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import narwhals as nw
import numpy as np

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.privacy.checks import shown
from isotone.reading.columns import ColumnRule, read_columns, read_numbers, whole_steps
from isotone.reading.contributions import GROUP, Groups, RowsOfUnits, UnitKey, check_contributions
from isotone.reading.grids import nearest_mark, read_either
from isotone.reading.questions import Codes
from isotone.reading.sources import Frame, collect, open_source
from isotone.reading.values import LARGEST

Spacing = Literal["even", "log", "integers", "values"]
USUAL_CELLS, MOST_VALUES = 1 << 16, 1_000
_NARROWEST, MOST_WHOLE = Fraction(1, 10**100), 1 << 53
_TOLD = 2.0**-6
"""So small a part of a cell, or a smaller one, are the last digits of a number."""
_CELL, _ENDED, _COUNT = "isotone_cell", "isotone_ended", "isotone_count"


@dataclass(frozen=True)
class CellLine:
    """Cells between two limits. Even ones and those of one ratio are (a, b], the first [a, b]; others hold one value each.

    Values beyond a limit are taken for it. Where cells hold a value, a record goes to the nearest. A value that is above the
    end of a cell in its last digits alone is in that cell: decimals are no floats, and engines divide them in different ways.

    >>> CellLine.of(Fraction(0), Fraction(10**6)).cells
    50000
    """

    low: Fraction
    high: Fraction
    cells: int
    spacing: Spacing = "even"
    values: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        low: Fraction,
        high: Fraction,
        grid: Any = "even",
        cells: int | None = None,
        usual: int = USUAL_CELLS,
    ) -> CellLine:
        """The cells of a grid that is named or listed. ``usual`` is how many there are at most where none are asked for."""
        if not low < high:
            raise InputError(f"bounds must be (low, high) with low below high, not {shown((low, high))}.")
        if not -LARGEST < low < high < LARGEST:
            raise InputError(f"bounds must lie within ±{LARGEST:g}: larger numbers are read as infinite.")
        if isinstance(grid, tuple):
            return cls._listed(low, high, grid)
        if grid == "integers":
            if low.denominator != 1 or high.denominator != 1:
                raise InputError(f"grid = 'integers' needs whole bounds, not ({low}, {high}).")
            if max(abs(low), abs(high)) > MOST_WHOLE:
                raise InputError(
                    f"grid = 'integers' needs bounds of at most {MOST_WHOLE:,}, beyond which not every number is told from the next: "
                    "subtract a public number first."
                )
            return cls(low, high, int(high - low) + 1, "integers")
        if grid == "log" and low <= 0:
            raise InputError(f"grid = 'log' needs a low end above 0, not {low}.")
        if not high - low >= max(max(abs(low), abs(high)) / 2**30, _NARROWEST):
            raise InputError(
                f"bounds=({low}, {high}) are too near to each other: subtract a public number first."
            )
        if cells is None:
            cells = usual if grid == "log" else _even_cells(low, high, usual)
        line = cls(low, high, cells, grid)
        if line.last_digits > _TOLD:
            raise InputError(
                f"{cells:,} cells in bounds=({low}, {high}) are finer than numbers of this size are told from each other: ask for fewer "
                "cells, or subtract a public number first."
            )
        return line

    @classmethod
    def _listed(cls, low: Fraction, high: Fraction, values: tuple[Fraction, ...]) -> CellLine:
        if not 2 <= len(values) <= MOST_VALUES:
            raise InputError(f"grid must list 2 to {MOST_VALUES:,} values, not {len(values):,}.")
        listed = [float(value) for value in values if low <= value <= high]
        if len(listed) < len(values) or sorted(set(listed)) != listed:
            raise InputError("The values of grid must rise, differ from each other, and lie in bounds.")
        return cls(low, high, len(listed), "values", tuple(listed))

    @property
    def single(self) -> bool:
        """Whether a cell holds one value."""
        return self.spacing in ("integers", "values")

    def ends(self) -> tuple[Floats, Floats]:
        """The lower and the upper end of each cell. They are the same where it holds one value."""
        low, high = float(self.low), float(self.high)
        if self.spacing == "values":
            return np.array(self.values), np.array(self.values)
        if self.spacing == "integers":
            values = low + np.arange(self.cells, dtype=np.float64)
            return values, values
        place = np.arange(self.cells + 1)
        first, last, whole = (int(n) for n in (self.low * self._parts, self.high * self._parts, self._parts))
        if self.spacing == "log":
            edges = low * (high / low) ** (place / self.cells)
        elif max(abs(first), abs(last), whole) * self.cells <= MOST_WHOLE:
            edges = (first * (self.cells - place) + last * place) / (whole * self.cells)  # the nearest floats
        else:
            edges = low * (1 - place / self.cells) + high * (place / self.cells)
        edges[0], edges[-1] = low, high
        return edges[:-1], edges[1:]

    @property
    def _parts(self) -> int:
        """What both limits are whole multiples of one over."""
        return math.lcm(self.low.denominator, self.high.denominator)

    @property
    def last_digits(self) -> float:
        """What part of a cell the last digits of a number are: more than ends and places of values are rounded by."""
        low, high, unit = float(self.low), float(self.high), 0.0
        if self.spacing == "log":
            low, high, unit = math.log(low), math.log(high), 1.0
        return 2.0**-48 * self.cells * max(abs(low), abs(high), unit) / (high - low)

    def place(self, value: nw.Expr, most: float | None = None) -> nw.Expr:
        """The cell of each number, or −1 for the first. Null stays null, and so does what is above ``most``."""
        low, high, last = float(self.low), float(self.high), self.cells - 1
        if self.spacing == "values":
            return nearest_mark(value, self.values)
        if self.spacing == "integers":
            return whole_steps(value, low, high, last, 0.5)
        way, first, end = value, low, high
        if self.spacing == "log":
            way, first, end = value.clip(low, high).log(), float(np.log(low)), float(np.log(high))
        # counted from above, so that a value at an end is in the cell below, and so is one that is above it by its last digits. A product
        # of floats is the same in all engines, a quotient is not. Of a number far outside it may be none, and its floor no whole number
        scale = self.cells / (end - first)
        inside = (last - ((end + self.last_digits / scale - way) * scale).floor()).cast(nw.Int64)
        above = value >= high if most is None else value <= most
        within = nw.when((value > low) & (value < high)).then(inside)
        return within.when(value <= low).then(nw.lit(0)).when(above).then(nw.lit(last))


def _even_cells(low: Fraction, high: Fraction, usual: int) -> int:
    """The most cells, up to a number, whose width is 1, 2 or 5 times a power of ten, of which both limits are multiples."""
    width = high - low
    power = Fraction(10) ** (len(str(int(width / usual))) - 1)
    while power * 1000 > width / usual:
        power /= 10
    for _ in range(9):
        for step in (power, 2 * power, 5 * power):
            if width / step <= usual and (width / step).denominator == (low / step).denominator == 1:
                return max(int(width / step), 2)
        power *= 10
    return usual


@dataclass(frozen=True)
class LineSource(RowsOfUnits):
    """A column of numbers, the public line they are put on, and the public groups of rows if there are any.

    Rows without a number are left out, and so are those of no group. Of a unit with more than ``contributions`` rows, in all
    groups together, that many count, chosen with equal probability. With ``event`` rows that say neither are left out as well.
    """

    data: Any
    column: str
    line: CellLine
    groups: Groups | None = None
    unit: UnitKey = None
    contributions: int = 1
    event: str | None = None
    """The column that says whether the number is the time of an event, or the time up to which there was none."""
    words: Codes | None = None
    """Which words mean an event, and which none. Without them it is 1 or 0."""

    def __post_init__(self) -> None:
        if self.unit is not None:
            object.__setattr__(self, "contributions", check_contributions(self.contributions, self.unit))

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        groups = [] if self.groups is None else self.groups.columns
        events = [] if self.event is None else [self.event]
        role = "event" if self.words is None else "answer"
        roles = {"number": [self.column], "group": groups, **self.unit_roles}
        return open_source(self.data, {**roles, role: events} if events else roles)


def count_line(source: LineSource, frame: Frame, salt: bytes | None = None) -> Ints:
    """Rows by group, status and cell. There is one status.

    With an event there are two: ended by it, and censored. A number beyond the line is then censored, in a cell of its own
    after the last. ``frame`` is what ``source.open`` returned. ``salt`` is for tests: a release draws its own.
    """
    groups, event = source.groups, source.event
    keys = source.unit_keys() | ({} if groups is None else groups.keys())
    if event is not None:
        words = source.words or EVENTS
        keys |= {_ENDED: ColumnRule(read_either, event, (words.yes, words.no, 1))}
    floats = frame.implementation.is_duckdb() and frame.collect_schema()[source.column] == nw.Float64
    known = floats and source.line.spacing in ("even", "log")  # to this engine NaN is above all numbers
    cell = ColumnRule(_place, source.column, (source.line, event is not None, math.inf if known else None))
    rows = read_columns(frame, {_CELL: cell, **keys}) if known else read_numbers(frame, {_CELL: cell}, keys)
    if source.unit is not None:  # otherwise they are left out once they are counted, which costs a half
        rows = rows.filter(~nw.col(_CELL).is_null())
    names, shape = [_CELL], [1 if groups is None else groups.size, 1, source.line.cells]
    if event is not None:
        rows = rows.filter(~nw.col(_ENDED).is_null())
        inside = nw.when(nw.col(_CELL) < source.line.cells).then(nw.col(_ENDED)).otherwise(nw.lit(0))
        rows = rows.with_columns(inside.alias(_ENDED))
        names, shape = [_ENDED, _CELL], [shape[0], 2, shape[2] + 1]
    if groups is not None:
        rows, names = groups.placed(rows), [GROUP, *names]
    found = collect(source.bounded(rows, names, salt).group_by(*names).agg(nw.len().alias(_COUNT)))
    known = ~np.isnan(np.array([found[name] for name in names], np.float64)).any(axis=0)
    at = {name: np.array(found[name], np.float64)[known].astype(np.intp) for name in names}
    status = 1 - at[_ENDED] if event is not None else 0
    counts = np.zeros(shape, np.int64)
    cell = np.clip(at[_CELL], 0, shape[2] - 1)
    place: Any = (at.get(GROUP, 0), status, cell)
    np.add.at(counts, place, np.array(found[_COUNT], dtype=np.int64)[known])
    return counts


EVENTS = Codes(("1", "true"), ("0", "false"))
"""How a column of events is read that declares no words."""


def _place(number: str, _: Any, line: CellLine, beyond: bool, most: float | None) -> nw.Expr:
    value, cell = nw.col(number), line.place(nw.col(number), most)
    if not beyond:
        return cell
    after = value > float(line.high)
    return (
        nw.when(after if most is None else after & (value <= most)).then(nw.lit(line.cells)).otherwise(cell)
    )
