"""Curves: the draws of ``isotone reproduce curves-posterior`` and ``python -m benchmarks calibration``."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Iterator

from experiments.common import read_table

from benchmarks._rivals.environments import ROOT
from benchmarks._rivals.rows import Row
from benchmarks._rows import unfinished
from isotone.mechanism import Progress

__all__ = ["bins_of", "rows"]

STORED = ROOT / "docs" / "reproduction" / "curves_posterior"
CALIBRATION = ROOT / "docs" / "benchmarks"
MEASURE = "rms distance to the fit"
ENOUGH = 20
"""Cells of fewer draws say too little about one case."""
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
    """Draw and store all curves again. A run that was interrupted goes on."""
    sys.path.insert(0, str(ROOT / "experiments"))
    import curves_posterior

    place = unfinished("curves-posterior")
    curves_posterior.run(place, False, progress)
    shutil.copytree(place, STORED, dirs_exist_ok=True)
    shutil.rmtree(place)
    subprocess.run([sys.executable, "-m", "benchmarks", "calibration"], cwd=ROOT, check=True)


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Twelve populations that were held out, and the scores of a classifier; quickly only what is stored of them."""
    if not quick:
        draw(progress)
    cases: dict[tuple[str, int, float, bool, str], dict[str, float]] = {}
    for row in read_table(STORED / "cells.csv"):
        if int(row["repetitions"]) < ENOUGH:
            continue
        seen, draws = row["held_out"] != "True", f"{row['repetitions']} draws"
        key = (row["population"], int(row["n"]), float(row["epsilon"]), seen, draws)
        cases.setdefault(key, {})[row["method"]] = math.sqrt(float(row["fit"]))
    for row in read_table(CALIBRATION / "calibration.csv"):
        key = ("scores of a classifier", 569, float(row["epsilon"]), True, "100 draws, 10 or 40 of libraries")
        name = {'isotone, output="records"': "records"}.get(row["method"], row["method"])
        cases.setdefault(key, {})[name] = float(row["rmse_to_fit"])
    for (name, n, epsilon, seen, how), errors in cases.items():
        case, guarantee = f"{name}, {n:,} records", f"ε = {epsilon:g}"
        for rival, value, hindsight, chosen in _rivals(n, epsilon, errors):
            yield Row("curves", case, guarantee, MEASURE, seen, rival, value, hindsight, chosen, how)


def _rivals(n: int, epsilon: float, errors: dict[str, float]) -> Iterator[tuple[str, float, float, str]]:
    yield 'isotone, output="records"', errors["records"], math.nan, ""
    for rival, suffix in FAMILIES.items():
        if suffix in errors:
            yield rival, errors[suffix], math.nan, ""
            continue
        tried = {
            int(name.split(" ", 1)[0]): value
            for name, value in errors.items()
            if name.split(" ", 1)[-1] == suffix and name[0].isdigit()
        }
        least = min(tried, key=tried.__getitem__)
        yield rival, tried[bins_of(n, epsilon, list(tried))], tried[least], f"{least} bins"
    for rival, ways in LIBRARIES.items():
        found = {choice: errors[name] for choice, name in ways.items() if name in errors}
        if found:
            least, public = min(found, key=found.__getitem__), next(iter(found.values()))
            yield rival, public, found[least] if len(ways) > 1 else math.nan, least
