"""Breakdowns with margins: errors of the best shares with least squares against what a user would do otherwise."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from experiments._posets import survey_sections

import isotone as iso
from isotone.counts import LaplaceMechanism, MarginsMechanism, OrderGaussianMechanism, PosetMechanism
from isotone.counts.breakdown import Breakdown, read_breakdown
from isotone.counts.mechanism import AdditiveMechanism
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.release import load_release, pipeline
from isotone.release.kinds.breakdown.query import BreakdownQuery
from isotone.release.result import Release

MARGINS = ["", "region", "sex", "age", ("region", "sex"), "*"]
ATTRIBUTES = ["region", "sex", "age"]


def run(quick: bool, progress: Progress) -> str:
    """Exact errors of the survey of 15 questions by 51 regions, 2 sexes and 6 ages, and the time of large tables."""
    P, breakdown = survey_sections(3), survey(51, 2, 6)
    pure, gaussian = PosetMechanism(P, 1), OrderGaussianMechanism(P, rho="1/2")
    rows = [
        f"| rms error by margin | {' | '.join(map(breakdown.label, breakdown.margins))} | all margins |",
        "|---|" + "---|" * (len(MARGINS) + 1),
    ]
    for number, (name, base) in enumerate((("ε = 1", pure), ("ρ = ½", gaussian))):
        progress(number / 3, name)
        rows += [
            _row(f"{name}: full table only, added up", _only(base, breakdown)),
            _row(f"{name}: equal shares, no least squares", _alone(base, len(MARGINS))),
            _row(f"{name}: equal shares, least squares", _equal(base, breakdown)),
            _row(f"**{name}: best shares, least squares**", _errors(MarginsMechanism(base, breakdown))),
        ]
    laplace = LaplaceMechanism(P, 1)
    rows.append(_row("ε = 1: Laplace, equal shares, no least squares", _alone(laplace, len(MARGINS))))
    rows.append(
        _row("ε = 1: Laplace, best shares, least squares", _errors(MarginsMechanism(laplace, breakdown)))
    )
    progress(2 / 3, "large tables")
    times = ["| cells of the full table | questions | plan | noise and least squares |", "|---|---|---|---|"]
    times += [
        _time(P, survey(regions, 2, ages)) for regions, ages in ((51, 6), *([] if quick else [(500, 100)]))
    ]
    whole = [
        "| cells of the full table | questions | rows of data | rehearsal | read | noise | seal | files | report | read back | all | most memory |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    whole += [_whole(regions, ages) for regions, ages in ((51, 6), *([] if quick else [(500, 100)]))]
    progress(1.0, "done")
    return "\n".join([*rows, "", *times, "", *whole]) + "\n\n" + _NOTES


def survey(regions: int, sexes: int, ages: int) -> Breakdown:
    """A breakdown by region, sex and age."""
    sizes = dict(zip(ATTRIBUTES, (regions, sexes, ages), strict=True))
    return read_breakdown(ATTRIBUTES, {a: [str(i) for i in range(n)] for a, n in sizes.items()}, MARGINS)


def _errors(mechanism: MarginsMechanism) -> list[float]:
    return mechanism.mean_variances().tolist()


def _only(base: AdditiveMechanism, breakdown: Breakdown) -> list[float]:
    shares = [Fraction(int(margin == breakdown.finest)) for margin in breakdown.margins]
    return _errors(MarginsMechanism(base, breakdown, shares=shares))


def _equal(base: AdditiveMechanism, breakdown: Breakdown) -> list[float]:
    number = len(breakdown.margins)
    return _errors(MarginsMechanism(base, breakdown, shares=[Fraction(1, number)] * number))


def _alone(base: AdditiveMechanism, number: int) -> list[float]:
    """Every margin by itself, with its part of the budget."""
    part = base.part(Fraction(1, number))
    return [float((part.error().variance + part.rounding_variance()).mean())] * number


def _row(name: str, variances: list[float]) -> str:
    each = " | ".join(f"{math.sqrt(variance):.2f}" for variance in variances)
    return f"| {name} | {each} | {math.sqrt(math.fsum(variances) / len(variances)):.2f} |"


def _time(P: Poset, breakdown: Breakdown) -> str:
    counts = np.zeros((breakdown.cells, len(P)), np.int64)
    started = time.process_time()
    mechanism = MarginsMechanism(PosetMechanism(P, 1), breakdown)
    planned = time.process_time()
    mechanism.release(counts)
    released = time.process_time()
    return f"| {breakdown.cells:,} | {len(P)} | {planned - started:.2f} s | {released - planned:.2f} s |"


def _whole(regions: int, ages: int) -> str:
    """A whole release in a process of its own, so that its memory is known."""
    code = f"from benchmarks.breakdowns import whole_release; whole_release({regions}, {ages})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1]


def whole_release(regions: int, ages: int, rows: int = 100_000) -> None:
    """Release the survey from a table, with its rehearsal, files and report, and print how long each step took."""
    P, rng = survey_sections(3), np.random.default_rng(1)
    sizes = dict(zip(ATTRIBUTES, (regions, 2, ages), strict=True))
    lists = {name: [str(i) for i in range(size)] for name, size in sizes.items()}
    table: dict[str, Any] = {str(x): rng.random(rows) < 0.3 for x in P.elements}
    table |= {name: rng.integers(0, size, rows).astype(str) for name, size in sizes.items()}
    spent: dict[str, float] = dict.fromkeys(
        ("rehearsal", "read", "draw", "publish", "save", "save_report"), 0.0
    )

    def timed(owner: Any, name: str) -> None:
        step, key = getattr(owner, name), "rehearsal" if name == "rehearse" else name

        def run_step(*given: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return step(*given, **options)
            finally:
                spent[key] = time.process_time() - started  # the last one: those of a rehearsal come first

        setattr(owner, name, run_step)

    for owner, names in (
        (pipeline, ["rehearse"]),
        (BreakdownQuery, ["read", "draw", "publish"]),
        (Release, ["save", "save_report"]),
    ):
        for name in names:
            timed(owner, name)
    with tempfile.TemporaryDirectory() as folder, iso.Ledger(f"{folder}/ledger", epsilon=1) as ledger:
        data = pa.table(table)
        started = time.process_time()
        out = f"{folder}/out"
        asked: dict[str, Any] = {"by": ATTRIBUTES, "groups": lists, "margins": MARGINS}
        iso.release_counts(data, P, epsilon=1, ledger=ledger, folder=out, **asked)
        done = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        load_release(out)
        read = time.process_time() - done
    steps = " | ".join(f"{seconds:.1f} s" for seconds in (*spent.values(), read, done - started))
    print(f"| {regions * 2 * ages:,} | {len(P)} | {rows:,} | {steps} | {memory:,.0f} MB |")


_NOTES = (
    "Errors are exact (`MarginsMechanism.error()`), with the rounding of every measured number: the root of the mean variance over "
    "cells and questions of a margin, and of its mean over the six margins, all alike. The survey has the 15 questions of Joseph, "
    "Ribero and Yu. Times are CPU times. In the last table a table in memory is released "
    "into a folder: the rehearsal with all that is loaded once, then what follows the charge; all is the whole of `release_counts`, and "
    "reading back that of the reader who loads the folder."
)
