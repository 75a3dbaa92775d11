"""How counting grows with the rows: slopes measured, and by calculation what more would need."""

from __future__ import annotations

import math
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks._spark import cpu_of, open_session
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.reading.records import RecordRules, RecordSource, count_records

QUESTIONS = [f"q{i}" for i in range(6)]
P = Poset(QUESTIONS, [("q1", "q0"), ("q2", "q1"), ("q4", "q3"), ("q5", "q3")])
PART = 10_000_000
UNIT, DIFFERENT = "person", 10
EXECUTORS = 2
MASTER = f"local-cluster[{EXECUTORS},1,1024]"
BEYOND = (10**10, 10**11, 10**12)
AN_HOUR = 3600


def run(quick: bool, progress: Progress) -> str:
    part = 100_000 if quick else PART
    sizes = (part // 10, part, 10 * part, 100 * part)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for unit in (None, UNIT):
            _duckdb(_written(folder, 1000, part), 1000, unit)  # imports, and the engine's start
        progress(0.1, "each row a unit")
        each = [_duckdb(_written(folder, rows, part), rows, None) for rows in sizes]
        progress(0.4, "several rows a unit")
        unit = [_duckdb(_written(folder, rows, part), rows, UNIT) for rows in sizes[:3]]
        progress(0.7, "Spark")
        spark = [] if quick else _spark([(_written(folder, rows, part), rows) for rows in sizes[:3]])
    progress(1.0, "done")
    lines = [
        f"Six yes/no questions and a person in Parquet files of at most {part:,} rows, read where they are by DuckDB, out of core; records are closed upward and counted. Beyond",
        f"{_power(DIFFERENT * part)} rows files are copies. A person has two rows. CPU seconds of the process, one run each; the slope is the logarithm of the ratio of",
        "two times by that of their rows, and 1 means in proportion.",
        "",
        "| rows | unit | CPU seconds | slope | nanoseconds a row | peak memory so far, GB |",
        "|---|---|---|---|---|---|",
        *_rows(each, "each row"),
        *_rows(unit, "person"),
        "",
        "## Spark with several executors",
        "",
        f"The same files and rows as units, counted by Spark with {EXECUTORS} executors of one core, each a process of its own on this machine (`{MASTER}`). CPU seconds are those of the driver and of all",
        "executors, after a first query. The seconds that pass are those of a machine with two cores on which other work ran.",
        "",
        "| rows | CPU seconds | slope | nanoseconds a row | seconds |",
        "|---|---|---|---|---|",
        *(_spark_rows(spark) or ["| no Spark here | | | | |"]),
        "",
        "## By calculation",
        "",
        "From the time for each row at the largest size above, for one core and for an hour. Nothing here was measured. A release reads its data once; planning, noise and the report do not depend",
        "on the number of rows. A cluster runs the same query ([how to](../how-to/warehouses.md)): it needs the cores below, an executor for each with a gigabyte of memory as above, and Parquet files in at least",
        "as many parts as cores in a store that all of them read. Its start and the network come on top. With a column of units each row is moved to the executor of its unit once.",
        "",
        "| rows | core hours, each row a unit | cores for an hour | core hours, with a unit column | core hours on Spark, each row a unit |",
        "|---|---|---|---|---|",
    ]
    for rows in BEYOND:
        hours = [
            found[-1][1] / found[-1][0] * rows / AN_HOUR if found else None for found in (each, unit, spark)
        ]
        alone, units, cluster = ("" if value is None else _hours(value) for value in hours)
        cores = math.ceil(hours[0] or 0)
        lines.append(f"| {_power(rows)} | {alone} | {cores:,} | {units} | {cluster} |")
    return "\n".join(lines)


def _written(folder: Path, rows: int, part: int) -> str:
    """Where so many rows are, two for each person; after ten files come copies of them."""
    here = folder / f"{rows}"
    if not here.exists():
        here.mkdir()
        answers = ", ".join(f"hash(i * 31 + {k}) % 3 = 0 AS {name}" for k, name in enumerate(QUESTIONS))
        for number in range(max(1, rows // part)):
            file, first = here / f"part-{number}.parquet", number * part
            if number < DIFFERENT:
                made = (
                    f"SELECT i // 2 AS {UNIT}, {answers} FROM range({first}, {first + min(rows, part)}) t(i)"
                )
                duckdb.sql(f"COPY ({made}) TO '{file}' (FORMAT parquet)")
            else:
                shutil.copyfile(here / f"part-{number % DIFFERENT}.parquet", file)
    return str(here / "part-*.parquet")


def _counted(data: Any, unit: str | None) -> int:
    """Count where the data is, and say how many records there were."""
    source, rules = RecordSource(data), RecordRules(unit=unit)
    return int(count_records(source, source.open(P, rules, None), P, rules)[1][0])


def _duckdb(files: str, rows: int, unit: str | None) -> tuple[int, float, float]:
    """Rows, CPU seconds, and the peak memory of the process so far."""
    start = time.process_time()
    records = _counted(files, unit)
    seconds = time.process_time() - start
    assert records == (rows // 2 if unit else rows), records
    return rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _spark(files: list[tuple[str, int]]) -> list[tuple[int, float, float]]:
    """Rows, CPU seconds of all processes, and seconds that passed; nothing where there is no Spark."""
    session = open_session(MASTER, **{"spark.executor.memory": "900m"})
    if session is None:
        return []
    found: list[tuple[int, float, float]] = []
    _counted(session.read.parquet(files[0][0]), None)
    for path, rows in files:
        frame = session.read.parquet(path)
        cpu, start = cpu_of(session), time.monotonic()
        records = _counted(frame, None)
        found.append((rows, cpu_of(session) - cpu, time.monotonic() - start))
        assert records == rows, (records, rows)
    session.stop()
    return found


def _spark_rows(found: list[tuple[int, float, float]]) -> list[str]:
    """The same rows without a unit and with seconds in place of memory."""
    return [
        line.replace("|  |", "|", 1).rsplit("|", 2)[0] + f"| {seconds:.0f} |"
        for line, (_, _, seconds) in zip(_rows(found, ""), found, strict=True)
    ]


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
