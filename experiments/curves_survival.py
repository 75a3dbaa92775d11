"""Survival by age, a real set: the risk of dying within twenty years, fitted privately by every method.

1,314 women of Whickham, by age group at the first interview and whether they were alive twenty years later (Appleton, French and
Vanderpump 1996, *Ignoring a covariate: an example of Simpson's paradox*, The American Statistician 50). The counts were tallied from
the data set Whickham of the R package mosaicData, whose records are not part of this repository. Writes ``survival.csv`` and
a picture. Simulated draws; released ones have the same distribution.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from common import save_figure, write_table
from curves_quality import METHODS, UNIT, Row, blueprint, columns_of, points_of
from isotone.curves.chain.choosing import mechanism_for
from isotone.curves.grids import FINE, Grid
from isotone.curves.losses.known_losses import parse_loss
from isotone.curves.records import Records
from isotone.curves.reference import least_risk, risk
from isotone.curves.setting import CurveSetting
from isotone.mechanism import Progress
from isotone.order.projection.chain import pool_adjacent_violators

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


def people() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Age on [0, 1] and death (1) or survival (0), a row a person."""
    x = np.concatenate([np.full(dead + alive, age) for age, (dead, alive) in DEAD_AND_ALIVE.items()])
    y = np.concatenate([np.repeat([1.0, 0.0], pair) for pair in DEAD_AND_ALIVE.values()])
    return (x - YOUNGEST) / (OLDEST - YOUNGEST), y


def run(out: Path, quick: bool, progress: Progress) -> None:
    x, y = people()
    levels, weights = Grid(*UNIT, FINE + 1).snap(y), np.ones(x.size, np.int64)
    at = np.linspace(0, 1, 301)
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    drawn: dict[str, list[NDArray[np.float64]]] = {budget: [] for budget in BUDGETS}
    cases = [
        (loss, budget, method) for loss in ("squared", "logistic") for budget in BUDGETS for method in METHODS
    ]
    for done, (loss, budget, method) in enumerate(cases):
        progress(done / len(cases), f"{loss} loss, ε = {budget}, {method}")
        grid = Grid(*UNIT, points_of(method))
        records = Records(grid.snap(x), levels, weights).sorted()
        optimum = least_risk(records, parse_loss(loss))
        built = mechanism_for(blueprint(method, loss, True).sized(x.size, CurveSetting(Fraction(budget))))
        found: list[float] = []
        for _ in range(2 if quick else 40):
            curve = built.simulate(records, rng)
            found.append(risk(curve, records, parse_loss(loss)) - optimum)
            if (loss, method) == ("squared", "auto"):
                drawn[budget].append(np.asarray(curve.at(grid.snap(at))))
        rows.append(
            {
                "loss": loss,
                "epsilon": float(Fraction(budget)),
                "method": method,
                "excess": float(np.mean(found)),
                "standard_error": float(np.std(found, ddof=1) / len(found) ** 0.5),
                "optimum": optimum,
            }
        )
    write_table(out, "survival", columns_of(rows))
    _picture(out, x, y, at, drawn)
    progress(1.0, "done")


def _picture(
    out: Path,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    at: NDArray[np.float64],
    drawn: dict[str, list[NDArray[np.float64]]],
) -> None:
    years = YOUNGEST + at * (OLDEST - YOUNGEST)
    ages = np.array(list(DEAD_AND_ALIVE))
    dead, alive = np.array(list(DEAD_AND_ALIVE.values()), dtype=np.float64).T
    fitted = pool_adjacent_violators(dead / (dead + alive), dead + alive)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, len(BUDGETS), sharey=True)
    for axis, budget in zip(axes, BUDGETS, strict=True):
        for values in drawn[budget][:12]:
            axis.plot(years, values, color="C0", alpha=0.3, lw=1)
        axis.plot(ages, fitted, "ko", ms=5, label="share that died, by age group")
        axis.plot([], [], color="C0", label="private (12 draws)")
        axis.set_title(f"ε = {float(Fraction(budget)):g}")
        axis.set_xlabel("age")
    axes[0].set_ylabel("died within twenty years")
    axes[0].legend(loc="upper left", fontsize=8)
    figure.suptitle(f"Survival by age, {x.size:,} records, {int(y.sum())} deaths")
    save_figure(figure, out, "survival")
