"""Which files a path names, and which columns each one has.

Each file is listed once.

Names are expanded here and nowhere else, so no row is read twice. Of a file's own names only those that were
asked for are ever looked at or told: a CSV without a header line has a person's record in its place.
"""

from __future__ import annotations

import csv
import glob
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError, IsotoneError
from isotone.privacy.checks import did_you_mean
from isotone.reading.columns import as_integer, as_real, as_text, quoted
from isotone.reading.engine import connect, forget, nowhere

__all__ = [
    "ColumnType",
    "Declared",
    "SourceError",
    "blank",
    "collect",
    "csv_places",
    "did_you_mean",
    "ending_of",
    "expand",
    "for_engine",
    "no_column",
    "open_path",
    "open_source",
    "require_columns",
]


_LONGEST_HEADER = 1 << 22


class SourceError(IsotoneError):
    """A data source is missing or cannot be read."""


def expand(path: str) -> list[str]:
    """The real files that a path or pattern names, sorted, each once.

    ``**`` goes into folders.

    A path that is the name of a file is that file, whatever characters are in it. Links to one file are one file.
    """
    try:
        exists = Path(path).is_file()
    except (OSError, ValueError) as error:  # too long for a name, or with a null character
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"The path {path[:200]!r} cannot be used: {reason}.") from None
    if exists:
        named = [path]
    else:
        named = glob.glob(path, recursive=True) if glob.has_magic(path) else []  # noqa: PTH207 (absolute patterns)
        named = [name for name in named if not Path(name).is_dir()]
    if not named or not all(Path(name).is_file() for name in named):
        raise SourceError(f"There is no file {path!r}{_similar(path) or '.'}")
    real = {
        (found.stat().st_dev, found.stat().st_ino): found
        for found in sorted(Path(n).resolve() for n in named)
    }
    return sorted(map(str, real.values()))


def ending_of(path: str, files: Sequence[str]) -> str:
    """The ending that all files have, in small letters."""
    endings = sorted({Path(file).suffix.lower() for file in files})
    if len(endings) > 1:
        raise SourceError(f"{path!r} matches files of several kinds: {', '.join(endings)}.")
    return endings[0]


def for_engine(files: Sequence[str]) -> list[str]:
    """The names as patterns that match these files only. The engine expands them once more."""
    for file in files:
        if "\\" in file and glob.has_magic(file):
            raise SourceError(
                f"{file!r}: a name with a backslash and one of * ? [ cannot be opened. Rename it."
            )
    return [glob.escape(file) for file in files]


def csv_places(file: str, delimiter: str, columns: Sequence[str]) -> tuple[int, tuple[int, ...]]:
    """How many columns the header line has, and where the columns asked for are."""
    with Path(file).open("rb") as stream:
        start = stream.read(_LONGEST_HEADER).decode("utf-8-sig", errors="replace")
    try:
        header = next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
    except csv.Error:  # a first line that is no header: a column asked for is not in it
        header = [""]
    if not header:
        raise SourceError(f"{file!r} has no header line. The first line of a CSV must name its columns.")
    for name in columns:
        if header.count(name) > 1:
            raise SourceError(f"{file!r} names the column {name!r} twice. Rename one of them.")
        if name not in header:
            raise no_column(name, f"The file {Path(file).name!r}")
    return len(header), tuple(header.index(name) for name in columns)


def no_column(name: str, where: str = "The data") -> InputError:
    """The error for a missing column.

    It names the column asked for and none that was found.
    """
    return InputError(
        f"{where} has no column {name!r}. Names are compared letter by letter; the first line of a CSV must hold them."
    )


def _similar(path: str) -> str:
    folder = Path(path).parent
    if glob.has_magic(str(folder)):
        return "."
    if not folder.is_dir():
        return f", and no folder {str(folder)!r}."
    return did_you_mean(Path(path).name, [entry.name for entry in folder.iterdir()])


# Open the files of each format as one relation of the embedded engine.
#
# No format guesses: names and types come from headers and schemas, partitions in the names of folders mean nothing, and the
# parts of a source are matched by the names of the columns asked for.

_NO_DELIMITER = "\x1e"  # JSON forbids it inside a line


def open_path(path: str, columns: Sequence[str]) -> Any:
    """The named columns of the files at ``path``, as a DuckDB relation.

    Only headers and schemas are read.
    """
    import duckdb

    files = expand(path)
    ending = ending_of(path, files)
    if ending not in _READERS:
        raise SourceError(
            f"{path!r} has the ending {ending or '(none)'!r}. isotone opens .csv, .tsv, .parquet, .jsonl "
            "and .arrow files; open others yourself and pass the table."
        )
    names = list(dict.fromkeys(columns))
    try:
        return _READERS[ending](connect(), files, names)
    except (duckdb.Error, OSError):
        # The engine's own words may quote contents, so they are not repeated.
        raise SourceError(
            f"{path!r} could not be opened as {ending[1:]}. Is it what its name says?"
        ) from None


def _read_csv(connection: Any, files: list[str], names: list[str], delimiter: str = ",") -> Any:
    layouts: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    for file in files:
        layouts.setdefault(csv_places(file, delimiter, names), []).append(file)
    parts: list[Any] = []
    for (width, places), alike in layouts.items():
        relation = connection.read_csv(
            for_engine(alike),
            columns={f"c{i}": "VARCHAR" for i in range(width)},
            auto_detect=False,
            header=True,
            delimiter=delimiter,
            quotechar='"',
            escapechar='"',
            strict_mode=False,
            null_padding=True,
            ignore_errors=True,
            hive_partitioning=False,
            parallel=False,  # null padding with quoted new lines is only defined in a single scan
        )
        chosen = [f"c{place} AS {quoted(name)}" for place, name in zip(places, names, strict=True)]
        parts.append(relation.project(", ".join(chosen)))
    return _together(parts)


def _read_tsv(connection: Any, files: list[str], names: list[str]) -> Any:
    return _read_csv(connection, files, names, "\t")


def _read_json_lines(connection: Any, files: list[str], names: list[str]) -> Any:
    """Read one record for each line that holds one object.

    Brackets and commas around it, as in an array, are left out.

    The keys of a line are contents, so a column that no line has is missing everywhere, without a message.
    Nested values are missing.
    """
    lines = connection.read_csv(
        for_engine(files),
        columns={"line": "VARCHAR"},
        auto_detect=False,
        header=False,
        delimiter=_NO_DELIMITER,
        quotechar="",
        escapechar="",
        strict_mode=False,
        ignore_errors=True,
        hive_partitioning=False,
    )
    pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
    paths = "[" + ", ".join("'" + pointer.replace("'", "''") + "'" for pointer in pointers) + "]"
    objects = lines.project("trim(line, ' \t\r\n,[]') AS line").filter(
        "CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' ELSE false END"
    )
    values = objects.project(f"json_extract_string(line, {paths}) AS value, json_type(line, {paths}) AS kind")
    return values.project(
        ", ".join(
            f"CASE WHEN kind[{i}] NOT IN ('ARRAY', 'OBJECT') THEN value[{i}] END AS {quoted(name)}"
            for i, name in enumerate(names, 1)
        )
    )


def _read_parquet(connection: Any, files: list[str], names: list[str]) -> Any:
    from isotone.reading.frames import read_parquet  # here, as it brings Arrow

    return read_parquet(connection, files, names)


def _read_arrow(connection: Any, files: list[str], names: list[str]) -> Any:
    from isotone.reading.frames import read_arrow

    return read_arrow(connection, files, names)


def _together(parts: Sequence[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


_READERS: dict[str, Callable[[Any, list[str], list[str]], Any]] = {
    ".csv": _read_csv,
    ".txt": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".ipc": _read_arrow,
}


# Open a path or a table of any kind as one lazy frame.
#
# Paths go through DuckDB, in process. CSV and JSON lines are read as text: what a value *means* is declared by
# the steward, never guessed from the contents. Only the schema is looked at here, and it is public: names and
# types, for CSV the header; JSON lines have none, and a key that is not there is a missing value. Lines that cannot be
# parsed are skipped, like any other record that is no record.

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
        return _typed(nw.from_native(open_path(data.path, wanted)), data.types, chosen)
    if isinstance(data, (str, os.PathLike)):
        return nw.from_native(open_path(os.fspath(data), chosen))
    forget()
    from isotone.reading.connections import DataTable

    if isinstance(data, DataTable):
        wanted = list(dict.fromkeys([*chosen, *data.types]))
        return _typed(open_source(data.open(), wanted), data.types, chosen)
    if nw.dependencies.is_ibis_table(data):
        from isotone.reading.warehouses import beneath_ibis, open_table

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
    from isotone.reading.frames import table_stream  # here, as it brings Arrow

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
        from isotone.reading.warehouses import emptied

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
            from isotone.reading.warehouses import rows_of

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
