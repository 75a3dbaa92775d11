"""Counting a large survey where it is: our closed counts against a plain sum of the same columns."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.reading.records import RecordRules, RecordSource, count_records

GATES = {
    0: (1, 3),
    1: (2,),
    4: tuple(range(5, 11)),
    11: (12, 13, 14),
}  # the 15 questions of the health survey


def run(quick: bool, progress: Progress) -> str:
    rows = 1_000_000 if quick else 100_000_000
    names = [f"q{i}" for i in range(15)]
    P = Poset(names, [(f"q{low}", f"q{high}") for high, lows in GATES.items() for low in lows])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "survey.parquet")
        progress(0.05, f"making {rows:,} rows")
        answers = ", ".join(f"hash(i * 31 + {k}) % 3 = 0 AS {name}" for k, name in enumerate(names))
        duckdb.sql(f"COPY (SELECT {answers} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")
        source, rules = RecordSource(path), RecordRules()
        plain_sum = "SELECT " + ", ".join(f"sum({name}::INT)" for name in names) + f" FROM '{path}'"

        def ours() -> Any:
            return count_records(source, source.open(P, rules, None), P, rules)[0][0]

        connection: Any = duckdb.connect()

        def plain() -> Any:
            return connection.execute(plain_sum).fetchall()

        times: dict[str, list[float]] = {"ours": [], "plain": []}
        for turn in range(3):
            progress(0.3 + 0.2 * turn, "counting, in turns")
            times["plain"].append(_seconds(plain))
            times["ours"].append(_seconds(ours))
        size = Path(path).stat().st_size / 2**20
    best = {name: min(found) for name, found in times.items()}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    progress(1.0, "done")
    return (
        f"{rows:,} rows × {len(names)} yes/no questions in one Parquet file of {size:,.0f} MB; no unit column; best of three.\n\n"
        "| | seconds | rows a second | speed against the plain sum |\n|---|---|---|---|\n"
        f"| DuckDB, plain sum of the columns | {best['plain']:.2f} | {rows / best['plain']:,.0f} | 1 |\n"
        f"| isotone, each record closed upward, then counted | {best['ours']:.2f} | {rows / best['ours']:,.0f} "
        f"| {best['plain'] / best['ours']:.2f} |\n\nPeak memory of the whole run: {memory:.1f} GB."
    )


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
