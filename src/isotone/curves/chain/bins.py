"""Noisy means or quantiles of equal bins, pooled, as a careful analyst would try first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.curves.chain.drawn_values import Imbalance
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.losses.known_losses import Squared
from isotone.curves.measure import even_starts, noisy_means, pooled, rescaled
from isotone.curves.records import Records

__all__ = ["MeanBins", "QuantileBins"]

COUNTING = Fraction(1, 10)
MOST_BINS = 1 << 20
"""A limit of memory, which only an epsilon without meaning can reach."""


@dataclass(frozen=True)
class MeanBins(CurveMechanism):
    """The noisy mean of every bin, pooled with noisy counts as weights.

    For losses that are fitted by means. ``ends`` are those of the predictions, as shares of ``y_range``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 8).
    Error: ``error()`` is proved for the squared loss and an estimate for others.
    """

    bins: int
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    squared: bool = True

    @classmethod
    def of(cls, problem: ChainProblem) -> MeanBins:
        """The mechanism with sizes for a problem."""
        bins = problem.bins(1.4 * math.sqrt(problem.strength), MOST_BINS)
        return cls(problem.setting, problem.points, bins, problem.ends, isinstance(problem.loss, Squared))

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        starts = even_starts(self.points, self.bins)
        mean, count = noisy_means(records, starts, self.setting, Fraction(1), draws)
        return Curve(starts, rescaled(pooled(mean, count), self.ends), self.points)

    def error(self) -> RiskBound:
        """Three times the noise of a sum for each bin, and a quarter a record, for the squared loss (section 8)."""
        rest = float(self.setting.epsilon) / self.setting.factor
        return RiskBound(3.0 * self.bins / rest, 0.25, proved=self.squared)


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
    def of(cls, problem: ChainProblem) -> QuantileBins:
        """The mechanism with sizes for a problem."""
        score = Imbalance(problem.slopes)
        return cls(
            problem.setting,
            problem.points,
            score,
            problem.bins(0.6 * math.sqrt(problem.strength)),
            problem.steepest,
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        starts = even_starts(self.points, self.bins)
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
        """An estimate from the exponential mechanism's bound for each bin and half a record's loss. Pooling has no bound."""
        rest = float(self.setting.epsilon * (1 - COUNTING)) / self.setting.factor
        noise = 2 * self.steepest * self.bins * float(np.log(self.score.values + 1)) / rest
        return RiskBound(noise, self.steepest / 2, proved=False)
