"""Calibration of a classifier: isotone and every rival on the same 569 scores, at four ε."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from experiments._curve_rivals import EQUAL_COUNTS, HISTOGRAMS, RIVALS, before, histogram
from experiments.common import DATA, read_table
from numpy.typing import NDArray

from benchmarks.switching import ROOT, rivals
from isotone.curves.chain.choose import ChainProblem
from isotone.curves.grids import FINE, Grid
from isotone.curves.losses.known_losses import Squared
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting
from isotone.mechanism import Progress
from isotone.order.projection.chain import pool_adjacent_violators

Floats = NDArray[np.float64]
UNIT, POINTS, DELTA = (Fraction(0), Fraction(1)), 4096, 1e-6
EPSILONS = tuple(Fraction(each) for each in ("1/10", "3/10", "1", "3"))
LIBRARIES: dict[str, tuple[str, Mapping[str, float], int]] = {
    "diffprivlib LogisticRegression": ("diffprivlib_curve", {}, 40),
    "InterpretML private boosting (DP-EBM), δ = 10⁻⁶": ("interpret_curve", {}, 10),
    "the same with a learning rate of 0.1": ("interpret_curve", {"learning_rate": 0.1}, 10),
}
"""Ways of other libraries, what they are given, and how often they are run."""


def scores() -> tuple[Floats, Floats]:
    """Scores and labels."""
    rows = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    return np.array([float(row["score"]) for row in rows]), np.array([float(row["label"]) for row in rows])


def on_grid(x: Floats, y: Floats) -> Records:
    """The same as records."""
    levels = Grid(*UNIT, FINE + 1).snap(y)
    return Records(Grid(*UNIT, POINTS).snap(x), levels, np.ones(x.size, np.int64)).sorted()


def here(records: Records, draws: int) -> dict[str, list[float]]:
    """Root mean squared distances to the fit without privacy, by method and epsilon, for what runs in this environment."""
    fitted = pool_adjacent_violators(records.levels / FINE, np.ones(records.levels.size))
    n, every = records.levels.size, np.arange(POINTS)
    found: dict[str, list[float]] = {}
    for place, epsilon in enumerate(EPSILONS):
        rule = round(1.4 * (float(epsilon) * n) ** 0.5)
        ways: dict[str, Any] = {
            "the former `auto`": before,
            "one histogram of (bin, label), 1.4·√(εn) bins": histogram(rule),
            **RIVALS,
        }
        for output in ("records", "population"):
            problem = ChainProblem(Squared(), UNIT, Grid(*UNIT, POINTS), labels=True, output=output)
            built = problem.mechanism(n, CurveSetting(epsilon))
            name = f'isotone, output="{output}"'
            values = [built.simulate(records, np.random.default_rng([place, i])) for i in range(draws)]
            found.setdefault(name, []).append(
                _distance([curve.at(every) for curve in values], records, fitted)
            )
        for number, (name, way) in enumerate(ways.items(), 1):
            seeds = [np.random.default_rng([place, i, number]) for i in range(draws)]
            values = [way(records, POINTS, n, epsilon, True, rng) for rng in seeds]
            found.setdefault(name, []).append(_distance(values, records, fitted))
    return found


def _distance(values: list[Any], records: Records, fitted: Floats) -> float:
    return float(np.sqrt(np.mean([(each[records.cells] - fitted) ** 2 for each in values])))


def elsewhere(x: Floats, y: Floats, python: str, quick: bool) -> dict[str, list[float]]:
    """The same for other libraries, which run in an environment of their own; those that do not run are left out."""
    order = np.argsort(x, kind="stable")
    fit = np.empty_like(x)
    fit[order] = pool_adjacent_violators(y[order], np.ones(x.size))
    found: dict[str, list[float]] = {}
    for name, (way, given, draws) in LIBRARIES.items():
        for epsilon in EPSILONS:
            with tempfile.TemporaryDirectory() as folder:
                source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
                data: dict[str, Any] = {"x": x, "y": y, "epsilon": float(epsilon), "delta": DELTA, **given}
                np.savez(source, **data)
                draw = "1" if quick else str(draws)
                command = [python, "-m", "benchmarks._switching_rivals", way, draw, str(source), str(target)]
                done = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE)
                if done.returncode:
                    break
                with np.load(target) as stored:
                    raw = stored["raw"]
            found.setdefault(name, []).append(float(np.sqrt(np.mean((raw - fit) ** 2))))
    return {name: row for name, row in found.items() if len(row) == len(EPSILONS)}


def run(quick: bool, progress: Progress) -> str:
    x, y = scores()
    progress(0.0, "curves and histograms")
    found = here(on_grid(x, y), 2 if quick else 40)
    progress(0.5, "other libraries")
    python, note = (sys.executable, "not run") if quick else rivals()
    others = {} if quick else elsewhere(x, y, python, quick)
    names = [f"{bins} bins" for bins in HISTOGRAMS] + [f"{bins} equal counts" for bins in EQUAL_COUNTS]
    best = [min((found[name][i], name) for name in names) for i in range(len(EPSILONS))]
    lines = [
        "Root mean squared distance to the isotonic fit without privacy, at the scores. 40 draws a cell (10 of DP-EBM), the same"
        " data everywhere; draws of isotone and of histograms are simulated with seeds, and released ones have the same law."
        f" Other libraries: {note}.",
        "",
        "- *One histogram* measures labels 1 and 0 in every bin at full ε, and pools. Its number of bins is a public rule in one"
        " row, given in others, and chosen in hindsight for each ε in one. *Equal counts* spend a tenth of ε on cuts that halve the records.",
        "- *Logistic curve* is Platt's calibration by objective perturbation, which protects a replaced record only; diffprivlib's"
        " logistic regression is the same idea.",
        "",
        "| | " + " | ".join(f"ε = {float(epsilon):g}" for epsilon in EPSILONS) + " |",
        "|---|" + "---|" * len(EPSILONS),
    ]
    rows = {**found, **others}
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{value:.4f}" for value in row) + " |")
    cells = " | ".join(f"{value:.4f} ({name})" for value, name in best)
    lines.append(f"| best histogram or equal counts in hindsight | {cells} |")
    progress(1.0, "done")
    return "\n".join(lines)
