"""How counting grows with the rows: slopes measured, and by calculation what more would need."""

from __future__ import annotations

import math
import resource
import shutil
import tempfile
import time
from pathlib import Path

import duckdb

from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.reading.records import RecordRules, RecordSource, count_records

QUESTIONS = [f"q{i}" for i in range(6)]
P = Poset(QUESTIONS, [("q1", "q0"), ("q2", "q1"), ("q4", "q3"), ("q5", "q3")])
PART = 10_000_000
BEYOND = (10**10, 10**11, 10**12)
AN_HOUR = 3600


def run(quick: bool, progress: Progress) -> str:
    part = 100_000 if quick else PART
    with tempfile.TemporaryDirectory() as folder:
        for unit_column in (None, "person"):
            _measured(Path(folder), 1000, part, unit_column, progress)  # imports, and the engine's start
        each = [
            _measured(Path(folder), rows, part, None, progress)
            for rows in (part // 10, part, 10 * part, 100 * part)
        ]
        unit = [_measured(Path(folder), rows, part, "person", progress) for rows in (part // 10, part)]
    progress(1.0, "done")
    lines = [
        f"Six yes/no questions in Parquet files of at most {part:,} rows, read where they are by DuckDB, out of core; records are closed upward and counted. More rows than that are",
        "several copies of one file. CPU seconds of the process, one run each; the slope is the logarithm of the ratio of",
        "two times by that of their rows, and 1 means in proportion.",
        "",
        "| rows | unit | CPU seconds | slope | nanoseconds a row | peak memory so far, GB |",
        "|---|---|---|---|---|---|",
        *_rows(each, "each row"),
        *_rows(unit, "person, two rows each"),
        "",
        "## By calculation",
        "",
        "From the time for each row at the largest size above, for one core and for an hour. Nothing here was measured. A release reads its data once; planning, noise and the report do not depend",
        "on the number of rows. Engines that spread the work, such as Spark, do it with the same query ([how to](../how-to/warehouses.md)); their start and the network come on top. Several executors",
        "were not measured here: this machine has two cores.",
        "",
        "| rows | core hours, each row a unit | cores for an hour | core hours, with a unit column |",
        "|---|---|---|---|",
    ]
    for rows in BEYOND:
        alone, units = (seconds / size * rows / AN_HOUR for size, seconds, _ in (each[-1], unit[-1]))
        lines.append(f"| {_power(rows)} | {_hours(alone)} | {math.ceil(alone):,} | {_hours(units)} |")
    return "\n".join(lines)


def _measured(
    folder: Path, rows: int, part: int, unit: str | None, progress: Progress
) -> tuple[int, float, float]:
    """Rows, CPU seconds, and the peak memory of the process so far."""
    progress(0.5, f"{rows:,} rows, {unit or 'each row'}")
    here = folder / f"{rows}-{unit}"
    here.mkdir()
    first = here / "part-0.parquet"
    answers = ", ".join(f"hash(i * 31 + {k}) % 3 = 0 AS {name}" for k, name in enumerate(QUESTIONS))
    person = "i // 2 AS person, " if unit else ""
    written = min(rows, part)
    duckdb.sql(f"COPY (SELECT {person}{answers} FROM range({written}) t(i)) TO '{first}' (FORMAT parquet)")
    for number in range(1, rows // written):
        shutil.copyfile(first, here / f"part-{number}.parquet")
    source, rules = RecordSource(str(here / "part-*.parquet")), RecordRules(unit=unit)
    start = time.process_time()
    _, records = count_records(source, source.open(P, rules, None), P, rules)
    seconds = time.process_time() - start
    expected = rows // 2 if unit else rows
    assert int(records[0]) == expected, (records, expected)
    return rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _rows(found: list[tuple[int, float, float]], unit: str) -> list[str]:
    lines: list[str] = []
    for at, (rows, seconds, memory) in enumerate(found):
        slope = ""
        if at:
            before = found[at - 1]
            slope = f"{math.log(seconds / before[1]) / math.log(rows / before[0]):.2f}"
        lines.append(
            f"| {_power(rows)} | {unit} | {seconds:.2f} | {slope} | {1e9 * seconds / rows:.0f} | {memory:.2f} |"
        )
    return lines


def _power(rows: int) -> str:
    return f"10{str(round(math.log10(rows))).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
