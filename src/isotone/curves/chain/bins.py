"""Noisy quantiles of equal bins, pooled: what a careful analyst would try first for losses without means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.case import ChainCase
from isotone.curves.chain.imbalance import Imbalance
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.measure import equal_bins, pooled
from isotone.curves.records import Records

__all__ = ["QuantileBins"]

Ints = NDArray[np.int64]

COUNTING = Fraction(1, 10)


@dataclass(frozen=True)
class QuantileBins(CurveMechanism):
    """In every bin a value drawn by the exponential mechanism, pooled with noisy counts as weights.

    The score of a value is by how much the derivatives beside it miss a change of sign (:class:`Imbalance`): not at all
    at the best value. One record moves it up or down by at most its largest derivative. A tenth of epsilon counts the
    records.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 8).
    Error: ``error()`` is an estimate, not a bound.
    """

    score: Imbalance
    bins: int
    steepest: float = 1.0

    @classmethod
    def of(cls, case: ChainCase) -> QuantileBins:
        """The mechanism with sizes for a case."""
        score = Imbalance(case.slopes)
        return cls(case.setting, case.points, score, case.bins(0.6 * math.sqrt(case.strength)), case.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        starts = equal_bins(np.zeros(1, np.int64), np.full(1, self.points, np.int64), self.bins)
        scores = self.score.of(records, starts)
        rate = self.setting.rate(1 - COUNTING, self.score.range)
        offsets = np.arange(starts.size + 1, dtype=np.int64) * scores.shape[1]
        chosen = draws.segments(scores.ravel(), offsets, [rate] * starts.size, np.ones_like(scores).ravel())
        counts = self._counts(records, starts, draws)
        return Curve(starts, pooled(chosen / self.score.values, counts), self.points)

    def _counts(self, records: Records, starts: Ints, draws: CurveDraws) -> NDArray[np.float64]:
        rate = self.setting.noise_rate(COUNTING, 1)
        exact = np.bincount(records.bins(starts), weights=records.weights, minlength=starts.size).astype(
            np.int64
        )
        return np.maximum(draws.perturb(exact, rate) / self.setting.weight_steps, 1.0)

    def error(self) -> RiskBound:
        """An estimate: the exponential mechanism's bound for each bin, and half a record's loss; pooling has no bound."""
        rest = float(self.setting.epsilon * (1 - COUNTING)) / self.setting.factor
        noise = 2 * self.steepest * self.bins * float(np.log(self.score.values + 1)) / rest
        return RiskBound(noise, self.steepest / 2, proved=False)
