"""The two measurements of a table with discrete Gaussian noise, for zCDP and (ε, δ).

With zCDP what a measurement tells is linear in its budget, so nothing is gained by few thresholds: all are measured, with the
same share (docs/theory/tables-whole.md, section 10). Everything here is a function of public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Unit
from isotone.tables.emphasis import POINTS
from isotone.tables.estimate.beliefs import GaussianBeliefs
from isotone.tables.estimate.gaussian_views import DENSE, DirectViews, GaussianViews, binned_channel
from isotone.tables.estimate.whole import estimate_histogram
from isotone.tables.thresholds import SMALL, share_of

__all__ = ["GaussianMeasurement", "change", "measurement_for"]


def change(unit: Unit, once: bool, cumulative: Fraction, counts: Fraction) -> Fraction:
    """The largest ``Σ w·Δ²`` between neighbours, with the weights of cumulative numbers and of counts.

    A unit adds λ_j to category j, Σλ_j = k. The counts change by Σλ_j² in squared length, the cumulative numbers by at most
    the squares of the conjugate partition. Both have k on the diagonal of the Young diagram's pairs, and share the other k(k−1).
    With ``once`` every λ_j is at most 1. Several units are as one with all their records, and exchanging doubles the sum (docs/theory/tables-whole.md, section 10).
    """
    k = unit.changes
    if once and unit.adjacency.changes == 1:  # two units may be in the same category
        most = k * counts + k * k * cumulative
    else:
        most = k * (counts + cumulative) + max(counts, cumulative) * k * (k - 1)
    return unit.adjacency.sides * most


@dataclass(frozen=True)
class GaussianMeasurement:
    """The variances of the noise on cumulative numbers and on counts. The first is None where nothing is measured."""

    upper: int
    cumulative: Fraction | None
    counts: Fraction

    @property
    def places(self) -> tuple[int, ...]:
        """The thresholds that are measured."""
        return () if self.cumulative is None else tuple(range(self.upper))

    @property
    def finer(self) -> tuple[int, ...]:
        """None: all thresholds are measured at once."""
        return ()

    def with_finer(self, finer: tuple[int, ...]) -> GaussianMeasurement:
        """See :class:`~isotone.tables.measurement.Measurement`."""
        if finer:
            raise InputError("With Gaussian noise all thresholds are measured at once.")
        return self

    def measure(self, table: Ints, draws: Draws) -> tuple[GaussianMeasurement, Ints, Ints]:
        """Both private measurements. Nothing else reads the table."""
        below = np.zeros(0, np.int64)
        if self.cumulative is not None and self.upper:
            below = np.cumsum(np.bincount(table, minlength=self.upper + 1))[:-1].astype(np.int64)
            below = below + np.asarray(draws.discrete_gaussians(self.cumulative, len(below)))
        noise = np.asarray(draws.discrete_gaussians(self.counts, len(table)))
        return self, below, table + noise

    def histogram(self, cumulative: Ints, noisy: Ints) -> tuple[NDArray[np.float64], str]:
        """The histogram that both measurements tell, and the model it comes from. Post-processing."""
        assert self.cumulative is not None
        precision = 1 / float(self.cumulative)
        if self.upper < DENSE:
            views = GaussianViews.of(cumulative, noisy, precision, float(self.counts), self.upper)
        else:
            views = DirectViews.alone(cumulative, noisy, precision)
        return estimate_histogram(views)

    def seen(self, noisy: Ints) -> Ints:
        """What a posterior is computed from."""
        return noisy

    def beliefs(self, probabilities: NDArray[np.float64], size: int) -> GaussianBeliefs:
        """The posteriors of the true counts."""
        return GaussianBeliefs(probabilities, size, float(self.counts))

    def channel(self) -> NDArray[np.float64]:
        """The probability of every clamped noisy count, given every true count."""
        return binned_channel(self.upper + 1, np.arange(self.upper + 1), float(self.counts))

    def readings(self, unbiased: float) -> list[int]:
        """See :class:`~isotone.tables.measurement.Measurement`."""
        return [int(unbiased)] if unbiased == int(unbiased) else []

    def unbiased(self, noisy: Ints) -> NDArray[np.float64]:
        """The noisy counts, whose noise is symmetric."""
        return noisy.astype(np.float64)

    def errors(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far a noisy count is from the true one, and with which probabilities, the same for every count."""
        room = ceil(9 * self.deviation) + 1
        away = np.arange(-room, room + 1, dtype=np.float64)
        law = np.exp(-(away**2) / (2 * float(self.counts)))
        return away, law / law.sum()

    def widest(self, many: bool) -> list[int]:
        """See :class:`~isotone.tables.measurement.Measurement`."""
        return [0]

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of a count, at most the root of its parameter."""
        return float(self.counts) ** 0.5


def measurement_for(
    emphasis: Fraction | None, upper: int, rho: Fraction, unit: Unit, once: bool, size: int
) -> GaussianMeasurement:
    """The variances for ``size`` categories that make both measurements ρ-zCDP together, exactly.

    >>> m = measurement_for(Fraction(1, 10), 9, Fraction(1, 2), Unit(), True, 1000)
    >>> m.cumulative, m.counts
    (Fraction(25, 3), Fraction(25, 22))
    """
    k = unit.contributions
    plain = change(unit, once, Fraction(0), Fraction(1)) / (2 * rho)
    if size < SMALL or upper == 0:
        return GaussianMeasurement(upper, None, plain)
    if emphasis is None:
        emphasis = POINTS["both" if (2 / plain) ** 0.5 < 1 else "counts"]
    share = share_of(emphasis)
    # weights in proportion to their share of ρ; one factor then makes the sum exactly 2ρ
    weights = share / (k * k), (1 - share) / (k if once else k * k)
    scale = 2 * rho / change(unit, once, *weights)
    return GaussianMeasurement(upper, 1 / (scale * weights[0]), 1 / (scale * weights[1]))
