"""Histograms of (bin, label) whose pooled means are joined by lines: how the best setting of each family does, and its public rule.

A family measures with each of its settings, and whatever is made of that without a look at the data is one choice more: steps or lines
through the middles of bins, means pooled with weights by their precision or by records alone, sums of bins spread over those around them
before they are pooled, means pulled to that of all records, and polynomials through the means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import numpy as np
from experiments._curve_rivals import quantile_cuts
from numpy.typing import NDArray

from isotone.curves.circuits import SeededCurveDraws
from isotone.curves.posterior import noisy_sums, pooled
from isotone.curves.problem import FINE, CurveSetting, Records

__all__ = ["FAMILIES", "ways"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Fits = Iterator[tuple[str, Floats]]
EQUAL, QUANTILES = (
    "one histogram of (bin, label) at full ε, pooled and joined by lines",
    "bins by a quantile tree, pooled and joined by lines",
)
BINS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
QUANTILE_BINS = (2, 3, 5, 8, 12, 16, 24, 32, 64, 128)
TREE_SHARES = (Fraction(3, 10), Fraction(1, 10), Fraction(1, 2), Fraction(7, 10))
"""Of ε for the tree; the first is the rule."""
WIDTHS = (0.0, 0.5, 1.0, 2.0)
"""Standard deviations, in bins, over which sums are spread. The rule spreads none."""
PULLS = (0.0, 20.0)
"""So many records over ε at the mean of all are added to each bin. The rule adds none; with one bin alone there is nothing else."""
DEGREES = (1, 2, 3)
"""Of polynomials, which are made to rise."""


def _equal(
    records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> Fits:
    for bins in _rule_first(BINS, n, epsilon):
        starts = np.arange(bins, dtype=np.int64) * points // bins
        for words, values in _fits(records, starts, points, epsilon, labels, rng):
            yield f"{bins} bins, {words}", values


def _quantiles(
    records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> Fits:
    for share in TREE_SHARES:
        cuts = quantile_cuts(records, points, share * epsilon, rng)
        for bins in _rule_first(QUANTILE_BINS, n, epsilon):
            for words, values in _fits(records, cuts(bins), points, (1 - share) * epsilon, labels, rng):
                yield f"{bins} bins, {share} for the tree, {words}", values


FAMILIES: Mapping[str, Callable[..., Fits]] = {EQUAL: _equal, QUANTILES: _quantiles}


def ways(
    records: Records, points: int, n: int, epsilon: Fraction, labels: bool, seed: list[int]
) -> dict[str, dict[str, Floats]]:
    """By family: a value for every record, by choice. The first choice is the rule."""
    return {
        family: dict(fit(records, points, n, epsilon, labels, np.random.default_rng([*seed, 1_000 + number])))
        for number, (family, fit) in enumerate(FAMILIES.items())
    }


def _rule_first(bins: tuple[int, ...], n: int, epsilon: Fraction) -> list[int]:
    """The numbers of bins, first that nearest to √(εn): lines need fewer bins than steps."""
    wanted = math.log(math.sqrt(float(epsilon) * n))
    return sorted(bins, key=lambda each: abs(math.log(each) - wanted))


def _fits(
    records: Records, starts: Ints, points: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> Fits:
    top = 1 if labels else FINE
    sums = noisy_sums(records, starts, points, CurveSetting(epsilon), Fraction(1), SeededCurveDraws(rng), top)
    middles = (starts + np.append(starts[1:], points) - 1) / 2
    inside = np.searchsorted(starts, records.cells, side="right") - 1
    for words, values in _risen(*sums.in_records, middles / points, float(epsilon)):
        yield f"lines{words}", np.asarray(np.interp(records.cells, middles, values), np.float64)
        yield f"steps{words}", np.asarray(values[inside], np.float64)


def _risen(ones: Floats, zeros: Floats, x: Floats, epsilon: float) -> Fits:
    """A rising value for each bin, from its noisy sums, the rule first."""
    places, noise = np.arange(ones.size), 2 / epsilon**2
    whole = max(float((ones + zeros).sum()), 1.0)
    mean = min(max(float(ones.sum()) / whole, 0.0), 1.0)
    for width in WIDTHS:
        spread = np.exp(-0.5 * ((places[:, None] - places) / width) ** 2) if width else np.eye(ones.size)
        up, down = (np.maximum(spread @ side, 0.0) for side in (ones, zeros))
        total = np.maximum(up + down, 0.5)
        precision = total**2 / (0.25 * total * spread.sum(axis=1) + noise * np.square(spread).sum(axis=1))
        for pull in PULLS if not width else PULLS[:1]:
            more = pull / epsilon
            means = (up + 0.5 + more * mean) / (up + down + 1 + more)
            words = f", spread over {width:g}" if width else f", pulled by {pull:g}/ε" if pull else ""
            yield words, np.clip(pooled(means, precision), 0, 1)
            yield f"{words}, weights by records", np.clip(pooled(means, total), 0, 1)
            for degree in DEGREES if not words else ():
                if degree < ones.size:
                    through = np.polyval(np.polyfit(x, means, degree, w=np.sqrt(precision)), x).astype(
                        np.float64
                    )
                    yield f", degree {degree}", np.clip(pooled(through, precision), 0, 1)
