"""Columns of arrays, tables and lists of any library. Only types and shapes are looked at, never a value.

What a container says of its own shape is public. A list has a length and nothing else: whether its entries are rows, and
of what length, is a matter of contents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.noise import Simulated, refuse_simulated
from isotone.reading.values import reals, values_of

__all__ = ["check_length", "columns_of", "numbers_of", "only_column", "row_count", "shape_of"]


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
