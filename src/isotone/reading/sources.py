"""Open a path or a table of any kind as one lazy frame. Only names and types are looked at, which are public.

Files, frames in memory (pandas, polars, Arrow), lazy frames of polars and tables of DuckDB are counted by DuckDB, in process. Frames
and files of text come to it as Arrow batches whose types follow from what is declared. Every column is one of four types there
(:func:`engine_columns`): a boolean, a whole number of 64 bits, a float, or the text of the value. Tables of ibis and Spark stay with
their own engine, which runs the same query.

Nothing is guessed: separator, encoding and header are stated, the keys of JSON lines are contents, partitions in the names of folders
mean nothing, and of a file's own names only those that were asked for are ever told: a CSV without a header line has a person's
record in its place.
"""

from __future__ import annotations

import codecs
import glob
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError, IsotoneError
from isotone.privacy.checks import did_you_mean
from isotone.reading.columns import as_integer, as_real, as_text, quoted, quoted_names
from isotone.reading.engine import connect, forget, nowhere
from isotone.reading.types import (
    Roles,
    column_names,
    duckdb_kind,
    require_kinds,
    spark_kind,
)

Frame = nw.LazyFrame[Any]
ColumnType = Literal["text", "number", "integer"]

_NEWLINES = ("\n", "\r\n", "\r")
ENCODINGS = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "latin-1", *(f"iso-8859-{i}" for i in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)),
    *(f"cp125{i}" for i in range(9)), "cp437", "cp850", "mac-roman", "koi8-r", "koi8-u", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr",
)  # fmt: skip
"""The encodings that are decoded, by their names in Python."""


class SourceError(IsotoneError):
    """A data source is missing or cannot be read."""


def uncut(names: Sequence[str]) -> str:
    """The separator that a header line of one name seems to have, or nothing.

    >>> uncut(["person;age"]), uncut(["person"])
    (';', '')
    """
    return next((mark for mark in (";", "\t", "|", ",") if len(names) == 1 and mark in names[0]), "")


def no_column(
    name: str, where: str = "The table", known: Iterable[str] | None = None, form: DataFile | None = None
) -> InputError:
    """The error for a missing column, of a table or of a file in the ``form`` stated.

    It names the columns that are there where these are ``known`` to be public: from a schema, or from a header line that the
    steward has stated. Otherwise it names the column asked for and no other: a CSV without a header line has a person's record
    in its place.
    """
    if known is not None:
        names = list(known)
        more = "" if len(names) <= _MOST_NAMES else f", … ({len(names)} in all)"
        listed = ", ".join(repr(other) for other in names[:_MOST_NAMES])
        mark = uncut(names)
        cut = (
            f" If {mark!r} stands between names, write separator = {json.dumps(mark)} in [data]."
            if mark
            else ""
        )
        near = did_you_mean(name, names)
        if any("\N{REPLACEMENT CHARACTER}" in other for other in names):
            near = ""
            cut += ' Some letters could not be read: state the encoding that your export writes, such as encoding = "latin-1" in [data].'
        return InputError(f"{where} has no column {name!r}{near or '.'} It has: {listed}{more}.{cut}")
    if form is None:
        return InputError(
            f"{where} has no column {name!r}. Names are compared letter by letter. The columns it has are not listed: they could come from "
            "a file whose first line is somebody's record."
        )
    return InputError(
        f"{where} has no column {name!r}. It was cut at {form.separator or ','!r} and read as {form.encoding}, and names are compared letter "
        "by letter. The columns it has are not listed: the first line of a CSV could be somebody's record. 'isotone check' shows that line "
        "to you alone. If it holds names, state header = true in [data], and they are listed here."
    )


_MOST_NAMES = 60


@dataclass(frozen=True)
class DataFile:
    """Files of data, and how they are written. It can be used like any other source.

    Parameters
    ----------
    path
        A path, or a pattern such as ``"part-*.csv"``.
    types
        What columns are read as: "text", "number" or "integer". A value that does not parse so is missing.
    separator
        CSV: what stands between fields, one character. By default a comma, and a tabulator in ``.tsv`` files.
    encoding
        CSV and JSON lines: the encoding of letters, one of :data:`ENCODINGS`. By default UTF-8.
    header
        CSV: whether the first line names the columns. By default it does; stated as True, errors may quote it.
    columns
        CSV without a header: the names of all columns, in their order.
    newline
        CSV without a header: how lines end, ``"\\n"``, ``"\\r\\n"`` or ``"\\r"``. With one, it is the ending of the header line.
    """

    path: str
    types: Mapping[str, ColumnType] = field(default_factory=dict[str, ColumnType])
    separator: str | None = None
    encoding: str = "utf-8"
    header: bool | None = None
    columns: tuple[str, ...] = ()
    newline: str | None = None

    def __post_init__(self) -> None:
        mark: Any = self.separator
        if mark is not None and not (
            type(mark) is str
            and len(mark) == 1
            and mark.isascii()
            and not mark.isalnum()
            and mark not in '"\r\n\0'
        ):
            raise InputError(
                f'separator is one character such as "," ";" "|" or a tabulator, not {self.separator!r}.'
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if type(self.header) is not bool and self.header is not None:
            raise InputError(f"header is True or False, not {self.header!r}.")
        names: Any = self.columns
        if (
            isinstance(names, str)
            or not all(type(name) is str for name in names)
            or len(set(names)) < len(names)
        ):
            raise InputError("columns is the list of the names of all columns, each once.")
        object.__setattr__(self, "columns", tuple(names))
        if self.header is not False and (self.columns or self.newline is not None):
            raise InputError(
                "The names of columns and newline are for files without a header line: state header = false, or leave them out."
            )
        if self.header is False and (not self.columns or self.newline not in _NEWLINES):
            raise InputError(
                "A file without a header line needs the names of all its columns (names in [data], columns of a DataFile), and "
                r'newline, which is "\n", "\r\n" or "\r".'
            )

    def stated(self) -> dict[str, Any]:
        """What is said about how the files are written, beside what holds by default."""
        usual = DataFile(self.path)
        names = ("separator", "encoding", "header", "columns", "newline")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(usual, name)}


def _encoding(name: Any) -> str:
    known = {codecs.lookup(encoding).name: encoding for encoding in ENCODINGS}
    try:
        return known[codecs.lookup(name).name]
    except (LookupError, TypeError):
        near = did_you_mean(str(name), ENCODINGS) or f". Those that are read: {', '.join(ENCODINGS)}."
        raise InputError(f"The encoding {name!r} is not known{near}") from None


def open_source(data: Any, roles: Roles) -> Frame:
    """The columns of ``data`` that have a role, as a lazy frame.

    Only names and types are read, and a type that is not read in its role is refused.
    """
    chosen = column_names(roles)
    if not all(chosen) or "*" in chosen:
        raise InputError("A column cannot be called '' or '*': engines take that for all columns. Rename it.")
    if len({name.lower() for name in chosen}) < len(chosen):
        raise InputError(
            "Two of the columns differ in upper and lower case only, which engines do not distinguish. Rename one."
        )
    if isinstance(data, (str, os.PathLike)):
        data = DataFile(os.fspath(data))
    if isinstance(data, DataFile):
        return _typed(nw.from_native(_open_path(data, _with_types(roles, data.types))), data.types, chosen)
    forget()
    from isotone.reading.connections import DataTable

    if isinstance(data, DataTable):
        return _typed(open_source(data.open(), _with_types(roles, data.types)), data.types, chosen)
    if nw.dependencies.is_ibis_table(data):
        from isotone.reading.warehouses import beneath_ibis, open_table

        beneath = beneath_ibis(data)
        if beneath is None:
            return open_table(data, roles)
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
    engine = frame.implementation
    if isinstance(frame, nw.LazyFrame):
        _require_columns(frame, chosen)
        if engine.is_duckdb():
            return nw.from_native(_open_relation(frame.to_native(), roles))
        if engine.is_polars():
            from isotone.reading.frames import lazy_stream

            return nw.from_native(
                engine_columns(connect().from_arrow(lazy_stream(frame.to_native(), chosen)))
            )
        return _open_spark(frame.select(chosen), roles)
    if not (engine.is_pandas() or engine.is_polars() or engine.is_pyarrow()):
        raise SourceError(
            f"Frames of {engine.name.lower()} are not read. Pass a pandas, polars or Arrow frame, or a path."
        )
    from isotone.reading.frames import table_stream  # here, as it brings Arrow

    return nw.from_native(engine_columns(connect().from_arrow(table_stream(_columns_of(frame, chosen)))))


def _with_types(roles: Roles, types: Mapping[str, ColumnType]) -> Roles:
    """The roles, and the columns of declared types that have none."""
    others = sorted(set(types) - set(column_names(roles)))
    return {**roles, "answer": [*roles.get("answer", ()), *others]} if others else roles


def engine_columns(relation: Any, *, collated: bool = False) -> Any:
    """A relation of DuckDB with every column as a boolean, a BIGINT, a DOUBLE, or as its text. No value can make it fail.

    ``collated`` texts may be compared by a rule of their table, or be bytes of Arrow that are no text: they are made plain ones.
    """
    columns = [
        f"{_engine_column(name, dtype, collated)} AS {name}"
        for name, dtype in zip(quoted_names(relation.columns), relation.types, strict=True)
    ]
    return relation.project(", ".join(columns))


def _engine_column(column: str, dtype: Any, collated: bool) -> str:
    text = f"CAST({column} AS VARCHAR)"
    if duckdb_kind(dtype) is None:  # of a frame in memory; elsewhere it is refused
        return "CAST(NULL AS VARCHAR)"
    match dtype.id:
        case "boolean" | "bigint" | "double":
            return column
        case "tinyint" | "smallint" | "integer" | "utinyint" | "usmallint" | "uinteger":
            return f"CAST({column} AS BIGINT)"
        case "float":
            return f"CAST({column} AS DOUBLE)"
        case "varchar":
            return f"try(decode(encode({column})))" if collated else column
        case "decimal":
            return f"rtrim(rtrim({text}, '0'), '.')" if ",0)" not in str(dtype).replace(" ", "") else text
        case "date":
            return f"CASE WHEN {column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {text} END"
        case "timestamp" | "timestamp_s" | "timestamp_ms" | "timestamp_ns":
            if dtype.id == "timestamp_ns":  # they end within the calendar
                return f"CASE WHEN isfinite({column}) THEN {text} END"
            first, beyond = (f"CAST('{moment}' AS {dtype})" for moment in _CALENDAR)
            return f"CASE WHEN {column} >= {first} AND {column} < {beyond} THEN {text} END"
        case "timestamptz_ns":
            return f"CAST(make_timestamp_ns(epoch_ns({column})) AS VARCHAR) || '+00:00'"
        case "timestamp with time zone":
            micros = f"epoch_us({column})"
            return f"CASE WHEN {micros} BETWEEN {_MICROS[0]} AND {_MICROS[1]} THEN CAST(make_timestamp({micros}) AS VARCHAR) || '+00:00' END"
        case _:
            return text


_CALENDAR = ("0001-01-01 00:00:00", "10000-01-01 00:00:00")
"""The first moment, and the first one behind the last."""
_MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first moment and the last, in microseconds since 1970."""


def _open_relation(relation: Any, roles: Roles) -> Any:
    """A table or query of DuckDB, on its owner's connection."""
    types = {
        name: (duckdb_kind(dtype), str(dtype))
        for name, dtype in zip(relation.columns, relation.types, strict=True)
    }
    stands_on = _stands_on(relation)
    if "PANDAS_SCAN" in stands_on:
        raise InputError(
            "This relation of DuckDB stands on a pandas frame, whose types DuckDB takes from some of its values. Pass the frame itself."
        )
    text = next((form for form in ("CSV", "JSON") if any(form in source for source in stands_on)), None)
    if text is not None:
        raise InputError(
            f"This relation of DuckDB stands on a {text} file, whose types DuckDB takes from some of its lines. Pass the path itself, or make a "
            "table of it first."
        )
    if any("PARQUET" in source for source in stands_on):
        raise InputError(
            "This relation of DuckDB stands on Parquet files. Their statistics leave out what is not a number, and DuckDB believes them: one row "
            "could change what a condition says of another. Pass the path itself, or make a table of the files first."
        )
    for source in sorted(stands_on):
        if not any(known in source for known in _SCANS):
            raise InputError(
                f"This relation of DuckDB stands on {source}, which is not on the list of what is read: tables and Arrow. Make a "
                "table of it first."
            )
    if not any(
        "ARROW_SCAN" in source for source in stands_on
    ):  # a frame in memory, whose types may come from its values
        require_kinds(roles, types, "The table")
    chosen = relation.project(", ".join(map(quoted, column_names(roles))))
    return engine_columns(chosen, collated=True)


_SCANS = (
    "SEQ_SCAN", "TABLE_SCAN", "INDEX_SCAN", "ARROW_SCAN", "DUMMY_SCAN", "CTE_SCAN", "DELIM_", "CHUNK_GET",
    "COLUMN_DATA_SCAN", "EXPRESSION_GET", "EMPTY_RESULT", "RANGE", "GENERATE_SERIES",
)  # fmt: skip
"""What a relation of DuckDB may stand on, by the names in its plans. Other readers may fail on a value, or take types from some of them."""


def _stands_on(relation: Any) -> set[str]:
    """What a relation stands on, by the plan as it was written.

    The plan that is run leaves out what statistics show to be empty, so that it depends on contents.
    """
    rows = "isotone_rows"
    settings = "SELECT current_setting('default_collation'), current_setting('explain_output')"
    collation, before = relation.query(rows, settings).fetchall()[0]
    if collation:
        raise InputError(
            "This connection of DuckDB compares all texts by a collation. Reset default_collation first."
        )
    relation.query(rows, "SET explain_output = 'all'")
    try:
        plans = dict(relation.query(rows, f"EXPLAIN (FORMAT json) SELECT * FROM {rows}").fetchall())
    finally:
        relation.query(rows, f"SET explain_output = '{before}'")
    ends, left = set[str](), json.loads(plans["logical_plan"])
    while left:
        node = left.pop()
        below = node.get("children", [])
        left += below
        if not below:
            ends.add(node["name"].strip().upper())
    return ends


def _open_spark(frame: Frame, roles: Roles) -> Frame:
    """A table of Spark, which stays there."""
    if not frame.implementation.is_spark_like():
        raise SourceError(
            f"Tables of {frame.implementation.name.lower()} are not read. Pass a path, or a frame of pandas, polars or Arrow."
        )
    native: Any = frame.to_native()
    kinds = {
        str(column.name): (spark_kind(column.dataType), str(column.dataType.simpleString()))
        for column in native.schema
    }
    require_kinds(roles, kinds, "The table")
    columns = [_spark_column(f"`{name.replace('`', '``')}`", written) for name, (_, written) in kinds.items()]
    return nw.from_native(native.selectExpr(*columns))


def _spark_column(column: str, kind: str) -> str:
    """A column of Spark, with dates and moments as texts, null outside the calendar and in no session's time zone.

    Texts may hold bytes that are none. To Spark they are one text in some of its functions, and several in others.
    """
    if kind.partition("(")[0] in ("string", "char", "varchar"):
        return f"CASE WHEN encode({column}, 'UTF-8') = CAST({column} AS BINARY) THEN {column} END AS {column}"
    if kind == "void":
        return f"CAST(NULL AS STRING) AS {column}"
    text, held = f"CAST({column} AS STRING)", ""
    if kind == "date":
        held = f"{column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    elif kind == "timestamp_ntz":
        held = f"{column} >= TIMESTAMP_NTZ '0001-01-01 00:00:00' AND {column} <= TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
    elif kind == "timestamp":
        held = f"unix_micros({column}) BETWEEN {_MICROS[0]} AND {_MICROS[1]}"
        since = f"CAST(CAST(unix_micros({column}) AS DECIMAL(18, 0)) * 0.000001BD AS DECIMAL(18, 6))"
        text = f"CAST(TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {since}) AS STRING) || '+00:00'"
    return f"CASE WHEN {held} THEN {text} END AS {column}" if held else column


def blank(frame: Frame) -> Frame:
    """The same columns with no rows, to rehearse a query before anything is charged.

    Only what is public is left of the frame: the names of its columns and, where a database holds the data, their
    logical types. A frame in memory takes types from its contents, so there every column is text; there are no categories,
    dictionaries, statistics or metadata anywhere.
    """
    schema = frame.collect_schema()
    if frame.implementation.is_duckdb():
        columns = ", ".join(f"NULL::VARCHAR AS {name}" for name in quoted_names(schema))
        return nw.from_native(nowhere().query(f"SELECT {columns} WHERE false"))
    if frame.implementation.is_ibis():
        from isotone.reading.warehouses import emptied

        return emptied(frame)
    return frame.select(*(_logical(name, dtype).alias(name) for name, dtype in schema.items())).head(0)


def _logical(name: str, dtype: Any) -> nw.Expr:
    if dtype.is_numeric():
        return nw.col(name).cast(nw.Float64)
    return nw.col(name) if dtype == nw.Boolean else nw.lit(None).cast(nw.String)


def _columns_of(frame: nw.DataFrame[Any], names: Sequence[str]) -> dict[str, Any]:
    """The native columns asked for.

    A column whose name is a number is asked for by its digits.
    """
    native = frame.to_native()
    known = list(native.columns) if frame.implementation.is_pandas_like() else list(frame.columns)
    labels = [str(name) for name in known]
    result: dict[str, Any] = {}
    for name in names:
        if labels.count(name) > 1:
            raise InputError(f"The table has two columns {name!r}. Rename one.")
        if name not in labels:
            raise no_column(name)
        place = labels.index(name)
        if frame.implementation.is_pandas_like():
            result[name] = native.iloc[:, place]
        else:
            result[name] = frame[known[place]].to_native()
    return result


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
    return as_real(name, dtype) if kind == "number" else as_integer(name, dtype)


def _require_columns(frame: Frame, names: Iterable[str]) -> None:
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


def _open_path(data: DataFile, roles: Roles) -> Any:
    """The columns of the files at a path that have a role, as a relation of DuckDB. Only headers and schemas are read."""
    import duckdb

    files = expand(data.path)
    ending = _ending(data.path, files)
    if ending not in _READERS:
        raise SourceError(
            f"{data.path!r} has the ending {ending or '(none)'!r}. isotone opens .csv, .tsv, .parquet, .jsonl "
            "and .arrow files: save the data as one of them, or open it in Python and pass the table."
        )
    reader = _READERS[ending]
    allowed = _TEXT_SETTINGS if reader is _read_csv else ("encoding",) if reader is _read_json_lines else ()
    for name in data.stated():
        if name not in allowed:
            raise InputError(f"{name} is for CSV files, and {data.path!r} is none.")
    if ending == ".tsv" and data.separator is None:
        data = replace(data, separator="\t")
    try:
        return reader(connect(), data, files, roles)
    except (duckdb.Error, OSError):
        # The engine's own words may quote contents, so they are not repeated.
        raise SourceError(
            f"{data.path!r} could not be opened as {ending[1:]}. Is it what its name says?"
        ) from None


_TEXT_SETTINGS = ("separator", "encoding", "header", "columns", "newline")


def _read_csv(connection: Any, data: DataFile, files: list[str], roles: Roles) -> Any:
    from isotone.reading.frames import field_stream
    from isotone.reading.text_files import layout_of

    names = column_names(roles)
    return connection.from_arrow(
        field_stream([(file, layout_of(file, data, names)) for file in files], names)
    )


def _read_json_lines(connection: Any, data: DataFile, files: list[str], roles: Roles) -> Any:
    """Read one record for each line that holds one object.

    Brackets and commas around it, as in an array, are left out.

    The keys of a line are contents, so a column that no line has is missing everywhere, without a message.
    Nested values are missing.
    """
    from isotone.reading.frames import line_stream

    lines = connection.from_arrow(line_stream(files, data.encoding))
    names = column_names(roles)
    pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
    paths = "[" + ", ".join("'" + pointer.replace("'", "''") + "'" for pointer in pointers) + "]"
    # What is no JSON is null before anything is asked of it: the engine puts its filters in an order of its own.
    valid = lines.project("trim(line, ' \t\r\n,[]\ufeff') AS line").project(
        "CASE WHEN json_valid(line) THEN line END AS line"
    )
    objects = valid.filter("json_type(line) = 'OBJECT'")
    values = objects.project(f"json_extract_string(line, {paths}) AS value, json_type(line, {paths}) AS kind")
    return values.project(
        ", ".join(
            f"CASE WHEN kind[{i}] NOT IN ('ARRAY', 'OBJECT') THEN value[{i}] END AS {quoted(name)}"
            for i, name in enumerate(names, 1)
        )
    )


def _read_parquet(connection: Any, data: DataFile, files: list[str], roles: Roles) -> Any:
    from isotone.reading.frames import arrow_errors, parquet_stream  # here, as it brings Arrow

    with arrow_errors():
        stream, plain = parquet_stream(files, roles)
    if plain:
        if any(str(kind) == "double" for kind in stream.schema.types):
            connection = connect(trusting=False)
        relation = connection.read_parquet(_for_engine(files), hive_partitioning=False, union_by_name=True)
        chosen = relation.project(", ".join(map(quoted, column_names(roles))))
        if None not in map(duckdb_kind, chosen.types):  # to Arrow it may be a UUID, to the engine bytes
            return engine_columns(chosen)
    return engine_columns(connection.from_arrow(stream))


def _read_arrow(connection: Any, data: DataFile, files: list[str], roles: Roles) -> Any:
    from isotone.reading.frames import arrow_errors, arrow_stream

    with arrow_errors():
        return engine_columns(connection.from_arrow(arrow_stream(files, roles)))


_READERS: dict[str, Callable[[Any, DataFile, list[str], Roles], Any]] = {
    ".csv": _read_csv,
    ".txt": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".ipc": _read_arrow,
}


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
    if not named and Path(path).is_dir():
        raise SourceError(
            f"{path!r} is a folder. Name the file in it, or several by a pattern such as 'part-*.csv'."
        )
    if not named or not all(Path(name).is_file() for name in named):
        raise SourceError(f"There is no file {path!r}{_similar(path) or '.'}")
    real = {
        (file.stat().st_dev, file.stat().st_ino): file for file in sorted(Path(n).resolve() for n in named)
    }
    return sorted(map(str, real.values()))


def _ending(path: str, files: Sequence[str]) -> str:
    """The ending that all files have, in small letters."""
    endings = sorted({Path(file).suffix.lower() for file in files})
    if len(endings) > 1:
        raise SourceError(f"{path!r} matches files of several kinds: {', '.join(endings)}.")
    return endings[0]


def _for_engine(files: Sequence[str]) -> list[str]:
    """The names as patterns that match these files only. The engine expands them once more."""
    for file in files:
        if "\\" in file and glob.has_magic(file):
            raise SourceError(
                f"{file!r}: a name with a backslash and one of * ? [ cannot be opened. Rename it."
            )
    return [glob.escape(file) for file in files]


def _similar(path: str) -> str:
    folder = Path(path).parent
    if glob.has_magic(str(folder)):
        return "."
    if not folder.is_dir():
        return f", and no folder {str(folder)!r}."
    return did_you_mean(Path(path).name, [entry.name for entry in folder.iterdir()])
