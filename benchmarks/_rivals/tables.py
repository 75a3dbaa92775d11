"""Tables of counts: every rival in ``table_ways`` with every choice it has, against the two-stage release."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._rivals.rows import Key, Row
from benchmarks._rivals.table_ways import WAYS, PairedDraws, Published, Way
from isotone.mechanism import Progress
from isotone.tables import TwoStageMechanism

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "experiments"))
from experiments._held_out import held_out
from experiments._tables import Table, load
from experiments.common import DATA, read_table

__all__ = ["METHODS", "WANTED", "rows"]

MEASURES = ("rms error of an estimate", "rms error in the table", "distance of the distributions")
EPSILONS = (0.3, 1.0)
DRAWS, FEW = 12, 2
"""Draws of each way, and in a quick run."""


def _ours(emphasis: int | None, rounded: bool = False) -> Way:
    def publish(table: Table, epsilon: float, rng: np.random.Generator, setting: Any) -> list[Published]:
        mechanism = TwoStageMechanism(table.upper, repr(epsilon), emphasis)
        full = mechanism.run(table.counts, PairedDraws(rng))
        whole = np.rint(full.estimates) if rounded else full.values
        return [Published(np.asarray(whole, np.int64), full.estimates)]

    return Way(publish)


METHODS: dict[str, Way] = {
    "isotone, TwoStageMechanism": _ours(None),
    "isotone, emphasis=0": _ours(0),
    "isotone, emphasis=0, estimates rounded": _ours(0, rounded=True),
    "isotone, emphasis=1": _ours(1),
    **WAYS,
}
WANTED: dict[str, str] = dict(zip(MEASURES, list(METHODS)[1:4], strict=True))
"""What of isotone is for whoever needs one column of the release only."""


def _new(name: str, seed: int, size: int, upper: int) -> Table:
    """A population that was written after all constants had been chosen."""
    rng = np.random.default_rng(seed)
    makers: dict[str, Callable[[], NDArray[np.floating] | NDArray[np.integer]]] = {
        "visits in clusters": lambda: rng.poisson(4.0 * rng.poisson(1.3, size)),
        "logistic bell": lambda: rng.logistic(35, 7, size),
        "two geometrics": lambda: np.where(
            rng.random(size) < 0.8, rng.geometric(0.5, size), rng.geometric(0.04, size)
        ),
        "flat with a spike": lambda: np.where(rng.random(size) < 0.25, 12, rng.integers(0, 41, size)),
    }
    drawn = np.floor(makers[name]())
    return Table(name, np.clip(drawn, 0, upper).astype(np.int64), upper)


def _industries() -> Table:
    """How many finer codes each code of industries has directly below it."""
    below = Counter(row["parent"] for row in read_table(DATA / "orders" / "naics.csv"))
    codes = [row["code"] for row in read_table(DATA / "orders" / "naics.csv")]
    return Table("codes below codes", np.minimum([below[code] for code in codes], 15).astype(np.int64), 15)


def cases(quick: bool) -> list[tuple[Table, bool]]:
    """Tables, and whether constants were chosen on them, or a rule was changed after they had been looked at."""
    small = _new("two geometrics", 204, 300, 60)
    if quick:
        return [(small, False)]
    new = [
        small,
        _new("visits in clusters", 201, 1800, 40),
        _new("logistic bell", 202, 900, 80),
        _new("flat with a spike", 203, 2200, 40),
        _industries(),
    ]
    seen = [held_out("hurdle"), held_out("left tail"), load("crime"), load("schools"), load("binomial")]
    return [*((table, False) for table in new), *((table, True) for table in seen)]


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """All errors of every way on every table."""
    todo = cases(quick)
    for done, (table, seen) in enumerate(todo):
        case = f"{table.name}, {len(table.counts):,} categories"
        for epsilon in EPSILONS[-1:] if quick else EPSILONS:
            progress(done / len(todo), f"{table.name}, ε = {epsilon:g}")
            for name, way in METHODS.items():
                found = _errors(way, table, epsilon, FEW if quick else DRAWS)
                for measure in MEASURES:
                    key = ("tables", case, f"ε = {epsilon:g}", measure, seen, name)
                    yield _row(key, {choice: errors[measure] for choice, errors in found.items()})


def _row(key: Key, drawn: dict[str, list[float]]) -> Row:
    """The row of a way, from what its draws are off by choice. The first choice is its rule."""
    found = {choice: Row.of_draws(key, each) for choice, each in drawn.items()}
    least = min(found, key=lambda choice: found[choice].public)
    best, more = found[least], dict[str, Any]()
    if len(found) > 1:
        more = {"hindsight": best.public, "chosen": least, "hindsight_error": best.error}
    return replace(next(iter(found.values())), **more)


def _errors(way: Way, table: Table, epsilon: float, draws: int) -> dict[str, dict[str, list[float]]]:
    """By choice: squared errors of estimates and of the table, and Wasserstein-1 distances of the distributions, draw by draw."""
    true = np.sort(table.counts)
    found: dict[str, dict[str, list[float]]] = {}
    for setting in way.settings:
        for draw in range(draws):
            published = way.publish(table, epsilon, np.random.default_rng([draw, 7]), setting)
            for each, output in zip(published, way.outputs, strict=True):
                errors = found.setdefault(way.named(setting, output), {measure: [] for measure in MEASURES})
                errors[MEASURES[0]].append(float(np.mean(np.square(each.estimates - table.counts))))
                errors[MEASURES[1]].append(float(np.mean(np.square(each.values - table.counts))))
                errors[MEASURES[2]].append(float(np.mean(np.abs(np.sort(each.values) - true))))
    return found
