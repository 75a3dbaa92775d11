"""From arrays to private records: the only place that looks at single values.

Shapes and lengths are public and checked with errors. Contents are private: a value that is missing or cannot
be read drops its record, a value outside its interval is moved to the nearest end, and nothing is ever raised
or printed about either (docs/theory/curves.md, section 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.grids import Grid
from isotone.errors import InputError
from isotone.noise import refuse_simulated

__all__ = ["MOST_ROWS", "Columns", "RawColumns", "Records", "check_shapes"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_ROWS = 1 << 30
"""Sums of scores are 64-bit integers; with this many rows none can overflow."""


@dataclass(frozen=True)
class Columns:
    """Private columns of equal length, as floats; missing is NaN. ``kept`` marks the records that count."""

    x: Floats = field(repr=False)
    y: Floats = field(repr=False)
    weight: Floats | None = field(repr=False)
    kept: NDArray[np.bool_] = field(repr=False)

    def records(self, x_grid: Grid, y_grid: Grid, weight_steps: int, max_weight: float) -> Records:
        """The records that count, as integers on public grids, sorted by ``x`` and then by falling ``y``."""
        cells, levels = x_grid.snap(self.x[self.kept]), y_grid.snap(self.y[self.kept])
        if self.weight is None:
            weights = np.full(cells.size, weight_steps, dtype=np.int64)
        else:
            share = np.clip(self.weight[self.kept], 0.0, max_weight) / max_weight
            weights = np.rint(share * weight_steps).astype(np.int64)
        return Records(cells, levels, weights).sorted()


@dataclass(frozen=True)
class Records:
    """Private records on public grids: the index of ``x``, the index of ``y``, an integer weight."""

    cells: Ints = field(repr=False)
    levels: Ints = field(repr=False)
    weights: Ints = field(repr=False)

    def sorted(self) -> Records:
        """Sorted by cell, and by falling level within a cell.

        The second order makes every isotonic fit of a prefix or suffix give equal ``x`` equal values: levels
        that fall are pooled (docs/theory/curves.md, section 5).
        """
        levels, weights = int(self.levels.max(initial=0)) + 1, int(self.weights.max(initial=0)) + 1
        if (int(self.cells.max(initial=0)) + 1) * levels * weights >= 1 << 62:
            order = np.lexsort((-self.levels, self.cells))
            return Records(self.cells[order], self.levels[order], self.weights[order])
        # one integer for each record sorts much faster than an index
        packed = np.sort((self.cells * levels + (levels - 1 - self.levels)) * weights + self.weights)
        rest, weight = np.divmod(packed, weights)
        cells, fallen = np.divmod(rest, levels)
        return Records(cells, levels - 1 - fallen, weight)

    def mirrored(self, points: int) -> Records:
        """The same records with ``x`` running the other way."""
        return replace(self, cells=points - 1 - self.cells).sorted()

    def upside_down(self, levels: int) -> Records:
        """The same records with ``y`` running the other way."""
        return replace(self, levels=levels - self.levels).sorted()


def check_shapes(x: Any, y: Any, weight: Any, groups: Any, most_rows: int = MOST_ROWS) -> RawColumns:
    """Check types and shapes, which are public. No value is looked at."""
    if y is None:
        raise InputError("A regression requires y to be passed, but the target y is None.")
    for part in (x, y, weight):
        refuse_simulated(part)
    raw = RawColumns(
        _one_column(x, "X"),
        _one_column(y, "y"),
        None if weight is None else _one_column(weight, "sample_weight"),
        None if groups is None else _one_column(groups, "groups"),
    )
    for name, column in (("y", raw.y), ("sample_weight", raw.weight), ("groups", raw.groups)):
        if column is not None and column.shape[0] != raw.x.shape[0]:
            raise InputError(f"X and {name} differ in length: every record needs one value in each.")
    if raw.x.shape[0] > most_rows:
        raise InputError(f"At most {most_rows:,} rows can be fitted at once in this setting.")
    return raw


@dataclass(frozen=True)
class RawColumns:
    """Private columns of equal length, as they came."""

    x: NDArray[Any] = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    weight: NDArray[Any] | None = field(repr=False)
    groups: NDArray[Any] | None = field(repr=False)

    def read(self, contributions: int) -> Columns:
        """The contents: what cannot be read is missing, and of each unit the first records count."""
        x, y = _numbers(self.x), _numbers(self.y)
        weight = None if self.weight is None else _numbers(self.weight)
        kept = ~(np.isnan(x) | np.isnan(y))
        if weight is not None:
            kept &= ~np.isnan(weight)
        if self.groups is not None:
            kept &= _among_first(self.groups, kept, contributions)
        return Columns(x, y, weight, kept)


def _one_column(values: Any, name: str) -> NDArray[Any]:
    """A one-dimensional array, from one dimension or from one column."""
    if hasattr(values, "toarray"):
        raise InputError(f"{name} is a sparse matrix: pass a dense array, X.toarray().")
    array = _array(values, units=name == "groups")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} must have one dimension, or two with one column, not shape {array.shape}. "
            + (
                "Reshape your data; for several features, see PrivatePosetRegression.from_features."
                if name == "X"
                else ""
            )
        )
    return array


def _array(values: Any, *, units: bool) -> NDArray[Any]:
    """An array in which no value has changed another.

    A common type for a list would do that: beside one text ``True`` becomes a text too, beside one missing number large
    whole numbers become floats, and units that differ become the same. So lists keep their values as they are.
    """
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # None where masked
    elif hasattr(values, "to_pylist"):
        values = values.to_pylist()
    elif units and hasattr(values, "to_list"):
        values = values.to_list()
    elif hasattr(values, "__array__"):
        return np.asarray(values)
    elif hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    try:
        return np.asarray(values, dtype=object)
    except Exception:  # arrays of different shapes, say: a matter of contents, so they will count as missing
        array = np.empty(len(values), dtype=object)
        for row, value in enumerate(values):
            array[row] = value
        return array


_BOOLEANS = {"true": 1.0, "false": 0.0}
"""What booleans become in an array of text."""


def _numbers(column: NDArray[Any]) -> Floats:
    """Floats; what cannot be read is NaN, silently."""
    if column.dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # longer floats may be too large
            return column.astype(np.float64)
    numbers = [value if type(value) is float else _number(value) for value in column.tolist()]
    return np.array(numbers, dtype=np.float64)


def _number(value: Any) -> float:
    try:
        value = _unwrapped(value)
        if isinstance(value, str) and (word := value.strip().lower()) in _BOOLEANS:
            return _BOOLEANS[word]
        # numpy reads a complex number with a warning, Python not at all
        return math.nan if isinstance(value, np.complexfloating) else float(value)
    except Exception:  # whatever a value objects to is a matter of contents
        return math.nan


def _unwrapped(value: Any) -> Any:
    """The only value of a row of one: rows of other lengths among them do not change it."""
    return value[0] if isinstance(value, (list, tuple, np.ndarray)) and len(value) == 1 else value


def _among_first(ids: NDArray[Any], kept: NDArray[np.bool_], contributions: int) -> NDArray[np.bool_]:
    """Marks, of the records kept so far, the first ``contributions`` of each unit; none without a unit.

    The rule sees one unit's rows at a time, so adding or removing another unit changes nothing.
    """
    codes = _codes(ids)
    rows = np.flatnonzero(kept & (codes >= 0))
    order = rows[np.argsort(codes[rows], kind="stable")]
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]]) if order.size else order
    place = np.arange(order.size) - np.repeat(starts, np.diff(np.r_[starts, order.size]))
    marks = np.zeros(ids.size, dtype=np.bool_)
    marks[order[place < contributions]] = True
    return marks


def _codes(ids: NDArray[Any]) -> Ints:
    """An integer for each unit; −1 where the unit is missing."""
    if ids.dtype.kind in "iub":
        return np.unique(ids, return_inverse=True)[1].astype(np.int64)
    known: dict[Any, int] = {}
    codes = np.empty(ids.size, dtype=np.int64)
    for row, name in enumerate(ids.tolist()):
        try:
            key = _unwrapped(name)
            missing = key is None or key != key
            codes[row] = -1 if missing else known.setdefault(key, len(known))
        except Exception:  # cannot be compared or hashed: not a unit
            codes[row] = -1
    return codes
