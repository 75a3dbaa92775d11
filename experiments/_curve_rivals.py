"""What curves fitted by means are compared with: the mechanism they replaced, noisy histograms with pooling, and a logistic curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.circuits import SeededCurveDraws
from isotone.curves.losses import Squared
from isotone.curves.posterior import equal_bins, noisy_means, noisy_sums, pooled
from isotone.curves.problem import FINE, CurveSetting, Records
from isotone.curves.tree import AdditiveScore, HalvingScore, grow

__all__ = [
    "EQUAL_COUNTS",
    "HISTOGRAMS",
    "QUANTILE_TREES",
    "RIVALS",
    "before",
    "equal_counts",
    "histogram",
    "logistic",
    "quantile_cuts",
    "quantile_tree",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rival = Callable[[Records, int, int, Fraction, bool, np.random.Generator], Floats]
"""Records, points, their number, epsilon, whether y is 0 or 1, randomness: a value for every point."""

HISTOGRAMS = (8, 16, 32, 64, 128, 256, 512, 1024)
EQUAL_COUNTS = (8, 32, 128, 512)
QUANTILE_TREES = (8, 32, 128)
BRANCHES = 16


def before(
    records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> Floats:
    """The former ``auto``: a few levels of cuts, then noisy means in bins that divide the parts, then pooling."""
    setting = CurveSetting(epsilon)
    strength = max(1.0, float(epsilon) * n)
    few = strength < 30
    levels = 0 if few else 1 if strength < 2_000 else 2 if strength < 50_000 else 3
    share = Fraction(0) if few else Fraction(1, 10)
    bins = min(points, max(2, round(1.4 * math.sqrt(float(1 - share) * strength))))
    draws = SeededCurveDraws(rng)
    score = AdditiveScore(Squared().slopes(FINE, Fraction(1)))
    parts = grow(records, points, [share / max(1, levels)] * levels, score, setting, draws)
    starts = equal_bins(parts.low, parts.high, bins, 0.5 if strength < 5_000 else 0.0)
    mean, count = noisy_means(records, starts, setting, 1 - share, draws)
    return _steps(starts, np.clip(pooled(mean, count), 0, 1), points)


def histogram(bins: int) -> Rival:
    """One noisy histogram of (bin, y) at full epsilon, and pooling."""

    def fit(
        records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
    ) -> Floats:
        starts = np.arange(bins, dtype=np.int64) * points // bins
        return _pooled(records, starts, points, epsilon, labels, rng)

    return fit


def equal_counts(bins: int) -> Rival:
    """A tenth of epsilon for cuts that halve the records, then the same histogram in equal parts of each."""

    def fit(
        records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
    ) -> Floats:
        levels, setting = 4, CurveSetting(epsilon / 10)
        parts = grow(
            records, points, [Fraction(1, levels)] * levels, HalvingScore(), setting, SeededCurveDraws(rng)
        )
        starts = equal_bins(parts.low, parts.high, bins)
        return _pooled(records, starts, points, epsilon * Fraction(9, 10), labels, rng)

    return fit


def quantile_tree(bins: int) -> Rival:
    """A tenth of epsilon for a tree of counts with 16 children a node, whose quantiles are cuts, then the same histogram."""

    def fit(
        records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
    ) -> Floats:
        starts = quantile_cuts(records, points, epsilon / 10, rng)(bins)
        return _pooled(records, starts, points, epsilon * Fraction(9, 10), labels, rng)

    return fit


def quantile_cuts(
    records: Records, points: int, epsilon: Fraction, rng: np.random.Generator
) -> Callable[[int], Ints]:
    """Where bins of about equal counts begin, for any number of bins, from one noisy tree of counts."""
    levels = math.ceil(math.log(points) / math.log(BRANCHES))
    fall = -math.expm1(-float(epsilon) / levels)
    seen: list[Floats] = []
    for level in range(1, levels + 1):
        size = BRANCHES**level
        count = np.bincount(records.cells * size // points, minlength=size)
        noise = rng.geometric(fall, size) - rng.geometric(fall, size)
        seen.append(np.maximum(count + noise, 0.0))
    return lambda bins: np.unique([0, *(_quantile(seen, each / bins, points) for each in range(1, bins))])


def _quantile(seen: list[Floats], share: float, points: int) -> int:
    """The point below which about this share of the records is, walking down a tree of noisy counts."""
    node = 0
    for counts in seen:
        children = counts[BRANCHES * node : BRANCHES * (node + 1)]
        reached = np.cumsum(children)
        if reached[-1] <= 0:
            return int((node + share) * points / (counts.size // BRANCHES))
        child = int(np.searchsorted(reached, share * reached[-1], side="right").clip(0, BRANCHES - 1))
        share = (share * reached[-1] - (reached[child] - children[child])) / max(children[child], 1e-9)
        share = min(max(share, 0.0), 1.0)
        node = BRANCHES * node + child
    return int(node * points / seen[-1].size)


def logistic(
    records: Records, points: int, n: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> Floats:
    """Platt's calibration: logistic regression on ``x`` by objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

    Features ``(x, 1)/√2`` have length 1 at most, so a gradient has, and the curvature of a loss is at most 1/4. Half of
    epsilon is for the noise, half for the curvature, which gives the least regularisation that this allows. It protects a
    record that is replaced, in a data set whose size is known.
    """
    x = records.cells / (points - 1.0)
    features = np.stack([x, np.ones_like(x)], axis=1) / math.sqrt(2)
    y = records.levels / FINE
    ridge = 0.25 / math.expm1(float(epsilon) / 4)
    length = rng.gamma(2, 4 / float(epsilon))
    angle = rng.uniform(0, 2 * math.pi)
    noise = length * np.array([math.cos(angle), math.sin(angle)])
    w = np.zeros(2)
    for _ in range(40):  # Newton's method, in steps of bounded length
        p = 1 / (1 + np.exp(-features @ w))
        gradient = features.T @ (p - y) + ridge * w + noise
        step = np.linalg.solve((features.T * (p * (1 - p))) @ features + ridge * np.eye(2), gradient)
        w -= step * min(1.0, 5.0 / max(float(np.linalg.norm(step)), 1e-9))
    every = np.stack([np.arange(points) / (points - 1.0), np.ones(points)], axis=1) / math.sqrt(2)
    return 1 / (1 + np.exp(-every @ w))


def _pooled(
    records: Records, starts: Ints, points: int, epsilon: Fraction, labels: bool, rng: np.random.Generator
) -> Floats:
    sums = noisy_sums(
        records,
        starts,
        points,
        CurveSetting(epsilon),
        Fraction(1),
        SeededCurveDraws(rng),
        1 if labels else FINE,
    )
    ones, zeros = (np.maximum(side, 0.0) for side in sums.in_records)
    total = ones + zeros
    return _steps(starts, np.clip(pooled((ones + 0.5) / (total + 1), np.maximum(total, 0.5)), 0, 1), points)


def _steps(starts: Ints, values: Any, points: int) -> Floats:
    return np.asarray(values, np.float64)[np.searchsorted(starts, np.arange(points), side="right") - 1]


RIVALS: dict[str, Rival] = {
    **{f"{bins} bins": histogram(bins) for bins in HISTOGRAMS},
    **{f"{bins} equal counts": equal_counts(bins) for bins in EQUAL_COUNTS},
    "logistic curve": logistic,
    **{f"{bins} bins by a quantile tree": quantile_tree(bins) for bins in QUANTILE_TREES},
}
