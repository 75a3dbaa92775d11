"""The text, number or unit of one value, by one closed rule on its exact type.

Contents are private, so nothing here raises, warns, prints or runs code that a value brings along: a value of a type that is not
listed, a subclass included, or that no rule can read, is missing. The rules are those of columns in an engine
(:mod:`isotone.reading.columns`), value by value. Which types are read, and as what, is in :mod:`isotone.reading.types`.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLANKS = " \t\n\r\v\f"
REAL = r"^[-+]?([0-9]{1,250}(\.[0-9]{0,250})?|\.[0-9]{1,250})([eE](-[0-9]{1,3}|\+?[0-9]{1,2}|\+?[12][0-9][0-9]))?$"
WHOLE = r"^[-+]?[0-9]+\.0*$"
LONGEST_TEXT = 1 << 26
"""Longer texts, in bytes, are missing: engines hold none of gigabytes."""
LARGEST = 1e300
"""Numbers that reach it are infinite. They are clamped to it where a number is read, and missing elsewhere."""
INFINITE = {"inf": LARGEST, "+inf": LARGEST, "-inf": -LARGEST} | {
    "infinity": LARGEST,
    "+infinity": LARGEST,
    "-infinity": -LARGEST,
}
"""Texts that write an infinite number, in any case."""
NO_UNIT = ("", "na", "n/a", "<na>", "nan", "nat", "null", "none", *INFINITE)
"""Texts that name no unit, in any case: what other tools write where a unit is missing."""

_REAL, _WHOLE = re.compile(REAL), re.compile(WHOLE)
_DIGITS = 250
_WORDS = {"true": 1.0, "false": 0.0, **INFINITE}


def text_of(value: Any) -> str | None:
    """The text of one value without outer blanks.

    Whole numbers have no decimal point. None if the value is missing.

    >>> [text_of(value) for value in (1.0, 2.5, True, Decimal("3.00"), " x ", "7.0", b"a", None, float("nan"), float("inf"))]
    ['1', '2.5', 'true', '3', 'x', '7', 'a', None, None, None]
    """
    text = cell_text(value)
    return None if text is None or text.lower() in INFINITE else text


def cell_text(value: Any) -> str | None:
    """Like ``text_of``, but an infinite number is the text "inf" or "-inf", which a column of numbers clamps."""
    try:
        read = _READERS.get(type(value)) or _of_pandas(type(value))
        return None if read is None else (read(value) or None)
    except Exception:  # a value of a listed type that cannot be shown: too many digits, half a surrogate pair
        return None


def real_of(value: Any) -> float:
    """The value as a finite float.

    NaN if it is missing or no number. Booleans are 1 and 0, infinite numbers the largest.

    >>> [real_of(value) for value in (True, " 2.5", "1e3", 7, "true", "seven", float("-inf"), 1j)]
    [1.0, 2.5, 1000.0, 7.0, 1.0, nan, -1e+300, nan]
    """
    if type(value) is float and -LARGEST < value < LARGEST:
        return value
    text = cell_text(value)
    if text is None:
        return math.nan
    if _REAL.match(text):
        return min(max(float(text), -LARGEST), LARGEST)
    return _WORDS.get(text.lower(), math.nan)


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


def plain_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts in the form in which columns are read."""
    return tuple(map(plain_text, texts))


def reals(column: Any) -> NDArray[np.float64]:
    """A column of any kind as finite floats. Whatever cannot be read is NaN."""
    if type(column) is np.ndarray and column.dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # longer floats may be too large
            return np.clip(column.astype(np.float64), -LARGEST, LARGEST)
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
    if (
        type(column).__module__.partition(".")[0] == "polars"
    ):  # which ends the process over a date that Python lacks
        from isotone.reading.frames import from_polars, has_values_of_its_own

        if has_values_of_its_own(column.dtype):
            return column.to_list()
        column = from_polars(column)
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
    result: list[Any] = []
    for place in range(len(column)):
        try:
            value = column.iloc[place] if hasattr(column, "iloc") else column[place]
            result.append(value.as_py() if hasattr(value, "as_py") else value)
        except Exception:  # an Arrow text that is not valid, say
            result.append(None)
    return result


def _unwrapped(value: Any) -> Any:
    """The only value of a row of one. Rows of other lengths among them do not change it."""
    kind = type(value)
    if kind is np.ndarray:
        return value.reshape(-1)[0] if value.size == 1 else None
    return value[0] if (kind is list or kind is tuple) and len(value) == 1 else value


def _of_pandas(kind: type) -> Callable[[Any], str | None] | None:
    """The reader of pandas' moments. Whoever has one has imported pandas."""
    pandas: Any = sys.modules.get("pandas")
    return _from_timestamp if pandas is not None and kind is pandas.Timestamp else None


def _from_str(value: str) -> str | None:
    size = len(value.encode("utf-8"))  # half a surrogate pair is no text
    return plain_text(value) if size <= LONGEST_TEXT else None


def _from_int(value: Any) -> str | None:
    whole = int(value)
    return str(whole) if abs(whole) < 10**_DIGITS else "inf" if whole > 0 else "-inf"


def _from_float(value: Any) -> str | None:
    number = float(value)
    if number != number:
        return None
    if not -LARGEST < number < LARGEST:
        return "inf" if number > 0 else "-inf"
    whole = math.floor(number)
    return str(whole) if number == whole and abs(whole) <= 2**62 else repr(number)


def _from_decimal(value: Decimal) -> str | None:
    if value.is_nan():
        return None
    if value.is_zero():
        return "0"
    if value.is_infinite() or value.adjusted() >= _DIGITS:
        return "inf" if value > 0 else "-inf"
    if value.adjusted() < -_DIGITS:
        return None
    digits = format(value, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return digits if len(digits) <= _DIGITS + 2 else None


def _from_complex(value: Any) -> str | None:
    # one complex number makes a column of numbers complex: the others are still what they were
    return _from_float(value.real) if value.imag == 0 else None


def _from_datetime(value: datetime.datetime) -> str | None:
    if value.tzinfo is None:
        return _moment(value.isoformat(" ", "microseconds"))
    if type(value.tzinfo).__module__.partition(".")[0] not in ("datetime", "zoneinfo", "pytz", "dateutil"):
        return None
    offset = value.utcoffset()
    moment = value.replace(tzinfo=None) - (offset or datetime.timedelta())
    return _moment(moment.isoformat(" ", "microseconds"), zone=offset is not None)


def _from_timestamp(value: Any) -> str | None:
    text = _from_datetime64(value.asm8)  # in UTC
    return None if text is None else text + ("+00:00" if value.tz is not None else "")


def _moment(text: str, zone: bool = False) -> str:
    return text.rstrip("0").rstrip(".") + ("+00:00" if zone else "")


def _from_datetime64(value: np.datetime64) -> str | None:
    finer = np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as")  # these end within the calendar
    if np.isnat(value) or not (finer or _FIRST.astype(value.dtype) <= value <= _LAST.astype(value.dtype)):
        return None
    if finer and abs(int(value.astype("datetime64[ns]").astype(np.int64))) == _ENDLESS:
        return None
    return _moment(
        np.datetime_as_string(value.astype("datetime64[ns]" if finer else "datetime64[us]")).replace("T", " ")
    )


_ENDLESS = 2**63 - 1
"""So many nanoseconds are no moment, but infinity, to engines."""
_FIRST, _LAST = np.datetime64("0001-01-01T00:00:00.000000"), np.datetime64("9999-12-31T23:59:59.999999")


_READERS: dict[type, Callable[[Any], str | None]] = {
    str: _from_str,
    np.str_: lambda value: _from_str(str(value)),
    bytes: lambda value: _from_str(
        value.decode("utf-8")
    ),  # what one of them makes of texts in a frame of polars
    np.bytes_: lambda value: _from_str(value.decode("utf-8")),
    bool: lambda value: "true" if value else "false",
    np.bool_: lambda value: "true" if value else "false",
    int: _from_int,
    float: _from_float,
    complex: _from_complex,
    Decimal: _from_decimal,
    datetime.datetime: _from_datetime,
    datetime.date: datetime.date.isoformat,
    np.datetime64: _from_datetime64,
    uuid.UUID: uuid.UUID.__str__,
    **dict.fromkeys(
        (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64), _from_int
    ),
    **dict.fromkeys((np.longlong, np.ulonglong), _from_int),
    **dict.fromkeys((np.float16, np.float32, np.float64, np.longdouble), _from_float),
    **dict.fromkeys((np.complex64, np.complex128, np.clongdouble), _from_complex),
}
"""The exact types that are read, beside the moments of pandas."""
