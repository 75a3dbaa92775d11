"""Values and columns that other code trips over: contents that must never raise, warn or print."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


class Trap:
    """An object that says something whatever is asked of it."""

    def _sprung(self, *_: Any) -> Any:
        print("SECRET")
        raise RuntimeError("SECRET")

    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __float__ = __int__ = __index__ = __bool__ = _sprung  # type: ignore[assignment]
    __len__ = __iter__ = __array__ = __format__ = __lt__ = __gt__ = _sprung  # type: ignore[assignment]


class TrapText(str):
    __slots__ = ()
    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = strip = lower = encode = Trap._sprung  # type: ignore[assignment]


class TrapNumber(float):
    __slots__ = ()
    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __float__ = __int__ = Trap._sprung  # type: ignore[assignment]


class TrapWhole(int):
    __slots__ = ()
    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __float__ = __int__ = __index__ = Trap._sprung  # type: ignore[assignment]


HOSTILE: list[Any] = [
    Trap(),
    Trap,
    TrapText("x"),
    TrapNumber(2.0),
    TrapWhole(2),
    "\ud800",
    "x\x00y",
    "\u202e",
    "[/b]",
    "9" * 5000,
    b"\xff",
    bytearray(b"x"),
    10**400,
    -(10**400),
    10**5000,
    1e308,
    float("inf"),
    float("nan"),
    1j,
    np.complex64(1j),
    np.longdouble("1e4000"),
    np.longdouble(1) / 3,
    np.float16(1.5),
    np.datetime64("NaT"),
    np.datetime64("300000-01-01"),
    np.timedelta64(3, "D"),
    np.void(b"ab"),
    np.array([1, 2]),
    np.array(5),
    np.ma.masked,
    [],
    [1],
    [1, [2]],
    {"a": 1},
    {1},
    range(3),
    Decimal("sNaN"),
    Decimal("1e999999"),
    Decimal("1e-999999"),
    Decimal("Infinity"),
    datetime.timedelta(days=3),
    datetime.datetime.max,
    datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-1))),
    datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    datetime.time(1, 2, 3),
    pd.NA,
    pd.NaT,
    pd.Interval(0, 1),
    pd.Period("2020-01"),
    ...,
    NotImplemented,
]
"""None of them is the text, number or unit 1, yes or A."""


def objects(values: list[Any]) -> Any:
    """An array of objects that asks nothing of them."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def _invalid_text() -> pa.Array:
    whole = pa.array([b"1", b"\xff\xfe", b"2"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 3, whole.buffers())


ARRAYS: list[Any] = [
    [1, Trap(), "\ud800"],
    (1, [1, 2], []),
    [[1], [1, 2], []],
    np.array([1, 2, 3]),
    np.array([1, np.inf, 1e308]),
    np.array([1, 2, 3], dtype=np.longdouble) * np.longdouble("1") ** 2,
    np.array(["1", "x", ""]),
    objects([1, Trap(), None]),
    np.array([[1], [2], [3]]),
    np.ma.array([1, 2, 3], mask=[False, True, False]),
    np.ma.array([[1], [2], [3]], mask=[[False], [True], [False]]),
    pd.Series(objects([1, Trap(), pd.NA])),
    pd.Series([1, None, 3], dtype="Int64"),
    pd.Series(pd.Categorical([1, "yes", None])),
    pd.Categorical([1, "yes", None]),
    pd.Index([1, 2, 3]),
    pl.Series([1, None, 3]),
    pl.Series(["1", "yes", None], dtype=pl.Categorical),
    pa.array([1, None, 3]),
    pa.chunked_array([[1.0], [None, 3.0]]),
    pa.array(["1", "x", "1"]).dictionary_encode(),
    pa.array([1.0, 2.0, None], pa.float16()),
    pa.array([Decimal(1), None, Decimal(3)], pa.decimal256(60)),
    _invalid_text(),
]
"""Columns of three values, the first of which is 1."""
