"""Hostile values of every type that a column may have, and of types that it may not."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from tests.support.hostile import HOSTILE

__all__ = ["LISTED", "ODD", "PUBLIC", "TYPES", "Beyond", "Column", "drawn_value", "drawn_values"]


@dataclass(frozen=True)
class Beyond:
    """A day or a moment outside the calendar, which columns hold as a number and Python cannot."""

    number: int


LISTED = ("boolean", "integer", "float", "decimal", "text", "date", "moment", "zoned moment", "uuid", "null")
"""The types that a column may have."""
TYPES = (*LISTED, "mixed")
"""With ``mixed``, which is a frame's column of objects of all types."""


@dataclass(frozen=True)
class Column:
    """The values of one column, and the type that it is declared with."""

    type: str
    values: list[Any]


UTC = datetime.UTC
_DAY, _MOMENT = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12, 0, 0, 500_000)
_TOKENS: dict[str, Callable[[int], Any]] = {
    "boolean": lambda i: i % 2 == 1,
    "integer": int,
    "float": float,
    "decimal": lambda i: Decimal(i).quantize(Decimal("0.01")),
    "text": lambda i: "abcdefgh"[i % 8] if i % 3 else str(i),
    "date": lambda i: _DAY + datetime.timedelta(days=i),
    "moment": lambda i: _MOMENT + datetime.timedelta(days=i),
    "zoned moment": lambda i: (_MOMENT + datetime.timedelta(days=i)).replace(tzinfo=UTC),
    "uuid": lambda i: uuid.UUID(int=i + 1),
    "null": lambda _: None,
}
"""Plain values of a type, by number. Public lists hold the first of them."""

PUBLIC = ["a", "b", "1", "2", "true", "2020-01-02", "2020-01-02 12:00:00.5", str(uuid.UUID(int=2)), "7.5"]
"""A public list of which every type has a value: element, category and group are looked for in it."""

_TEXTS = (
    *("", " ", "1", "0", " 1 ", "1.0", "1.", "01", "+1", "-0", "1e0", "yes", "No", "TRUE", "false", "A", "a ", "\ta", "b\n", "a\r", "x\r1", "\r1\r1\r1\r"),
    *("1\r\n0", "1\n0\n", 'a"b', '"', '""', "a,b", "a;b", "\\", "'", "NA", "NaN", "null", "none", "inf", "-Infinity", "nan", "7.50", "7.5", "1e400", "-1e400"),
    *("9" * 18, "-" + "9" * 19, "9" * 251, "1e-400", "2020-01-02", "0x1", "1_0", "½", "２", "é", "e\u0301", "İ", "ß", "SS", "\u00a0a", "a\u2028", "\ufeffa", "😀"),
    *("9007199254740993", "40", "39.99999999999999999999", "0.5", ".5", "5.", "-1", "100", "1e5", "true ", "a\\nb", "%", "[1]", '{"a": 1}', "\x01"),
)  # fmt: skip
_HOSTILE: dict[str, tuple[Any, ...]] = {
    "boolean": (),
    "integer": (-1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**17, 40, 100),
    "float": (float("nan"), float("inf"), float("-inf"), -0.0, 0.5, 7.5, 1e300, -1e308, 5e-324, 2.0**53, 1e-7, 0.1 + 0.2, 1e17, 40.0, 99.999),
    "decimal": tuple(map(Decimal, ("0.50", "7.50", "-0.00", "100.00", "99999999999999999999.99", "-1.00", "40.00"))),
    "text": _TEXTS,
    "date": (datetime.date.min, datetime.date.max, Beyond(2_932_897), Beyond(-719_163), Beyond(2**31 - 1), Beyond(-(2**31) + 9)),
    "moment": (datetime.datetime.min, datetime.datetime.max, Beyond(2**63 - 1), Beyond(-(2**63) + 9), Beyond(253_402_300_800_000_000)),
    "zoned moment": (datetime.datetime(9999, 12, 31, tzinfo=UTC), Beyond(2**63 - 1), Beyond(-(2**63) + 9), Beyond(-62_135_596_800_000_001)),
    "uuid": (uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)),
    "null": (),
}  # fmt: skip

ODD: tuple[Any, ...] = (
    *HOSTILE, uuid.uuid5(uuid.NAMESPACE_DNS, "x"), b"1", b"a", 1j, 1 + 0j, complex("nan"), Decimal("NaN"), 10**19, 2**64,
    datetime.time(1), datetime.timedelta(1), np.int8(1), np.float32(0.5), np.True_, np.str_("a"), pd.Timestamp("2020-01-02", tz="UTC"),
    pd.Timestamp.max, (1, 2), frozenset(), object(), True, 1, 1.0, "1", "a", Decimal("1.00"), datetime.date(2020, 1, 2), None,
)  # fmt: skip
"""What a frame may hold besides: one of them changes the type of a whole column."""


def drawn_value(rng: np.random.Generator, kind: str, few: int = 6) -> Any:
    """One value, plain or hostile or missing. Plain ones are the first ``few`` of their type."""
    chance = rng.random()
    if chance < 0.08:
        return None
    if kind == "mixed":
        kind = LISTED[rng.integers(len(LISTED))] if chance < 0.7 else "odd"
    hostile = ODD if kind == "odd" else _HOSTILE[kind]
    if kind == "odd" or (hostile and chance > 0.7):
        return hostile[rng.integers(len(hostile))]
    return _TOKENS[kind](int(rng.integers(few)))


def drawn_values(rng: np.random.Generator, kind: str, rows: int, few: int = 6) -> list[Any]:
    """Values of one column."""
    return [drawn_value(rng, kind, few) for _ in range(rows)]
