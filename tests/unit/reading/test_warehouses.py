"""Databases through ibis give the records that a table in memory gives, or are refused before anything is charged."""

from __future__ import annotations

import functools
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.support.every_kind import COLUMNS, KINDS, hostile_rows
from tests.support.warehouses import in_postgres, in_sqlite

from isotone.errors import InputError
from isotone.reading import warehouses

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
def test_hostile_texts_give_the_same_records_on_every_engine(engine, tmp_path):
    database = stored(engine, ROWS, tmp_path)
    assert [kind for kind, read in KINDS.items() if read(database) != in_memory(kind)] == []


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
        self.asked.append(self.compiler.to_sqlglot(expression.unbind(), limit=limit).sql(self.dialect))
        return pa.table({name: [0] for name in expression.columns})


def compiled_for(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Compiler, Any]:
    backend = Compiler(name)
    columns = dict.fromkeys(COLUMNS, "string")
    table = ibis.table(
        columns | {"age": "float64", "twice": "int64", "meds": "boolean", "code": "decimal(38, 0)"}, name="t"
    )
    monkeypatch.setattr(warehouses, "_backend_of", lambda _: backend)
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
    assert sum("SHA" in text.upper() for text in backend.asked) == 10


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
