"""Pairs of counts, Gaussian noise for several contributions, and what plans predict.

Pairs are real: how many of the twenty most needed packages a package needs, and how many of the next twenty.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _held_out import held_out, packages
from _tables import Table, load
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.tables import GaussianTableMechanism, TwoStageMechanism, plan, truncated_geometric
from isotone.tables.pairs import simulate_pair

UPPER = 20
CONTRIBUTIONS = (1, 5, 10, 20, 50)
DELTA = "1e-6"
Floats = NDArray[np.float64]


def rms(found: NDArray[np.generic], truth: NDArray[np.int64]) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(found, np.float64) - truth) ** 2)))


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write pairs.csv, gaussian.csv and plans.csv with their picture."""
    progress(0.0, "pairs")
    _pairs(out, ("1",) if quick else ("0.3", "1"), 1 if quick else 3)
    progress(0.3, "Gaussian noise")
    rows = _gaussian(CONTRIBUTIONS[::3] if quick else CONTRIBUTIONS, 1 if quick else 3)
    names = ("table", "contributions", "noise", "estimate", "value", "distance")
    write_table(out, "gaussian", {name: [row[at] for row in rows] for at, name in enumerate(names)})
    _picture(out, rows)
    progress(0.7, "plans")
    _plans(out, quick)
    progress(1.0, "done")


def _pairs(out: Path, epsilons: tuple[str, ...], draws: int) -> None:
    """Errors of both columns, of their joint cumulative distribution, and their correlation."""
    answers = packages()
    truth = np.column_stack([answers[:, :20].sum(axis=1), answers[:, 20:40].sum(axis=1)])
    lines: list[tuple[object, ...]] = [
        ("", "truth", "", "", "", "", "", f"{np.corrcoef(truth.T)[0, 1]:.3f}"),
    ]
    for epsilon in epsilons:
        found: dict[str, list[list[float]]] = {"plain noise": [], "columns apart": [], "pairs": []}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            plain = truncated_geometric(UPPER + 1, epsilon)
            noisy = np.column_stack([np.asarray(plain.simulate(column, rng)) for column in truth.T])
            made = simulate_pair(TwoStageMechanism(UPPER, epsilon), truth[:, 0], truth[:, 1], rng)
            apart = made.table.values.view(np.ndarray).reshape(2, -1).T
            alone = made.table.estimates.reshape(2, -1).T
            found["plain noise"].append(_measured(noisy, noisy, truth))
            found["columns apart"].append(_measured(apart, alone, truth))
            found["pairs"].append(_measured(made.values, made.estimates, truth))
        for name, each in found.items():
            lines.append((epsilon, name, *(f"{x:.4g}" for x in np.mean(each, axis=0))))
    names = ("epsilon", "release", "value_1", "value_2", "estimate_1", "estimate_2", "joint", "correlation")
    write_table(out, "pairs", {name: [line[at] for line in lines] for at, name in enumerate(names)})


def _measured(
    values: NDArray[np.int64], estimates: NDArray[np.generic], truth: NDArray[np.int64]
) -> list[float]:
    errors = [rms(each[:, side], truth[:, side]) for each in (values, estimates) for side in (0, 1)]
    joint = float(np.mean(np.abs(_law(values) - _law(truth))))
    return [*errors, joint, float(np.corrcoef(values.T)[0, 1])]


def _law(pairs: NDArray[np.int64]) -> Floats:
    """The joint cumulative distribution."""
    cells = np.zeros((UPPER + 1, UPPER + 1))
    np.add.at(cells, (pairs[:, 0], pairs[:, 1]), 1 / len(pairs))
    return cells.cumsum(axis=0).cumsum(axis=1)


def _gaussian(contributions: tuple[int, ...], draws: int) -> list[tuple[object, ...]]:
    """Geometric noise at ε = 1 against Gaussian noise at (1, 1e-6), a person at most once in a category."""
    rows: list[tuple[object, ...]] = []
    for table in (load("crime"), held_out("three bells", 3000)):
        for k in contributions:
            for noise in ("geometric", "Gaussian"):
                made = (
                    TwoStageMechanism(table.upper, 1, contributions=k)
                    if noise == "geometric"
                    else GaussianTableMechanism(table.upper, epsilon=1, delta=DELTA, contributions=k)
                )
                found: list[tuple[float, ...]] = []
                for seed in range(draws):
                    full = made.simulate_in_full(table.counts, np.random.default_rng(seed))
                    values = full.values.view(np.ndarray)
                    apart = float(np.mean(np.abs(np.sort(values) - np.sort(table.counts))))
                    found.append((rms(full.estimates, table.counts), rms(values, table.counts), apart))
                rows.append((table.name, k, noise, *(f"{x:.4g}" for x in np.mean(found, axis=0))))
    return rows


def _picture(out: Path, rows: list[tuple[object, ...]]) -> None:
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    for axis, (at, label) in zip(
        figure.subplots(1, 2), ((3, "error of an estimate"), (5, "distance of distributions")), strict=True
    ):
        for table in dict.fromkeys(row[0] for row in rows):
            for noise, style in (("geometric", "o-"), ("Gaussian", "s--")):
                some = [row for row in rows if (row[0], row[2]) == (table, noise)]
                axis.loglog(
                    [int(str(row[1])) for row in some],
                    [float(str(row[at])) for row in some],
                    style,
                    label=f"{table}, {noise}",
                )
        axis.set_xlabel("contributions of a person")
        axis.set_ylabel(label)
    figure.axes[0].legend(fontsize=8)
    save_figure(figure, out, "gaussian")


def _plans(out: Path, quick: bool) -> None:
    """What a plan says, given the true shape of a table, against the mean over releases of other seeds."""
    lines: list[tuple[object, ...]] = []
    tables: list[Table] = [held_out("u-shaped"), held_out("half empty"), held_out("nearly all zero")]
    for table in tables[:1] if quick else tables:
        shape = np.bincount(table.counts, minlength=table.upper + 1) / len(table.counts)
        for epsilon in ("1",) if quick else ("0.3", "1"):
            told = plan(shape, size=len(table.counts), epsilon=epsilon)["distribution"]
            mechanism = TwoStageMechanism(table.upper, epsilon, "distribution")
            found: list[tuple[float, float]] = []
            for seed in range(2 if quick else 24):
                values = mechanism.simulate(table.counts, np.random.default_rng(1000 + seed)).view(np.ndarray)
                apart = float(np.mean(np.abs(np.sort(values) - np.sort(table.counts))))
                found.append((float(np.mean(np.abs(values - table.counts))), apart))
            count, distance = np.mean(found, axis=0)
            ratios = told.count_error / count, told.wasserstein / distance
            lines.append((table.name, epsilon, *(f"{x:.3f}" for x in ratios)))
    names = ("table", "epsilon", "count_error", "distance")
    write_table(out, "plans", {name: [line[at] for line in lines] for at, name in enumerate(names)})
