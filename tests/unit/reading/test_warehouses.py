"""Databases through ibis give the records that a table in memory gives, or are refused before anything is charged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.every_kind import COLUMNS, KINDS, hostile_rows
from tests.support.warehouses import in_postgres, in_sqlite

services = pytest.mark.services
ENGINES = [
    "duckdb",
    "sqlite",
    pytest.param("postgres", marks=services),
    pytest.param("spark", marks=services),
]
TEXT = dict.fromkeys(COLUMNS, "text")


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
    import duckdb
    import pyarrow as pa

    columns = {
        name: pa.array(column, pa.string())
        for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }
    return duckdb.connect().from_arrow(pa.table(columns))


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_texts_give_the_same_records_on_every_engine(engine, tmp_path):
    rows = hostile_rows(np.random.default_rng(11))
    memory, database = frame_of(rows), stored(engine, rows, tmp_path)
    differ = [kind for kind, read in KINDS.items() if read(database) != read(memory)]
    assert differ == []
