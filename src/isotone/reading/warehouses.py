"""Query a database through ibis, with types and operations of a closed list.

Each engine has one entry of :data:`ENGINES`. It says in the engine's own SQL how a column of each listed type is read: as a boolean, a
64-bit integer, a float, or a text without outer blanks whose bytes are compared, whatever collation its column has. Above these columns
the query is that of all other sources; the few operations that mean different things on different engines are replaced here. What is not
listed is refused before the charge: a type by the catalogue, an operation by compiling, neither by running on data.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError
from isotone.reading.sources import SourceError, no_column
from isotone.reading.types import Kind, Roles, column_names, require_kinds
from isotone.reading.values import BLANKS, cell_text

Frame = nw.LazyFrame[Any]

Logical = Literal["boolean", "integer", "real", "decimal", "text", "uuid", "date", "moment", "instant"]
"""What a column of a database holds. An instant has a time zone, a moment has none."""

_KINDS: dict[str, Kind] = {
    "boolean": "boolean",
    "integer": "integer",
    "real": "float",
    "decimal": "decimal",
    "text": "text",
    "uuid": "uuid",
    "date": "date",
    "moment": "timestamp",
    "instant": "timestamp",
}
_STORED = {"boolean": "boolean", "integer": "int64", "real": "float64"}  # every other type arrives as text
_BLANKS = f"'{BLANKS}'"
_FIRST, _LAST = "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"
_EARLY_EXPONENT = r"^(-?[0-9])[.]([0-9]{15})([0-9]+)e[+]15$"
"""How PostgreSQL writes numbers that Python writes without an exponent, since they have a fraction and 16 digits before it."""
_SMALLEST, _LARGEST = "2.4703282292062328e-324", "1e300"
_UNDERFLOW = 1e-290
_PART = 50_000
"""Rows of a query that are in memory at once, where they are written to a file."""
_SEPARATORS = ",;#~%&@=_:<>!/"
_PLACES = 12


@dataclass(frozen=True)
class Engine:
    """How one engine reads columns, and does what ibis does not say in the same way for all.

    ``columns`` has the SQL that reads a column of each type, with ``@`` for the column. ``digest`` are the functions that make the
    SHA-256 of a text in hexadecimal, innermost first, with their further arguments. ``number`` says how a text that is written like a
    number becomes one: by a cast that gives null where it fails, by a function of that name, or by decimals of any size. ``tested`` says
    whether tests run it, or only compile for it.
    """

    title: str
    columns: Mapping[Logical, str]
    digest: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    number: str = "try cast"
    tested: bool = False


def _postgres() -> Engine:
    def text(value: str) -> str:
        return f'CAST({value} AS TEXT) COLLATE "C"'

    def moment(value: str, zone: str = "") -> str:
        # without the zeros at the end of a fraction, as Python writes it
        shown = f"RTRIM(RTRIM(TO_CHAR({value}, 'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.') || '{zone}'"
        return (
            f"CASE WHEN {value} >= TIMESTAMP {_FIRST} AND {value} <= TIMESTAMP {_LAST} THEN {text(shown)} END"
        )

    day = "TO_CHAR(@, 'YYYY-MM-DD')"
    far, low, short = text("'inf'"), text("'-inf'"), "RTRIM(RTRIM(CAST(@ AS TEXT), '0'), '.')"
    columns: dict[Logical, str] = {
        "boolean": "@",
        "integer": "CAST(@ AS BIGINT)",
        "real": "CAST(@ AS DOUBLE PRECISION)",
        "text": f"BTRIM({text('@')}, {_BLANKS})",
        "uuid": text("@"),
        "decimal": f"CASE WHEN @ = 'NaN' THEN NULL WHEN ABS(@) >= 1e250 THEN CASE WHEN @ > 0 THEN {far} ELSE {low} END "
        f"WHEN {text('@')} ~ '^-?[0-9]+$' THEN {text('@')} "
        f"WHEN {text('@')} ~ '^-?[0-9.]+$' THEN {text(short)} END",
        "date": f"CASE WHEN @ >= DATE '0001-01-01' AND @ <= DATE '9999-12-31' THEN {text(day)} END",
        "moment": moment("@"),
        "instant": moment("(@ AT TIME ZONE 'UTC')", "+00:00"),
    }
    digest = (("convert_to", ("UTF8",)), ("sha256", ()), ("encode", ("hex",)))
    return Engine("PostgreSQL", columns, digest, "decimal", tested=True)


def _sqlite() -> Engine:
    # A column of SQLite holds values of any type, and texts of any bytes.
    value = "CASE TYPEOF(@) WHEN 'text' THEN isotone_text(HEX(@)) WHEN 'integer' THEN isotone_number(@) WHEN 'real' THEN isotone_number(@) END"
    return Engine("SQLite", {"text": value}, (("isotone_sha256", ()),), "isotone_real", tested=True)


def _only_compiled(
    title: str, text: str, kinds: tuple[str, str, str], number: str = "try cast", **digest: tuple[Any, ...]
) -> Engine:
    """An engine that tests compile for. Other types than these few are to be cast in the query that is passed."""
    words, whole, real = kinds
    columns: dict[Logical, str] = {
        "boolean": "@",
        "integer": f"CAST(@ AS {whole})",
        "real": f"CAST(@ AS {real})",
        "decimal": f"CAST(@ AS {words})",
        "text": text,
    }
    return Engine(title, columns, tuple(digest.items()), number)


_USUAL = ("VARCHAR", "BIGINT", "DOUBLE")
ENGINES: dict[str, Engine] = {
    "postgres": _postgres(),
    "sqlite": _sqlite(),
    "bigquery": _only_compiled(
        "BigQuery",
        r"TRIM(COLLATE(CAST(@ AS STRING), ''), ' \t\n\r\v\f')",
        ("STRING", "INT64", "FLOAT64"),
        sha256=(),
        to_hex=(),
    ),
    "snowflake": _only_compiled(
        "Snowflake",
        r"TRIM(COLLATE(CAST(@ AS VARCHAR), 'utf8'), ' \t\n\r\x0b\f')",
        _USUAL,
        "try_to_double",
        sha2=(256,),
    ),
    "trino": _only_compiled(
        "Trino", f"TRIM(BOTH {_BLANKS} FROM CAST(@ AS VARCHAR))", _USUAL, to_utf8=(), sha256=(), to_hex=()
    ),
    "databricks": _only_compiled(
        "Databricks",
        r"BTRIM(CAST(@ AS STRING) COLLATE UTF8_BINARY, ' \t\n\r\013\014')",
        ("STRING", "BIGINT", "DOUBLE"),
        sha2=(256,),
    ),
    "clickhouse": _only_compiled(
        "ClickHouse",
        r"TRIM(BOTH ' \t\n\r\v\f' FROM CAST(@ AS Nullable(String)))",
        ("Nullable(String)", "Nullable(Int64)", "Nullable(Float64)"),
        SHA256=(),
        hex=(),
    ),
    "mssql": _only_compiled(
        "Microsoft SQL Server", "CAST(@ AS NVARCHAR(MAX))", ("VARCHAR(MAX)", "BIGINT", "FLOAT")
    ),
}
"""The engines that ibis may bring, by its name for them. DuckDB and Spark are asked directly."""

_NEEDS = {
    "IsNan": ("test for what is not a number", "floats are read with it"),
    "RegexSearch": ("regular expressions", "texts are read with them"),
    "RegexReplace": ("replacement by regular expressions", "texts are read with it"),
    "Translate": ("translation of letters", "words are compared without regard to case with it"),
    "TryCast": ("a cast that gives null where it fails", "numbers that are written as text need it"),
    "HexDigest": ("SHA-256", "contributions above 1, and tables, curves and surfaces with a unit need it"),
    "StringSplit": ("lists from a text", "public lists of categories, groups and codes need them"),
    "Unnest": ("rows from a list", "public lists of categories, groups and codes need them"),
}
"""Operations that some engine lacks: what they are called, and what needs them."""


def beneath_ibis(table: Any) -> Any:
    """What an ibis table stands for where no database has to be asked through ibis: a frame in memory, or a query of DuckDB or Spark. Else None."""
    from ibis.expr.operations import InMemoryTable

    if isinstance(table.op(), InMemoryTable):
        return table.op().data.obj
    if table.op().find(InMemoryTable):
        raise InputError(
            "The ibis table stands on one in memory. Pass that one itself, or store it in the database first. Nothing was charged."
        )
    backend = _backend_of(table)
    if backend.name == "duckdb":
        return _quietly(lambda: backend.con.sql(backend.compile(table, limit=None)), "could not be compiled")
    if backend.name == "pyspark":
        return _quietly(
            lambda: backend._session.sql(backend.compile(table, limit=None)), "could not be compiled"
        )
    return None


def open_table(table: Any, roles: Roles) -> Frame:
    """The columns of an ibis table that have a role, as its engine reads them. Only the catalogue is asked."""
    names = column_names(roles)
    backend = _backend_of(table)
    engine = _engine(backend.name)
    known = table.schema()
    for name in names:
        if name not in known:
            raise no_column(name, "The table", known)
    foreign = {name: str(kind) for name, kind in known.items() if kind.is_json() or kind.is_geospatial()}
    if backend.name != "sqlite":  # ibis reads them by a cast, or not at all
        _require_listed(engine, {name: foreign[name] for name in names if name in foreign})
    query = _quietly(lambda: backend.compile(table.select(*names), limit=None), "could not be compiled")
    if backend.name == "postgres":
        types = _quietly(lambda: _postgres_types(backend, query), "has a catalogue that could not be read")
    elif backend.name == "sqlite":
        _quietly(lambda: _register(backend), "could not be prepared")
        types = dict.fromkeys(names, "text")
    else:
        types = {name: _type_of(known[name]) for name in names}
    _require_listed(engine, types)
    if backend.name != "sqlite":  # whose columns hold values of any type
        require_kinds(roles, {name: (_KINDS[kind], kind) for name, kind in types.items()}, "The table")
    return described(backend, query, types)


def _require_listed(engine: Engine, types: Mapping[str, Any]) -> None:
    for name, kind in types.items():
        if kind not in engine.columns:
            raise InputError(
                f"The column {name!r} has the type {kind!r}, which is not read from {engine.title}. "
                "Cast it to text or to a number in the table that you pass. Nothing was charged."
            )


def described(backend: Any, query: str, types: Mapping[str, Any]) -> Frame:
    """The columns of a query, each read as its logical type."""
    ibis, SQLQueryResult = _ibis(), _ibis().expr.operations.SQLQueryResult
    engine = _engine(backend.name)
    columns = [
        f"{engine.columns[kind].replace('@', _quoted(backend, name))} AS {_quoted(backend, name)}"
        for name, kind in types.items()
    ]
    text = f"SELECT {', '.join(columns)} FROM ({query}) AS isotone_source"
    schema = ibis.schema({name: _STORED.get(kind, "string") for name, kind in types.items()})
    return nw.from_native(SQLQueryResult(text, schema, backend).to_expr())


def emptied(frame: Frame) -> Frame:
    """The same columns of the same table without its rows."""
    from ibis.expr.operations import SQLQueryResult

    source = _source_of(frame)
    text = f"SELECT * FROM ({source.query}) AS isotone_nothing WHERE 1 = 0"
    return nw.from_native(SQLQueryResult(text, source.schema, source.source).to_expr())


def rows_of(frame: Frame) -> dict[str, list[Any]]:
    """Compile the query and run it as one statement.

    An operation that the engine lacks is an :class:`InputError`; whatever else goes wrong is left to the caller, who must not show it.
    """
    backend = _source_of(frame).source
    native: Any = frame.to_native()
    expression, statement = _compiled(native, backend)
    if backend.name in ("postgres", "sqlite"):
        with backend.begin() as cursor:
            cursor.execute(statement)
            rows = cursor.fetchall()
        return {name: [row[i] for row in rows] for i, name in enumerate(native.columns)}
    return backend.to_pyarrow(expression, limit=None).to_pydict()


def write_rows(frame: Frame, path: Path) -> None:
    """Write all rows of a query to a Parquet file, by one statement and some at a time. For what has to be joined at home."""
    from pyarrow.parquet import ParquetWriter

    native: Any = frame.to_native()
    schema = native.schema().to_pyarrow()
    backend = _source_of(frame).source
    expression, statement = _compiled(native, backend)
    with ParquetWriter(path, schema) as writer:
        if backend.name not in ("postgres", "sqlite"):
            for batch in backend.to_pyarrow_batches(expression, limit=None, chunk_size=_PART):
                writer.write_batch(batch.cast(schema))
            return
        with ExitStack() as stack:
            # A cursor with a name stays with the server, and sends what is asked for.
            if backend.name == "postgres":
                stack.enter_context(backend.con.transaction())
                cursor = stack.enter_context(backend.con.cursor(name="isotone_rows"))
            else:
                cursor = stack.enter_context(backend.begin())
            cursor.execute(statement)
            while rows := cursor.fetchmany(_PART):
                writer.write_batch(_batch(rows, schema))


def _batch(rows: Sequence[Any], schema: Any) -> Any:
    """Rows as an Arrow batch. Numbers may stand for booleans."""
    import pyarrow as pa

    columns = [
        pa.array(
            [None if x is None else bool(x) for x in column] if pa.types.is_boolean(kind) else column, kind
        )
        for column, kind in zip(zip(*rows, strict=True), schema.types, strict=True)
    ]
    return pa.record_batch(columns, schema=schema)


def _compiled(native: Any, backend: Any) -> tuple[Any, str]:
    """The query as it is run, and as a statement of the engine."""
    import ibis.common.exceptions as errors

    expression = _replaced(native, backend)
    try:
        tree = backend.compiler.to_sqlglot(expression.unbind(), limit=None)
        arranged = _ARRANGED.get(backend.name, lambda tree: tree)(tree)
        return expression, arranged.sql(backend.dialect)
    except (errors.OperationNotDefinedError, errors.UnsupportedOperationError) as error:
        reason = str(error)
    except errors.IbisError:
        reason = ""
    lacks, needs = next(
        (words for name, words in _NEEDS.items() if f"'{name}'" in reason),
        ("an operation of the query", "this release needs it"),
    )
    raise InputError(
        f"{_engine(backend.name).title} through ibis has no {lacks}: {needs}. Nothing was charged."
    )


def _fenced(tree: Any) -> Any:
    """The query with a fence below every part that names a computed column more than once.

    PostgreSQL would put the computation in each of these places, and those in it again: a curve's query of twenty lines takes gigabytes then.
    """
    from sqlglot import expressions as sql

    for part in _repeated(tree):
        part.this.set("offset", sql.Offset(expression=sql.Literal.number(0)))
    return tree


def _in_turn(tree: Any) -> Any:
    """The query with its parts one after the other: the parser of SQLite does not go deep enough for one inside the other."""
    from sqlglot import expressions as sql

    repeated = {part.alias for part in _repeated(tree)}
    parts: list[Any] = []

    def take(select: Any) -> None:
        for source in [x.this for x in select.find_all(sql.From, sql.Join) if x.parent is select]:
            if isinstance(source, sql.Subquery) and not source.alias.startswith("isotone_"):
                take(source.this)
                name = sql.to_identifier(f"isotone_part_{source.alias}")  # no name of the owner's
                source.replace(sql.alias_(sql.Table(this=name.copy()), source.alias, quoted=True, table=True))
                parts.append((name, source.this, source.alias in repeated or None))

    take(tree)
    for name, part, often in parts:
        tree = tree.with_(name, as_=part, materialized=often, copy=False)
    return tree


def _repeated(tree: Any) -> list[Any]:
    """The parts of a query that compute a column which is named more than once outside them."""
    from sqlglot import expressions as sql

    named = Counter((column.table, column.name) for column in tree.find_all(sql.Column))
    return [
        part
        for part in tree.find_all(sql.Subquery)
        if isinstance(part.this, sql.Select)
        and any(
            not isinstance(column.unalias(), (sql.Column, sql.Star))
            and named[part.alias, column.alias_or_name] > 1
            for column in part.this.selects
        )
    ]


_ARRANGED: dict[str, Callable[[Any], Any]] = {"postgres": _fenced, "sqlite": _in_turn}


def with_digest(frame: Frame, text: str, name: str) -> Frame:
    """The frame with the hexadecimal SHA-256 of a column of texts."""
    native: Any = frame.to_native()
    value = native[text]
    steps = _engine(_source_of(frame).source.name).digest
    if not steps:
        value = value.hexdigest("sha256")
    for place, (function, further) in enumerate(steps):
        returns = "string" if place == len(steps) - 1 else "binary"
        value = _function(function, 1 + len(further), returns)(value, *further)
    return nw.from_native(native.mutate(**{name: value}))


def list_join(
    frame: Frame,
    text: str,
    values: Sequence[str],
    numbers: Mapping[str, Sequence[int | None]],
    how: Literal["inner", "left"],
) -> Frame:
    """The rows with the numbers that a public list has for their text.

    The list is a text in the query, which is split there: no table is made in the database.
    """
    ibis = _ibis()
    native: Any = frame.to_native()
    backend = _source_of(frame).source
    if backend.name == "sqlite":
        number_of = _list_function(backend, values, numbers)
        result = {name: number_of(native[text], place) for place, name in enumerate(numbers)}
        rows = native if how == "left" else native.filter(number_of(native[text], len(numbers)).notnull())
        return nw.from_native(rows.mutate(**result))
    rows = list(zip(values, *numbers.values(), strict=True)) or [("", *(0 for _ in numbers))]
    parts = ["".join(f"{-1 if x is None else x:0{_PLACES}d}" for x in row) + value for value, *row in rows]
    between = next(
        x for x in (*_SEPARATORS, *map(chr, range(0x3400, 0xD000))) if not any(x in part for part in parts)
    )
    entry = ibis.literal(between.join(parts)).split(between).unnest().name("isotone_entry").as_table()
    whole = entry.isotone_entry
    columns = {
        name: whole.substr(place * _PLACES, _PLACES).cast("int64").nullif(-1)
        for place, name in enumerate(numbers)
    }
    listed = entry.select(**{text: whole.substr(len(numbers) * _PLACES)}, **columns)
    if not values:
        listed = listed.filter(ibis.literal(False))
    return frame.join(nw.from_native(listed), on=text, how=how)


def _replaced(native: Any, backend: Any) -> Any:
    """The query with the operations that engines understand differently in words that they understand alike."""
    ibis, ops = _ibis(), _ibis().expr.operations
    name = backend.name
    number = _engine(name).number
    letters = {
        letter
        for node in native.op().find(ops.Literal)
        if isinstance(node.value, str)
        for letter in node.value
    }
    capitals, small = _capitals(frozenset(letters))

    def replace(node: Any, kwargs: Mapping[str, Any] | None) -> Any:
        node = node.__recreate__(kwargs) if kwargs else node
        match node:
            case ops.Strip():  # texts have no outer blanks: see Engine.columns
                return node.arg
            case ops.Lowercase():  # no engine's locale: what is compared are the letters of public words
                if name == "sqlite":
                    return _function("isotone_lower", 1, "string")(node.arg.to_expr()).op()
                return ops.Translate(node.arg, capitals, small)
            case ops.RegexSearch() | ops.RegexReplace() if name in ("postgres", "sqlite"):
                pattern = ops.Literal(node.pattern.value.replace(r"\z", r"\Z"), node.pattern.dtype)
                if name == "postgres":
                    return node.copy(pattern=pattern)
                arguments = [x.to_expr() for x in (node.arg, pattern, *node.args[2:])]
                function, returns = _SEARCHES[type(node).__name__]
                return _function(function, len(arguments), returns)(*arguments).op()
            case ops.Cast(arg, to) if arg.dtype.is_boolean() and to.is_numeric():
                value = arg.to_expr()
                return ibis.cases((value, ibis.literal(1, to)), (~value, ibis.literal(0, to))).op()
            case ops.Cast(arg, to) if arg.dtype.is_string() and to.is_numeric():
                return _parsed(arg.to_expr(), to, number).op()
            case ops.Cast(arg, to) if arg.dtype.is_floating() and to.is_string() and name == "postgres":
                return ops.RegexReplace(node, _EARLY_EXPONENT, r"\1\2.\3")
            case ops.StringLength() if name == "sqlite":  # its own stops at a null character
                return _function("isotone_length", 1, "int64")(node.arg.to_expr()).op()
            case ops.Multiply(left) | ops.Divide(left) if name == "postgres" and left.dtype.is_floating():
                return _without_underflow(node)
            case _:
                return node

    return native.op().replace(replace).to_expr()


def _parsed(text: Any, to: Any, number: str) -> Any:
    """A text that is written like a number as one. No number of digits or size of an exponent can make it fail."""
    ibis, types = _ibis(), _ibis().expr.datatypes
    if number == "try cast":
        return text.try_cast(to)
    if not to.is_floating():  # at most 17 digits
        return text.cast(to)
    if number != "decimal":
        return _function(number, 1, "float64")(text)
    exact = text.cast(types.Decimal())
    smallest, largest = (ibis.literal(bound).cast(types.Decimal()) for bound in (_SMALLEST, _LARGEST))
    return ibis.cases(
        (exact >= largest, float(_LARGEST)),
        (exact <= -largest, -float(_LARGEST)),
        (exact.abs() <= smallest, 0.0),
        else_=exact.cast(to),
    )


def _without_underflow(node: Any) -> Any:
    """A product or quotient that is zero where it would be next to nothing, for which PostgreSQL raises an error."""
    ibis, ops = _ibis(), _ibis().expr.operations
    if not isinstance(node.right, ops.Literal) or not node.right.value:
        return node
    size = abs(float(node.right.value))
    least = _UNDERFLOW * size if isinstance(node, ops.Divide) else _UNDERFLOW / size
    return ibis.cases((node.left.to_expr().abs() < least, 0.0), else_=node.to_expr()).op()


@cache
def _capitals(letters: frozenset[str]) -> tuple[str, str]:
    """The capitals of these letters, and for each the letter that it becomes, one by one."""
    pairs = [(capital, letter) for letter in sorted(letters) for capital in _sources().get(letter, ())]
    return "".join(capital for capital, _ in pairs), "".join(letter for _, letter in pairs)


@cache
def _sources() -> dict[str, list[str]]:
    result: dict[str, list[str]] = {"i": ["\u0130"]}  # which Python writes as two letters
    for letter in map(chr, range(0x20000)):  # behind them no letter has a case
        small = letter.lower()
        if small != letter and len(small) == 1:
            result.setdefault(small, []).append(letter)
    return result


@cache
def _function(name: str, arguments: int, returns: str) -> Callable[..., Any]:
    """A function of the engine by its name, of texts and numbers."""
    ibis, types = _ibis(), _ibis().expr.datatypes

    def one(a: Any) -> Any: ...
    def two(a: Any, b: Any) -> Any: ...
    def three(a: Any, b: Any, c: Any) -> Any: ...

    call = (one, two, three)[arguments - 1]
    call.__annotations__ = {"return": types.dtype(returns)}
    return ibis.udf.scalar.builtin(call, name=name)


def _register(backend: Any) -> None:
    """Give a connection to SQLite the functions that it lacks. None of them raises."""
    connection = backend.con
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    functions: dict[str, Callable[..., Any]] = {
        "isotone_text": lambda digits: cell_text(bytes.fromhex(digits).decode(encoding)),
        "isotone_number": cell_text,
        "isotone_real": float,
        "isotone_lower": lambda text: "".join("i" if x == "\u0130" else x.lower() for x in text),
        "isotone_length": len,
        "isotone_sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
        # Capitals of the alphabet alone are small letters to these, as to other engines.
        "isotone_search": lambda text, pattern: bool(re.search(pattern, text, re.ASCII)),
        "isotone_replace": lambda text, pattern, new: re.sub(pattern, new, text, flags=re.ASCII),
    }
    for name, function in functions.items():
        connection.create_function(name, -1, _total(function), deterministic=True)


_SEARCHES = {"RegexSearch": ("isotone_search", "boolean"), "RegexReplace": ("isotone_replace", "string")}


def _total(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with None for what it has no value for."""

    def total(*values: Any) -> Any:
        try:
            return None if None in values else function(*values)
        except Exception:
            return None

    return total


def _list_function(
    backend: Any, values: Sequence[str], numbers: Mapping[str, Sequence[int | None]]
) -> Callable[..., Any]:
    """A function of SQLite for the numbers of a text in a public list, by their place; behind the last a one for all that are listed."""
    entries = {value: (*row, 1) for value, *row in zip(values, *numbers.values(), strict=True)}
    name = f"isotone_list_{hashlib.sha256(repr(entries).encode()).hexdigest()[:24]}"
    backend.con.create_function(
        name, 2, lambda text, place: entries[text][place] if text in entries else None, deterministic=True
    )
    return _function(name, 2, "int64")


_POSTGRES: dict[int, Logical] = {
    16: "boolean",
    **dict.fromkeys((20, 21, 23), "integer"),
    **dict.fromkeys((700, 701), "real"),
    1700: "decimal",
    **dict.fromkeys((19, 25, 1042, 1043), "text"),
    2950: "uuid",
    1082: "date",
    1114: "moment",
    1184: "instant",
}
"""The types of PostgreSQL by their numbers. Domains have the number of what they are based on."""


def _postgres_types(backend: Any, query: str) -> dict[str, Any]:
    """The logical type of each column, or the catalogue's name for one that is not listed."""
    with backend.begin() as cursor:
        cursor.execute("SELECT current_setting('server_encoding'), current_setting('extra_float_digits')")
        encoding, digits = cursor.fetchone()
        if encoding != "UTF8" or int(digits) < 1:
            raise InputError(
                "PostgreSQL is read where the encoding of the database is UTF8 and extra_float_digits is 1 or more. Nothing was charged."
            )
        cursor.execute(f"SELECT * FROM ({query}) AS isotone_nothing WHERE false")
        kinds = {column.name: column.type_code for column in cursor.description}
        cursor.execute(
            "SELECT oid, typname, typtype FROM pg_catalog.pg_type WHERE oid = ANY(%s)",
            (list(kinds.values()),),
        )
        known = {
            oid: "text" if name == "citext" or kind == "e" else name for oid, name, kind in cursor.fetchall()
        }
    return {name: _POSTGRES.get(kind, known.get(kind, "unknown")) for name, kind in kinds.items()}


def _type_of(kind: Any) -> str:
    """The logical type of a column, or its own name where it is not listed."""
    if kind.is_boolean():
        return "boolean"
    if kind.is_integer() and not kind.is_unsigned_integer():
        return "integer"
    if kind.is_floating():
        return "real"
    if kind.is_decimal() and kind.scale == 0:
        return "decimal"
    return "text" if kind.is_string() else str(kind)


def _ibis() -> Any:
    """The library, which is an extra, and whose types say little."""
    import ibis

    return ibis


def _engine(name: str) -> Engine:
    if name not in ENGINES:
        titles = ", ".join(engine.title for engine in ENGINES.values())
        raise InputError(
            f"Tables of {name} through ibis are not read. Those of DuckDB, Spark, {titles} are. Nothing was charged."
        )
    return ENGINES[name]


def _backend_of(table: Any) -> Any:
    return _quietly(table.get_backend, "is in no database, or in several")


def _source_of(frame: Frame) -> Any:
    """The part of a query that reads the table."""
    from ibis.expr.operations import SQLQueryResult

    native: Any = frame.to_native()
    return native.op().find(SQLQueryResult)[0]


def _quoted(backend: Any, name: str) -> str:
    import sqlglot

    return sqlglot.to_identifier(name, quoted=True).sql(backend.compiler.dialect)


def _quietly(step: Callable[[], Any], problem: str) -> Any:
    """The step's result. What a driver says may quote contents or a password, so it is not repeated."""
    try:
        return step()
    except InputError:
        raise
    except Exception:
        pass
    raise SourceError(f"The table {problem}. Nothing was charged.")
