"""Excess risk of every method of private isotonic regression, over sizes, budgets, curves, designs and losses.

Writes ``cells.csv`` (synthetic data), ``shapes.csv`` (shape constraints), ``calibration.csv`` (a real set: the calibration of a
classifier) and three pictures. Excess is over the best curve without privacy, whose own risk is in the column ``optimum``.
Simulated draws; the released ones have the same distribution.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from common import DATA, read_table, save_figure, write_table
from isotone.curves.blueprint import TREE_POINTS, Blueprint
from isotone.curves.curve import CurveMechanism
from isotone.curves.grids import FINE, Grid
from isotone.curves.losses import Loss, parse_loss
from isotone.curves.privacy import Setting
from isotone.curves.records import Records
from isotone.curves.reference import CURVES, DESIGNS, Reference, least_risk, risk
from isotone.curves.shapes import parse_shape
from isotone.mechanism import Progress

UNIT = (Fraction(0), Fraction(1))
METHODS = ("additive", "threshold", "baseline", "bins")
COLOURS = {"additive": "C0", "threshold": "C3", "baseline": "C2", "bins": "C1", "draw": "C0", "tree": "C3"}
BASELINE_POINTS = 256
LOSSES: list[tuple[str, bool]] = [
    ("squared", True),
    ("squared", False),
    ("logistic", True),
    ("absolute", False),
]
REPETITIONS = {100: 5, 1_000: 3, 10_000: 2, 100_000: 1}


@dataclass(frozen=True)
class Cell:
    """One situation: a loss, a population, a size and a budget."""

    loss: str
    population: Reference
    n: int
    epsilon: Fraction


def cells(quick: bool) -> list[Cell]:
    sizes = (100,) if quick else (100, 1_000, 10_000, 100_000)
    budgets = ("1",) if quick else ("1/10", "1", "5")
    losses = LOSSES[:2] if quick else LOSSES
    return [
        Cell(loss, Reference(curve, design, labels), n, Fraction(epsilon))
        for n, (loss, labels), epsilon, curve, design in itertools.product(
            sizes, losses, budgets, CURVES, DESIGNS
        )
        if _measured(n, loss, labels, epsilon)
    ]


def _measured(n: int, loss: str, labels: bool, epsilon: str) -> bool:
    """Every loss at ε = 1 up to 10,000 records; other budgets for the squared loss of labels; the largest size for two losses."""
    if n == 100_000:
        return epsilon == "1" and (loss, labels) in (("squared", True), ("absolute", False))
    return epsilon == "1" or (loss, labels) == ("squared", True)


def mechanism(method: str, loss: Loss, n: int, epsilon: Fraction, points: int, **more: Any) -> CurveMechanism:
    plan = Blueprint(loss, UNIT, Grid(*UNIT, points), method, **more)
    return plan.mechanism(n, Setting(epsilon))


def excesses(cell: Cell, repetitions: int) -> Iterator[tuple[str, float, float, float]]:
    """For every method: its name, mean excess, standard error and the risk without privacy."""
    loss = parse_loss(cell.loss)
    for method in METHODS:
        points = BASELINE_POINTS if method == "baseline" else TREE_POINTS
        built = mechanism(method, loss, cell.n, cell.epsilon, points)
        optima, found = [], []
        for repetition in range(repetitions):
            rng = np.random.default_rng([repetition, cell.n])
            records = cell.population.sample(cell.n, points, rng)
            optima.append(least_risk(records, loss))
            found.append(risk(built.simulate(records, rng), records, loss) - optima[-1])
        yield (
            method,
            float(np.mean(found)),
            float(np.std(found) / np.sqrt(len(found))),
            float(np.mean(optima)),
        )


def synthetic(quick: bool, progress: Progress) -> dict[str, list[Any]]:
    names = [
        "loss",
        "y",
        "curve",
        "design",
        "n",
        "epsilon",
        "method",
        "excess",
        "standard_error",
        "optimum",
        "ratio_to_best",
    ]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    everything = cells(quick)
    for done, cell in enumerate(everything):
        progress(0.8 * done / len(everything), f"{cell.loss}, n = {cell.n}")
        rows = list(excesses(cell, 2 if quick else REPETITIONS[cell.n]))
        best = min(max(row[1], 0.0) for row in rows)
        for method, excess, error, optimum in rows:
            kind = "labels" if cell.population.labels else "values"
            ratio = excess / best if best > 0 else float("nan")
            row = [
                cell.loss,
                kind,
                cell.population.curve,
                cell.population.design,
                cell.n,
                float(cell.epsilon),
            ]
            for name, value in zip(names, [*row, method, excess, error, optimum, ratio], strict=True):
                columns[name].append(round(value, 8) if isinstance(value, float) else value)
    return columns


SHAPES: list[tuple[Any, str, Any]] = [
    (("constant", 4), "four steps", lambda u: 0.1 + 0.2 * (u > 0.2) + 0.3 * (u > 0.45) + 0.3 * (u > 0.7)),
    (("linear", 3), "two bends", lambda u: np.interp(u, [0, 0.3, 0.6, 1], [0.1, 0.2, 0.8, 0.9])),
    (("lipschitz", 1), "line", lambda u: 0.1 + 0.8 * u),
    ("convex", "cube", lambda u: u**3),
    ("concave", "root", np.sqrt),
]


def shapes(quick: bool, progress: Progress) -> dict[str, list[Any]]:
    """One draw from the whole class, the published tree, and the method without a shape."""
    names = ["shape", "curve", "n", "epsilon", "method", "excess", "standard_error"]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    loss = parse_loss("squared")
    sizes = (100,) if quick else (1_000, 10_000)
    for done, (spec, curve, truth) in enumerate(SHAPES):
        progress(0.8 + 0.15 * done / len(SHAPES), f"shape {spec}")
        shape = parse_shape(spec)
        assert shape is not None
        for n, (method, name) in itertools.product(
            sizes, [("auto", "draw"), ("threshold", "tree"), ("additive", "no shape")]
        ):
            kept = None if name == "no shape" else shape
            points = TREE_POINTS if kept is None else shape.points
            built = mechanism(method, loss, n, Fraction(1), points, shape=kept)
            found = []
            for repetition in range(1 if quick else 3):
                rng = np.random.default_rng([repetition, n])
                u = rng.random(n)
                y = np.clip(truth(u) + rng.normal(0, 0.15, n), 0, 1)
                cells_of = Grid(*UNIT, points).snap(u)
                levels = Grid(*UNIT, FINE + 1).snap(y)
                records = Records(cells_of, levels, np.ones(n, np.int64)).sorted()
                released = built.simulate(records, rng)
                found.append(risk(released, records, loss) - float(np.mean((truth(u) - y) ** 2)))
            row = [str(shape), curve, n, 1, name, round(float(np.mean(found)), 8)]
            for key, value in zip(
                names, [*row, round(float(np.std(found)) / len(found) ** 0.5, 8)], strict=True
            ):
                columns[key].append(value)
    return columns


def calibration(quick: bool, out: Path) -> None:
    """A real set: 569 scores of a classifier and the true labels. How well is the classifier calibrated?"""
    rows = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    x = np.array([float(row["score"]) for row in rows])
    y = np.array([float(row["label"]) for row in rows])
    names = ["loss", "epsilon", "method", "excess", "standard_error", "optimum"]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    drawn: dict[float, list[np.ndarray]] = {}
    at = np.linspace(0, 1, 301)
    rng = np.random.default_rng(0)
    for loss_name, epsilon, method in itertools.product(
        ("squared", "logistic"), ("1/2", "1", "2", "5"), METHODS
    ):
        loss = parse_loss(loss_name)
        points = BASELINE_POINTS if method == "baseline" else TREE_POINTS
        records = Records(
            Grid(*UNIT, points).snap(x), Grid(*UNIT, FINE + 1).snap(y), np.ones(x.size, np.int64)
        ).sorted()
        built = mechanism(method, loss, x.size, Fraction(epsilon), points)
        optimum = least_risk(records, loss)
        found = []
        for _ in range(3 if quick else 12):
            curve = built.simulate(records, rng)
            found.append(risk(curve, records, loss) - optimum)
            if method == "additive" and loss_name == "squared":
                values = np.asarray(curve.at(Grid(*UNIT, points).snap(at)))
                drawn.setdefault(float(Fraction(epsilon)), []).append(values)
        row = [loss_name, float(Fraction(epsilon)), method, round(float(np.mean(found)), 6)]
        for key, value in zip(
            names, [*row, round(float(np.std(found)) / len(found) ** 0.5, 6), round(optimum, 6)], strict=True
        ):
            columns[key].append(value)
    write_table(out, "calibration", columns)
    _picture_of_calibration(out, x, y, at, drawn)


def _picture_of_calibration(out: Path, x: Any, y: Any, at: Any, drawn: dict[float, list[Any]]) -> None:
    from isotone.order.projection_chain import pool_adjacent_violators

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


def _picture_of_cells(out: Path, columns: dict[str, list[Any]]) -> None:
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kinds = list(dict.fromkeys((row["loss"], row["y"]) for row in table))
    figure = Figure(figsize=(8, 6))
    axes = figure.subplots(2, 2, sharex=True).ravel()
    for axis, (loss, kind) in zip(axes, kinds, strict=False):
        for method in METHODS:
            sizes = sorted({row["n"] for row in table})
            means = []
            for n in sizes:
                chosen = [
                    max(row["excess"], 1e-9)
                    for row in table
                    if (row["loss"], row["y"], row["n"], row["method"], row["epsilon"])
                    == (loss, kind, n, method, 1.0)
                ]
                means.append(np.exp(np.mean(np.log(chosen))))
            axis.loglog(sizes, means, marker="o", ms=4, color=COLOURS[method], label=method)
        axis.set_title(f"{loss} loss, y: {kind}", fontsize=10)
    for axis in axes[2:]:
        axis.set_xlabel("records")
    axes[0].set_ylabel("excess risk")
    axes[2].set_ylabel("excess risk")
    axes[0].legend(fontsize=8)
    figure.suptitle("Excess risk at ε = 1 (geometric mean over three curves and two designs)")
    save_figure(figure, out, "cells")


def _picture_of_shapes(out: Path, columns: dict[str, list[Any]]) -> None:
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kinds = list(dict.fromkeys(row["shape"] for row in table))
    figure = Figure(figsize=(12, 2.8))
    axes = figure.subplots(1, len(kinds), sharey=True)
    for axis, kind in zip(axes, kinds, strict=True):
        for method, colour in (("draw", "C0"), ("tree", "C3"), ("no shape", "C7")):
            chosen = [row for row in table if row["shape"] == kind and row["method"] == method]
            values = [float(row["excess"]) for row in chosen]
            axis.plot([int(row["n"]) for row in chosen], values, marker="o", ms=4, color=colour, label=method)
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=1e-4)
        axis.set_title(kind, fontsize=9)
        axis.set_xlabel("records")
    axes[0].set_ylabel("risk above the true curve's")
    axes[0].legend(fontsize=7)
    save_figure(figure, out, "shapes")


def run(out: Path, quick: bool, progress: Progress) -> None:
    columns = synthetic(quick, progress)
    write_table(out, "cells", columns)
    _picture_of_cells(out, columns)
    shaped = shapes(quick, progress)
    write_table(out, "shapes", shaped)
    _picture_of_shapes(out, shaped)
    progress(0.95, "calibration of a classifier")
    calibration(quick, out)
    progress(1.0, "done")
