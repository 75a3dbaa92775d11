"""Read a column as numbers.

Each record is read on its own. What cannot be parsed is missing.

Engines disagree on what a failed conversion does (raise, null, wrap around), so text is checked against a
pattern first and only what matches is converted: no content can make a query fail.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw

from isotone.reading.columns.values import LARGEST, REAL

__all__ = ["as_float", "as_integer", "as_real", "as_written", "is_readable", "whole_steps"]

_INTEGER = r"^[-+]?[0-9]{1,17}(\.0*)?$"
_LARGEST = 10**17
_HUGE = r"^[-+]?[1-9][0-9]{17,}(\.0*)?$"
_MORE = 1 + 2.0**-50  # more than a quotient of any engine is rounded down
_UNREADABLE = (nw.Binary, nw.List, nw.Array, nw.Struct, nw.Object, nw.Duration, nw.Unknown)


def is_readable(dtype: Any) -> bool:
    """Whether every value of this type can be written as text.

    Nested values and durations cannot.
    """
    return not any(dtype == kind for kind in _UNREADABLE)


def as_real(column: str, dtype: Any) -> nw.Expr:
    """The column as a float.

    Missing, unparsable, infinite and NaN values are null.

    Booleans are 1 and 0, and so are the words true and false: what booleans become beside one value of another type.
    """
    if dtype == nw.Boolean:
        return nw.col(column).cast(nw.Int8).cast(nw.Float64)
    if not is_readable(dtype) or dtype.is_numeric():
        return as_written(column, dtype)
    return _finite(_booleans_too(column, REAL).cast(nw.Float64))


def as_written(column: str, dtype: Any) -> nw.Expr:
    """Like ``as_real``, but booleans and the words true/false become null."""
    return _finite(as_float(column, dtype))


def as_float(column: str, dtype: Any) -> nw.Expr:
    """Like ``as_written``, but what is infinite or not a number stays so, for comparisons with finite numbers."""
    if not is_readable(dtype) or dtype == nw.Boolean:
        return nw.lit(None).cast(nw.Float64)
    value = nw.col(column) if dtype.is_numeric() else _matching(column, REAL)
    return value.cast(nw.Float64)


def _finite(number: nw.Expr) -> nw.Expr:
    # A comparison with NaN is false (or orders NaN last): either way only finite numbers pass.
    finite = (number > -LARGEST) & (number < LARGEST)
    return nw.when(finite.fill_null(False)).then(number)


def as_integer(column: str, dtype: Any) -> nw.Expr:
    """The column as a whole number.

    Missing, unparsable and fractional values are null. Numbers beyond ±10^17 become that bound: one more or one less never moves a
    value by more than one.
    """
    if not is_readable(dtype):
        return nw.lit(None).cast(nw.Int64)
    if dtype.is_integer():
        value = nw.col(column)
        small = nw.when((value >= -_LARGEST) & (value <= _LARGEST)).then(value).cast(nw.Int64)
        return _bounded(value > _LARGEST, value < -_LARGEST, small)
    if dtype.is_numeric():
        real = as_real(column, dtype)
        whole = (real >= -_LARGEST) & (real <= _LARGEST)
        rounded = nw.when(whole.fill_null(False)).then(real).cast(nw.Int64)
        small = nw.when((rounded.cast(nw.Float64) == real).fill_null(False)).then(rounded)
        return _bounded(real > _LARGEST, real < -_LARGEST, small)
    if dtype == nw.Boolean:
        return nw.col(column).cast(nw.Int8).cast(nw.Int64)
    small = _booleans_too(column, _INTEGER).str.replace_all(r"\.0*$", "").cast(nw.Int64)
    huge = _matching(column, _HUGE)
    return _bounded(~huge.str.starts_with("-"), huge.str.starts_with("-"), small)


def whole_steps(value: nw.Expr, low: float, high: float, steps: int, ahead: float = 0.0) -> nw.Expr:
    """How many whole steps lead from ``low`` to a value, where ``steps`` of them lead to ``high``.

    A value outside is taken for the end next to it. ``ahead`` is a part of a step that is added: with a half, the result is the nearest step.

    Engines differ in how they divide: polars multiplies by the reciprocal, so a value at the edge of a step may fall below it. So a quotient is
    only a guess, which is the number or one more, and a product says which.
    """
    # A power of two changes no digit, and keeps the products in the range of floats.
    power = 2.0 ** int(steps).bit_length() if high - low > 1 else 1.0
    step = (high - low) / power
    way = (value.clip(low, high) - low) * (steps / power) + step * ahead
    guess = (way / step * _MORE).floor()
    return (guess - (guess * step > way).cast(nw.Int8)).cast(nw.Int64)


def _bounded(above: nw.Expr, below: nw.Expr, otherwise: nw.Expr) -> nw.Expr:
    """The largest number where it is passed, and its negative."""
    top, bottom = (nw.lit(bound).cast(nw.Int64) for bound in (_LARGEST, -_LARGEST))
    high = nw.when(below.fill_null(False)).then(bottom).otherwise(otherwise)
    return nw.when(above.fill_null(False)).then(top).otherwise(high)


def _matching(column: str, pattern: str) -> nw.Expr:
    text = nw.col(column).cast(nw.String).str.strip_chars()
    return nw.when(text.str.contains(pattern).fill_null(False)).then(text)


def _booleans_too(column: str, pattern: str) -> nw.Expr:
    text = nw.col(column).cast(nw.String).str.strip_chars()
    word = text.str.to_lowercase()
    number = nw.when(text.str.contains(pattern).fill_null(False)).then(text)
    return nw.when(word == "true").then(nw.lit("1")).when(word == "false").then(nw.lit("0")).otherwise(number)
