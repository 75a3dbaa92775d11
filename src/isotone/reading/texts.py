"""Texts: how a column is read as words, so that what one record says never depends on what others say.

A table in memory takes the type of a column from its contents: one missing value makes whole numbers floats, one word
makes them objects. So a number is the same text in a column of any type: whole numbers without a decimal point.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from isotone.reading.numbers import as_written, is_readable

__all__ = ["as_text", "as_unit", "label", "name_text", "text_of"]

_WHOLE = r"^[-+]?[0-9]+\.0*$"
_LARGEST = 2.0**53


def as_text(column: str, dtype: Any) -> nw.Expr:
    """The column as text without outer blanks; whole numbers without a decimal point; null if it has no text."""
    value = nw.col(column)
    if not is_readable(dtype):
        return nw.lit(None).cast(nw.String)
    if dtype == nw.Boolean:
        return nw.when(value).then(nw.lit("true")).when(~value).then(nw.lit("false"))
    if dtype.is_integer():
        return value.cast(nw.String)
    if dtype.is_numeric():
        number = as_written(column, dtype)
        small = ((number >= -_LARGEST) & (number <= _LARGEST)).fill_null(False)
        rounded = nw.when(small).then(number).cast(nw.Int64)
        whole = nw.when((rounded.cast(nw.Float64) == number).fill_null(False)).then(rounded)
        return nw.coalesce(whole.cast(nw.String), number.cast(nw.String))
    text = value.cast(nw.String).str.strip_chars()
    point = text.str.contains(_WHOLE).fill_null(False)
    return nw.when(point).then(text.str.replace_all(r"\.0*$", "")).otherwise(text)


def as_unit(column: str, dtype: Any) -> nw.Expr:
    """The privacy unit of a row; null where there is none, NaN included: it would be one unit for many people."""
    value = nw.col(column)
    return nw.when(~value.is_nan()).then(value) if dtype.is_float() else value


def label(name: Any) -> str:
    """A public name as text; a boolean as a column of booleans is read.

    >>> label(True), label("Rhine"), label(7)
    ('true', 'Rhine', '7')
    """
    return str(name).lower() if isinstance(name, (bool, np.bool_)) else str(name)


def name_text(name: Any) -> str:
    """A public name as :func:`as_text` reads it in a column.

    >>> name_text(2.0), name_text(" x"), name_text("7.")
    ('2', 'x', '7')
    """
    text = str(name).strip()
    return text[: text.index(".")] if re.fullmatch(_WHOLE, text) else text


def text_of(value: Any) -> str | None:
    """The text of one value of a column of mixed values, as :func:`as_text` reads it; nothing can make it fail.

    >>> [text_of(value) for value in (1.0, 2.5, True, Decimal("3.00"), " x ", None, float("nan"))]
    ['1', '2.5', 'true', '3', ' x ', None, None]
    """
    try:
        if value is None or value != value:
            return None
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, (int, float, Decimal, np.number)):
            whole = int(value)
            return str(whole) if whole == value else repr(float(value))
        return str(value)
    except Exception:  # pandas' NA, arrays in cells, infinities, objects that refuse: no value
        return None
