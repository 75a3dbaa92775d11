"""Join a column of texts with a public list, which may be long. It is a table, never an expression for each value."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import narwhals as nw

from isotone.reading.columns.native import unsupported

__all__ = ["listed", "numbered"]

Frame = nw.LazyFrame[Any]
_ROWS, _LISTED = "isotone_rows", "isotone_listed"


def numbered(frame: Frame, text: str, values: Sequence[str], name: str) -> Frame:
    """The rows whose ``text`` is one of ``values``, with its place among them as a column ``name``."""
    return _joined_list(frame, text, values, {name: range(len(values))}, "inner")


def listed(
    frame: Frame, text: str, values: Sequence[str], numbers: Mapping[str, Sequence[int | None]]
) -> Frame:
    """All rows, with the numbers of their ``text`` in a public list, which are null for texts that are not in it."""
    return _joined_list(frame, text, values, numbers, "left")


def _joined_list(
    frame: Frame,
    text: str,
    values: Sequence[str],
    numbers: Mapping[str, Sequence[int | None]],
    how: Literal["inner", "left"],
) -> Frame:
    native: Any = frame.to_native()
    engine = frame.implementation
    if engine.is_duckdb():
        # One query that reads the rows once; tables of another connection could not be joined.
        said = ", ".join(f'unnest({_numbers(column)}) AS "{name}"' for name, column in numbers.items())
        wanted = ", ".join(f'"{name}"' for name in numbers)
        # Bytes are compared: in the collation of a table a text can be equal to several of the list.
        query = (
            f"SELECT {_ROWS}.*, {wanted} FROM {_ROWS} {how} JOIN (SELECT unnest({_texts(values)}) AS {_LISTED}, {said}) "
            f'ON encode({_ROWS}."{text}") = encode({_LISTED})'
        )
        return nw.from_native(native.query(_ROWS, query))
    columns: dict[str, list[Any]] = {text: list(values)} | {name: list(x) for name, x in numbers.items()}
    if engine.is_spark_like():
        schema = ", ".join([f"{text} string", *(f"{name} int" for name in numbers)])
        rows = list(zip(*columns.values(), strict=True))
        table = native.sparkSession.createDataFrame(rows, schema).hint("broadcast")
    elif engine.is_ibis():
        from isotone.reading.sources.warehouses import list_join

        return list_join(frame, text, values, numbers, how)
    elif engine.is_polars():
        import polars as pl

        table = pl.LazyFrame(columns, schema={text: pl.String} | dict.fromkeys(numbers, pl.Int64))
    else:
        raise unsupported(frame)
    return frame.join(nw.from_native(table), on=text, how=how)


def _texts(values: Sequence[str]) -> str:
    """Public texts as a list in SQL. It is split from one text, as a million literals take a minute to plan."""
    if not values:
        return "[]::VARCHAR[]"
    used = "".join(("'", *values))
    between = next(letter for letter in map(chr, range(1, sys.maxunicode)) if letter not in used)
    joined = between.join(values).replace("'", "''")
    return f"string_split('{joined}', '{between}')"


def _numbers(values: Sequence[int | None]) -> str:
    """Public numbers as a list in SQL."""
    in_turn = values == range(len(values))
    return f"range({len(values)})" if in_turn else f"'{json.dumps(list(values))}'::BIGINT[]"
