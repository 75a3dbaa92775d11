"""Reference data for planning.

Curves, designs and noise on which methods are compared without any private data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.tree import Runs
from isotone.curves.curve import Curve
from isotone.curves.grids import FINE, Grid
from isotone.curves.losses.known_losses import Absolute, Loss, Pinball
from isotone.curves.losses.prefix_losses import add_linear_losses, add_table_losses
from isotone.curves.records import Records
from isotone.order.projection.chain import pool_adjacent_violators

__all__ = ["CROWDED", "CURVES", "DESIGNS", "OTHER_CURVES", "Reference", "least_risk", "planned", "risk"]

Floats = NDArray[np.floating[Any]]

CURVES: dict[str, Callable[[Floats, float], Floats]] = {
    "logistic": lambda u, place: 1 / (1 + np.exp(-12 * (u - place))),
    "step": lambda u, place: 0.2 + 0.6 * (u > place),
    "root": lambda u, place: np.sqrt(u),
}
"""Curves as functions of the rank of ``x``, so that they are the same for every design; they rise at ``place``."""

OTHER_CURVES: dict[str, Callable[[Floats, float], Floats]] = {
    "linear": lambda u, place: u,
    "constant": lambda u, place: 0.4 + 0 * u,
    "low": lambda u, place: 0.02 + 0.1 * u,
    "stairs": lambda u, place: 0.1 + 0.8 * np.floor(4 * (0.6 * u + 0.4 * place)) / 3,
}
"""More curves for plans: straight, flat, with few positives, and with several steps."""

DESIGNS: dict[str, Callable[[Floats], Floats]] = {"uniform": lambda u: u, "skewed": lambda u: u**5}
"""The ``x`` of a rank between 0 and 1: evenly spread, or crowded at the lower end."""

CROWDED: dict[str, Callable[[Floats], Floats]] = {
    "crowd": lambda u: np.interp(u, [0, 0.05, 0.95, 1], [0, 0.6, 0.63, 1]),
    "exponential": lambda u: np.expm1(6 * u) / np.expm1(6.0),
    "ages": lambda u: np.round(70 * u**1.5) / 70,
    "middle": lambda u: 0.5 + 0.5 * (2 * u - 1) ** 7,
    "heaps": lambda u: np.interp(u, [0, 0.1, 0.35, 0.45, 0.75, 0.85, 1], [0, 0.2, 0.2, 0.5, 0.5, 0.9, 1]),
}
"""Designs that are harder: most ``x`` in a small part of the range, near one end, on whole years, about the middle, and on two
points."""

PLANNED = (
    *((curve, "uniform") for curve in ("logistic", "linear", "step", "stairs", "constant", "low")),
    *((curve, "crowd") for curve in ("logistic", "linear", "step")),
    *((curve, "exponential") for curve in ("logistic", "stairs")),
    *((curve, "ages") for curve in ("linear", "step")),
    *((curve, "middle") for curve in ("stairs", "logistic", "step")),
    *((curve, "heaps") for curve in ("step", "linear", "low", "constant")),
)
"""Curves and designs of a plan, from easy to hard. No population that plans are judged by is among them."""

UNIT = (Fraction(0), Fraction(1))
OPTIMUM_VALUES = 1024
OPTIMUM_UNIT = 1 << 30


@dataclass(frozen=True)
class Reference:
    """A synthetic population.

    With ``labels``, ``y`` is 0 or 1. Otherwise it is the curve with Gaussian noise of 0.1, or has a beta law about the curve
    if ``wide``, with a fifth of the variance of labels.
    """

    curve: str
    design: str
    labels: bool
    wide: bool = False

    def sample(self, n: int, points: int, rng: np.random.Generator) -> Records:
        """``n`` records on grids of the unit square."""
        u = rng.random(n)
        # a random place, so that no number of bins fits it by chance
        truth = (CURVES | OTHER_CURVES)[self.curve](u, float(rng.uniform(0.3, 0.7)))
        if self.labels:
            y = (rng.random(n) < truth) * 1.0
        elif self.wide:
            y = rng.beta(np.maximum(4 * truth, 1e-3), np.maximum(4 * (1 - truth), 1e-3))
        else:
            y = np.clip(truth + rng.normal(0, 0.1, n), 0, 1)
        x_grid, y_grid = Grid(*UNIT, points), Grid(*UNIT, FINE + 1)
        return Records(
            x_grid.snap(np.asarray((DESIGNS | CROWDED)[self.design](u), np.float64)),
            y_grid.snap(np.asarray(y, np.float64)),
            np.ones(n, np.int64),
        ).sorted()


def planned(labels: bool | None) -> list[Reference]:
    """The populations of a plan. With None every other one has labels.

    Without labels two of three are wide, and none has few positives, which is a matter of labels.
    """
    pairs = [(curve, design) for curve, design in PLANNED if labels is not False or curve != "low"]
    return [
        Reference(curve, design, place % 2 == 1 if labels is None else labels, wide=place % 3 > 0)
        for place, (curve, design) in enumerate(pairs)
    ]


def risk(curve: Curve, records: Records, loss: Loss) -> float:
    """The mean loss of a curve on records with ``y`` between 0 and 1."""
    low, high = (float(end) for end in loss.values(UNIT))
    predictions = low + (high - low) * np.asarray(curve.at(records.cells))
    return float(np.mean(loss.evaluate(predictions, records.levels / FINE)))


def least_risk(records: Records, loss: Loss) -> float:
    """The mean loss of the best increasing curve without privacy."""
    n, runs = records.cells.size, Runs.of(records)
    if loss.by_means:
        low, high = (float(end) for end in loss.values(UNIT))
        y = records.levels / FINE
        fitted = pool_adjacent_violators(y, np.ones(n))
        return float(np.mean(loss.evaluate(np.clip(fitted, low, high), y)))
    out = np.zeros(runs.point.size + 1, dtype=np.int64)
    if isinstance(loss, (Absolute, Pinball)):
        rule, heap = loss.slopes(FINE, Fraction(1)), np.empty((2, n + 1), dtype=np.int64)
        add_linear_losses(
            records.levels, records.weights, runs.start, 0, runs.point.size, 1, 0, FINE, rule.above, rule.below,
            heap[0], heap[1], out,
        )  # fmt: skip
        return int(out[-1]) * loss.unit(FINE, FINE, Fraction(1)) / n
    # the loss itself and not its integer table, whose parameters may be rounded: nothing private is here
    grid = np.arange(OPTIMUM_VALUES + 1) / OPTIMUM_VALUES
    table = np.rint(loss.evaluate(grid[None, :], grid[:, None]) * OPTIMUM_UNIT).astype(np.int64)
    least = np.empty(OPTIMUM_VALUES + 1, dtype=np.int64)
    add_table_losses(
        records.rows(table), records.weights, runs.start, 0, runs.point.size, 1, 0,
        OPTIMUM_VALUES, table, least, out,
    )  # fmt: skip
    return int(out[-1]) / OPTIMUM_UNIT / n
