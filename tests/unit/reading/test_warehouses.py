"""Databases through ibis give the records that a table in memory gives, or are refused before anything is charged."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.util
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import uuid
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.support.every_kind import COLUMNS, KINDS, hostile_rows, line
from tests.support.spark import SMALL_JAVA
from tests.support.warehouses import in_postgres, in_sqlite, postgres

from isotone.errors import InputError
from isotone.reading import warehouses
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.lines import CellLine
from isotone.reading.sources import collect, open_source

services = pytest.mark.services
ENGINES = ["duckdb", "sqlite", "postgres", "spark"]
FEW = (
    "counts, questions",
    "groups, contributions",
    "hierarchy, drop",
    "table, contributions",
    "pairs, contributions",
    "curve, contributions",
    "surface",
    "distribution, contributions",
    "series",
)
"""Kinds that together need every operation."""
TEXT: dict[str, str] = dict.fromkeys(COLUMNS, "text")


def frame_of(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)


def stored(engine: str, rows: list[tuple[Any, ...]], folder: Any) -> Any:
    """The rows as texts in a database."""
    if engine == "sqlite":
        return in_sqlite(folder, TEXT, rows)
    if engine == "postgres":
        return in_postgres(TEXT, rows)
    if engine == "spark":
        from tests.support.spark import spark_session

        return spark_session().createDataFrame(rows, ", ".join(f"{name} string" for name in COLUMNS)).cache()
    columns = {
        name: pa.array(column, pa.string())
        for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }
    return duckdb.connect().from_arrow(pa.table(columns))


@functools.cache
def in_memory(kind: str) -> Any:
    """What a frame in memory gives."""
    return KINDS[kind](frame_of(ROWS))


ROWS = hostile_rows(np.random.default_rng(11))


@services
@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_texts_give_the_same_records_on_every_engine(engine, tmp_path, monkeypatch):
    """In PostgreSQL by one statement, which sees one snapshot. For SQLite the other kinds are read below."""
    database, asked = stored(engine, ROWS, tmp_path), list[str]()
    if engine == "postgres":
        begin = type(postgres()).begin

        @contextlib.contextmanager
        def traced(self: Any) -> Any:
            with begin(self) as cursor:
                yield Traced(cursor, asked)

        connection = type(postgres().con)
        cursor_of = connection.cursor

        def named(self: Any, *name: Any, **options: Any) -> Any:
            """A cursor with a name, by which rows come some at a time, is not one of ``begin``."""
            cursor = cursor_of(self, *name, **options)
            return Traced(cursor, asked) if options.get("name") else cursor

        monkeypatch.setattr(type(postgres()), "begin", traced)
        monkeypatch.setattr(connection, "cursor", named)
    for kind, read in KINDS.items():
        if engine == "sqlite" and kind in FEW:
            continue
        asked.clear()
        assert read(database) == in_memory(kind), kind
        counted = [text for text in asked if not any(word in text for word in OF_THE_SCHEMA)]
        assert len(counted) == (engine == "postgres"), kind


OF_THE_SCHEMA = ("isotone_nothing", "current_setting", "pg_type")


class Traced:
    """A cursor that writes down what it is asked."""

    def __init__(self, cursor: Any, asked: list[str]) -> None:
        self._cursor, self._asked = cursor, asked

    def execute(self, text: str, *arguments: Any) -> Any:
        self._asked.append(text)
        return self._cursor.execute(text, *arguments)

    def __enter__(self) -> Traced:
        self._cursor.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._cursor.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


@services
def test_spark_reads_moments_by_the_calendar_and_texts_by_their_bytes():
    """In no session's time zone and by no collation: one that compares texts is refused, as a row would be in two categories, and two units one."""
    from tests.support.spark import spark_session

    spark = spark_session()
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        moments = spark.sql(
            "SELECT explode(array(timestamp_micros(9223372036854775807), timestamp_micros(-9223372036854775808), TIMESTAMP '2020-10-25 00:30:00.5Z', "
            "TIMESTAMP '2020-10-25 01:30:00Z', timestamp_micros(253402300799999999), timestamp_micros(253402300800000000))) AS u"
        )
        local = spark.sql(
            "SELECT explode(array(TIMESTAMP_NTZ '2020-01-01 12:00:00', TIMESTAMP_NTZ '9999-12-31 23:59:59' + INTERVAL 1 SECOND)) AS u"
        )
        days = spark.sql(
            "SELECT explode(array(DATE '0001-01-01', DATE '9999-12-31', date_add(DATE '9999-12-31', 1))) AS u"
        )
        read = [collect(open_source(frame, {"unit": ["u"]}))["u"] for frame in (moments, local, days)]
        assert read[0] == [
            None,
            None,
            "2020-10-25 00:30:00.5+00:00",
            "2020-10-25 01:30:00+00:00",
            "9999-12-31 23:59:59.999999+00:00",
            None,
        ]
        assert read[1:] == [["2020-01-01 12:00:00", None], ["0001-01-01", "9999-12-31", None]]
        alike = spark.sql(
            "SELECT collate(u, 'UTF8_LCASE') AS u, 'x' AS x FROM (SELECT explode(array('a', 'A', 'b')) AS u)"
        )
        for source, counts in (
            (CategorySource(alike, "u", ("A", "a", "b"), upper=9), [1, 1, 1]),
            (CategorySource(alike, "x", ("x",), upper=9, unit="u"), [3]),
        ):
            with pytest.raises(InputError, match="COLLATE UTF8_BINARY"):
                source.open()
            cast = replace(source, data=alike.selectExpr("CAST(u AS STRING COLLATE UTF8_BINARY) AS u", "x"))
            assert count_categories(cast, cast.open()).tolist() == counts
        every = "SELECT explode(array(X'61', X'FF', X'FE', X'C3A9')) AS u"
        bytes_of = spark.sql(f"SELECT CAST(u AS STRING) AS u, 'x' AS x FROM ({every})")
        assert collect(open_source(bytes_of, {"unit": ["u"]}))["u"] == ["a", None, None, "é"]
        source = CategorySource(bytes_of, "x", ("x",), upper=9, unit="u")
        assert count_categories(source, source.open()).tolist() == [2]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_hostile_texts_in_sqlite_give_the_records_of_a_frame(tmp_path):
    database = stored("sqlite", ROWS, tmp_path)
    assert [kind for kind in FEW if KINDS[kind](database) != in_memory(kind)] == []


class Compiler:
    """An engine that is not here: it compiles, and counts nobody."""

    def __init__(self, name: str) -> None:
        from ibis.backends.sql import compilers

        self.name = name
        self.compiler = getattr(compilers, name).compiler
        self.dialect = self.compiler.dialect
        self.asked: list[str] = []

    def to_pyarrow(self, expression: Any, limit: None) -> Any:
        return pa.table(
            {name: [None if expression[name].type().is_string() else 0] for name in expression.columns}
        )

    def to_pyarrow_batches(self, expression: Any, limit: None, chunk_size: int) -> Any:
        return iter(())


def compiled_for(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Compiler, Any]:
    backend, compiled = Compiler(name), warehouses._compiled

    def told(native: Any, engine: Any) -> Any:
        expression, statement = compiled(native, engine)
        backend.asked.append(statement)
        return expression, statement

    columns = dict.fromkeys(COLUMNS, "string")
    table = ibis.table(
        columns | {"age": "float64", "twice": "int64", "meds": "boolean", "code": "decimal(38, 0)"}, name="t"
    )
    monkeypatch.setattr(warehouses, "_backend_of", lambda _: backend)
    monkeypatch.setattr(warehouses, "_compiled", told)
    monkeypatch.setattr(Compiler, "compile", lambda _, table, limit: "SELECT * FROM t", raising=False)
    return backend, table


@pytest.mark.parametrize("name", [name for name, engine in warehouses.ENGINES.items() if not engine.tested])
def test_an_engine_that_is_not_here_compiles_or_is_refused(name, monkeypatch):
    """By an operation that it lacks, in the rehearsal and so before the charge. What these statements return was never seen."""
    backend, table = compiled_for(name, monkeypatch)
    refused = {}
    for kind in FEW:
        try:
            KINDS[kind](table)
        except InputError as error:
            refused[kind] = str(error)
    if name == "mssql":
        assert set(refused) == set(FEW)
        assert refused["surface"] == (
            "Microsoft SQL Server through ibis has no test for what is not a number: floats are read with it. Nothing was charged."
        )
        return
    assert refused == {}
    assert len(backend.asked) == 2 * len(FEW)  # one statement for the rehearsal, one for the release
    assert sum("SHA" in text.upper() for text in backend.asked) == 12


def test_an_engine_that_lacks_an_operation_is_told_by_its_name(monkeypatch):
    from ibis.backends.sql.compilers.clickhouse import ClickHouseCompiler

    _, table = compiled_for("clickhouse", monkeypatch)
    monkeypatch.setattr(ClickHouseCompiler, "visit_StringSplit", ClickHouseCompiler.visit_Undefined)
    KINDS["counts"](table)
    with pytest.raises(InputError, match="ClickHouse through ibis has no lists from a text: public lists"):
        KINDS["table"](table)


def test_an_engine_that_is_not_on_the_list_is_refused(monkeypatch):
    _, table = compiled_for("mysql", monkeypatch)
    with pytest.raises(InputError, match="Tables of mysql through ibis are not read"):
        KINDS["counts"](table)


UTC = datetime.UTC
UNITS: dict[str, tuple[str, list[Any]]] = {
    "smallint": ("smallint", [1, 2, -3]),
    "bigint": ("bigint", [1, 2**53 + 1, 2**53, -(2**63)]),
    "double": (
        "double precision",
        [1.0, 2.5, -0.0, 0.1, 1e-5, 1e20, 1234567890123456.5, 1e-310, 123456789.125],
    ),
    "numeric": (
        "numeric",
        [Decimal("1.00"), Decimal("1"), Decimal("2.50"), Decimal("0.001"), Decimal(10) ** 40],
    ),
    "text": ("text", ["1", "1.0", " 1", "é", "e\u0301", "É", "null", ""]),
    "varchar": ("varchar(5)", ["a", "A", "a ", "b"]),
    "char": ("char(5)", ["a", "A", "b"]),
    "uuid": ("uuid", [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=2**127)]),
    "date": ("date", [datetime.date(1, 1, 1), datetime.date(2020, 2, 29), datetime.date(9999, 12, 31)]),
    "timestamp": (
        "timestamp",
        [
            datetime.datetime(2020, 1, 1),
            datetime.datetime(2020, 1, 1, 12, 30, 0, 500000),
            datetime.datetime(1, 1, 1, 0, 0, 0, 1),
        ],
    ),
    "timestamptz": (
        "timestamptz",
        [
            datetime.datetime(2020, 1, 1, tzinfo=UTC),
            datetime.datetime(2020, 1, 1, 2, tzinfo=UTC),
            datetime.datetime(2020, 1, 1, 0, 0, 0, 250000, tzinfo=UTC),
        ],
    ),
    "boolean": ("boolean", [True, False]),
}
"""Types of PostgreSQL with values."""


def of_units(values: list[Any]) -> list[tuple[Any, ...]]:
    """Rows of these units, many of each, and of nobody."""
    rng = np.random.default_rng(3)
    units = [*values, None] * 20
    return [
        (
            unit,
            *(str(x) for x in rng.integers(0, 2, 3)),
            "20",
            "1",
            str(rng.choice(["c1", "7", "it's"])),
            "x",
            "11",
        )
        for unit in units
    ]


@services
@pytest.mark.parametrize(
    "kind", ["counts", "counts, contributions", "table, contributions", "curve, contributions"]
)
@pytest.mark.parametrize("unit", UNITS)
def test_units_of_every_type_in_postgres_are_those_of_a_frame(unit, kind):
    declared, values = UNITS[unit]
    rows = of_units(values)
    assert KINDS[kind](in_postgres(TEXT | {"person": declared}, rows)) == KINDS[kind](frame_of(rows))


@services
@pytest.mark.parametrize("column", ["county", "hyp", "age"])
@pytest.mark.parametrize("unit", UNITS)
def test_columns_of_every_type_in_postgres_are_those_of_a_frame(unit, column):
    """As categories, answers and numbers."""
    database, memory = both(unit, [column])
    for kind in {"county": ("table", "groups"), "hyp": ("counts",), "age": ("curve", "table of counts")}[
        column
    ]:
        if column == "age" and unit in ("uuid", "date", "timestamp", "timestamptz"):
            with pytest.raises(InputError, match="which is not read as a number"):
                KINDS[kind](database)
            continue
        assert KINDS[kind](database) == KINDS[kind](memory), kind


@services
@pytest.mark.parametrize("unit", UNITS)
def test_questions_about_columns_of_every_type_in_postgres_are_those_of_a_frame(unit):
    """Each question reads one column, so all three have the type at once."""
    database, memory = both(unit, ["county", "hyp", "age"])
    assert KINDS["counts, questions"](database) == KINDS["counts, questions"](memory)


def both(unit: str, columns: list[str]) -> tuple[Any, pd.DataFrame]:
    """Hostile rows whose columns have this type, in PostgreSQL and in memory."""
    declared, values = UNITS[unit]
    places = [COLUMNS.index(column) for column in columns]
    rows = [
        tuple(values[(i + place) % len(values)] if place in places else x for place, x in enumerate(row))
        for i, row in enumerate(ROWS)
    ]
    memory = frame_of(rows)
    if unit == "double":
        memory = memory.astype(dict.fromkeys(columns, float))
    return in_postgres(TEXT | dict.fromkeys(columns, declared), rows), memory


FAR = [
    -math.inf,
    -1.7e308,
    -1e300,
    -1e299,
    -1e20,
    -5e-324,
    -0.0,
    1e-320,
    1e-305,
    1e-90,
    20.0,
    1e20,
    1e299,
    1e300,
    math.inf,
    math.nan,
]
"""Numbers of which a database could make none: it may floor to a whole number, or fail where a product is out of range."""


@services
@pytest.mark.parametrize("engine", ["sqlite", "postgres", "spark"])
def test_numbers_far_outside_are_those_of_a_frame(engine, tmp_path):
    """In columns of numbers and of texts, and on lines so narrow that a part of them is out of range too."""
    rows = [(str(i), "ja", repr(x), "1", repr(x), repr(x), "c1", "x", "11") for i, x in enumerate(FAR)]
    numbers = pd.DataFrame({"age": FAR, "dose": 1.0})
    source: Any = {
        "sqlite": lambda: in_sqlite(
            tmp_path, {"age": "REAL", "dose": "REAL"}, [(None if x != x else x, 1.0) for x in FAR]
        ),
        "postgres": lambda: in_postgres(
            dict.fromkeys(numbers, "double precision"), list(numbers.itertuples(index=False))
        ),
        "spark": lambda: spark_frame(numbers, tmp_path),
    }[engine]()
    for low, high, grid, cells in (
        (0, 100, "even", None),
        (0, "1e-90", "even", 4096),
        ("1e-90", 1, "log", 50),
        (0, "1e299", "even", 50),
        (0, 10, "integers", None),
        (0, 100, (0, 20), None),
    ):
        grid = tuple(map(Fraction, grid)) if isinstance(grid, tuple) else grid
        read = line(CellLine.of(Fraction(low), Fraction(high), grid, cells))
        assert read(source) == read(numbers), (low, high, grid)
    assert KINDS["curve, every row"](source) == KINDS["curve, every row"](numbers)
    database = stored(engine, rows, tmp_path)
    kinds = (
        "distribution",
        "survival",
        "surface",
        "curve, contributions",
        "table of counts",
        "pairs of counts",
    )
    assert [kind for kind in kinds if KINDS[kind](database) != KINDS[kind](frame_of(rows))] == []


def spark_frame(frame: pd.DataFrame, folder: Any) -> Any:
    from tests.support.spark import spark_session

    frame.to_parquet(folder / "numbers.parquet")
    return spark_session().read.parquet(str(folder / "numbers.parquet"))


def test_values_of_every_type_in_one_column_of_sqlite_are_those_of_a_frame(tmp_path):
    values = [
        1,
        1.0,
        2**53 + 1,
        -(2**63),
        2.5,
        1e20,
        1e-310,
        float("inf"),
        "1",
        " 1.0 ",
        "x",
        "",
        None,
        True,
        0.1,
    ]
    rows = [
        (value, *(str(x) for x in (i % 2, i % 3, 1)), value, "1", value, "x", value)
        for i, value in enumerate(values * 4)
    ]
    for kind in (
        "counts, contributions",
        "table, contributions",
        "table of counts",
        "hierarchy",
        "curve, every row",
    ):
        for declared in ("", "INTEGER", "TEXT", "GEOMETRY"):
            found = [tuple(int(x) if x is True else x for x in row) for row in rows]
            database = in_sqlite(tmp_path, dict.fromkeys(COLUMNS, declared), found)
            with sqlite3.connect(tmp_path / "data.sqlite") as connection:
                stored = connection.execute(f"SELECT * FROM {database.get_name()}").fetchall()
            assert KINDS[kind](database) == KINDS[kind](frame_of(stored)), (kind, declared)


def test_bytes_that_are_no_text_are_missing_in_sqlite(tmp_path):
    database = in_sqlite(tmp_path, TEXT, ROWS)
    name = database.get_name()
    with sqlite3.connect(tmp_path / "data.sqlite") as connection:
        connection.execute(
            f"UPDATE {name} SET county = CAST(x'ff31' AS TEXT), hyp = x'31', person = CAST(x'00' AS TEXT) WHERE rowid = 7"
        )
    rows = [*ROWS]
    rows[6] = ("\x00", None, *rows[6][2:6], None, *rows[6][7:])
    for kind in ("groups, contributions", "table, contributions"):
        assert KINDS[kind](database) == KINDS[kind](frame_of(rows))


@services
@pytest.mark.parametrize("declared", ['text COLLATE "isotone_ci"', "citext", "isotone_mood", "isotone_name"])
def test_texts_are_compared_as_bytes_whatever_postgres_compares(declared):
    """A collation without capitals, a type without them, an enumeration and a domain."""
    with postgres().begin() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS citext")
        cursor.execute(
            "CREATE COLLATION IF NOT EXISTS isotone_ci (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
        )
        cursor.execute("DROP TYPE IF EXISTS isotone_mood CASCADE; DROP DOMAIN IF EXISTS isotone_name CASCADE")
        cursor.execute(
            "CREATE TYPE isotone_mood AS ENUM ('c1', 'C1', 'ç3', 'c3', '7'); CREATE DOMAIN isotone_name AS text"
        )
    texts = ["c1", "C1", "ç3", "c3", "7"] * 20
    rows = [(text, *row[1:6], text, *row[7:]) for row, text in zip(ROWS, texts, strict=False)]
    database = in_postgres(TEXT | {"person": declared, "county": declared}, rows)
    for kind in ("counts", "groups", "table, contributions"):
        assert KINDS[kind](database) == KINDS[kind](frame_of(rows)), kind


@services
@pytest.mark.parametrize(
    "declared",
    [
        "bytea",
        "json",
        "jsonb",
        "interval",
        "time",
        "inet",
        "bit(3)",
        "text[]",
        "money",
        "xml",
        "point",
        "int4range",
        "oid",
    ],
)
def test_types_that_are_not_listed_are_refused_from_the_catalogue_of_postgres(declared):
    with pytest.raises(InputError, match="'person'"):
        KINDS["counts"](in_postgres(TEXT | {"person": declared}, []))


@services
def test_spark_connect_gives_the_records_of_a_frame():
    """In a process of its own: one that has a session of Spark cannot have one of Spark Connect."""
    if shutil.which("java") is None or importlib.util.find_spec("grpc") is None:
        pytest.skip("no Java or no gRPC on this machine, so there is no Spark Connect")
    kinds = ("counts, contributions", "groups", "hierarchy, drop", "table, contributions", "curve")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.spark_connect_worker", *kinds],
        input=json.dumps(ROWS),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": SMALL_JAVA},
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {kind: in_memory(kind) for kind in kinds}


@services
@pytest.mark.parametrize(
    ("column", "declared", "kind"),
    [("age", "uuid", "distribution"), ("age", "date", "curve"), ("dose", "bigint", "series")],
)
def test_a_column_whose_type_is_not_read_in_its_role_is_refused_in_postgres(column, declared, kind):
    """Otherwise everybody would be dropped, at the whole price."""
    with pytest.raises(InputError, match=f"{column!r} of type"):
        KINDS[kind](in_postgres(TEXT | {column: declared}, []))
