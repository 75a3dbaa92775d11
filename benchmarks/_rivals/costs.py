"""What a release costs to run: start, time, memory and installation, isotone's and those of other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from experiments.common import DATA, read_table

from benchmarks._rivals.about import pinned
from benchmarks._rivals.environments import OWN, environment, run_arrays
from benchmarks._rivals.orders import survey
from benchmarks._rivals.rows import Row
from benchmarks.installation import closure, requirements, size
from isotone.mechanism import Progress

__all__ = ["TITLE", "rows", "section"]

TITLE = "What it costs to run"
EPSILON, DELTA, UPPER = 1.0, 1e-6, 50
MEASURES = {
    "first": "CPU seconds from the start to the first release",
    "seconds": "CPU ms of a further release",
    "memory": "peak memory, MB",
}
PACKAGES = {"OpenDP": "opendp", "diffprivlib": "diffprivlib", "PipelineDP": "pipeline-dp", "InterpretML": "interpret-core"}  # fmt: skip
WHOLE = "isotone, a frame and a ledger"
OURS = ("isotone", WHOLE)
SIZE = "installed files with all that they need, MB"


@dataclass(frozen=True)
class Case:
    """One data set, and by library which way releases it and how often."""

    name: str
    data: Mapping[str, Any]
    ways: Mapping[str, tuple[str, int]]


def cases() -> list[Case]:
    """A survey, a table and a curve, in memory as arrays."""
    P, answers = survey()
    covers = np.array([(P.index(low), P.index(high)) for low, high in P.covers])
    homicides = read_table(DATA / "us_counties_homicides.csv")
    scores = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    return [
        Case(
            "health survey, 11 questions, 29,482 people",
            {"answers": answers, "covers": covers, "largest": len(P)},
            {"isotone": ("counts", 50), WHOLE: ("counts_charged", 20), "OpenDP": ("opendp_laplace", 50), "diffprivlib": ("diffprivlib_geometric", 50), "PipelineDP": ("pipeline_laplace", 3)},
        ),
        Case(
            "homicides in 3,136 counties",
            {"counts": np.array([int(row["homicides"]) for row in homicides]), "upper": UPPER},
            {"isotone": ("table", 20), WHOLE: ("table_charged", 20), "OpenDP": ("opendp_table", 20), "diffprivlib": ("diffprivlib_table", 20), "PipelineDP": ("pipeline_table", 3)},
        ),
        Case(
            "569 scores of a classifier",
            {name: np.array([float(row[column]) for row in scores]) for name, column in (("x", "score"), ("y", "label"))},
            {"isotone": ("curve", 20), WHOLE: ("curve_charged", 20), "OpenDP": ("opendp_curve", 20), "diffprivlib": ("diffprivlib_curve", 20), "PipelineDP": ("pipeline_curve", 5), "InterpretML": ("interpret_curve", 2)},
        ),
    ]  # fmt: skip


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Each library releases each case in a process of its own; then the sizes of installations."""
    todo = cases()[-1:] if quick else cases()
    for done, case in enumerate(todo):
        for library, (way, draws) in case.ways.items():
            progress(done / len(todo), f"{case.name}: {library}")
            place, module = (OWN, "own_ways") if library in OURS else ("libraries", "library_ways")
            data = {"epsilon": EPSILON, "delta": DELTA, **case.data}
            found = run_arrays(place, f"benchmarks._rivals.{module}", data, way, str(draws))
            if found is None:
                continue  # not to be had here
            version = "" if library in OURS else pinned(PACKAGES[library])
            for key, measure in MEASURES.items():
                value = float(found[key]) * (1e3 if key == "seconds" else 1)
                how = f"{way}, {draws} releases"
                yield Row("costs", case.name, "ε = 1", measure, False, library, value, how=how, version=version)  # fmt: skip
    for library, value in _sizes().items():
        yield Row("costs", "installation", "", SIZE, False, library, value)


def _sizes() -> dict[str, float]:
    """MB that are installed with isotone alone, with its compiler, and with each of the others."""
    base, extras = requirements()
    found = {"isotone": _megabytes(base), "isotone[fast]": _megabytes([*base, *extras["fast"]])}
    python = environment("libraries")
    if python is None:
        return found
    place = next(Path(python).parent.parent.glob("lib/python*/site-packages"))
    return found | {name: _megabytes([package], place) for name, package in PACKAGES.items()}


def _megabytes(wanted: Sequence[str], place: Path | None = None) -> float:
    return size(closure(wanted, place).values()) / 1e6


def section(stored: Sequence[Row]) -> str:
    """The table of the page: values, and ratios to isotone's."""
    names = list(dict.fromkeys(row.rival for row in stored))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for (case, _, measure), group in groupby(sorted(stored, key=_place(stored)), key=lambda row: row.key):
        value = {row.rival: row.public for row in group}
        cells = [_cell(value[name], value["isotone"]) if name in value else "" for name in names]
        lines.append(f"| {case}: {measure} | " + " | ".join(cells) + " |")
    return f"## {TITLE}\n\n{_ABOUT}\n\n" + "\n".join(lines)


def _place(stored: Sequence[Row]) -> Any:
    keys = list(dict.fromkeys(row.key for row in stored))
    return lambda row: keys.index(row.key)


def _cell(value: float, ours: float) -> str:
    return f"{_short(value)} (**{_short(value / ours)} ×**)" if value != ours else _short(value)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


_ABOUT = (
    "`python -m benchmarks._rivals costs`\n\n"
    "Each library releases the same arrays with Laplace noise or what it has for the case, in a process of its own, whose processor time and peak memory "
    "include its imports; compiled code is cached. In brackets multiples of isotone's. From the survey's answers OpenDP and diffprivlib are given sums; "
    "isotone closes every record upward first. Its second column is the whole call that a user makes, `release` of a description with an Arrow table and a "
    "ledger on disk, where the first is the mechanism alone; the others have no ledger, and their columns are their mechanisms alone, but that PipelineDP counts rows by itself. A curve is isotone's, a histogram of 10 bins (OpenDP), 10 means (PipelineDP), a logistic regression (diffprivlib) or private "
    "boosting (InterpretML). When this was run Python kept no byte code of isotone and what it requires, so that each start compiled it again; with byte code the three starts had "
    "taken 1.4, 2.2 and 1.1 seconds in the run before. Sizes are those of installed files without byte code. More about [the start of a first session](start.md) and "
    "[the size of an installation](installation.md)."
)
