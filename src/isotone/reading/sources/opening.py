"""Open a path or a table of any kind as one lazy frame.

Paths go through DuckDB, in process. CSV and JSON lines are read as text: what a value *means* is declared by
the steward, never guessed from the contents. Only the schema is looked at here, and it is public: names and
types, for CSV the header; JSON lines have none, and a key that is not there is a missing value. Lines that cannot be
parsed are skipped, like any other record that is no record.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError
from isotone.privacy.checks import did_you_mean
from isotone.reading.columns.numbers import as_integer, as_real
from isotone.reading.columns.texts import as_text
from isotone.reading.columns.translated import quoted
from isotone.reading.sources import formats
from isotone.reading.sources.engine import connect, forget, nowhere
from isotone.reading.sources.files import SourceError, no_column
from isotone.reading.sources.warehouses import beneath_ibis, emptied, open_table, rows_of

__all__ = [
    "ColumnType",
    "Declared",
    "SourceError",
    "blank",
    "collect",
    "did_you_mean",
    "open_source",
    "require_columns",
]

Frame = nw.LazyFrame[Any]
ColumnType = Literal["text", "number", "integer"]


@dataclass(frozen=True)
class Declared:
    """The data at ``path``, with columns read as their declared types.

    It can be used like any other source.

    A value that does not parse as its column's type is missing. Where the file itself gives a column a type
    that cannot be read so, that is public, and refused.
    """

    path: str
    types: Mapping[str, ColumnType]


def open_source(data: Any, columns: Sequence[str]) -> Frame:
    """The named columns of ``data`` as a lazy frame.

    Only the schema is read.

    A table in memory (pandas, polars, Arrow) is handed to DuckDB while the query runs, without a copy where Arrow
    allows it; a lazy one (polars, DuckDB, ibis, PySpark) stays with its own engine.
    """
    chosen = list(dict.fromkeys(columns))
    if not all(chosen) or "*" in chosen:
        raise InputError("A column cannot be called '' or '*': engines take that for all columns. Rename it.")
    if len({name.lower() for name in chosen}) < len(chosen):
        raise InputError(
            "Two of the columns differ in upper and lower case only, which engines do not distinguish. Rename one."
        )
    if isinstance(data, Declared):
        wanted = list(dict.fromkeys([*chosen, *data.types]))
        return _typed(nw.from_native(formats.open_path(data.path, wanted)), data.types, chosen)
    if isinstance(data, (str, os.PathLike)):
        return nw.from_native(formats.open_path(os.fspath(data), chosen))
    forget()
    if nw.dependencies.is_ibis_table(data):
        beneath = beneath_ibis(data)
        if beneath is None:
            return open_table(data, chosen)
        data = beneath
    try:
        frame = nw.from_native(data)
    except Exception as error:
        if isinstance(error, TypeError) or not hasattr(data, "columns"):
            raise SourceError(
                "A source is a path, or a pandas, polars, Arrow, DuckDB, ibis or PySpark table, not a "
                f"{type(data).__name__}."
            ) from None
        raise SourceError("The table has two columns of one name. Rename one.") from None
    if isinstance(frame, nw.LazyFrame):
        require_columns(frame, chosen)
        return frame.select(chosen)
    from isotone.reading.sources.streams import table_stream  # here, as it brings Arrow

    return nw.from_native(connect().from_arrow(table_stream(_columns_of(frame, chosen))))


def blank(frame: Frame) -> Frame:
    """The same columns with no rows, to rehearse a query before anything is charged.

    Only what is public is left of the frame: the names of its columns and, where a database holds the data, their
    logical types. A table in memory takes types from its contents, so there every column is text, and so in a lazy
    frame of polars, which may stand on one; there are no categories, dictionaries, statistics or metadata anywhere.
    """
    schema = frame.collect_schema()
    if frame.implementation.is_duckdb():
        columns = ", ".join(f"NULL::VARCHAR AS {quoted(name)}" for name in schema)
        return nw.from_native(nowhere().query(f"SELECT {columns} WHERE false"))
    if frame.implementation.is_ibis():
        return emptied(frame)
    if frame.implementation.is_polars():
        empty = frame.select(*(nw.lit(None).cast(nw.String).alias(name) for name in schema))
    else:
        empty = frame.select(*(_logical(name, dtype).alias(name) for name, dtype in schema.items()))
    return empty.head(0)  # last, as polars makes one row of literals alone


def _logical(name: str, dtype: Any) -> nw.Expr:
    if dtype.is_numeric():
        return nw.col(name).cast(nw.Float64)
    if dtype in (nw.Boolean, nw.Date, nw.Datetime):
        return nw.col(name)
    return nw.lit(None).cast(nw.String)


def _columns_of(frame: nw.DataFrame[Any], names: Sequence[str]) -> dict[str, Any]:
    """The native columns asked for.

    A column whose name is a number is asked for by its digits.
    """
    native = frame.to_native()
    known = list(native.columns) if frame.implementation.is_pandas_like() else list(frame.columns)
    labels = [str(name) for name in known]
    found: dict[str, Any] = {}
    for name in names:
        if labels.count(name) > 1:
            raise InputError(f"The table has two columns {name!r}. Rename one.")
        if name not in labels:
            raise no_column(name)
        place = labels.index(name)
        if frame.implementation.is_pandas_like():
            found[name] = native.iloc[:, place]
        else:
            found[name] = frame[known[place]].to_native()
    return found


def _typed(frame: Frame, types: Mapping[str, ColumnType], columns: Sequence[str]) -> Frame:
    schema = frame.collect_schema()
    read = [
        _as(types[name], name, schema[name]).alias(name) if name in types else nw.col(name)
        for name in columns
    ]
    return frame.select(*read)


def _as(kind: ColumnType, name: str, dtype: Any) -> nw.Expr:
    if kind == "text":
        return as_text(name, dtype)
    if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.String)):
        raise InputError(f"The column {name!r} holds values of type {dtype}, which cannot be read as {kind}.")
    return as_real(name, dtype) if kind == "number" else as_integer(name, dtype)


def require_columns(frame: Frame | nw.DataFrame[Any], names: Iterable[str]) -> None:
    """Refuse, before anything is charged, when a named column is not there."""
    known = set(frame.collect_schema())
    for name in names:
        if name not in known:
            raise no_column(name)


def collect(frame: Frame) -> dict[str, list[Any]]:
    """Run the query where the data is and bring its few rows home.

    Whatever an engine says about contents stays with it: the error raised here quotes nothing.
    """
    try:
        if frame.implementation.is_duckdb():  # its rows as they are: narwhals would load Arrow for them
            native: Any = frame.to_native()
            rows = native.fetchall()
            return {name: [row[i] for row in rows] for i, name in enumerate(native.columns)}
        if frame.implementation.is_ibis():
            return rows_of(frame)
        return frame.collect().to_dict(as_series=False)
    except InputError:  # an operation that a database lacks, which compiling shows before the charge
        raise
    except Exception:  # raised below, outside, so that not even a debugger's chain of errors quotes contents
        pass
    raise SourceError(
        "The data could not be read to its end. Nothing was released. "
        "Check the source with 'isotone check', which may look at contents."
    )
