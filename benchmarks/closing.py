"""Closing a thousand questions: our closed counts against the plain sums of the same columns, in CPU time."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.reading.records import RecordRules, RecordSource, count_records

ROWS, ELEMENTS, COVERS_EACH = 1_000_000, 1_000, 3
Query = Callable[[], list[int]]


def run(quick: bool, progress: Progress) -> str:
    rows, elements = (20_000, 100) if quick else (ROWS, ELEMENTS)
    lines = [
        f"{elements:,} yes/no columns, {rows:,} rows in one Parquet file. CPU seconds of the whole process, on Spark of Python "
        "and Java; the better of two turns, after one to warm up. The plain query counts the yeses of each column; ours "
        "closes each record upward first. *Planning* is the same query on ten rows: schema, text of the query, the engine's "
        "own plan. *Counting* is the rest. The ratios are to the same part of the plain query.",
        "",
        "| engine, order | covers | plain: planning | counting | ours: planning | counting | ratio of counting | ratio of all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        progress(0.0, f"making {rows:,} rows")
        few, many = (_written(folder, size, elements) for size in (10, rows))
        engines = {"DuckDB": _duckdb, "Spark": _spark}
        for i, (engine, opened) in enumerate(engines.items()):
            sides = [opened(few), opened(many)]
            for k, (name, P) in enumerate(_orders(elements).items()):
                progress((i + k / 3) / len(engines), f"{engine}, {name}")
                found = [_measure(*side, P) for side in sides if side is not None]
                lines.append(
                    _row(f"{engine}, {name}", P, *found) if found else f"| {engine}, {name} | not installed |"
                )
    progress(1.0, "done")
    return "\n".join(lines)


def _row(name: str, P: Poset, few: tuple[float, float], many: tuple[float, float]) -> str:
    plain, ours = (all_rows - planning for planning, all_rows in zip(few, many, strict=True))
    cells = [few[0], plain, few[1], ours]
    return (
        f"| {name} | {len(P.covers):,} | "
        + " | ".join(f"{seconds:.2f}" for seconds in cells)
        + f" | {ours / plain:.2f}× | {many[1] / many[0]:.2f}× |"
    )


def _orders(n: int) -> dict[str, Poset]:
    """A chain, a random forest, and an order in which a random element is above a few earlier ones."""
    rng = np.random.default_rng(14)
    names = [f"q{i}" for i in range(n)]
    forest = [(names[i], names[rng.integers(i)]) for i in range(1, n)]
    arcs = {(names[i], names[j]) for i in range(1, n) for j in rng.integers(i, size=COVERS_EACH)}
    return {"chain": Poset.chain(names), "forest": Poset(names, forest), "random": Poset(names, sorted(arcs))}


def _written(folder: str, rows: int, elements: int) -> str:
    path = str(Path(folder) / f"answers{rows}.parquet")
    answers = ", ".join(f"hash(i * {elements} + {k}) % 50 = 0 AS q{k}" for k in range(elements))
    duckdb.sql(f"COPY (SELECT {answers} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")
    return path


def _duckdb(path: str) -> tuple[Any, Query, Callable[[], float]]:
    connection: Any = duckdb.connect()

    names: list[str] = connection.sql(f"SELECT * FROM '{path}'").columns
    sums = ", ".join(f"count_if({name})" for name in names)

    def plain() -> list[int]:
        return list(connection.execute(f"SELECT {sums} FROM '{path}'").fetchall()[0])

    return path, plain, time.process_time


def _spark(path: str) -> tuple[Any, Query, Callable[[], float]] | None:
    """A local session; None where there is no Spark to start."""
    if shutil.which("java") is None:
        return None
    try:
        sql: Any = importlib.import_module("pyspark.sql")
    except ImportError:
        return None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python needs Arrow
    session: Any = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    frame = session.read.parquet(path)
    java = int(session._jvm.java.lang.ProcessHandle.current().pid())

    def plain() -> list[int]:
        sums = [sql.functions.sum(sql.functions.col(name).cast("tinyint")) for name in frame.columns]
        return [int(total) for total in frame.agg(*sums).collect()[0]]

    def cpu() -> float:
        user, system = Path(f"/proc/{java}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    return frame, plain, cpu


def _measure(data: Any, plain: Query, clock: Callable[[], float], P: Poset) -> tuple[float, float]:
    """CPU seconds of the plain query and of ours; the counts of the minimal elements must agree."""
    source, rules = RecordSource(data), RecordRules()

    def ours() -> list[int]:
        return count_records(source, source.open(P, rules, None), P, rules)[0][0].tolist()

    minimal = [P.index(x) for x in set(P.elements) - {high for _, high in P.covers}]
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(3):
        first, seconds = _cpu(plain, clock)
        times["plain"].append(seconds)
        second, seconds = _cpu(ours, clock)
        times["ours"].append(seconds)
        column = [int(str(x)[1:]) for x in P.elements]
        assert all(first[column[x]] == second[x] for x in minimal), (
            "ours and the plain query count differently"
        )
    return min(times["plain"][1:]), min(times["ours"][1:])


def _cpu(work: Query, clock: Callable[[], float]) -> tuple[list[int], float]:
    started = clock()
    return work(), clock() - started
