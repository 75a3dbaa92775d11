"""Excess risk on partial orders: the default, the additive score, the published one by listing ideals, and the baseline.

Writes ``posets.csv`` and a picture. Small grids and forests, on which the published algorithm can be run at all and the
best monotone function is found by listing ideals. Excess is over that function, on the same records; simulated draws.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from common import save_figure, write_table
from isotone.curves.ideals import list_ideals
from isotone.curves.losses import Loss, parse_loss
from isotone.curves.poset_regression import PosetProblem, mechanism_for, rule_for
from isotone.curves.problem import FINE, CurveSetting, Records
from isotone.curves.shape_posterior import point_costs
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset

UNIT = (Fraction(0), Fraction(1))
METHODS = ("auto", "additive", "threshold", "baseline")
COLOURS = {"auto": "C1", "additive": "C0", "threshold": "C3", "baseline": "C2"}
REPETITIONS = {300: 40, 1_000: 20, 10_000: 10}
VALUES = 512


def grid(side: int) -> Poset:
    cells = list(itertools.product(range(side), repeat=2))
    steps = [((i, j), (i + di, j + dj)) for i, j in cells for di, dj in ((1, 0), (0, 1))]
    return Poset(cells, [(a, b) for a, b in steps if b in set(cells)])


def tree(size: int) -> Poset:
    """A binary tree with its root on top, numbered as a heap."""
    return Poset(list(range(size)), [(child, (child - 1) // 2) for child in range(1, size)])


def orders() -> dict[str, Poset]:
    twice = [tree(7).rename(lambda name, side=side: (side, name)) for side in (0, 1)]
    return {
        "grid 4 × 4": grid(4),
        "grid 6 × 6": grid(6),
        "tree of 15": tree(15),
        "two trees of 7": Poset.disjoint_union(*twice),
        "chain of 16": Poset.chain(list(range(16))),
    }


def truth(order: Poset) -> np.ndarray:
    """A function that rises steeply in the middle of the order."""
    rank = np.zeros(len(order))
    lower, upper = order.cover_pairs.T
    for x in order.linear_order:
        below = lower[upper == x]
        rank[x] = 1 + rank[below].max() if below.size else 0
    return 1 / (1 + np.exp(-8 * (rank / max(1, rank.max()) - 0.5)))


def sample(values: np.ndarray, labels: bool, n: int, rng: np.random.Generator) -> Records:
    cells = rng.integers(0, values.size, n)
    at = values[cells]
    y = (rng.random(n) < at) * 1.0 if labels else np.clip(at + rng.normal(0, 0.1, n), 0, 1)
    return Records(cells, np.rint(y * FINE).astype(np.int64), np.ones(n, np.int64)).sorted()


def least_risk(order: Poset, records: Records, loss: Loss) -> float:
    """By listing ideals: the sets where the best function is at most ``c`` are least for each ``c`` by itself."""
    ideals = list_ideals(len(order), order.cover_pairs, order.linear_order)
    assert ideals is not None
    table = loss.table(2 * VALUES, VALUES, Fraction(1))
    coarse = FINE // (2 * VALUES)
    rows = (records.levels + coarse // 2) // coarse
    least = point_costs(records, len(order), table)
    total = int(table[rows, VALUES].sum())
    for step in np.diff(least, axis=1).T:
        total += int(ideals.sums(-step).min())
    return total * loss.unit(2 * VALUES, VALUES, Fraction(1)) / records.cells.size


Case = tuple[tuple[str, Poset], tuple[str, bool], int]


def cases(quick: bool) -> list[Case]:
    """An order by its name, a loss with whether ``y`` is a label, and the number of records."""
    some = list(orders().items())[: 1 if quick else None]
    kinds = (("squared", True), ("absolute", False))
    return list(itertools.product(some, kinds, (300,) if quick else tuple(REPETITIONS)))


def measure(wanted: list[Case], progress: Progress, most: int | None = None) -> dict[str, list[Any]]:
    """A row for every case and method, with at most so many repetitions."""
    names = ["order", "loss", "n", "epsilon", "method", "used", "excess", "standard_error", "optimum"]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for done, ((name, order), (loss_name, labels), n) in enumerate(wanted):
        progress(done / len(wanted), f"{name}, {loss_name}, n = {n}")
        loss, values = parse_loss(loss_name), truth(order)
        repetitions = most or REPETITIONS[n]
        data = [sample(values, labels, n, np.random.default_rng([k, n])) for k in range(repetitions)]
        optima = [least_risk(order, records, loss) for records in data]
        for method in METHODS:
            try:
                problem = PosetProblem(loss, UNIT, order, method=method).sized(n, CurveSetting(Fraction(1)))
                built, used = mechanism_for(problem), rule_for(problem).name
            except InputError:
                continue  # no baseline but on forests
            found: list[float] = []
            for k, (records, optimum) in enumerate(zip(data, optima, strict=True)):
                drawn = np.asarray(built.simulate(records, np.random.default_rng([k, n, 1])))
                losses = loss.evaluate(drawn[records.cells], records.levels / FINE)
                found.append(float(np.mean(losses)) - optimum)
            error = float(np.std(found, ddof=1) / len(found) ** 0.5)
            figures = [float(f"{value:.4g}") for value in (np.mean(found), error, np.mean(optima))]
            for key, value in zip(names, [name, loss_name, n, 1, method, used, *figures], strict=True):
                columns[key].append(value)
    return columns


def _picture(out: Path, columns: dict[str, list[Any]]) -> None:
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    names = list(dict.fromkeys(row["order"] for row in table))
    losses = list(dict.fromkeys(row["loss"] for row in table))
    figure = Figure(figsize=(2.6 * len(names) + 1, 5))
    axes = figure.subplots(len(losses), len(names), sharex=True, sharey="row", squeeze=False)
    for (i, loss), (j, name) in itertools.product(enumerate(losses), enumerate(names)):
        for method in METHODS:
            rows = [
                row
                for row in table
                if row["order"] == name and row["loss"] == loss and row["method"] == method
            ]
            if rows:
                axes[i, j].errorbar(
                    [row["n"] for row in rows],
                    [max(row["excess"], 1e-6) for row in rows],
                    [2 * row["standard_error"] for row in rows],
                    marker="o",
                    ms=4,
                    color=COLOURS[method],
                    label=method,
                )
        axes[i, j].set_xscale("log")
        axes[i, j].set_yscale("log")
        if i == 0:
            axes[i, j].set_title(name, fontsize=10)
        if j == 0:
            axes[i, j].set_ylabel(f"excess, {loss}")
    for axis in axes[-1]:
        axis.set_xlabel("records")
    axes[0, min(2, len(names) - 1)].legend(fontsize=8)
    figure.suptitle("Excess risk on partial orders at ε = 1 (bars: two standard errors)")
    save_figure(figure, out, "posets")


def run(out: Path, quick: bool, progress: Progress) -> None:
    columns = measure(cases(quick), progress, 2 if quick else None)
    write_table(out, "posets", columns)
    _picture(out, columns)
    progress(1.0, "done")


def few(out: Path) -> None:
    """The first case of a full run."""
    write_table(out, "posets", measure(cases(quick=True)[:1], no_progress))
