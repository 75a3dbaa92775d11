"""Survival by age, a real set: the risk of dying within twenty years, fitted privately by every method.

1,314 women of Whickham, by age group at the first interview and whether they were alive twenty years later (Appleton, French and
Vanderpump 1996, *Ignoring a covariate: an example of Simpson's paradox*, The American Statistician 50). The counts were tallied from
the data set Whickham of the R package mosaicData, whose records are not part of this repository. Writes ``survival.csv`` and
a picture. Simulated draws; released ones have the same distribution.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _curve_goals import METHODS, UNIT, Row, blueprint, columns_of, points_of
from common import save_figure, write_table
from isotone.curves.cuts import least_risk, risk
from isotone.curves.losses import parse_loss
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.mechanism import Progress
from isotone.order.isotonic import pool_adjacent_violators

YOUNGEST, OLDEST = 18, 85
DEAD_AND_ALIVE = {
    21.5: (3, 124),
    30.0: (7, 274),
    40.0: (17, 199),
    50.0: (40, 169),
    60.0: (93, 145),
    70.0: (132, 34),
    80.0: (77, 0),
}
"""By the middle of the age group: 18-24, 25-34, …, 65-74, 75 and older."""
BUDGETS = ("1/2", "1", "2")
DRAWS = 40
SHOWN = np.linspace(0, 1, 301)


def people() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Age on [0, 1] and death (1) or survival (0), a row a person."""
    x = np.concatenate([np.full(dead + alive, age) for age, (dead, alive) in DEAD_AND_ALIVE.items()])
    y = np.concatenate([np.repeat([1.0, 0.0], pair) for pair in DEAD_AND_ALIVE.values()])
    return (x - YOUNGEST) / (OLDEST - YOUNGEST), y


def cases() -> list[tuple[str, str, str]]:
    """Loss, epsilon and method."""
    return list(itertools.product(("squared", "logistic"), BUDGETS, METHODS))


def fitted(case: tuple[str, str, str], draws: int) -> tuple[Row, list[NDArray[np.float64]]]:
    """The row of a case, and the curves that were drawn for it."""
    (loss, budget, method), (x, y) = case, people()
    rng = np.random.default_rng(cases().index(case))
    grid = Grid(*UNIT, points_of(method))
    levels, weights = Grid(*UNIT, FINE + 1).snap(y), np.ones(x.size, np.int64)
    records = Records(grid.snap(x), levels, weights).sorted()
    optimum = least_risk(records, parse_loss(loss))
    built = mechanism_for(blueprint(method, loss, True).sized(x.size, CurveSetting(Fraction(budget))))
    curves = [built.simulate(records, rng) for _ in range(draws)]
    found = [risk(curve, records, parse_loss(loss)) - optimum for curve in curves]
    row: Row = {
        "loss": loss,
        "epsilon": float(Fraction(budget)),
        "method": method,
        "excess": float(np.mean(found)),
        "standard_error": float(np.std(found, ddof=1) / len(found) ** 0.5),
        "optimum": optimum,
    }
    return row, [np.asarray(curve.at(grid.snap(SHOWN))) for curve in curves]


def run(out: Path, quick: bool, progress: Progress) -> None:
    rows: list[Row] = []
    drawn: dict[str, list[NDArray[np.float64]]] = {}
    for done, case in enumerate(cases()):
        progress(done / len(cases()), "{} loss, ε = {}, {}".format(*case))
        row, curves = fitted(case, 2 if quick else DRAWS)
        rows.append(row)
        if case[0] == "squared" and case[2] == "auto":
            drawn[case[1]] = curves
    write_table(out, "survival", columns_of(rows))
    _picture(out, drawn)
    progress(1.0, "done")


def few(out: Path) -> None:
    """The first case of a full run."""
    write_table(out, "survival", columns_of([fitted(cases()[0], DRAWS)[0]]))


def _picture(out: Path, drawn: dict[str, list[NDArray[np.float64]]]) -> None:
    years = YOUNGEST + SHOWN * (OLDEST - YOUNGEST)
    ages = np.array(list(DEAD_AND_ALIVE))
    dead, alive = np.array(list(DEAD_AND_ALIVE.values()), dtype=np.float64).T
    shares = pool_adjacent_violators(dead / (dead + alive), dead + alive)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, len(BUDGETS), sharey=True)
    for axis, budget in zip(axes, BUDGETS, strict=True):
        for values in drawn[budget][:12]:
            axis.plot(years, values, color="C0", alpha=0.3, lw=1)
        axis.plot(ages, shares, "ko", ms=5, label="share that died, by age group")
        axis.plot([], [], color="C0", label="private (12 draws)")
        axis.set_title(f"ε = {float(Fraction(budget)):g}")
        axis.set_xlabel("age")
    axes[0].set_ylabel("died within twenty years")
    axes[0].legend(loc="upper left", fontsize=8)
    figure.suptitle(f"Survival by age, {int((dead + alive).sum()):,} records, {int(dead.sum())} deaths")
    save_figure(figure, out, "survival")
