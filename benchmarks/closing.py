"""Closing a thousand questions: our closed counts against the plain sums of the same columns, in CPU time."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks._spark import cpu_of, open_session
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.reading.records import RecordRules, RecordSource, count_records

ROWS, ELEMENTS, COVERS_EACH = 1_000_000, 1_000, 3
Query = Callable[[], list[int]]


def run(quick: bool, progress: Progress) -> str:
    rows, elements = (20_000, 100) if quick else (ROWS, ELEMENTS)
    lines = [
        f"{elements:,} yes/no columns, {rows:,} rows in one Parquet file. CPU seconds of the whole process, on Spark of Python, "
        "Java and its workers; the better of two turns. The plain query counts the yeses of each column; ours "
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
            sides = [side for side in (opened(few), opened(many)) if side is not None]
            plain = [_turns(query, clock) for _, query, clock in sides]
            for k, (name, P) in enumerate(_orders(elements).items()):
                progress((i + k / 3) / len(engines), f"{engine}, {name}")
                ours = [
                    _ours(data, clock, P, sums)
                    for (data, _, clock), (_, sums) in zip(sides, plain, strict=True)
                ]
                lines.append(
                    _row(f"{engine}, {name}", P, [seconds for seconds, _ in plain], ours)
                    if sides
                    else f"| {engine}, {name} | not installed |"
                )
    progress(1.0, "done")
    return "\n".join(lines)


def _row(name: str, P: Poset, plain: list[float], ours: list[float]) -> str:
    """Seconds of the plain query and of ours, each with ten rows and with all."""
    counting = [seconds[1] - seconds[0] for seconds in (plain, ours)]
    cells = [plain[0], counting[0], ours[0], counting[1]]
    return (
        f"| {name} | {len(P.covers):,} | "
        + " | ".join(f"{seconds:.2f}" for seconds in cells)
        + f" | {counting[1] / counting[0]:.2f}× | {ours[1] / plain[1]:.2f}× |"
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
    session = open_session("local[2]", **{"spark.driver.memory": "4g"})
    if session is None:
        return None
    sql: Any = importlib.import_module("pyspark.sql")
    frame = session.read.parquet(path)

    def plain() -> list[int]:
        sums = [sql.functions.sum(sql.functions.col(name).cast("tinyint")) for name in frame.columns]
        return [int(total) for total in frame.agg(*sums).collect()[0]]

    def cpu() -> float:
        return time.process_time() + cpu_of(session)

    return frame, plain, cpu


def _ours(data: Any, clock: Callable[[], float], P: Poset, plain: list[int]) -> float:
    """CPU seconds of our counts; those of the minimal elements must be the plain query's."""
    source, rules = RecordSource(data), RecordRules()

    def count() -> list[int]:
        return count_records(source, source.open(P, rules, None), P, rules)[0][0].tolist()

    seconds, counts = _turns(count, clock)
    for x in set(P.elements) - {high for _, high in P.covers}:
        assert counts[P.index(x)] == plain[int(str(x)[1:])], "ours and the plain query count differently"
    return seconds


def _turns(work: Query, clock: Callable[[], float]) -> tuple[float, list[int]]:
    """The better of two turns, and what was counted."""

    def turn() -> tuple[float, list[int]]:
        started = clock()
        counts = work()
        return clock() - started, counts

    return min(turn(), turn())
