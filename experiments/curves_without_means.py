"""Which mechanisms pay for losses that no sum determines: absolute, Huber, and quantiles off the middle.

Excess risk over the best curve without privacy, as ratios to what ``auto`` takes: geometric means over fourteen
populations of ``isotone.curves.cuts``, seeded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from common import save_figure, write_table
from isotone.curves.cuts import (
    CURVES,
    DESIGNS,
    OTHER_CURVES,
    ChainProblem,
    CurveMechanism,
    Reference,
    StepFit,
    TreeMechanism,
    least_risk,
    risk,
)
from isotone.curves.histograms import HistogramFit
from isotone.curves.lines import LineFit, RefinedLineFit
from isotone.curves.losses import parse_loss
from isotone.curves.problem import CurveSetting, Grid
from isotone.curves.regression import rule_for
from isotone.curves.shape_posterior import BinnedDraw
from isotone.mechanism import Progress

UNIT = (Fraction(0), Fraction(1))
LOSSES: dict[str, Any] = {
    "absolute": "absolute",
    "huber 0.1": ("huber", "0.1"),
    "quantile 0.8": ("pinball", "0.8"),
    "quantile 0.95": ("pinball", "0.95"),
}
BUILDERS: dict[str, Callable[[ChainProblem], CurveMechanism]] = {
    "few bins": BinnedDraw.of,
    "lines": LineFit.of,
    "refined lines": RefinedLineFit.of,
    "steps": StepFit.of,
    "histograms": HistogramFit.of,
    "tree": TreeMechanism.of,
}
CELLS = ((10, "1"), (100, "0.2"), (500, "4"), (2_500, "1"), (8_000, "1"), (20_000, "1"), (50_000, "0.3"))
REPETITIONS = 4


def excesses(loss: Any, n: int, budget: str, repetitions: int) -> tuple[str, dict[str, list[float]]]:
    """What ``auto`` is, and the logarithm of the excess risk of every mechanism on the same records."""
    problem = ChainProblem(loss, UNIT, Grid(*UNIT, 4096)).sized(n, CurveSetting(Fraction(budget)))
    built = {name: build(problem) for name, build in BUILDERS.items()}
    found: dict[str, list[float]] = {name: [] for name in built}
    kinds = enumerate(itertools.product(CURVES | OTHER_CURVES, DESIGNS))
    for (place, (curve, design)), turn in itertools.product(list(kinds), range(repetitions)):
        records = Reference(curve, design, labels=False).sample(
            n, 4096, np.random.default_rng([place, turn, n])
        )
        least = least_risk(records, loss)
        for name, mechanism in built.items():
            drawn = mechanism.simulate(records, np.random.default_rng([place, turn, 5]))
            found[name].append(float(np.log(max(risk(drawn, records, loss) - least, 1e-9))))
    return rule_for(problem).name, found


def run(out: Path, quick: bool, progress: Progress) -> None:
    cases = [*itertools.product(LOSSES, CELLS)][: 1 if quick else None]
    rows: list[dict[str, Any]] = []
    for done, (name, (n, budget)) in enumerate(cases):
        rows += ratios(name, n, budget, 1 if quick else REPETITIONS)
        progress((done + 1) / len(cases), f"{name}, {n} records, epsilon {budget}")
    _write(out, rows)
    _picture(out, rows)


def few(out: Path) -> None:
    """The first cell of a full run."""
    _write(out, ratios(next(iter(LOSSES)), *CELLS[0], REPETITIONS))


def ratios(name: str, n: int, budget: str, repetitions: int) -> list[dict[str, Any]]:
    """A row for every mechanism."""
    auto, found = excesses(parse_loss(LOSSES[name]), n, budget, repetitions)
    rows: list[dict[str, Any]] = []
    for mechanism, logs in found.items():
        apart = np.array(logs) - found[auto]
        rows.append(
            {
                "loss": name,
                "n": n,
                "epsilon": float(Fraction(budget)),
                "auto": auto,
                "mechanism": mechanism,
                "ratio": float(f"{np.exp(apart.mean()):.4g}"),
                "standard_error_of_log": float(f"{apart.std(ddof=1) / len(apart) ** 0.5:.3g}"),
            }
        )
    return rows


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    write_table(out, "ratios", {key: [row[key] for row in rows] for key in rows[0]})


def _picture(out: Path, rows: list[dict[str, Any]]) -> None:
    losses = list(dict.fromkeys(row["loss"] for row in rows))
    figure, grid = plt.subplots(1, len(losses), figsize=(3.4 * len(losses), 3.6), squeeze=False)
    for ax, loss in zip(grid[0], losses, strict=True):
        mine = [row for row in rows if row["loss"] == loss]
        labels = list(dict.fromkeys(f"{row['n']}, {row['epsilon']:g}" for row in mine))
        for name in BUILDERS:
            ax.plot(labels, [row["ratio"] for row in mine if row["mechanism"] == name], "o-", label=name)
        ax.set_yscale("log")
        ax.set_title(loss)
        ax.tick_params(axis="x", rotation=60)
        ax.set_xlabel("records, ε")
    grid[0, 0].set_ylabel("excess risk over that of auto")
    grid[0, -1].legend(fontsize=7)
    save_figure(figure, out, "ratios")
    plt.close(figure)
