"""Excess risk of every method of private isotonic regression, over sizes, budgets, curves, designs and losses.

Writes ``cells.csv`` (synthetic data), ``goals.csv`` (how often the stated goals are reached), ``others.csv`` and
``others_goals.csv`` (the same on curves and designs that no constant was chosen with), ``plans.csv`` (what the plan predicts
and what was measured), ``calibration.csv`` (a real set) and pictures. Excess is over the best curve without privacy
on the same records, whose own risk is in the column ``optimum``. Simulated draws; released ones have the same distribution.
A run that was interrupted goes on with the cells that it finds in the folder.
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

from _curve_goals import (
    BASELINE_POINTS,
    METHODS,
    UNIT,
    Row,
    blueprint,
    columns_of,
    geometric,
    goals,
    points_of,
)
from common import DATA, read_table, save_figure, write_table
from isotone.curves import PrivateIsotonicRegression
from isotone.curves.cuts import CURVES, DESIGNS, TREE_POINTS, CurveMechanism, Reference, least_risk, risk
from isotone.curves.losses import parse_loss
from isotone.curves.plan import plan
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.mechanism import Progress

COLOURS = {"auto": "C0", "threshold": "C3", "baseline": "C2", "bins": "C1"}
KINDS: dict[bool, tuple[str, ...]] = {
    True: ("squared", "logistic"),
    False: ("squared", "absolute", "huber", "pinball(0.9)"),
}
"""Losses for labels (y is 0 or 1), and for values (y is the curve with noise)."""
BUDGETS = ("1/10", "1", "5")
REPETITIONS = {100: 60, 1_000: 30, 10_000: 10, 100_000: 4}
NUMBERS = {
    "n": int,
    "epsilon": float,
    "repetitions": int,
    "excess": float,
    "standard_error": float,
    "optimum": float,
}
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
            "repetitions": repetitions,
            "excess": float(np.mean(values)),
            "standard_error": float(np.std(values, ddof=1) / np.sqrt(len(values))),
            "optimum": float(np.mean(optima[loss])),
        }


def synthetic(out: Path, quick: bool, progress: Progress) -> list[Row]:
    sizes = (100,) if quick else tuple(REPETITIONS)
    populations = [Reference(*key) for key in itertools.product(CURVES, DESIGNS, KINDS)]
    chosen = populations[::11] if quick else populations  # one with labels, one with values
    tasks: list[Task] = [
        (population, n, 2 if quick else REPETITIONS[n]) for n, population in itertools.product(sizes, chosen)
    ]
    return measured(out / "cells.csv", tasks, quick, lambda share, what: progress(0.8 * share, what))


def others(out: Path, quick: bool, progress: Progress) -> list[Row]:
    """The same on other populations, with 10,000 records."""
    populations = [Other(*key) for key in itertools.product(OTHER_CURVES, OTHER_DESIGNS, KINDS)]
    chosen = populations[::12] if quick else populations
    n, repetitions = (100, 2) if quick else (10_000, 8)
    tasks: list[Task] = [(population, n, repetitions) for population in chosen]
    return measured(out / "others.csv", tasks, quick, lambda share, what: progress(0.8 + 0.1 * share, what))


def measured(path: Path, tasks: list[Task], quick: bool, progress: Progress) -> list[Row]:
    """The rows of all tasks, on all cores but in quick runs; written after every task, and what is there is not made again."""
    budgets = ("1",) if quick else BUDGETS
    found = earlier(path)
    missing = [task for task in tasks if key_of(task) not in found]
    with ProcessPoolExecutor() as pool:
        run = map if quick else pool.map
        for task, rows in zip(missing, run(rows_of, missing, itertools.repeat(budgets)), strict=True):
            found[key_of(task)] = rows
            done = [found[key_of(each)] for each in tasks if key_of(each) in found]
            write_table(path.parent, path.stem, columns_of([row for rows in done for row in rows]))
            progress(len(done) / len(tasks), f"n = {task[1]}, {task[0]}")
    return [row for task in tasks for row in found[key_of(task)]]


def key_of(task: Task) -> tuple[Any, ...]:
    """What names a task in a row."""
    population, n, repetitions = task
    return population.curve, population.design, "labels" if population.labels else "values", n, repetitions


def earlier(path: Path) -> dict[tuple[Any, ...], list[Row]]:
    """The rows that an interrupted run left, by task."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for text in read_table(path) if path.exists() else []:
        row = {name: NUMBERS[name](words) if name in NUMBERS else words for name, words in text.items()}
        key = tuple(row[name] for name in ("curve", "design", "y", "n", "repetitions"))
        found.setdefault(key, []).append(row)
    return found


def rows_of(task: Task, budgets: tuple[str, ...]) -> list[Row]:
    """The rows of a task, with the digits that are written."""
    columns = columns_of(list(excesses(*task, budgets)))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _model(epsilon: Any, loss: str, labels: bool) -> PrivateIsotonicRegression:
    y = {"y_values": (0, 1)} if labels else {"y_range": (0, 1)}
    return PrivateIsotonicRegression(epsilon, **y, loss=loss, output="records")  # pyright: ignore[reportArgumentType]


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
        predicted = plan(_model(1, loss, y == "labels"), n, labels=y == "labels", methods=["auto"]).rows[0]
        measured = geometric(row["excess"] for row in group)
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
            planned = plan(_model(budget, loss, True), x.size, methods=guided)
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
    from isotone.order.isotonic import pool_adjacent_violators

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
                    row["excess"]
                    for row in rows
                    if (row["loss"], row["y"], row["n"], row["method"], row["epsilon"]) == wanted
                ]
                means.append(geometric(chosen))
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
    rows = synthetic(out, quick, progress)
    write_table(out, "goals", columns_of(goals(rows)))
    elsewhere = others(out, quick, progress)
    write_table(out, "others_goals", columns_of(goals(elsewhere)))
    _picture_of_cells(out, rows)
    progress(0.9, "plans")
    write_table(out, "plans", columns_of(plans(rows, quick)))
    progress(0.95, "calibration of a classifier")
    calibration(quick, out)
    progress(1.0, "done")


def few(out: Path) -> None:
    """The smallest cell of a full run."""
    task = Reference("step", "uniform", labels=True), 100, REPETITIONS[100]
    write_table(out, "cells", columns_of(rows_of(task, ("1",))))
