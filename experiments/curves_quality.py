"""Excess risk of every method of private isotonic regression, over sizes, budgets, curves, designs and losses.

Writes ``cells.csv`` (synthetic data), ``goals.csv`` (how often the stated goals are reached), ``others.csv`` and
``others_goals.csv`` (the same on curves and designs that no constant was chosen with), ``plans.csv`` (what the plan predicts
and what was measured), ``calibration.csv`` (a real set) and pictures. Excess is over the best curve without privacy
on the same records, whose own risk is in the column ``optimum``. Simulated draws; released ones have the same distribution.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from common import DATA, read_table, save_figure, write_table
from isotone.curves import plan
from isotone.curves.chain.choosing import mechanism_for, rule_for
from isotone.curves.chain.problem import TREE_POINTS, ChainProblem
from isotone.curves.curve import CurveMechanism
from isotone.curves.grids import FINE, Grid
from isotone.curves.losses.known_losses import parse_loss
from isotone.curves.records import Records
from isotone.curves.reference import CURVES, DESIGNS, Reference, least_risk, risk
from isotone.curves.setting import CurveSetting
from isotone.mechanism import Progress

UNIT = (Fraction(0), Fraction(1))
METHODS = ("auto", "threshold", "baseline", "bins")
COLOURS = {"auto": "C0", "threshold": "C3", "baseline": "C2", "bins": "C1"}
BASELINE_POINTS = 256
KINDS: dict[bool, tuple[str, ...]] = {
    True: ("squared", "logistic"),
    False: ("squared", "absolute", "huber", "pinball(0.9)"),
}
"""Losses for labels (y is 0 or 1), and for values (y is the curve with noise)."""
BUDGETS = ("1/10", "1", "5")
REPETITIONS = {100: 240, 1_000: 60, 10_000: 20, 100_000: 6}
Row = dict[str, Any]
Floats = NDArray[np.floating[Any]]


OTHER_CURVES: dict[str, Callable[[Floats], Floats]] = {
    "two steps": lambda u: 0.1 + 0.35 * (u > 0.28) + 0.45 * (u > 0.71),
    "square": lambda u: u**2,
    "hinge": lambda u: np.maximum(0.15, 1.7 * u - 0.8).clip(0, 1),
}
OTHER_DESIGNS: dict[str, Callable[[Floats], Floats]] = {
    "crowded above": lambda u: 1 - (1 - u) ** 4,
    "two crowds": lambda u: np.where(u < 0.5, 0.1 + 0.2 * u, 0.6 + 0.6 * (u - 0.5)),
}


@dataclass(frozen=True)
class Other:
    """A population that no rule or constant of the mechanisms was chosen with; values have noise of another law."""

    curve: str
    design: str
    labels: bool

    def sample(self, n: int, points: int, rng: np.random.Generator) -> Records:
        """``n`` records on grids of the unit square."""
        u = rng.random(n)
        truth = OTHER_CURVES[self.curve](u)
        noisy = truth + np.where(rng.random(n) < 0.9, rng.laplace(0, 0.05, n), rng.laplace(0, 0.3, n))
        y = (rng.random(n) < truth) * 1.0 if self.labels else np.clip(noisy, 0, 1)
        x = Grid(*UNIT, points).snap(np.asarray(OTHER_DESIGNS[self.design](u), np.float64))
        levels = Grid(*UNIT, FINE + 1).snap(np.asarray(y, np.float64))
        return Records(x, levels, np.ones(n, np.int64)).sorted()


Task = tuple[Reference | Other, int, int]
"""A population, how many records, how many repetitions."""


def points_of(method: str) -> int:
    return BASELINE_POINTS if method == "baseline" else TREE_POINTS


def blueprint(method: str, loss: str, labels: bool = False) -> ChainProblem:
    grid = Grid(*UNIT, points_of(method))
    return ChainProblem(parse_loss(loss), UNIT, grid, method=method, labels=labels, output="records")


@dataclass(frozen=True)
class Sample:
    """One data set on the grids of the methods, and the seed it came from."""

    population: Reference | Other
    n: int
    repetition: int

    def on(self, points: int) -> Records:
        return self.population.sample(self.n, points, np.random.default_rng([self.repetition, self.n]))


def excesses(
    population: Reference | Other, n: int, repetitions: int, budgets: tuple[str, ...]
) -> Iterator[Row]:
    """A row for every loss, budget and method; all methods see the same data."""
    found: dict[tuple[str, str, str], list[float]] = {}
    optima: dict[str, list[float]] = {}
    built: dict[tuple[str, str, str], CurveMechanism] = {
        (loss, budget, method): mechanism_for(
            blueprint(method, loss, population.labels).sized(n, CurveSetting(Fraction(budget)))
        )
        for loss, budget, method in itertools.product(KINDS[population.labels], budgets, METHODS)
    }
    for repetition in range(repetitions):
        sample = Sample(population, n, repetition)
        records = {points: sample.on(points) for points in (TREE_POINTS, BASELINE_POINTS)}
        for loss in KINDS[population.labels]:
            optimum = least_risk(records[TREE_POINTS], parse_loss(loss))
            optima.setdefault(loss, []).append(optimum)
            for budget, method in itertools.product(budgets, METHODS):
                rng = np.random.default_rng([repetition, n, METHODS.index(method)])
                data = records[points_of(method)]
                curve = built[loss, budget, method].simulate(data, rng)
                excess = risk(curve, data, parse_loss(loss)) - optimum
                found.setdefault((loss, budget, method), []).append(excess)
    for (loss, budget, method), values in found.items():
        yield {
            "loss": loss,
            "y": "labels" if population.labels else "values",
            "curve": population.curve,
            "design": population.design,
            "n": n,
            "epsilon": float(Fraction(budget)),
            "method": method,
            "excess": float(np.mean(values)),
            "standard_error": float(np.std(values, ddof=1) / np.sqrt(len(values))),
            "optimum": float(np.mean(optima[loss])),
        }


def synthetic(quick: bool, progress: Progress) -> list[Row]:
    sizes = (100,) if quick else tuple(REPETITIONS)
    populations = [Reference(*key) for key in itertools.product(CURVES, DESIGNS, KINDS)]
    chosen = populations[::11] if quick else populations  # one with labels, one with values
    tasks: list[Task] = [
        (population, n, 2 if quick else REPETITIONS[n]) for n, population in itertools.product(sizes, chosen)
    ]
    return measured(tasks, quick, lambda share, what: progress(0.8 * share, what))


def others(quick: bool, progress: Progress) -> list[Row]:
    """The same on other populations, with 10,000 records."""
    populations = [Other(*key) for key in itertools.product(OTHER_CURVES, OTHER_DESIGNS, KINDS)]
    chosen = populations[::12] if quick else populations
    n, repetitions = (100, 2) if quick else (10_000, 8)
    tasks: list[Task] = [(population, n, repetitions) for population in chosen]
    return measured(tasks, quick, lambda share, what: progress(0.8 + 0.1 * share, what))


def measured(tasks: list[Task], quick: bool, progress: Progress) -> list[Row]:
    """The rows of all tasks (population, records, repetitions), on all cores but in quick runs."""
    budgets = ("1",) if quick else BUDGETS
    rows: list[Row] = []
    with ProcessPoolExecutor() as pool:
        run = map if quick else pool.map
        answers = zip(tasks, run(rows_of, tasks, itertools.repeat(budgets)), strict=False)
        for done, (task, found) in enumerate(answers, 1):
            rows += found
            progress(done / len(tasks), f"n = {task[1]}, {task[0]}")
    return rows


def rows_of(task: Task, budgets: tuple[str, ...]) -> list[Row]:
    return list(excesses(*task, budgets))


def by_cell(rows: list[Row]) -> dict[tuple[Any, ...], dict[str, Row]]:
    cells: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("loss", "y", "n", "epsilon", "curve", "design"))
        cells.setdefault(key, {})[row["method"]] = row
    return cells


def ratio(above: Row, below: Row) -> tuple[float, float]:
    """A ratio of two excesses and its standard error, to first order."""
    a, b = above["excess"], max(below["excess"], 1e-12)
    relative = np.hypot(above["standard_error"] / max(a, 1e-12), below["standard_error"] / b)
    return a / b, float(a / b * relative)


def goals(rows: list[Row]) -> list[Row]:
    """For every loss, size and budget: threshold over auto, auto over the best, and how many cells reach the goals."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key, methods in by_cell(rows).items():
        used = rule_for(
            blueprint("auto", key[0]).sized(key[2], CurveSetting(Fraction(key[3]).limit_denominator(100)))
        ).name
        best = min(methods.values(), key=lambda row: row["excess"])
        gain, gain_error = ratio(methods["threshold"], methods["auto"])
        loss, loss_error = ratio(methods["auto"], best)
        groups.setdefault(key[:4], []).append((gain, gain_error, loss, loss_error, used))
    table: list[Row] = []
    for (loss, y, n, epsilon), cells in groups.items():
        gains, gain_errors, losses, loss_errors = (np.array([cell[k] for cell in cells]) for k in range(4))
        table.append(
            {
                "loss": loss,
                "y": y,
                "n": n,
                "epsilon": epsilon,
                "auto": cells[0][4],
                "cells": len(cells),
                "threshold_over_auto": float(np.exp(np.mean(np.log(np.maximum(gains, 1e-9))))),
                "least_gain": float(gains.min()),
                "five_times": int((gains >= 5).sum()),
                "surely_less_than_five": int((gains + 2 * gain_errors < 5).sum()),
                "worst_auto_over_best": float(losses.max()),
                "auto_within_1.2": int((losses <= 1.2).sum()),
                "surely_beyond_1.2": int((losses - 2 * loss_errors > 1.2).sum()),
            }
        )
    return table


def plans(rows: list[Row], quick: bool) -> list[Row]:
    """What the plan predicts for ``auto``, and what was measured."""
    table: list[Row] = []
    for (loss, y, n, epsilon), group in itertools.groupby(
        sorted(
            (row for row in rows if row["method"] == "auto"),
            key=lambda row: tuple(row[k] for k in ("loss", "y", "n", "epsilon")),
        ),
        key=lambda row: tuple(row[k] for k in ("loss", "y", "n", "epsilon")),
    ):
        if epsilon != 1.0 or (quick and (loss, y) != ("squared", "labels")):
            continue
        predicted = plan(
            1, n, loss=loss, labels=y == "labels", methods=["auto"], repetitions=1 if quick else 3
        ).rows[0]
        measured = float(np.exp(np.mean([np.log(max(row["excess"], 1e-12)) for row in group])))
        table.append(
            {
                "loss": loss,
                "y": y,
                "n": n,
                "predicted": predicted.excess,
                "measured": measured,
                "predicted_over_measured": predicted.excess / measured,
            }
        )
    return table


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {
        name: [float(f"{row[name]:.5g}") if isinstance(row[name], float) else row[name] for row in rows]
        for name in rows[0]
    }


def calibration(quick: bool, out: Path) -> None:
    """A real set: 569 scores of a classifier and the true labels. How well is the classifier calibrated?"""
    table = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    x = np.array([float(row["score"]) for row in table])
    y = np.array([float(row["label"]) for row in table])
    rows: list[Row] = []
    drawn: dict[float, list[np.ndarray]] = {}
    at = np.linspace(0, 1, 301)
    rng = np.random.default_rng(0)
    levels, weights = Grid(*UNIT, FINE + 1).snap(y), np.ones(x.size, np.int64)
    losses, guided = (("squared",), METHODS[:1]) if quick else (("squared", "logistic"), METHODS)
    for loss, budget in itertools.product(losses, ("1/2", "1", "2", "5")):
        fine = Records(Grid(*UNIT, TREE_POINTS).snap(x), levels, weights).sorted()
        optimum = least_risk(fine, parse_loss(loss))
        expected: dict[str, float] = {}
        if not quick or budget == "1":
            planned = plan(Fraction(budget), x.size, loss=loss, labels=True, methods=guided, repetitions=1)
            expected = {row.name: row.excess for row in planned.rows}
        for method in METHODS:
            grid = Grid(*UNIT, points_of(method))
            records = Records(grid.snap(x), levels, weights).sorted()
            built = mechanism_for(blueprint(method, loss, True).sized(x.size, CurveSetting(Fraction(budget))))
            found: list[float] = []
            for _ in range(2 if quick else 40):
                curve = built.simulate(records, rng)
                found.append(risk(curve, records, parse_loss(loss)) - optimum)
                if method == "auto" and loss == "squared":
                    drawn.setdefault(float(Fraction(budget)), []).append(np.asarray(curve.at(grid.snap(at))))
            rows.append(
                {
                    "loss": loss,
                    "epsilon": float(Fraction(budget)),
                    "method": method,
                    "excess": float(np.mean(found)),
                    "standard_error": float(np.std(found, ddof=1) / len(found) ** 0.5),
                    "optimum": optimum,
                    "plan": expected.get(method, float("nan")),
                }
            )
    write_table(out, "calibration", columns_of(rows))
    _picture_of_calibration(out, x, y, at, drawn)


def _picture_of_calibration(out: Path, x: Any, y: Any, at: Any, drawn: dict[float, list[Any]]) -> None:
    from isotone.order.projection.chain import pool_adjacent_violators

    order = np.argsort(x, kind="stable")
    fitted = pool_adjacent_violators(y[order], np.ones(y.size))
    figure = Figure(figsize=(9, 3.2))
    axes = figure.subplots(1, 3, sharey=True)
    for axis, epsilon in zip(axes, (1.0, 2.0, 5.0), strict=True):
        for values in drawn[epsilon][:12]:
            axis.plot(at, values, color="C0", alpha=0.3, lw=1)
        axis.plot(x[order], fitted, color="black", lw=1.5, label="without privacy")
        axis.plot([], [], color="C0", label="private (12 draws)")
        axis.set_title(f"ε = {epsilon:g}")
        axis.set_xlabel("score of the classifier")
    axes[0].set_ylabel("share of positives")
    axes[0].legend(loc="lower right", fontsize=8)
    figure.suptitle("Calibration of a classifier, 569 records", y=1.03)
    save_figure(figure, out, "calibration")


def _picture_of_cells(out: Path, rows: list[Row]) -> None:
    kinds = list(dict.fromkeys((row["loss"], row["y"]) for row in rows))
    sizes = sorted({row["n"] for row in rows})
    figure = Figure(figsize=(10, 6))
    axes = figure.subplots(2, 3, sharex=True).ravel()
    for axis, (loss, y) in zip(axes, kinds, strict=False):
        for method in METHODS:
            means: list[float] = []
            for n in sizes:
                wanted = (loss, y, n, method, 1.0)
                chosen = [
                    max(row["excess"], 1e-9)
                    for row in rows
                    if (row["loss"], row["y"], row["n"], row["method"], row["epsilon"]) == wanted
                ]
                means.append(float(np.exp(np.mean(np.log(chosen)))))
            axis.loglog(sizes, means, marker="o", ms=4, color=COLOURS[method], label=method)
        axis.set_title(f"{loss} loss, y: {y}", fontsize=10)
    for axis in axes[3:]:
        axis.set_xlabel("records")
    axes[0].set_ylabel("excess risk")
    axes[3].set_ylabel("excess risk")
    axes[0].legend(fontsize=8)
    figure.suptitle("Excess risk at ε = 1 (geometric mean over three curves and two designs)")
    save_figure(figure, out, "cells")


def run(out: Path, quick: bool, progress: Progress) -> None:
    rows = synthetic(quick, progress)
    write_table(out, "cells", columns_of(rows))
    write_table(out, "goals", columns_of(goals(rows)))
    elsewhere = others(quick, progress)
    write_table(out, "others", columns_of(elsewhere))
    write_table(out, "others_goals", columns_of(goals(elsewhere)))
    _picture_of_cells(out, rows)
    progress(0.9, "plans")
    write_table(out, "plans", columns_of(plans(rows, quick)))
    progress(0.95, "calibration of a classifier")
    calibration(quick, out)
    progress(1.0, "done")
