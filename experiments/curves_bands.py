"""How often the bands of a curve cover what they are for, and how wide they are.

Twelve populations, among them crowded ``x``, heaped ``x``, rare labels and real ``y``. In every run a data set is drawn, and both rounds of noisy sums;
a band is right if it covers at all points at once. Writes ``coverage.csv`` and a picture. Draws are simulated; released ones
have the same distribution. A run that was interrupted goes on where it stopped, if its table is still in the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _curve_populations import HELD_OUT, POINTS, SEED, TUNED, UNIT, Population
from common import read_table, save_figure, write_table
from isotone.curves.bands import KINDS, MeasuredSums, PosteriorFit
from isotone.curves.circuits import SeededCurveDraws
from isotone.curves.cuts import ChainProblem
from isotone.curves.losses import Squared
from isotone.curves.posterior import NoisySums, pooled
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.mechanism import Progress

Floats = NDArray[np.float64]
Row = dict[str, Any]
CONFIDENCE = 0.95
RUNS = {50_000: (4, 1), 300: (600, 20), 1_000: (400, 100)}
"""Runs of every population by the number of records, and in how many of them the credible band is made too."""

CHOSEN = (
    *(TUNED[at] for at in (0, 2, 4, 5, 6, 7)),
    *(HELD_OUT[at] for at in (3, 4, 5, 6, 9, 10)),
)


@dataclass(frozen=True)
class Task:
    """So many runs of one cell; the credible band, which is slow, for the first ``credible`` of them."""

    population: Population
    n: int
    epsilon: str
    runs: int
    credible: int


def fit_in_bins(records: Records, sums: NoisySums) -> Floats:
    """The isotonic fit to the exact sums of the bins at every point; nan in bins without records."""
    bins, size = records.bins(sums.starts), sums.starts.size
    count = np.bincount(bins, minlength=size).astype(np.float64)
    ones = np.bincount(bins, weights=records.levels / FINE, minlength=size)
    some = count > 0
    fit = np.full(size, np.nan)
    fit[some] = pooled(ones[some] / count[some], count[some])
    return np.repeat(fit, np.diff(np.r_[sums.starts, POINTS]))


def measured(
    population: Population, n: int, epsilon: str, repetition: int
) -> tuple[Records, MeasuredSums, Floats]:
    """A data set, the sums that the mechanism measures, and the true curve."""
    records = population.sample(n, repetition).records
    problem = ChainProblem(Squared(), UNIT, Grid(*UNIT, POINTS), labels=population.labels)
    built = PosteriorFit.of(problem.sized(n, CurveSetting(Fraction(epsilon))))
    rng = np.random.default_rng([SEED, 7, n, repetition])
    sums = built.measure(records, SeededCurveDraws(rng))
    truth = population.means(n, repetition)
    return records, MeasuredSums(sums, True, population.labels, built.levels), truth


def cell(task: Task) -> list[Row]:
    """A row for every kind of band."""
    every = np.arange(POINTS)
    found: dict[str, list[tuple[bool, float, float]]] = {kind: [] for kind in KINDS}
    for run in range(task.runs):
        records, seen, truth = measured(task.population, task.n, task.epsilon, run)
        fit = fit_in_bins(records, seen.sums)
        for kind in KINDS:
            if kind == "credible" and run >= task.credible:
                continue
            low, high = seen.band(CONFIDENCE, kind).at(every)
            wanted = fit if kind == "records" else truth
            with np.errstate(invalid="ignore"):
                missed = (wanted < low) | (wanted > high)
            inside = ~missed[~np.isnan(wanted)]
            found[kind].append((bool(inside.all()), float(inside.mean()), float(np.mean(high - low))))
    return [_row(task, kind, np.array(runs, np.float64)) for kind, runs in found.items() if runs]


def _row(task: Task, kind: str, runs: Floats) -> Row:
    covered = int(runs[:, 0].sum())
    return {
        "population": task.population.name,
        "n": task.n,
        "epsilon": float(Fraction(task.epsilon)),
        "kind": kind,
        "runs": len(runs),
        "all_points_covered": covered,
        "upper_limit": upper_limit(covered, len(runs)),
        "points_covered": float(runs[:, 1].mean()),
        "width": float(runs[:, 2].mean()),
    }


def upper_limit(covered: int, runs: int) -> float:
    """The largest coverage that is not refuted at 99.9 % by so many covered runs."""
    from scipy.special import betaincinv

    return 1.0 if covered == runs else float(betaincinv(covered + 1, runs - covered, 0.999))


def tasks(quick: bool) -> Iterator[Task]:
    """All cells."""
    if quick:
        yield from (Task(population, 300, "1", 2, 1) for population in CHOSEN[::4])
        return
    for n, (runs, credible) in RUNS.items():
        yield from (Task(population, n, "1", runs, credible) for population in reversed(CHOSEN))


def run(out: Path, quick: bool, progress: Progress) -> None:
    wanted = list(tasks(quick))
    found = earlier(out)
    for done, task in enumerate(wanted, 1):
        if task not in found:
            found[task] = cell(task)
            _write(out, [row for each in wanted for row in found.get(each, [])])  # what is done is kept
        progress(0.95 * done / len(wanted), f"n = {task.n}, {task.population.name}")
    _picture(out, quick)
    progress(1.0, "done")


def few(out: Path) -> None:
    """The first cell of a full run."""
    _write(out, cell(next(tasks(quick=False))))


def earlier(out: Path) -> dict[Task, list[Row]]:
    """The rows that an interrupted run left."""
    table = read_table(out / "coverage.csv") if (out / "coverage.csv").exists() else []
    whole, real = ("n", "runs", "all_points_covered"), ("epsilon", "upper_limit", "points_covered", "width")
    found: dict[Task, list[Row]] = {}
    for task in tasks(quick=False):
        rows = [row for row in table if row["population"] == task.population.name and row["n"] == str(task.n)]
        runs = {row["kind"]: int(row["runs"]) for row in rows}
        if runs == {kind: task.credible if kind == "credible" else task.runs for kind in KINDS}:
            found[task] = [
                {
                    **row,
                    **{name: int(row[name]) for name in whole},
                    **{name: float(row[name]) for name in real},
                }
                for row in rows
            ]
    return found


def _write(out: Path, rows: list[Row]) -> None:
    columns = {
        name: [float(f"{row[name]:.5g}") if isinstance(row[name], float) else row[name] for row in rows]
        for name in rows[0]
    }
    write_table(out, "coverage", columns)


def _picture(out: Path, quick: bool) -> None:
    """The three bands around two curves, at two sizes."""
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    panels = [
        (CHOSEN[0], 1_000),
        (CHOSEN[0], 300 if quick else 50_000),
        (CHOSEN[3], 1_000),
        (CHOSEN[5], 1_000),
    ]
    x = Grid(*UNIT, POINTS).positions(np.arange(POINTS))
    for axis, (population, n) in zip(
        figure.subplots(2, 2, sharex=True, sharey=True).flat, panels, strict=True
    ):
        _, seen, truth = measured(population, n, "1", 0)
        for kind, colour in zip(KINDS, ("#c6d8e8", "#86acd0", "#35618e"), strict=True):
            low, high = seen.band(CONFIDENCE, kind).at(np.arange(POINTS))
            axis.fill_between(x, low, high, color=colour, linewidth=0, label=kind)
        axis.plot(x, truth, color="black", linewidth=1.2, linestyle="dashed", label="truth")
        axis.set_title(f"{population.name}, n = {n:,}", fontsize=9)
        axis.set_ylim(0, 1)
    figure.axes[0].legend(fontsize=8, loc="upper left")
    save_figure(figure, out, "bands")
