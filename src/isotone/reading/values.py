"""The text, number or unit of one value, whatever its Python type.

Contents are private, so nothing here raises, warns, prints or runs code that a value brings along: a value of
a type that is not listed, or that no rule can read, is missing. The rules are those of columns in an engine
(:mod:`isotone.reading.columns`, :mod:`isotone.reading.columns`), value by value.
"""

from __future__ import annotations

import datetime
import math
import re
import uuid
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLANKS",
    "LARGEST",
    "NO_UNIT",
    "REAL",
    "WHOLE",
    "plain_text",
    "real_of",
    "reals",
    "text_of",
    "texts",
    "unit_of",
    "units",
    "values_of",
]

BLANKS = " \t\n\r\v\f"
REAL = r"^[-+]?([0-9]{1,250}(\.[0-9]{0,250})?|\.[0-9]{1,250})([eE](-[0-9]{1,3}|\+?[0-9]{1,2}|\+?[12][0-9][0-9]))?$"
WHOLE = r"^[-+]?[0-9]+\.0*$"
LARGEST = 1e300
"""Numbers that reach it are missing, like infinite ones."""
NO_UNIT = ("", "na", "n/a", "<na>", "nan", "nat", "null", "none", "inf", "-inf", "infinity", "-infinity")
"""Texts that name no unit, in any case: what other tools write where a unit is missing."""

_REAL, _WHOLE = re.compile(REAL), re.compile(WHOLE)
_DIGITS = 250
_BOOLEANS = {"true": 1.0, "false": 0.0}


def text_of(value: Any) -> str | None:
    """The text of one value without outer blanks.

    Whole numbers have no decimal point. None if the value has no text.

    Bytes are written as hexadecimal digits. Durations, nested values and other objects have no text.

    >>> [text_of(value) for value in (1.0, 2.5, True, Decimal("3.00"), " x ", "7.0", b"a", None, float("nan"))]
    ['1', '2.5', 'true', '3', 'x', '7', '0x61', None, None]
    """
    try:
        return _text(value)
    except Exception:  # a value of a listed type that cannot be shown: too many digits, a year out of range
        return None


def real_of(value: Any) -> float:
    """The value as a finite float.

    NaN if it is missing, infinite or no number. Booleans are 1 and 0.

    >>> [real_of(value) for value in (True, " 2.5", "1e3", 7, "true", "seven", float("inf"), 1j)]
    [1.0, 2.5, 1000.0, 7.0, 1.0, nan, nan, nan]
    """
    if type(value) is float:
        return value if -LARGEST < value < LARGEST else math.nan
    text = text_of(value)
    if text is None:
        return math.nan
    if _REAL.match(text):
        number = float(text)
        return number if -LARGEST < number < LARGEST else math.nan
    return _BOOLEANS.get(text.lower(), math.nan)


def unit_of(value: Any) -> str | None:
    """The text that identifies the unit of a row.

    None for a blank or a word for a missing value.

    >>> [unit_of(value) for value in (1, 1.0, "1.0", True, " Ann ", " ", "NULL", "nan", float("nan"))]
    ['1', '1', '1', 'true', 'Ann', None, None, None, None]
    """
    text = text_of(value)
    return None if text is None or text.lower() in NO_UNIT else text


def plain_text(text: str) -> str:
    """A text in the form in which columns are read.

    It has no outer blanks, and ``7.0`` becomes ``7``.

    >>> plain_text(" x"), plain_text("7.")
    ('x', '7')
    """
    text = text.strip(BLANKS)
    return text[: text.index(".")] if _WHOLE.match(text) else text


def reals(column: Any) -> NDArray[np.float64]:
    """A column of any kind as finite floats. Whatever cannot be read is NaN."""
    if type(column) is np.ndarray and column.dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # longer floats may be too large
            numbers = column.astype(np.float64)
            numbers[~(np.abs(numbers) < LARGEST)] = np.nan
        return numbers
    return np.array([real_of(_unwrapped(value)) for value in values_of(column)], dtype=np.float64)


def texts(column: Any) -> list[str | None]:
    """A column of any kind as texts. None where a value has no text."""
    return [text_of(_unwrapped(value)) for value in values_of(column)]


def units(column: Any) -> list[str | None]:
    """A column of any kind as units. None where a row names no unit."""
    return [unit_of(_unwrapped(value)) for value in values_of(column)]


def values_of(column: Any) -> list[Any]:
    """The values of a column of any kind, unchanged.

    A value that cannot be obtained is None.

    A common type for all would let one value change another: beside one text ``True`` becomes a text too, beside one
    missing number large whole numbers become floats.
    """
    if isinstance(column, (list, tuple)):
        return list(column)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(column, np.ma.MaskedArray):
            return _unmasked(column)
        if isinstance(column, np.ndarray):
            return list(column)
        for method in ("to_pylist", "tolist", "to_list"):
            if hasattr(column, method):
                try:
                    return list(getattr(column, method)())
                except Exception:  # one value that cannot be had, among many that can: one by one, below
                    break
        return _one_by_one(column)


def _unmasked(column: Any) -> list[Any]:
    masks = np.ma.getmaskarray(column)
    if column.ndim != 1:
        return [_unmasked(row) for row in column]
    return [None if mask else value for value, mask in zip(column.data, masks, strict=True)]


def _one_by_one(column: Any) -> list[Any]:
    found: list[Any] = []
    for place in range(len(column)):
        try:
            value = column.iloc[place] if hasattr(column, "iloc") else column[place]
            found.append(value.as_py() if hasattr(value, "as_py") else value)
        except Exception:  # an Arrow text that is not valid, say
            found.append(None)
    return found


def _unwrapped(value: Any) -> Any:
    """The only value of a row of one. Rows of other lengths among them do not change it."""
    kind = type(value)
    if kind is np.ndarray:
        return value.reshape(-1)[0] if value.size == 1 else None
    return value[0] if (kind is list or kind is tuple) and len(value) == 1 else value


def _text(value: Any) -> str | None:
    # The type is asked, never the value; a subclass is read by its base, so no code of its own runs.
    kind = type(value)
    for base, read in _READERS:
        if issubclass(kind, base):
            return read(value)
    return None


def _from_str(value: str) -> str | None:
    text = str.__str__(value)
    text.encode("utf-8")  # half a surrogate pair is no text
    return plain_text(text)


def _from_int(value: int) -> str | None:
    whole = int.__int__(value)
    return str(whole) if abs(whole) < 10**_DIGITS else None


def _from_float(value: float) -> str | None:
    number = float.__float__(value)
    if not -LARGEST < number < LARGEST:
        return None
    return (
        str(int(number)) if number == (whole := math.floor(number)) and abs(whole) <= 2**62 else repr(number)
    )


def _from_decimal(value: Decimal) -> str | None:
    if not Decimal.is_finite(value) or abs(Decimal.adjusted(value)) > _DIGITS + 50:
        return None
    whole = Decimal.__int__(value)
    return (
        _from_int(whole) if Decimal.__eq__(value, Decimal(whole)) else _from_float(Decimal.__float__(value))
    )


def _from_fraction(value: Fraction) -> str | None:
    above, below = Fraction.as_integer_ratio(value)
    return _from_float(above / below)


def _from_datetime(value: datetime.datetime) -> str | None:
    if type(value).__name__ == "NaTType":  # pandas' missing moment, which calls itself a moment
        return None
    text = datetime.datetime.isoformat(value, " ")
    return re.sub(r"(\.[0-9]*?)0+(?=$|[-+])", r"\1", text)


def _from_datetime64(value: np.datetime64) -> str | None:
    moment = value.astype("datetime64[us]").item()
    return _from_datetime(moment) if isinstance(moment, datetime.datetime) else None


def _nothing(_: Any) -> None:
    return None


_READERS: list[tuple[Any, Callable[[Any], str | None]]] = [
    (str, _from_str),
    (bool, lambda value: "true" if value else "false"),
    (int, _from_int),
    (float, _from_float),
    (np.bool_, lambda value: "true" if bool(value) else "false"),
    (np.timedelta64, _nothing),  # counts as an integer in numpy
    (np.integer, lambda value: _from_int(int(value))),
    (np.floating, lambda value: _from_float(float(value))),
    (Decimal, _from_decimal),
    (Fraction, _from_fraction),
    (bytes, lambda value: "0x" + bytes.hex(value)),
    (datetime.datetime, _from_datetime),
    (datetime.date, datetime.date.isoformat),
    (datetime.time, datetime.time.isoformat),
    (np.datetime64, _from_datetime64),
    (uuid.UUID, uuid.UUID.__str__),
]
