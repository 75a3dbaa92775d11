"""Sources: a path or a table of any kind, opened where it is, as one lazy frame.

Paths go through DuckDB, in process. CSV and JSON lines are read as text: what a value *means* is declared by
the steward, never guessed from the contents. Only the schema is looked at here, and it is public: names and
types, for CSV the header; JSON lines have none, and a key that is not there is a missing value. Lines that cannot be parsed are skipped,
like any other record that is no record.
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError, IsotoneError
from isotone.privacy.checks import did_you_mean
from isotone.reading.engine import connect, forget
from isotone.reading.numbers import as_integer, as_real
from isotone.reading.texts import as_text
from isotone.reading.values import text_of

__all__ = [
    "ColumnType",
    "Declared",
    "SourceError",
    "collect",
    "did_you_mean",
    "open_source",
    "require_columns",
]

Frame = nw.LazyFrame[Any]
ColumnType = Literal["text", "number", "integer"]


class SourceError(IsotoneError):
    """A data source is missing or cannot be read."""


@dataclass(frozen=True)
class Declared:
    """The data at ``path`` with columns read as the types declared for them; a source like any other.

    A value that does not parse as its column's type is missing. Where the file itself gives a column a type
    that cannot be read so, that is public, and refused.
    """

    path: str
    types: Mapping[str, ColumnType]


def open_source(data: Any, columns: Sequence[str]) -> Frame:
    """The named columns of ``data`` as a lazy frame; nothing but the schema is read.

    A table in memory (pandas, polars, Arrow) is handed to DuckDB, without a copy where Arrow allows it; a
    lazy one (polars, DuckDB, ibis, PySpark) stays with its own engine.
    """
    chosen = list(dict.fromkeys(columns))
    if len({name.lower() for name in chosen}) < len(chosen):
        raise InputError(
            "Two of the columns differ in capitals only, which engines do not tell apart. Rename one."
        )
    if isinstance(data, Declared):
        return _typed(_open_path(data.path, [*chosen, *data.types]), data.types, chosen)
    if isinstance(data, (str, os.PathLike)):
        frame = _open_path(os.fspath(data), chosen)
    else:
        forget()
        try:
            frame = nw.from_native(data)
        except TypeError:
            raise SourceError(
                "A source is a path, or a pandas, polars, Arrow, DuckDB, ibis or PySpark table, not a "
                f"{type(data).__name__}."
            ) from None
    require_columns(frame, chosen)
    if isinstance(frame, nw.LazyFrame):
        return frame.select(chosen)
    return nw.from_native(connect().from_arrow(_to_arrow(frame, chosen)))


def _typed(frame: Frame, types: Mapping[str, ColumnType], columns: Sequence[str]) -> Frame:
    require_columns(frame, [*columns, *types])
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


def _to_arrow(frame: nw.DataFrame[Any], columns: Sequence[str]) -> Any:
    """An Arrow table; pandas columns of mixed objects become text value by value, so that none can fail."""
    import pyarrow as pa

    arrays: list[Any] = []
    for name in columns:
        series = frame[name]
        if frame.implementation.is_pandas_like() and series.to_native().dtype == object:
            arrays.append(pa.array([text_of(value) for value in series.to_native()], pa.string()))
        else:
            arrays.append(series.to_arrow())
    return pa.table(arrays, names=list(columns))


def _open_path(path: str, columns: Sequence[str]) -> Frame:
    import duckdb

    files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]  # noqa: PTH207 (absolute patterns)
    if not files or not all(Path(file).is_file() for file in files):
        raise SourceError(f"There is no file {path!r}{_similar_files(path) or '.'}")
    endings = {Path(file).suffix.lower() for file in files}
    if len(endings) > 1:
        raise SourceError(f"{path!r} matches files of several kinds: {', '.join(sorted(endings))}.")
    (ending,) = endings
    connection = connect()
    try:
        if ending in (".csv", ".tsv", ".txt"):
            relation = _read_csv(connection, files, "\t" if ending == ".tsv" else ",")
        elif ending in (".parquet", ".pq"):
            relation = connection.read_parquet(files)
        elif ending in (".jsonl", ".ndjson"):
            relation = _read_json_lines(connection, files, columns)
        elif ending in (".arrow", ".feather", ".ipc"):
            import pyarrow.dataset

            relation = connection.from_arrow(pyarrow.dataset.dataset(files, format="ipc"))
        else:
            raise SourceError(
                f"{path!r} has the ending {ending or '(none)'!r}. isotone opens .csv, .tsv, .parquet, .jsonl "
                "and .arrow files; open others yourself and pass the table."
            )
    except (duckdb.Error, OSError, ValueError):
        # The engine's own words may quote contents, so they are not repeated.
        raise SourceError(
            f"{path!r} could not be opened as {ending[1:]}. Is it what its name says?"
        ) from None
    return nw.from_native(relation)


def _read_csv(connection: Any, files: list[str], delimiter: str) -> Any:
    headers = {tuple(_csv_header(file, delimiter)) for file in files}
    if len(headers) > 1:
        raise SourceError("The CSV files do not have the same columns. Name one kind of file.")
    (header,) = headers
    return connection.read_csv(
        files,
        columns=dict.fromkeys(header, "VARCHAR"),
        auto_detect=False,
        header=True,
        delimiter=delimiter,
        quotechar='"',
        escapechar='"',
        strict_mode=False,
        null_padding=True,
        ignore_errors=True,
        parallel=False,  # null padding with quoted new lines is only defined in a single scan
    )


def _read_json_lines(connection: Any, files: list[str], columns: Sequence[str]) -> Any:
    # The keys of a line are contents: a column that no line has is missing everywhere, and nobody is told.
    texts = dict.fromkeys(columns, "VARCHAR")
    return connection.read_json(files, columns=texts, format="newline_delimited", ignore_errors=True)


def _csv_header(file: str, delimiter: str) -> list[str]:
    with Path(file).open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        header = next(csv.reader(lines, delimiter=delimiter), None)
    if not header:
        raise SourceError(f"{file!r} has no header line. The first line of a CSV must name its columns.")
    if len({name.lower() for name in header}) < len(header):
        raise SourceError(f"{file!r} names a column twice (capitals do not count). Rename one of them.")
    return header


def _similar_files(path: str) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f", and no folder {str(folder)!r}."
    return did_you_mean(Path(path).name, [entry.name for entry in folder.iterdir()])


def require_columns(frame: Frame | nw.DataFrame[Any], names: Iterable[str]) -> None:
    """Refuse, before anything is charged, when a named column is not there."""
    known = list(frame.collect_schema())
    for name in names:
        if name not in known:
            shown = ", ".join(known[:20]) + (" …" if len(known) > 20 else "")
            near = did_you_mean(name, known) or "."
            raise InputError(f"The data has no column {name!r}{near} It has: {shown}.")


def collect(frame: Frame) -> dict[str, list[Any]]:
    """Run the query where the data is and bring its few rows home.

    Whatever an engine says about contents stays with it: the error raised here quotes nothing.
    """
    try:
        return frame.collect().to_dict(as_series=False)
    except Exception:  # raised below, outside, so that not even a debugger's chain of errors quotes contents
        pass
    raise SourceError(
        "The data could not be read to its end. Nothing was released; a charge made for it stays spent. "
        "Check the source with 'isotone check', which may look at contents."
    )
