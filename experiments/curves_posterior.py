"""Curves of means and probabilities: the posterior of two rounds of noisy sums against what else there is.

Every population, number of records and epsilon is a cell. In each cell all methods see the same data sets. Measured are the
root mean squared distances to the isotonic fit of the records and to the true curve, at the records, and the excess squared
and logistic loss on the records. Writes ``cells.csv`` (after every cell; a run that was interrupted goes on with what it finds
there), ``summary.csv``, ``losses.csv`` with all cells that a rival wins beyond chance, ``plan.csv`` with what plans say about the
same cells, ``calibration.csv`` and a picture. Draws are simulated; released ones have the same distribution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _curve_comparisons import MEASURES, OUTPUTS, comparisons, losses, summary
from _curve_populations import HELD_OUT, POINTS, SEED, TUNED, UNIT, Population
from _curve_rivals import RIVALS, before
from common import DATA, read_table, save_figure, write_table
from isotone.curves import PrivateIsotonicRegression
from isotone.curves.bands import PosteriorFit, curve_of
from isotone.curves.circuits import SeededCurveDraws
from isotone.curves.cuts import ChainProblem
from isotone.curves.losses import Squared
from isotone.curves.plan import plan
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.mechanism import Progress
from isotone.order.isotonic import pool_adjacent_violators

Floats = NDArray[np.floating[Any]]
Row = dict[str, Any]
Task = tuple[Population, int, str, int]
"""Population, number of records, epsilon and repetitions."""
EPSILONS = ("1/10", "3/10", "1", "3")
REPETITIONS = {1_000: 20, 300: 20, 5_000: 20, 50_000: 3}
"""Data sets for every cell, by the number of records. Many records are for all but the largest ε, which takes longest."""
MANY = 50_000
NUMBERS = ("epsilon", "fit_ratio_error", *MEASURES, *(f"{measure}_error" for measure in MEASURES))
PLANNED = (300, 1_000, 5_000)
"""Numbers of records at which plans are compared with what was found."""
MARGIN = 0.01
"""Predictions are moved so far from 0 and 1 before their logistic loss is taken."""


def measured(values: Floats, records: Records, fitted: Floats, truth: Floats | None) -> list[float]:
    """The squared distances to fit and truth, and the excess squared and logistic loss, at the records."""
    found, y = values[records.cells], records.levels / FINE

    def loss(p: Floats) -> float:
        p = np.clip(p, MARGIN, 1 - MARGIN)
        return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))

    return [
        float(np.mean((found - fitted) ** 2)),
        float(np.mean((found - truth) ** 2)) if truth is not None else math.nan,
        float(np.mean((found - y) ** 2) - np.mean((fitted - y) ** 2)),
        loss(found) - loss(fitted),
    ]


def isotonic(records: Records) -> Floats:
    """The best increasing fit at the records, without privacy."""
    return pool_adjacent_violators(records.levels / FINE, np.ones(records.levels.size))


def ours(
    records: Records, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> dict[str, Floats]:
    """Both outputs of the mechanism, from the same noisy sums."""
    problem = ChainProblem(Squared(), UNIT, Grid(*UNIT, POINTS), labels=labels)
    built = PosteriorFit.of(problem.sized(n, CurveSetting(epsilon)))
    sums = built.measure(records, SeededCurveDraws(rng))
    found = built.posterior(sums, built.levels)
    every = np.arange(POINTS)
    return {output: curve_of(sums, found, output, built.ends, even=True).at(every) for output in OUTPUTS}


def fits(records: Records, n: int, epsilon: Fraction, labels: bool, seed: list[int]) -> dict[str, Floats]:
    """A value for every point, by method."""
    found = ours(records, n, epsilon, labels, np.random.default_rng([*seed, 0]))
    found["before"] = before(records, POINTS, n, epsilon, labels, np.random.default_rng([*seed, 1]))
    for number, (name, rival) in enumerate(RIVALS.items(), 2):
        found[name] = rival(records, POINTS, n, epsilon, labels, np.random.default_rng([*seed, number]))
    return found


def cell(task: Task, further: Callable[..., dict[str, Floats]] | None = None) -> list[Row]:
    """A row for every method: mean squared measures over the repetitions, and their standard errors. Of ``further`` ones, which give
    a value for each record, only the distance to the fit."""
    population, n, budget, repetitions = task
    found: dict[str, list[list[float]]] = {}
    for repetition in range(repetitions):
        sample = population.sample(n, repetition)
        fitted = isotonic(sample.records)
        seed = [SEED, population.number, n, repetition, EPSILONS.index(budget)]
        given = sample.records, n, Fraction(budget), population.labels, seed
        for name, values in fits(*given).items():
            found.setdefault(name, []).append(measured(values, sample.records, fitted, sample.truth))
        for name, values in (further(*given) if further else {}).items():
            found.setdefault(name, []).append([float(np.mean((values - fitted) ** 2)), *[math.nan] * 3])
    own = np.array(found["records"])[:, 0]
    return [
        {
            "held_out": population in HELD_OUT,
            "population": population.name,
            "n": n,
            "epsilon": float(Fraction(budget)),
            "method": name,
            "repetitions": repetitions,
            **averages(values),
            "fit_ratio_error": paired(np.array(values)[:, 0], own),
        }
        for name, values in found.items()
    ]


def paired(squares: Floats, own: Floats) -> float:
    """The relative standard error of a ratio of root mean squared distances to ours, on the same data sets."""
    apart = 0.5 * (squares / squares.mean() - own / own.mean())
    return float(apart.std(ddof=1) / math.sqrt(len(apart)))


def averages(values: Iterable[list[float]]) -> Row:
    """The mean of every measure, and its standard error."""
    table = np.array(list(values))
    row: Row = {}
    for place, name in enumerate(MEASURES):
        row[name] = float(table[:, place].mean())
        row[f"{name}_error"] = float(table[:, place].std(ddof=1) / math.sqrt(len(table)))
    return row


def calibration(draws: int) -> list[Row]:
    """A real set, 569 scores of a classifier with their labels: the distance to the fit of the records."""
    table = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    x = np.array([float(row["score"]) for row in table])
    y = np.array([float(row["label"]) for row in table])
    levels = Grid(*UNIT, FINE + 1).snap(y)
    records = Records(Grid(*UNIT, POINTS).snap(x), levels, np.ones(x.size, np.int64)).sorted()
    fitted = isotonic(records)
    rows: list[Row] = []
    for place, budget in enumerate(EPSILONS):
        found: dict[str, list[list[float]]] = {}
        for draw in range(draws):
            for name, values in fits(
                records, x.size, Fraction(budget), True, [SEED, 99, place, draw]
            ).items():
                found.setdefault(name, []).append(measured(values, records, fitted, None))
        for name, values in found.items():
            roots = np.sqrt([value[0] for value in values])
            rows.append(
                {
                    "epsilon": float(Fraction(budget)),
                    "method": name,
                    "draws": draws,
                    "rmse_to_fit": float(np.sqrt(np.mean(roots**2))),
                    "standard_error": float(roots.std(ddof=1) / math.sqrt(draws)),
                    "excess_squared": float(np.mean([value[2] for value in values])),
                    "excess_logistic": float(np.mean([value[3] for value in values])),
                }
            )
    return rows


def tasks(quick: bool) -> list[Task]:
    """All cells; the populations to tune with at the first number of records only."""
    if quick:
        return [(population, 300, "1", 2) for population in (TUNED + HELD_OUT)[::5]]
    chosen = [
        *itertools.product(REPETITIONS, HELD_OUT, EPSILONS),
        *itertools.product([next(iter(REPETITIONS))], TUNED, EPSILONS),
    ]
    return [
        (population, n, budget, REPETITIONS[n])
        for n, population, budget in chosen
        if n < MANY or budget != EPSILONS[-1]
    ]


def _model(epsilon: float, labels: bool) -> PrivateIsotonicRegression:
    y = {"y_values": (0, 1)} if labels else {"y_range": (0, 1)}
    return PrivateIsotonicRegression(epsilon, **y, output="records")  # pyright: ignore[reportArgumentType]


def plans(rows: list[Row]) -> list[Row]:
    """What a plan says about the held-out cells of a number of records, an epsilon and a kind of ``y``, and how it turned out."""
    groups: dict[tuple[int, float, bool], list[float]] = {}
    for row in rows:
        if row["held_out"] and row["method"] == "records" and row["n"] in PLANNED:
            key = row["n"], row["epsilon"], row["population"].endswith("labels")
            groups.setdefault(key, []).append(row["squared"])
    table: list[Row] = []
    for (n, epsilon, labels), found in groups.items():
        planned = plan(_model(epsilon, labels), n, labels=labels, methods="auto").rows[0]
        inside = [planned.low <= each <= planned.high for each in found]
        table.append(
            {
                "n": n,
                "epsilon": epsilon,
                "labels": labels,
                "cells": len(found),
                "inside": sum(inside),
                "low": planned.low,
                "typical": planned.excess,
                "high": planned.high,
                "found": float(np.exp(np.mean(np.log(np.maximum(found, 1e-12))))),
            }
        )
    return table


def earlier(out: Path, methods: int) -> dict[tuple[str, int, float, int], list[Row]]:
    """The rows that an interrupted run left, by population, number of records, epsilon and repetitions."""
    found: dict[tuple[str, int, float, int], list[Row]] = {}
    for text in read_table(out / "cells.csv") if (out / "cells.csv").exists() else []:
        row: Row = {
            **{name: float(text[name]) for name in NUMBERS},
            "held_out": text["held_out"] == "True",
            "n": int(text["n"]),
            "repetitions": int(text["repetitions"]),
        }
        row = {name: row.get(name, words) for name, words in text.items()}
        key = row["population"], row["n"], row["epsilon"], row["repetitions"]
        found.setdefault(key, []).append(row)
    return {key: rows for key, rows in found.items() if len(rows) == methods}


def cells(
    out: Path,
    wanted: list[Task],
    progress: Progress,
    make: Callable[[Task], list[Row]] = cell,
    further: int = 0,
) -> list[Row]:
    """The rows of these cells, written after every cell; those that an interrupted run left are not made again."""
    kept, rows = earlier(out, len(RIVALS) + len(OUTPUTS) + 1 + further), list[Row]()
    for done, task in enumerate(wanted, 1):
        population, n, budget, repetitions = task
        rows += kept.get((population.name, n, float(Fraction(budget)), repetitions)) or make(task)
        write_table(out, "cells", columns_of(rows))
        progress(0.9 * done / len(wanted), f"n = {n}, {population.name}, ε = {budget}")
    return rows


def run(out: Path, quick: bool, progress: Progress) -> None:
    rows = cells(out, tasks(quick), progress)
    found = comparisons(rows)
    write_table(out, "summary", columns_of(summary(found)))
    if any(each.held_out and each.surely for each in found):
        write_table(out, "losses", columns_of(losses(found)))
    if not quick:
        write_table(out, "plan", columns_of(plans(rows)))
    progress(0.95, "calibration of a classifier")
    calibrated = calibration(3 if quick else 40)
    write_table(out, "calibration", columns_of(calibrated))
    _picture(out, calibrated)
    progress(1.0, "done")


def few(out: Path) -> None:
    """The first cell of 300 records of a full run."""
    write_table(out, "cells", columns_of(cell(next(task for task in tasks(quick=False) if task[1] == 300))))


def _picture(out: Path, rows: list[Row]) -> None:
    """The distance to the fit of the records by epsilon, for the classifier's scores."""
    figure = Figure(figsize=(5, 3.4))
    axis = figure.subplots()
    for name in ("records", "before", "64 bins", "128 bins", "32 equal counts", "logistic curve"):
        found = [row for row in rows if row["method"] == name]
        axis.loglog(
            [row["epsilon"] for row in found], [row["rmse_to_fit"] for row in found], "o-", label=name
        )
    axis.set_xlabel("ε")
    axis.set_ylabel("root mean squared distance to the fit")
    axis.legend(fontsize=8)
    save_figure(figure, out, "calibration")


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    """Rows as columns, with five digits."""
    return {
        name: [float(f"{row[name]:.5g}") if isinstance(row[name], float) else row[name] for row in rows]
        for name in rows[0]
    }
