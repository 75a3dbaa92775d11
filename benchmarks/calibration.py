"""Calibration of a classifier: isotone and every rival on the same 569 scores, at four ε."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from experiments._curve_rivals import RIVALS, before, histogram
from experiments.common import DATA, read_table, write_table
from numpy.typing import NDArray

from benchmarks._rivals import curve_ways
from benchmarks._rivals.about import pinned
from benchmarks._rivals.environments import ROOT, run_arrays
from isotone.curves.cuts import ChainProblem
from isotone.curves.losses import Squared
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.mechanism import Progress
from isotone.order.isotonic import pool_adjacent_violators

Floats = NDArray[np.float64]
UNIT, POINTS, DELTA = (Fraction(0), Fraction(1)), 4096, 1e-6
EPSILONS = tuple(Fraction(each) for each in ("1/10", "3/10", "1", "3"))
DRAWS = 100
FORMER, RULE = "the former `auto`", "1.4·√(εn) bins, a public rule"
LIBRARIES: dict[str, tuple[str, Mapping[str, float], int]] = {
    "diffprivlib LogisticRegression": ("diffprivlib_curve", {}, 40),
    "InterpretML private boosting (DP-EBM), δ = 10⁻⁶": ("interpret_curve", {}, 10),
    "the same with a learning rate of 0.1": ("interpret_curve", {"learning_rate": 0.1}, 10),
}
"""Ways of other libraries, what they are given, and how often they are run."""
PACKAGES = [f"{name} {pinned(name)}" for name in ("diffprivlib", "interpret-core")]


def scores() -> tuple[Floats, Floats]:
    """Scores and labels."""
    rows = read_table(DATA / "curves" / "calibration_breast_cancer.csv")
    return np.array([float(row["score"]) for row in rows]), np.array([float(row["label"]) for row in rows])


def on_grid(x: Floats, y: Floats) -> Records:
    """The same as records."""
    levels = Grid(*UNIT, FINE + 1).snap(y)
    return Records(Grid(*UNIT, POINTS).snap(x), levels, np.ones(x.size, np.int64)).sorted()


Cell = tuple[float, float]
"""A root mean squared distance and its standard error."""


def here(records: Records, draws: int) -> dict[str, list[Cell]]:
    """Distances to the fit without privacy, by method and epsilon, for what runs in this environment."""
    fitted = pool_adjacent_violators(records.levels / FINE, np.ones(records.levels.size))
    n, every = records.levels.size, np.arange(POINTS)
    found: dict[str, list[Cell]] = {}
    for place, epsilon in enumerate(EPSILONS):
        rule = round(1.4 * (float(epsilon) * n) ** 0.5)
        ways: dict[str, Any] = {FORMER: before, RULE: histogram(rule), **RIVALS}
        for output in ("records", "population"):
            problem = ChainProblem(Squared(), UNIT, Grid(*UNIT, POINTS), labels=True, output=output)
            built = mechanism_for(problem.sized(n, CurveSetting(epsilon)))
            name = f'isotone, output="{output}"'
            values = [built.simulate(records, np.random.default_rng([place, i])) for i in range(draws)]
            found.setdefault(name, []).append(
                _distance([curve.at(every)[records.cells] - fitted for curve in values])
            )
        for number, (name, way) in enumerate(ways.items(), 1):
            seeds = [np.random.default_rng([place, i, number]) for i in range(draws)]
            values = [way(records, POINTS, n, epsilon, True, rng) for rng in seeds]
            found.setdefault(name, []).append(_distance([each[records.cells] - fitted for each in values]))
    return found


def joined(records: Records, draws: int) -> dict[str, list[dict[str, Cell]]]:
    """The same for histograms whose means are joined by lines: by family and epsilon, for each choice, the rule first."""
    fitted = pool_adjacent_violators(records.levels / FINE, np.ones(records.levels.size))
    found: dict[str, list[dict[str, Cell]]] = {family: [] for family in curve_ways.FAMILIES}
    for place, epsilon in enumerate(EPSILONS):
        given = records, POINTS, records.levels.size, epsilon, True
        drawn = [curve_ways.ways(*given, [place, i]) for i in range(draws)]
        for family, cells in found.items():
            choices = {name: [one[family][name] for one in drawn] for name in drawn[0][family]}
            cells.append(
                {name: _distance([each - fitted for each in values]) for name, values in choices.items()}
            )
    return found


def _distance(apart: Any) -> Cell:
    """The root of the mean squared distance over draws, and what chance leaves open about it."""
    squares = np.mean(np.square(apart), axis=1)
    root = float(np.sqrt(squares.mean()))
    return root, float(squares.std(ddof=1) / len(squares) ** 0.5 / (2 * root)) if len(squares) > 1 else 0.0


def elsewhere(x: Floats, y: Floats) -> dict[str, list[Cell]]:
    """The same for other libraries, which run in an environment of their own; nothing for those that do not run."""
    order = np.argsort(x, kind="stable")
    fit = np.empty_like(x)
    fit[order] = pool_adjacent_violators(y[order], np.ones(x.size))
    found: dict[str, list[Cell]] = {}
    for name, (way, given, draws) in LIBRARIES.items():
        found[name] = []
        for epsilon in EPSILONS:
            data = {"x": x, "y": y, "epsilon": float(epsilon), "delta": DELTA, **given}
            drawn = run_arrays("libraries", "benchmarks._rivals.library_ways", data, way, str(draws))
            if drawn is None:
                break
            found[name].append(_distance(drawn["raw"] - fit))
    return found


def run(quick: bool, progress: Progress) -> str:
    x, y = scores()
    progress(0.0, "curves and histograms")
    records, draws = on_grid(x, y), 2 if quick else DRAWS
    found, lines = here(records, draws), joined(records, draws)
    found |= {family: [next(iter(cell.values())) for cell in cells] for family, cells in lines.items()}
    progress(0.5, "other libraries")
    others = {name: [] for name in LIBRARIES} if quick else elsewhere(x, y)
    names = [name for name in RIVALS if name != "logistic curve"]
    best = [min((found[name][i], name) for name in names) for i in range(len(EPSILONS))]
    if not quick:
        _store(found | others, lines)
    progress(1.0, "done")
    return "\n".join(
        [
            "Root mean squared distance to the isotonic fit without privacy, at the scores, with standard errors in brackets."
            f" {DRAWS} draws a cell (fewer of other libraries), the same 569 scores everywhere; draws of isotone and of histograms are"
            f" simulated with seeds, and released ones have the same law. Versions of other libraries: {', '.join(PACKAGES)}.",
            "",
            "- *Bins* are one noisy histogram of (bin, label) at full ε, pooled. Their number is given, chosen by a public rule in"
            " one row, and in hindsight for each ε in the last. *Equal counts* spend a tenth of ε on cuts that halve the"
            " records, a *quantile tree* a tenth on a tree of counts with 16 children a node. Where means are *joined by lines*, they run through the"
            " middles of bins, and the number of bins, the share of the tree and how far sums are spread before they are pooled are chosen in hindsight.",
            "- *Logistic curve* is Platt's calibration by objective perturbation, which protects a replaced record only;"
            " diffprivlib's logistic regression is the same idea.",
            "",
            "| | " + " | ".join(f"ε = {float(epsilon):g}" for epsilon in EPSILONS) + " |",
            "|---|" + "---|" * len(EPSILONS),
            *(_line(name, row) for name, row in {**found, **others}.items()),
            "| best of bins, equal counts and trees, in hindsight | "
            + " | ".join(f"{cell[0]:.4f} ({name})" for cell, name in best)
            + " |",
            *(_best(family, cells) for family, cells in lines.items()),
        ]
    )


def _line(name: str, row: list[Cell]) -> str:
    if len(row) < len(EPSILONS):
        return f"| {name} | " + " | ".join(["did not run"] * len(EPSILONS)) + " |"
    return f"| {name} | " + " | ".join(f"{value:.4f} ({error:.4f})" for value, error in row) + " |"


def _best(family: str, cells: list[dict[str, Cell]]) -> str:
    least = [min((cell, choice) for choice, cell in found.items()) for found in cells]
    return (
        f"| {family}, in hindsight | "
        + " | ".join(f"{cell[0]:.4f} ({choice})" for cell, choice in least)
        + " |"
    )


def _store(rows: dict[str, list[Cell]], lines: dict[str, list[dict[str, Cell]]]) -> None:
    """The same as a table, one row for every cell that was run, and the best choice of families with many."""
    cells = [
        (name, float(e), *cell) for name, row in rows.items() for e, cell in zip(EPSILONS, row, strict=False)
    ]
    for family, each in lines.items():
        for e, found in zip(EPSILONS, each, strict=True):
            choice = min(found, key=found.__getitem__)
            cells.append((f"{family}: {choice}", float(e), *found[choice]))
    names = ("method", "epsilon", "rmse_to_fit", "standard_error")
    columns = {name: [_short(cell[i]) for cell in cells] for i, name in enumerate(names)}
    write_table(ROOT / "docs" / "benchmarks", "calibration", columns)


def _short(value: str | float) -> str | float:
    return value if isinstance(value, str) else float(f"{value:.5g}")
