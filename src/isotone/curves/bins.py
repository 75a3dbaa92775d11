"""Noisy quantiles of equal bins, pooled: what a careful analyst would try first for losses without means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.curves.choices import Choices
from isotone.curves.curve import Curve, CurveMechanism, RiskBound, refuse_small_rate
from isotone.curves.grids import FINE
from isotone.curves.losses import Slopes
from isotone.curves.measure import equal_bins, pooled
from isotone.curves.records import Records

__all__ = ["QuantileBins"]

Ints = NDArray[np.int64]

COUNTING = Fraction(1, 10)


@dataclass(frozen=True)
class QuantileBins(CurveMechanism):
    """In every bin a value drawn by the exponential mechanism, pooled with noisy counts as weights.

    The score of a value is the absolute sum of the derivatives there: at the best value the derivatives cancel. One
    record moves it up or down by at most its own derivative. A tenth of epsilon counts the records.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 8).
    Error: ``error()`` is an estimate, not a bound.
    """

    slopes: Slopes
    bins: int
    steepest: float = 1.0
    values: int = 256

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A step curve with at most one step for each bin."""
        starts = equal_bins(np.zeros(1, np.int64), np.full(1, self.points, np.int64), self.bins)
        which = np.searchsorted(starts, records.cells, side="right") - 1
        rule = self.slopes
        candidates = np.arange(self.values + 1, dtype=np.int64) * (FINE // self.values)
        scores = _imbalance(
            which,
            records.levels,
            records.weights,
            starts.size,
            rule.offset + rule.scale * candidates,
            np.array([rule.step, rule.cap, rule.above, rule.below]),
        )
        bound = max(rule.bound(int(value), FINE) for value in candidates)
        rate = self.setting.rate(1 - COUNTING, 2 * bound)
        offsets = np.arange(starts.size + 1, dtype=np.int64) * candidates.size
        chosen = choices.segments(scores.ravel(), offsets, [rate] * starts.size, np.ones_like(scores).ravel())
        counts = self._counts(which, records.weights, starts.size, choices)
        return Curve(starts, pooled(chosen / self.values, counts), self.points)

    def _counts(self, which: Ints, weights: Ints, bins: int, choices: Choices) -> NDArray[np.float64]:
        rate = self.setting.rate(COUNTING, 1)
        refuse_small_rate(rate, self.setting.epsilon)
        exact = np.bincount(which, weights=weights, minlength=bins).astype(np.int64)
        return np.maximum(choices.perturb(exact, rate) / self.setting.weight_steps, 1.0)

    def error(self) -> RiskBound:
        """An estimate: the exponential mechanism's bound for each bin, and half a record's loss; pooling has no bound."""
        rest = float(self.setting.epsilon * (1 - COUNTING)) / self.setting.factor
        noise = 2 * self.steepest * self.bins * float(np.log(self.values + 1)) / rest
        return RiskBound(noise, self.steepest / 2, proved=False)


@njit(cache=True)
def _imbalance(which: Ints, levels: Ints, weights: Ints, bins: int, at: Ints, rule: Ints) -> Ints:
    """For every bin and value: the absolute sum of the derivatives."""
    step, cap, above, below = rule
    sums = np.zeros((bins, at.size), np.int64)
    for record in range(which.size):
        for value in range(at.size):
            slope = min(max(at[value] - step * levels[record], -cap), cap)
            sums[which[record], value] += weights[record] * slope * (above if slope > 0 else below)
    return np.abs(sums)
