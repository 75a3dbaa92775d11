"""Curves: populations and ways of ``isotone reproduce curves-posterior``, and ``python -m benchmarks calibration``."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from experiments.common import read_table

from benchmarks._rivals import curve_ways
from benchmarks._rivals.environments import ROOT
from benchmarks._rivals.rows import STORED, Row
from benchmarks._rows import unfinished
from isotone.curves.problem import Records
from isotone.mechanism import Progress

__all__ = ["bins_of", "rows"]

CELLS = STORED / "curves_cells.csv"
CALIBRATION = ROOT / "docs" / "benchmarks"
MEASURE = "rms distance to the fit"
DATA_SETS = 10
"""For each cell, the first of those of the experiment, which has twice as many and fewer rivals."""
Cell = tuple[float, float, float]
"""An error, its standard error, and that of its ratio to isotone's on the same data sets, relatively."""
NONE = (math.nan, math.nan, math.nan)
FAMILIES = {
    "one histogram of (bin, label) at full ε, pooled": "bins",
    "bins of equal counts, pooled": "equal counts",
    "bins by a quantile tree, pooled": "bins by a quantile tree",
    "logistic curve (Platt)": "logistic curve",
}
LIBRARIES = {
    "diffprivlib LogisticRegression": {"": "diffprivlib LogisticRegression"},
    "InterpretML DP-EBM, with δ = 10⁻⁶": {
        "its own learning rate": "InterpretML private boosting (DP-EBM), δ = 10⁻⁶",
        "a learning rate of 0.1": "the same with a learning rate of 0.1",
    },
}
"""Ways of other libraries, which were only run on the scores of a classifier: the first is as they come."""


def bins_of(n: int, epsilon: float, among: list[int]) -> int:
    """The public rule for a number of bins, 1.4·√(εn), as the nearest of those tried."""
    wanted = math.log(1.4 * math.sqrt(epsilon * n))
    return min(among, key=lambda each: abs(math.log(each) - wanted))


def draw(progress: Progress) -> None:
    """Draw and store all curves of held-out populations again. A run that was interrupted goes on."""
    sys.path.insert(0, str(ROOT / "experiments"))
    import curves_posterior

    place = unfinished("curves")
    held_out = [
        (*task[:3], DATA_SETS)
        for task in curves_posterior.tasks(quick=False)
        if task[0] in curves_posterior.HELD_OUT and task[1] < curves_posterior.MANY
    ]
    curves_posterior.cells(place, held_out, progress, _cell, 2 * len(curve_ways.FAMILIES))
    shutil.move(place / "cells.csv", CELLS)
    subprocess.run([sys.executable, "-m", "benchmarks", "calibration"], cwd=ROOT, check=True)


def _cell(task: Any) -> list[dict[str, Any]]:
    """The rows of a cell; of families with many choices the rule and the best."""
    import curves_posterior

    def further(records: Records, n: int, epsilon: Fraction, labels: bool, seed: list[int]) -> dict[str, Any]:
        found = curve_ways.ways(records, curves_posterior.POINTS, n, epsilon, labels, seed)
        return {
            f"{family}: {choice}": each for family, fits in found.items() for choice, each in fits.items()
        }  # a value for each record

    made = curves_posterior.cell(task, further)
    kept = [row for row in made if ": " not in row["method"]]
    for family in curve_ways.FAMILIES:
        of_family = [row for row in made if row["method"].startswith(family + ": ")]
        best = min(of_family, key=lambda row: row["fit"])
        kept += [of_family[0] | {"method": family}, best]
    return kept


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Twelve populations that were held out, and the scores of a classifier; quickly only what is stored of them."""
    if not quick:
        draw(progress)
    cases: dict[tuple[str, int, float, bool, str], dict[str, Cell]] = {}
    for row in read_table(CELLS):
        seen, draws = row["held_out"] != "True", f"{row['repetitions']} draws"
        key = (row["population"], int(row["n"]), float(row["epsilon"]), seen, draws)
        root = math.sqrt(float(row["fit"]))
        doubt, paired = float(row["fit_error"]) / (2 * root), float(row["fit_ratio_error"])
        cases.setdefault(key, {})[row["method"]] = root, doubt, paired
    for row in read_table(CALIBRATION / "calibration.csv"):
        key = ("scores of a classifier", 569, float(row["epsilon"]), True, "100 draws, 10 or 40 of libraries")
        name = {'isotone, output="records"': "records"}.get(row["method"], row["method"])
        cases.setdefault(key, {})[name] = float(row["rmse_to_fit"]), float(row["standard_error"]), math.nan
    for (name, n, epsilon, seen, how), errors in cases.items():
        case, guarantee = f"{name}, {n:,} records", f"ε = {epsilon:g}"
        for rival, public, hindsight, chosen in _rivals(n, epsilon, errors):
            row = Row("curves", case, guarantee, MEASURE, seen, rival, public[0], hindsight[0], chosen, how)
            doubts = {"hindsight_error": hindsight[1], "hindsight_paired": hindsight[2]}
            yield replace(row, error=public[1], paired=public[2], **doubts)


def _rivals(n: int, epsilon: float, errors: dict[str, Cell]) -> Iterator[tuple[str, Cell, Cell, str]]:
    yield 'isotone, output="records"', errors["records"], NONE, ""
    for rival, suffix in FAMILIES.items():
        if suffix in errors:
            yield rival, errors[suffix], NONE, ""
            continue
        tried = {
            int(name.split(" ", 1)[0]): value
            for name, value in errors.items()
            if name.split(" ", 1)[-1] == suffix and name[0].isdigit()
        }
        least = min(tried, key=tried.__getitem__)
        yield rival, tried[bins_of(n, epsilon, list(tried))], tried[least], f"{least} bins"
    for rival in curve_ways.FAMILIES:
        if rival in errors:
            chosen, best = next(
                (n.split(": ")[1], e) for n, e in errors.items() if n.startswith(rival + ": ")
            )
            yield rival, errors[rival], best, chosen
    for rival, ways in LIBRARIES.items():
        found = {choice: errors[name] for choice, name in ways.items() if name in errors}
        if found:
            least, public = min(found, key=found.__getitem__), next(iter(found.values()))
            yield rival, public, found[least] if len(ways) > 1 else NONE, least
