"""One table of values in every form that a source may have, with types that are declared, or that follow from the values."""

from __future__ import annotations

import csv
import datetime
import itertools
import json
import math
import sqlite3
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute

from tests.neighbours.values import Beyond, Column
from tests.support.hostile import objects

__all__ = ["ARRAYS", "SERVICES", "TABLES", "Form"]

Columns = Mapping[str, Column]
Make = Callable[[Columns, np.random.Generator, Path], Any]
_LARGEST_FLOAT = 2**53


@dataclass(frozen=True)
class Form:
    """A form of sources. In a ``typed`` one a column holds values of its declared type alone.

    ``held`` is what becomes of a value when it is stored, before anything of ours reads it.
    """

    name: str
    make: Make
    typed: bool
    held: Callable[[Any, str], Any] = lambda value, _: value

    def holds(self, value: Any, kind: str) -> Any:
        """What a reader finds in place of a value."""
        return None if isinstance(value, Beyond) else self.held(value, kind)


# ---------------------------------------------------------------------------- Arrow, and files of it

_ARROW: dict[str, list[Any]] = {
    "boolean": [pa.bool_()],
    "integer": [pa.int64()],
    "float": [pa.float64()],
    "decimal": [pa.decimal128(24, 2), pa.decimal128(38, 2)],
    "text": [pa.string(), pa.large_string(), pa.string_view()],
    "date": [pa.date32()],
    "moment": [pa.timestamp("us")],
    "zoned moment": [pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")],
    "uuid": [pa.uuid()],
    "null": [pa.null(), pa.string()],
}
_EPOCH = datetime.datetime(1970, 1, 1)


def _number(value: Any) -> int | None:
    """A day or a moment as the number that columns hold."""
    if value is None or isinstance(value, Beyond):
        return None if value is None else value.number
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
    return value.toordinal() - 719_163


def _arrow_array(column: Column, rng: np.random.Generator) -> pa.Array:
    kinds = _ARROW[column.type]
    kind = kinds[rng.integers(len(kinds))]
    if column.type in ("date", "moment", "zoned moment"):
        bits = pa.int32() if column.type == "date" else pa.int64()
        array = pa.array([_number(value) for value in column.values], bits).view(kind)
    elif column.type == "uuid":
        raw = pa.array([None if value is None else value.bytes for value in column.values], pa.binary(16))
        array = pa.ExtensionArray.from_storage(pa.uuid(), raw)
    elif column.type == "text" and not all(value is None or _is_text(value) for value in column.values):
        raw = [None if value is None else value.encode("utf-8", "surrogateescape") for value in column.values]
        return pa.array(raw, pa.binary()).view(pa.string())  # which Arrow does not look at
    else:
        array = pa.array(column.values, kind)
    plain = column.type in ("integer", "text", "float", "date")
    return array.dictionary_encode() if plain and kind != pa.string_view() and rng.random() < 0.3 else array


def _arrow_table(columns: Columns, rng: np.random.Generator, _: Path) -> pa.Table:
    table = pa.table({name: _arrow_array(column, rng) for name, column in columns.items()})
    layout, cut = int(rng.integers(4)), int(rng.random() * (len(table) + 1))
    if layout == 0:
        return table
    parts = [table[:cut], table[cut:]]
    if layout == 2:  # of which each has a dictionary of its own
        parts = [pa.table({name: _again(column) for name, column in zip(part.column_names, part.columns, strict=True)}) for part in parts]  # fmt: skip
    elif layout == 3:
        parts = [pa.table({name: _in_runs(column) for name, column in zip(part.column_names, part.columns, strict=True)}) for part in parts]  # fmt: skip
    return pa.concat_tables(parts)


def _again(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose dictionary, if it has one, is made of its own values."""
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([column.cast(column.type.value_type).combine_chunks().dictionary_encode()])


def _in_runs(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column as runs of equal values, where Arrow makes some."""
    if not (
        pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or column.type == pa.string()
    ):
        return column
    return vars(pyarrow.compute)["run_end_encode"](column.combine_chunks())


def _parquet(columns: Columns, rng: np.random.Generator, folder: Path) -> Path:
    import pyarrow.parquet as pq

    table = pa.table({name: _arrow_array(column, rng) for name, column in columns.items()})
    pq.write_table(table, folder / "data.parquet", row_group_size=int(rng.integers(1, 9)))
    return folder / "data.parquet"


def _arrow_file(columns: Columns, rng: np.random.Generator, folder: Path) -> Path:
    table = pa.table({name: _arrow_array(column, rng) for name, column in columns.items()})
    cut = int(rng.random() * (len(table) + 1))
    table = pa.concat_tables([table[:cut], table[cut:]]).unify_dictionaries()
    with pa.OSFile(str(folder / "data.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return folder / "data.arrow"


# ---------------------------------------------------------------------------- frames, whose types follow from values


def _plain(value: Any) -> Any:
    return None if isinstance(value, Beyond) else value


def _pandas_column(column: Column, rng: np.random.Generator) -> pd.Series:
    values = [_plain(value) for value in column.values]
    there = {type(value) for value in values if value is not None}
    made: list[Callable[[], Any]] = [lambda: pd.Series(objects(values), dtype=object)]
    if _keeps(values):
        made.append(lambda: pd.Series(values))
    if len(there) == 1:
        kind = next(iter(there))
        signaling = any(
            type(value) is Decimal and value.is_snan() for value in values
        )  # pandas itself raises
        if (
            kind in (str, int, bool, float, datetime.date, uuid.UUID, Decimal)
            and _keeps(values)
            and not signaling
        ):
            made.append(lambda: pd.Series(pd.Categorical(values)))
            if kind in (int, float, bool) and None not in values:
                made.append(lambda: pd.Series(pd.arrays.SparseArray(values)))
        if kind is str and not any("\x00" in value or not _is_text(value) for value in values if value):
            made += [
                lambda: pd.Series(values, dtype="string"),
                lambda: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
            ]
        if kind is int and all(value is None or -(2**63) <= value < 2**63 for value in values):
            made += [
                lambda: pd.Series(values, dtype="Int64"),
                lambda: pd.Series(values, dtype=pd.ArrowDtype(pa.int64())),
            ]
        if kind is bool:
            made.append(lambda: pd.Series(values, dtype="boolean"))
    if "moment" in column.type and _is_typed(column) and (fine := _nanoseconds(column)) is not None:
        stamps = pd.Series(pd.array(fine, dtype="Int64").to_numpy("int64", na_value=-(2**63)).view("M8[ns]"))
        made.append(lambda: stamps.dt.tz_localize("UTC") if column.type == "zoned moment" else stamps)
    if column.type in _ARROW and column.type not in ("uuid", "null") and _is_typed(column):
        made.append(
            lambda: pd.Series(
                pd.arrays.ArrowExtensionArray(_arrow_array(column, rng).cast(_ARROW[column.type][0]))
            )
        )
    return made[rng.integers(len(made))]()


def _nanoseconds(column: Column) -> list[int | None] | None:
    """Moments in nanoseconds, which end in 2262, or None where one lies behind that. The last of them is no moment."""
    end = 2**63 - 1
    if any(isinstance(value, Beyond) and value.number != end for value in column.values):
        return None
    numbers = [_number(value) for value in column.values]
    fine = [number if number in (None, end) else 1000 * number for number in numbers]
    return fine if all(number is None or abs(number) <= end for number in fine) else None


def _keeps(values: list[Any]) -> bool:
    """Whether pandas and numpy keep every value when they choose a type themselves."""
    wide = any(type(value) is int and abs(value) > _LARGEST_FLOAT for value in values)
    types = {type(value) for value in values}
    numbers = {int, float, complex, bool, type(None)}
    if any(type(value) is str and not _is_text(value) for value in values):
        return False
    return (
        not (wide and types != {int})
        and (types <= numbers or len(types - {type(None)}) == 1)
        and _natural(types)
    )


def _natural(types: set[type]) -> bool:
    """Whether values of these types are what a frame makes a column of, and no arrays, lists or containers."""
    known = {str, int, float, complex, bool, Decimal, uuid.UUID, datetime.date, datetime.datetime, type(None)}
    return types <= known and not (bool in types and types & {float, complex, int})


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_typed(column: Column) -> bool:
    """Whether all values are of the declared type."""
    wanted: dict[str, tuple[type, ...]] = {
        "boolean": (bool,), "integer": (int,), "float": (float,), "decimal": (Decimal,), "text": (str,), "uuid": (uuid.UUID,), "null": (),
        "date": (datetime.date, Beyond), "moment": (datetime.datetime, Beyond), "zoned moment": (datetime.datetime, Beyond),
    }  # fmt: skip
    kinds = (*wanted.get(column.type, ()), type(None))
    return all(type(value) in kinds for value in column.values) and not (
        (column.type == "integer" and any(value is not None and not -(2**63) <= value < 2**63 for value in column.values))
        or (column.type == "text" and any(value is not None and not _is_text(value) for value in column.values))
        or (column.type == "decimal" and any(value is not None and (not value.is_finite() or abs(value.adjusted()) > 20) for value in column.values))
        or (column.type == "moment" and any(getattr(value, "tzinfo", None) for value in column.values))
        or (column.type == "zoned moment" and any(isinstance(value, datetime.datetime) and value.tzinfo != datetime.UTC for value in column.values))
    )  # fmt: skip


def _polars_column(name: str, column: Column, rng: np.random.Generator) -> pl.Series:
    values = [_plain(value) for value in column.values]
    made: list[Callable[[], Any]] = [lambda: pl.Series(name, values, dtype=pl.Object)]
    if all(
        value is None or type(value) is bytes or (type(value) is str and _is_text(value)) for value in values
    ):
        raw = [value.encode() if type(value) is str else value for value in values]
        made.append(lambda: pl.Series(name, raw, dtype=pl.Binary))
    if all(value is None for value in values):
        made += [
            lambda: pl.Series(name, values, dtype=pl.Null),
            lambda: pl.Series(name, values, dtype=pl.Int32),
        ]
    if _is_typed(column):
        if column.type in ("date", "moment", "zoned moment"):
            numbers = [_number(value) for value in column.values]
            zone = "UTC" if column.type == "zoned moment" else None
            bits, to = (pl.Int32, pl.Date) if column.type == "date" else (pl.Int64, pl.Datetime("us", zone))
            made.append(lambda: pl.Series(name, numbers, dtype=bits).cast(to))
            if column.type != "date" and (fine := _nanoseconds(column)) is not None:
                made.append(lambda: pl.Series(name, fine, dtype=pl.Int64).cast(pl.Datetime("ns", zone)))
        elif column.type == "decimal":
            made.append(lambda: pl.Series(name, values, dtype=pl.Decimal(24, 2)))
        elif column.type == "text":
            made += [
                lambda kind=kind: pl.Series(name, values, dtype=kind) for kind in (pl.String, pl.Categorical)
            ]
            made.append(
                lambda: pl.Series(
                    name, values, dtype=pl.Enum(list(dict.fromkeys(v for v in values if v is not None)))
                )
            )
        elif column.type in ("boolean", "integer", "float"):
            kinds = {"boolean": [pl.Boolean], "integer": [pl.Int64, pl.Int128], "float": [pl.Float64]}[
                column.type
            ]
            made += [lambda kind=kind: pl.Series(name, values, dtype=kind) for kind in kinds]
    return made[rng.integers(len(made))]()


def _pandas(columns: Columns, rng: np.random.Generator, _: Path) -> pd.DataFrame:
    return pd.DataFrame({name: _pandas_column(column, rng) for name, column in columns.items()})


def _polars(columns: Columns, rng: np.random.Generator, _: Path) -> pl.DataFrame:
    return pl.DataFrame([_polars_column(name, column, rng) for name, column in columns.items()])


def _polars_lazy(columns: Columns, rng: np.random.Generator, folder: Path) -> pl.LazyFrame:
    return _polars(columns, rng, folder).lazy()


# ---------------------------------------------------------------------------- files of text


def _written(value: Any, _: str = "") -> str | None:
    """A value as writers of text files write it."""
    return None if value is None else str(value)


def _csv(columns: Columns, rng: np.random.Generator, folder: Path) -> Path:
    quoting = (csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL)[rng.integers(3)]
    end = ("\n", "\r\n")[rng.integers(2)]
    rows = zip(
        *([_written(_plain(value)) for value in column.values] for column in columns.values()), strict=True
    )
    with (folder / "data.csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator=end, quoting=quoting)
        writer.writerow(columns)
        writer.writerows(rows)
    return folder / "data.csv"


def _json_value(value: Any, _: str = "") -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


_JUNK = ["", '{"person": 1', "[1]", "null", "nonsense", '"', "\udcff", '{"a": 1}}', "]"]


def _json_lines(columns: Columns, rng: np.random.Generator, folder: Path) -> Path:
    ascii_only = bool(rng.random() < 0.5)
    rows = zip(
        *([_json_value(_plain(value)) for value in column.values] for column in columns.values()), strict=True
    )
    lines: list[str] = []
    for row in rows:
        record = dict(zip(columns, row, strict=True))
        lines.append(json.dumps(record, ensure_ascii=ascii_only))
        if (
            record.get("note", "n") != "n"
        ):  # of the one unit, beside whose rows there may be lines that are no record
            lines += [_JUNK[place] for place in rng.integers(len(_JUNK), size=int(rng.integers(3)))]
    text = "".join(line + "\n" for line in lines)
    (folder / "data.jsonl").write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    return folder / "data.jsonl"


def _json_text(value: Any, _: str = "") -> Any:
    """What the engine takes out of a line: true is a word there, and a number its digits."""
    value = _json_value(value)
    return value if value is None or isinstance(value, str) else json.dumps(value)


# ---------------------------------------------------------------------------- databases

_names = itertools.count()
_DUCKDB = {
    "boolean": "BOOLEAN", "integer": "BIGINT", "float": "DOUBLE", "decimal": "DECIMAL(24, 2)", "text": "VARCHAR", "date": "DATE",
    "moment": "TIMESTAMP", "zoned moment": "TIMESTAMPTZ", "uuid": "UUID", "null": "INTEGER",
}  # fmt: skip


def _duckdb(columns: Columns, rng: np.random.Generator, _: Path) -> Any:
    import duckdb

    made = dict(columns)
    connection, name = duckdb.connect(), f"t{next(_names)}"
    arrow: Any = pa.table(
        {column: _arrow_array(held, np.random.default_rng(0)) for column, held in made.items()}
    )
    arrow = pa.table({n: c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for n, c in zip(arrow.column_names, arrow.columns, strict=True)})  # fmt: skip
    said = ", ".join(
        f'CAST("{column}" AS {_DUCKDB[held.type]}) AS "{column}"' for column, held in made.items()
    )
    connection.execute(f"CREATE TABLE {name} AS SELECT {said} FROM arrow")
    return connection.table(name)


def _arrow_in_duckdb(columns: Columns, rng: np.random.Generator, folder: Path) -> Any:
    """A relation on a table of Arrow, whose texts no engine has looked at."""
    import duckdb

    return duckdb.connect().from_arrow(_arrow_table(columns, rng, folder))


_SQLITE = {"boolean": "BOOLEAN", "integer": "INTEGER", "float": "REAL", "decimal": "TEXT", "null": "TEXT"}


def _in_sqlite(value: Any, kind: str) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else value
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def _sqlite(columns: Columns, rng: np.random.Generator, folder: Path) -> Any:
    import ibis

    file, name = folder / "data.sqlite", f"rows{next(_names)}"
    rows = zip(
        *([_in_sqlite(_plain(value), column.type) for value in column.values] for column in columns.values()),
        strict=True,
    )
    connection = sqlite3.connect(file)
    declared = ", ".join(f'"{column}" {_SQLITE.get(held.type, "TEXT")}' for column, held in columns.items())
    connection.execute(f"CREATE TABLE {name} ({declared})")
    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    connection.commit()
    connection.close()
    return ibis.sqlite.connect(file).table(name)


_POSTGRES = {
    "boolean": "boolean", "integer": "bigint", "float": "double precision", "decimal": "numeric(24, 2)", "text": "text", "date": "date",
    "moment": "timestamp", "zoned moment": "timestamptz", "uuid": "uuid", "null": "integer",
}  # fmt: skip


def _postgres(columns: Columns, rng: np.random.Generator, _: Path) -> Any:
    from tests.support.warehouses import in_postgres

    rows = list(
        zip(*([_in_postgres(value) for value in column.values] for column in columns.values()), strict=True)
    )
    return in_postgres({name: _POSTGRES[column.type] for name, column in columns.items()}, rows)


def _in_postgres(value: Any, _: str = "") -> Any:
    """A text of PostgreSQL holds no NUL."""
    if isinstance(value, Beyond):
        return "infinity" if value.number > 0 else "-infinity"
    return value.replace("\x00", "\u2400") if isinstance(value, str) else value


def _in_spark(value: Any, _: str = "") -> Any:
    """Spark reads no UUID of Parquet: it has them as texts."""
    return str(value) if isinstance(value, uuid.UUID) else value


def _spark(columns: Columns, rng: np.random.Generator, folder: Path) -> Any:
    from tests.support.spark import spark_session

    place = folder / f"s{next(_names)}"
    place.mkdir()
    columns = {
        name: Column("text" if column.type == "uuid" else column.type, [_in_spark(x) for x in column.values])
        for name, column in columns.items()
    }
    return spark_session().read.parquet(str(_parquet(columns, rng, place)))


TABLES = {
    form.name: form
    for form in (
        Form("pandas", _pandas, typed=False),
        Form("polars", _polars, typed=False),
        Form("polars, lazy", _polars_lazy, typed=False),
        Form("Arrow", _arrow_table, typed=True),
        Form("CSV", _csv, typed=True, held=_written),
        Form("JSON lines", _json_lines, typed=True, held=_json_text),
        Form("Parquet", _parquet, typed=True),
        Form("Arrow file", _arrow_file, typed=True),
        Form("DuckDB", _duckdb, typed=True),
        Form("SQLite", _sqlite, typed=True, held=_in_sqlite),
        Form("DuckDB on Arrow", _arrow_in_duckdb, typed=True),
    )
}
SERVICES = {
    form.name: form
    for form in (
        Form("PostgreSQL", _postgres, typed=True, held=_in_postgres),
        Form("Spark", _spark, typed=True, held=_in_spark),
    )
}


# ---------------------------------------------------------------------------- arrays, for estimators


def _list(columns: Columns, rng: np.random.Generator, _: Path) -> dict[str, Any]:
    return {name: [_plain(value) for value in column.values] for name, column in columns.items()}


def _numpy(columns: Columns, rng: np.random.Generator, _: Path) -> dict[str, Any]:
    def array(column: Column) -> Any:
        values = [_plain(value) for value in column.values]
        types = {type(value) for value in values}
        numbers = bool(types) and (types <= {int, float} or types == {bool}) and _keeps(values)
        return np.array(values) if numbers and rng.random() < 0.7 else objects(values)

    return {name: array(column) for name, column in columns.items()}


def _pandas_arrays(columns: Columns, rng: np.random.Generator, _: Path) -> dict[str, Any]:
    return {name: _pandas_column(column, rng) for name, column in columns.items()}


def _polars_arrays(columns: Columns, rng: np.random.Generator, _: Path) -> dict[str, Any]:
    return {name: _polars_column(name, column, rng) for name, column in columns.items()}


def _arrow_arrays(columns: Columns, rng: np.random.Generator, _: Path) -> dict[str, Any]:
    return {name: _arrow_array(column, rng) for name, column in columns.items()}


ARRAYS = {
    form.name: form
    for form in (
        Form("lists", _list, typed=False),
        Form("numpy", _numpy, typed=False),
        Form("pandas columns", _pandas_arrays, typed=False),
        Form("polars columns", _polars_arrays, typed=False),
        Form("Arrow columns", _arrow_arrays, typed=True),
    )
}
