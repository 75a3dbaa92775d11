"""Tables of counts: clamped noise alone and deconvolved, sorted counts, and wavelets, against the two-stage release."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from benchmarks._rivals.rows import Key, Row
from isotone.mechanism import Progress
from isotone.privacy.checks import exact
from isotone.privacy.draws import SeededDraws
from isotone.tables import TwoStageMechanism, simulate_distribution
from isotone.tables.thresholds import Thresholds

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "experiments"))
from experiments._held_out import held_out
from experiments._tables import Table, load
from experiments.common import DATA, read_table

__all__ = [
    "METHODS",
    "WANTED",
    "clamped",
    "deconvolved",
    "npmle",
    "rank_map",
    "rows",
    "sorted_counts",
    "wavelets",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Published = tuple[Ints, Floats | Ints]
Publish = Callable[[Table, float, np.random.Generator, float], Published]
"""Table, ε, randomness, share of ε for the distribution: a table of whole counts, and an estimate of each count."""
MEASURES = ("rms error of an estimate", "rms error in the table", "distance of the distributions")
WANTED: dict[str, str] = dict(zip(MEASURES, ("0", "0", "1"), strict=True))
"""The emphasis for whoever needs one column of the release only."""
EPSILONS = (0.3, 1.0)
SHARES, RULE = (0.1, 0.25, 0.5), 0.5
"""Shares of ε for the distribution, where a rival needs one: a half is the rule, the best of these is hindsight."""
DRAWS, FEW, STEPS = 12, 2, 400
"""Draws of each way, in a quick run, and steps of the maximum likelihood, by expectation and maximisation."""


def clamped(table: Table, epsilon: float, rng: np.random.Generator, share: float) -> Published:
    """Two-sided geometric noise on each count, clamped to the range."""
    values = _noisy(table, epsilon, rng)
    return values, values


def _noisy(table: Table, epsilon: float, rng: np.random.Generator) -> Ints:
    """The noise that isotone draws where it has no thresholds, from the same numbers."""
    plain = Thresholds(table.upper, exact(repr(epsilon)), (), Fraction(0))
    return np.clip(plain.measure(table.counts, PairedDraws(rng))[2], 0, table.upper)


class PairedDraws(SeededDraws):
    """Noise of counts from the numbers that every way draws it from, so that ways are paired; the rest from others."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.others = SeededDraws(rng.spawn(1)[0])

    def geometrics(self, rate: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return self.others.geometrics(rate, size)


@lru_cache(maxsize=64)
def _law(upper: int, epsilon: float) -> Floats:
    """The law of a clamped noisy count, one row for each true count."""
    b = np.exp(-epsilon)
    places = np.arange(upper + 1)
    law = (1 - b) / (1 + b) * b ** np.abs(places[:, None] - places[None, :])
    law[:, 0], law[:, -1] = b**places / (1 + b), b ** (upper - places) / (1 + b)
    return law


def npmle(noisy: Ints, upper: int, epsilon: float) -> Floats:
    """The distribution of true counts that makes the clamped noisy ones most likely, without any model."""
    law = _law(upper, epsilon)
    seen = np.bincount(noisy, minlength=upper + 1) / len(noisy)
    belief = np.full(upper + 1, 1 / (upper + 1))
    for _ in range(STEPS):
        belief = belief * (law @ (seen / np.maximum(belief @ law, 1e-300)))
    return belief / belief.sum()


def rank_map(noisy: Ints, belief: Floats, rng: np.random.Generator) -> Ints:
    """Counts with the distribution believed in, given to the categories in the order of their noisy counts."""
    size = len(noisy)
    quantiles = np.searchsorted(np.cumsum(belief), (np.arange(size) + 0.5) / size).clip(0, len(belief) - 1)
    out = np.empty(size, np.int64)
    out[np.lexsort((rng.random(size), noisy))] = quantiles
    return out


def deconvolved(table: Table, epsilon: float, rng: np.random.Generator, share: float) -> Published:
    """Clamped noise with all of ε; its distribution deconvolved, which costs nothing, and given back by rank.

    An estimate of a count is its posterior mean under that distribution.
    """
    noisy = _noisy(table, epsilon, rng)
    belief = npmle(noisy, table.upper, epsilon)
    joint = belief[:, None] * _law(table.upper, epsilon)
    means = np.arange(table.upper + 1) @ joint / np.maximum(joint.sum(axis=0), 1e-300)
    return rank_map(noisy, belief, rng), means[noisy]


def sorted_counts(table: Table, epsilon: float, rng: np.random.Generator, share: float) -> Published:
    """The sorted counts with noise and isotonic regression (Hay et al. 2010), given to categories by clamped noise."""
    part = share * epsilon
    drawn = rng.geometric(1 - np.exp(-part), (2, len(table.counts)))
    fit = isotonic_regression(np.sort(table.counts) + drawn[0] - drawn[1]).x
    values = np.clip(np.rint(fit), 0, table.upper).astype(np.int64)
    noisy = _noisy(table, epsilon - part, rng)
    out = np.empty(len(noisy), np.int64)
    out[np.lexsort((rng.random(len(noisy)), noisy))] = values
    return out, noisy


def wavelets(table: Table, epsilon: float, rng: np.random.Generator, share: float) -> Published:
    """The distribution by Privelet, given to the categories by clamped noise."""
    part = share * epsilon
    belief = simulate_distribution(table.counts, table.upper, repr(part), "privelet", rng=rng)
    noisy = _noisy(table, epsilon - part, rng)
    return rank_map(noisy, np.asarray(belief.probabilities, float), rng), noisy


def _ours(emphasis: int | None) -> Publish:
    def publish(table: Table, epsilon: float, rng: np.random.Generator, share: float) -> Published:
        mechanism = TwoStageMechanism(table.upper, repr(epsilon), emphasis)
        full = mechanism.run(table.counts, PairedDraws(rng))
        return np.asarray(full.values, np.int64), full.estimates

    return publish


METHODS: dict[str, tuple[Publish, bool]] = {
    "isotone, TwoStageMechanism": (_ours(None), False),
    "isotone, emphasis=0": (_ours(0), False),
    "isotone, emphasis=1": (_ours(1), False),
    "clamped noise": (clamped, False),
    "clamped noise, NPMLE, rank map": (deconvolved, False),
    "sorted counts, isotonic (Hay et al. 2010), rank map": (sorted_counts, True),
    "Privelet, rank map": (wavelets, True),
}
"""How each publishes a table, and whether it has a share to choose."""


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
            for name, (publish, shared) in METHODS.items():
                shares = SHARES if shared else (RULE,)
                draws = FEW if quick else DRAWS
                found = {share: _errors(publish, table, epsilon, share, draws) for share in shares}
                for measure in MEASURES:
                    key = ("tables", case, f"ε = {epsilon:g}", measure, seen, name)
                    yield _row(key, {share: errors[measure] for share, errors in found.items()})


def _row(key: Key, drawn: dict[float, list[float]]) -> Row:
    """The row of a way, from what its draws are off by share."""
    found = {share: Row.of_draws(key, each) for share, each in drawn.items()}
    least = min(found, key=lambda share: found[share].public)
    best, more = found[least], dict[str, Any]()
    if len(found) > 1:
        more = {"hindsight": best.public, "chosen": f"share {least:g}", "hindsight_error": best.error}
    return replace(found[RULE], **more)


def _errors(
    publish: Publish, table: Table, epsilon: float, share: float, draws: int
) -> dict[str, list[float]]:
    """Squared errors of estimates and of the table, and Wasserstein-1 distances of the distributions, draw by draw."""
    true = np.sort(table.counts)
    found: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for draw in range(draws):
        values, estimates = publish(table, epsilon, np.random.default_rng([draw, 7]), share)
        found[MEASURES[0]].append(float(np.mean(np.square(estimates - table.counts))))
        found[MEASURES[1]].append(float(np.mean(np.square(values - table.counts))))
        found[MEASURES[2]].append(float(np.mean(np.abs(np.sort(values) - true))))
    return found
