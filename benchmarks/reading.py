"""Reading a survey: our counts against the engine's plain query of the same file, in CPU time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.reading.records import RecordRules, RecordSource, count_records

CSV_ROWS, PARQUET_ROWS, FLOAT_ROWS = 2_000_000, 20_000_000, 4_000_000
QUESTIONS = [f"q{i}" for i in range(12)]
P = Poset(QUESTIONS, [("q1", "q0"), ("q2", "q0"), ("q3", "q1"), ("q5", "q4"), ("q6", "q4")])


def run(quick: bool, progress: Progress) -> str:
    share = 20 if quick else 1
    lines = [
        "Twelve questions, answered yes, no or not at all; CPU seconds of the whole process, best of three in turns.",
        "The plain query counts the yeses of each column (of each person, where there is a unit). Ours opens the file, reads",
        "the answers by the declared rule, closes each record upward and counts.",
        "",
        "| file, unit | rows | plain query | ours | ratio |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        cases = [
            ("csv", CSV_ROWS // share, False),
            ("csv", CSV_ROWS // share, True),
            ("parquet", PARQUET_ROWS // share, False),
            ("parquet of floats", FLOAT_ROWS // share, False),
        ]
        for i, (kind, rows, unit) in enumerate(cases):
            progress(i / len(cases), f"{kind}, {rows:,} rows")
            path = str(Path(folder) / f"survey.{kind.partition(' ')[0]}")
            _write(path, kind, rows)
            plain, ours = _measure(path, kind, unit)
            lines.append(
                f"| {kind}, {'person' if unit else 'each row'} | {rows:,} | {plain:.2f} | {ours:.2f} | {ours / plain:.2f}× |"
            )
    progress(1.0, "done")
    return "\n".join(lines)


def _write(path: str, kind: str, rows: int) -> None:
    if kind == "csv":
        value = "CASE hash(i * 31 + {k}) % 5 WHEN 0 THEN 'yes' WHEN 1 THEN '' ELSE 'no' END AS {name}"
    elif kind == "parquet":
        value = "hash(i * 31 + {k}) % 5 = 0 AS {name}"
    else:
        value = "CASE hash(i * 31 + {k}) % 5 WHEN 0 THEN 1.0 WHEN 1 THEN NULL ELSE 0.0 END::DOUBLE AS {name}"
    answers = ", ".join(value.format(k=k, name=name) for k, name in enumerate(QUESTIONS))
    duckdb.sql(
        f"COPY (SELECT i // 2 AS person, {answers} FROM range({rows}) t(i)) TO '{path}' (FORMAT {kind.partition(' ')[0]})"
    )


def _measure(path: str, kind: str, unit: bool) -> tuple[float, float]:
    """CPU seconds of the plain query and of ours; the totals of the topless questions must agree."""
    table, yes = {
        "csv": (f"read_csv('{path}', all_varchar=true)", "{} = 'yes'"),
        "parquet": (f"'{path}'", "{}"),
        "parquet of floats": (f"'{path}'", "{} = 1"),
    }[kind]
    sums = ", ".join(f"count_if({yes.format(name)})" for name in QUESTIONS)
    if unit:
        any_yes = ", ".join(f"bool_or({yes.format(name)}) AS {name}" for name in QUESTIONS)
        table = f"(SELECT person, {any_yes} FROM {table} GROUP BY person)"
        sums = ", ".join(f"count_if({name})" for name in QUESTIONS)
    connection: Any = duckdb.connect()
    source, rules = RecordSource(path), RecordRules(unit="person" if unit else None)

    def plain() -> list[int]:
        return list(connection.execute(f"SELECT {sums} FROM {table}").fetchall()[0])

    def ours() -> list[int]:
        return count_records(source, source.open(P, rules, None), P, rules)[0][0].tolist()

    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(3):
        first, seconds = _cpu(plain)
        times["plain"].append(seconds)
        second, seconds = _cpu(ours)
        times["ours"].append(seconds)
        assert first[7:] == second[7:], "ours and the plain query count differently"
    return min(times["plain"]), min(times["ours"])


def _cpu(work: Callable[[], list[int]]) -> tuple[list[int], float]:
    started = time.process_time()
    return work(), time.process_time() - started
