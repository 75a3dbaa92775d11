"""Read a column as texts.

What one record says never depends on what others say.

A table in memory takes the type of a column from its contents: one missing value makes whole numbers floats, one word
makes them objects. So a number is the same text in a column of any type: whole numbers without a decimal point.
Single values are read in :mod:`isotone.reading.columns.values`, by the same rules.
"""

from __future__ import annotations

import re
from typing import Any

import narwhals as nw
import numpy as np

from isotone.reading.columns.numbers import as_written, is_readable
from isotone.reading.columns.values import LARGEST, NO_UNIT, WHOLE, plain_text

__all__ = ["as_text", "as_unit", "label", "name_text"]

_DECIMAL = r"^[-+]?[0-9]+(\.0*)?$"
_LARGEST = 2.0**62
_NOBODY = rf"(?i)^(?:{'|'.join(map(re.escape, NO_UNIT))})\z"  # engines write other small letters for İ


def as_text(column: str, dtype: Any) -> nw.Expr:
    """The column as text without outer blanks.

    Whole numbers have no decimal point. Null if the value has no text.
    """
    value = nw.col(column)
    if not is_readable(dtype):
        return nw.lit(None).cast(nw.String)
    if dtype == nw.Boolean:
        return nw.when(value).then(nw.lit("true")).when(~value).then(nw.lit("false"))
    if dtype.is_integer():
        return value.cast(nw.String)
    if dtype.is_decimal():
        exact = value.cast(nw.String)
        whole = nw.when(exact.str.contains(_DECIMAL).fill_null(False)).then(
            exact.str.replace_all(r"\.0*$", "")
        )
        return nw.coalesce(whole, as_written(column, dtype).cast(nw.String))
    if dtype.is_numeric():
        number = as_written(column, dtype)
        small = ((number >= -_LARGEST) & (number <= _LARGEST)).fill_null(False)
        rounded = nw.when(small).then(number).cast(nw.Int64)
        whole = nw.when((rounded.cast(nw.Float64) == number).fill_null(False)).then(rounded)
        return nw.coalesce(whole.cast(nw.String), number.cast(nw.String))
    text = value.cast(nw.String).str.strip_chars()
    # A point is looked for first: the pattern costs far more, and few texts need it.
    point = text.str.contains(".", literal=True).fill_null(False)
    return nw.when(point).then(_without_point(text)).otherwise(text)


def _without_point(text: nw.Expr) -> nw.Expr:
    whole = text.str.contains(WHOLE).fill_null(False)
    return nw.when(whole).then(text.str.replace_all(r"\.0*$", "")).otherwise(text)


def as_unit(column: str, dtype: Any) -> nw.Expr:
    """The privacy unit of a row.

    Null where none is named, since those rows would be one unit for many people.

    Numbers, moments and bytes are units as they are, unless NaN or infinite. Texts are units without outer blanks, and
    ``7.0`` is ``7``; blank texts and the words of :data:`isotone.reading.columns.values.NO_UNIT` name no unit.
    """
    value = nw.col(column)
    if dtype.is_float():
        finite = (value > -LARGEST) & (value < LARGEST)
        return nw.when(finite.fill_null(False)).then(value)
    if dtype.is_numeric() or dtype.is_temporal() or dtype in (nw.Boolean, nw.Binary):
        return value
    if not is_readable(dtype):
        return as_text(column, dtype)
    stripped = value.cast(nw.String).str.strip_chars()
    # A text that begins with a digit is none of the words: most units are told from them by two comparisons.
    digit = (stripped >= "0") & (stripped < ":")
    # One pattern: a comparison for each word takes engines longer to plan than a small table to read.
    nobody = stripped.str.contains(_NOBODY)
    return nw.when(digit | ~nobody).then(as_text(column, dtype))


def label(name: Any) -> str:
    """A public name as text.

    A boolean is written as a column of booleans is read.

    >>> label(True), label("Rhine"), label(7)
    ('true', 'Rhine', '7')
    """
    return str(name).lower() if isinstance(name, (bool, np.bool_)) else str(name)


def name_text(name: Any) -> str:
    """A public name as ``as_text`` reads it in a column.

    >>> name_text(2.0), name_text(" x"), name_text("7.")
    ('2', 'x', '7')
    """
    return plain_text(str(name))
