"""One table in every form that a source may have, so that one test runs on all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

Backend = Callable[[pd.DataFrame, Path], Any]


def _arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _csv(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_csv(folder / "data.csv", index=False)
    return str(folder / "data.csv")


def _parquet_glob(frame: pd.DataFrame, folder: Path) -> str:
    half = len(frame) // 2
    for i, part in enumerate((frame[:half], frame[half:])):
        pl.from_arrow(_arrow(part)).write_parquet(folder / f"part{i}.parquet")  # type: ignore[union-attr]
    return str(folder / "part*.parquet")


def _jsonl(frame: pd.DataFrame, folder: Path) -> str:
    pl.from_arrow(_arrow(frame)).write_ndjson(folder / "data.jsonl")  # type: ignore[union-attr]
    return str(folder / "data.jsonl")


def _feather(frame: pd.DataFrame, folder: Path) -> Path:
    feather.write_feather(_arrow(frame), str(folder / "data.arrow"), compression="uncompressed")
    return folder / "data.arrow"


def _spark(frame: pd.DataFrame, folder: Path) -> Any:
    from tests.support.spark import spark_session

    pl.from_arrow(_arrow(frame)).write_parquet(folder / "data.parquet")  # type: ignore[union-attr]
    return spark_session().read.parquet(str(folder / "data.parquet"))


BACKENDS: dict[str, Backend] = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_arrow(_arrow(frame)),
    "polars-lazy": lambda frame, _: pl.from_arrow(_arrow(frame)).lazy(),  # type: ignore[union-attr]
    "arrow": lambda frame, _: _arrow(frame),
    "duckdb": lambda frame, _: duckdb.connect().from_arrow(_arrow(frame)),
    "ibis": lambda frame, _: ibis.memtable(_arrow(frame)),
    "csv": _csv,
    "parquet-glob": _parquet_glob,
    "json-lines": _jsonl,
    "arrow-file": _feather,
    "spark": _spark,
}

every_backend = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(make, id=name, marks=[pytest.mark.services] if name == "spark" else [])
        for name, make in BACKENDS.items()
    ],
)
