"""Noisy sums over bins, the law of their noise, and its likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.grids import FINE
from isotone.curves.problem import CurveSetting, Records
from isotone.order.isotonic import pool_adjacent_violators

__all__ = [
    "CountNoise",
    "GaussianNoise",
    "GeometricNoise",
    "NoisySums",
    "equal_bins",
    "even_starts",
    "faint",
    "middles",
    "noisy_count",
    "noisy_means",
    "noisy_sums",
    "noisy_total",
    "pooled",
    "rescaled",
]


# The law of a Poisson count with two-sided geometric noise, in closed form.
#
# With ``α = exp(−rate)`` the noise has the weight ``(1−α)/(1+α)·α^|a−k|``. The counts up to ``a`` and those above it are
# two tilted Poisson laws, so each side is a factor times an incomplete gamma function (docs/theory/curves.md, section 8.1).

TINY = 1e-280
"""Below this an incomplete gamma function is replaced by the leading terms of its tail."""
CLEAR = 20.0
"""Larger rates count as this: the noise is 0 but for two in a billion draws, and differences would be lost in rounding."""


def noisy_count(seen: Floats, mean: Floats, rate: float) -> tuple[Floats, Floats]:
    """The log probability of ``seen``, a Poisson count of a ``mean`` plus noise, and the expected count given it.

    ``seen`` holds whole numbers. Exact but for rounding; where a side has a factor below ``TINY``, off by less than
    1e-6 in the logarithm. ``E[k | a] = mean·P(a − 1)/P(a)``, and ``P(a − 1)`` follows from both sides of ``P(a)``.

    >>> log_p, expected = noisy_count(np.array([4.0]), np.array([3.0]), 50.0)
    >>> round(float(np.exp(log_p[0])), 4), round(float(expected[0]), 4)  # hardly any noise
    (0.168, 4.0)
    """
    rate = min(rate, CLEAR)
    below, above, exactly = _sides(seen, mean, rate)
    total = np.logaddexp(below, above)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the sides of P(a − 1): less the count a itself below, and with it above
        less = np.where(below > exactly, below + np.log1p(-np.exp(np.minimum(exactly - below, 0.0))), -np.inf)
    before = np.logaddexp(less + rate, np.logaddexp(above, exactly) - rate)
    expected = mean * np.exp(np.minimum(before - total, 700.0))
    return total + _log_peak(rate), expected


def noisy_total(seen: Floats, mean: Floats, rate: float) -> Floats:
    """The log probability of ``seen``, a Poisson count of a ``mean`` plus two independent noise terms.

    The sum of two has the weight ``((1−α)/(1+α))²·α^|d|·(|d| + (1+α²)/(1−α²))``; the sums of distances on either side
    follow from the sides themselves, as ``k·Poisson(k; m) = m·Poisson(k−1; m)``.
    """
    rate = min(rate, CLEAR)
    below, above, exactly = _sides(seen, mean, rate)
    constant = 1.0 / math.tanh(rate)
    top = np.maximum(below, above)
    with np.errstate(invalid="ignore"):
        low, high, here = np.exp(below - top), np.exp(above - top), np.exp(exactly - top)
    shrink = math.exp(-rate)
    # Σ (a−k) over counts up to a, and Σ (k−a) over those above, each with its weight
    up_to = seen * low - mean * (low - here) / shrink
    beyond = mean * shrink * (high + here) - seen * high
    weight = np.maximum(up_to, 0.0) + np.maximum(beyond, 0.0) + constant * (low + high)
    return top + np.log(weight) + 2 * _log_peak(rate)


def _log_peak(rate: float) -> float:
    """The log probability of no noise."""
    return math.log(math.tanh(rate / 2))


def _sides(seen: Floats, mean: Floats, rate: float) -> tuple[Floats, Floats, Floats]:
    """Logarithms of ``Σ_{k≤a} Poisson(k)·α^{a−k}``, of ``Σ_{k>a} Poisson(k)·α^{k−a}``, and of ``Poisson(a)``."""
    from scipy.special import gammainc, gammaincc, gammaln, xlogy

    seen, mean = np.broadcast_arrays(seen, mean)
    a = np.maximum(seen, 0.0)
    wide, narrow = mean * math.exp(rate), mean * math.exp(-rate)
    exactly = np.where(seen >= 0, xlogy(a, mean) - mean - gammaln(a + 1.0), -np.inf)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        tail = gammaincc(a + 1.0, wide)
        below = wide - mean - rate * a + np.log(tail)
        far = tail <= TINY
        below[far] = exactly[far] + np.log(_falling(a[far], wide[far]))
        tail = gammainc(a + 1.0, narrow)
        above = np.log(tail)
        far = tail <= TINY
        n, w = a[far], narrow[far]
        above[far] = xlogy(n + 1.0, w) - w - gammaln(n + 2.0) + np.log(_rising(n, w))
        above += rate * a - (mean - narrow)
    nothing = mean == 0
    below = np.where(seen >= 0, np.where(nothing, -rate * a, below), -np.inf)
    above = np.where(seen >= 0, np.where(nothing, -np.inf, above), rate * seen - (mean - narrow))
    return below, above, exactly


def _falling(a: Floats, w: Floats) -> Floats:
    """``1 + a/w + a(a−1)/w² + …`` for ``a`` far below ``w``, by a continued fraction."""
    d = np.maximum(w - a, 1.0)
    return w / (d + a / (d + 2 + 2 * (a - 1) / (d + 4 + 3 * (a - 2) / (d + 6))))


def _rising(a: Floats, w: Floats) -> Floats:
    """``1 + w/(a+2) + w²/((a+2)(a+3)) + …`` for ``w`` far below ``a``, by a continued fraction."""
    s = a + 1.0
    inner = s + 3 + 2 * w / (s + 4)
    return s / (s - s * w / (s + 1 + w / (s + 2 - (s + 1) * w / inner)))


# The laws of noise that a sum may carry, as the posterior sees them, of one sum, and of a total of two.

LEAST_RATE, MOST_RATE = 1e-6, 30.0
"""Noise of a rate beyond these is like noise of these, to all that is seen here."""
LEAST_VARIANCE, MOST_VARIANCE = 0.05, 1e12
"""The same for Gaussian noise, which is rounded: a twelfth of its variance comes from that at least."""


class CountNoise(Protocol):
    """The noise on a Poisson count."""

    @property
    def variance(self) -> float:
        """Of one noise."""
        ...

    @property
    def blur(self) -> float:
        """Means far below this, 1 at most, can hardly be told apart through the noise."""
        ...

    def over(self, unit: float) -> CountNoise:
        """The same noise, counted in so many records."""
        ...

    def count(self, seen: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """The log probability of a noisy count, and the expected count given it."""
        ...

    def total(self, seen: Floats, mean: Floats) -> Floats:
        """The log probability of a count with two such noises."""
        ...


@dataclass(frozen=True)
class GeometricNoise:
    """Two-sided geometric noise, in which ``k`` has weight ``exp(−rate·|k|)``. All laws are exact."""

    rate: float

    @property
    def variance(self) -> float:
        """Of one noise."""
        return 0.5 / math.sinh(self._rate / 2) ** 2

    @property
    def blur(self) -> float:
        """See :class:`CountNoise`."""
        return min(1.0, self.variance)

    @property
    def _rate(self) -> float:
        return min(max(self.rate, LEAST_RATE), MOST_RATE)

    def over(self, unit: float) -> GeometricNoise:
        """See :class:`CountNoise`."""
        return GeometricNoise(self.rate * unit)

    def count(self, seen: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """See :class:`CountNoise`."""
        return noisy_count(seen, mean, self._rate)

    def total(self, seen: Floats, mean: Floats) -> Floats:
        """See :class:`CountNoise`."""
        return noisy_total(seen, mean, self._rate)


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise, by the saddle point of the cumulants of a Poisson count and the noise.

    ``m·e^t + σ²·t = a`` has the solution ``t = a/σ² − ω(a/σ² + log(m/σ²))`` with Wright's function ω, and the expected count
    given ``a`` is ``m·e^t`` there.
    """

    variance: float

    @property
    def blur(self) -> float:
        """See :class:`CountNoise`."""
        return math.exp(-4 / self._within(self.variance))

    def over(self, unit: float) -> GaussianNoise:
        """See :class:`CountNoise`."""
        return GaussianNoise(self.variance / unit**2)

    def count(self, seen: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """See :class:`CountNoise`."""
        return _saddle_point(seen, mean, self._within(self.variance))

    def total(self, seen: Floats, mean: Floats) -> Floats:
        """See :class:`CountNoise`."""
        return _saddle_point(seen, mean, self._within(2 * self.variance))[0]

    def _within(self, variance: float) -> float:
        return min(max(variance, LEAST_VARIANCE), MOST_VARIANCE)


def _saddle_point(seen: Floats, mean: Floats, variance: float) -> tuple[Floats, Floats]:
    from scipy.special import wrightomega

    seen, mean = np.broadcast_arrays(seen, mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = np.real(wrightomega(seen / variance + np.log(mean / variance)))
        counted = np.where(mean > 0, variance * scaled, 0.0)  # m·e^t
        tilt = (seen - counted) / variance
        log_p = counted - mean - tilt * seen + variance * tilt**2 / 2
    return log_p - 0.5 * np.log(2 * math.pi * (counted + variance)), counted


# Noisy sums and means of bins. The measurement behind every curve that is fitted by means.
#
# A record of level ``u`` adds ``u`` to one sum of its bin and ``top − u`` to another. Both are whole numbers and
# together they are always ``top``, so noise of rate ``share·epsilon/top`` on each costs ``share`` of epsilon in all,
# and no budget is split between a count and a sum (docs/theory/curves.md, section 8).


def even_starts(points: int, bins: int) -> Ints:
    """The first points of so many even bins."""
    return np.arange(bins, dtype=np.int64) * points // bins


def equal_bins(low: Ints, high: Ints, bins: int, by_width: float = 0.0) -> Ints:
    """The first points of about ``bins`` bins in the parts ``low, …, high − 1``.

    Every part has the same number of them; or the share ``by_width`` of the bins goes to parts by their widths.
    """
    share = (1.0 - by_width) / low.size + by_width * (high - low) / float((high - low).sum())
    counts = np.minimum(np.maximum(1, np.rint(bins * share)).astype(np.int64), high - low)
    starts = [
        a + np.arange(count) * (b - a) // count
        for a, b, count in zip(low.tolist(), high.tolist(), counts.tolist(), strict=True)
    ]
    return np.concatenate(starts).astype(np.int64)


@dataclass(frozen=True)
class NoisySums:
    """What was measured in bins that begin at ``starts``. For each a noisy sum of ``y`` and one of ``1 − y``.

    ``ones`` and ``zeros`` are whole numbers in ``unit``-ths of a record, with two-sided geometric noise of the given
    rate, or Gaussian noise of the given variance. They were released: everything made of them is post-processing.
    """

    starts: Ints
    ones: Ints
    zeros: Ints
    unit: int
    rate: Fraction | None
    points: int
    variance: Fraction | None = None

    @property
    def in_records(self) -> tuple[Floats, Floats]:
        """Both sums in records."""
        return self.ones / self.unit, self.zeros / self.unit

    @property
    def noise(self) -> CountNoise:
        """The law of the noise, in records."""
        if self.rate is not None:
            return GeometricNoise(float(self.rate * self.unit))
        assert self.variance is not None, "sums have one of both"
        return GaussianNoise(float(self.variance / self.unit**2))

    @property
    def middles(self) -> Floats:
        """The middles of bins, in points."""
        return (self.starts + np.r_[self.starts[1:], self.points] - 1) / 2.0

    def mirrored(self) -> NoisySums:
        """The same sums with the points in reverse order."""
        ends = np.r_[self.starts[1:], self.points]
        return replace(self, starts=self.points - ends[::-1], ones=self.ones[::-1], zeros=self.zeros[::-1])

    def upside_down(self) -> NoisySums:
        """The same sums with ``y`` running the other way."""
        return replace(self, ones=self.zeros, zeros=self.ones)


def noisy_sums(
    records: Records,
    starts: Ints,
    points: int,
    setting: CurveSetting,
    share: Fraction,
    draws: CurveDraws,
    top: int = FINE,
) -> NoisySums:
    """The noisy sums of ``y`` and ``1 − y`` in bins, for ``share`` of epsilon.

    ``y`` is counted in ``top`` levels: 1 for labels, which are 0 or 1, so that noise is in whole records.
    """
    levels = records.levels // (FINE // top)
    bins = records.bins(starts)
    sums = np.zeros((2, starts.size), dtype=np.int64)
    np.add.at(sums[0], bins, records.weights * levels)
    np.add.at(sums[1], bins, records.weights * (top - levels))
    sums, rate, variance = setting.perturbed(sums, share, top, draws)
    return NoisySums(starts, sums[0], sums[1], top * setting.weight_steps, rate, points, variance)


def noisy_means(
    records: Records, starts: Ints, setting: CurveSetting, share: Fraction, draws: CurveDraws
) -> tuple[Floats, Floats]:
    """For every bin, a noisy mean and a noisy count, both from two noisy sums.

    A count below half the scale of the noise tells nothing: there the count is that, and the mean 1/2.
    """
    # from here on everything is made of noisy numbers: floats do no harm
    ones, zeros = noisy_sums(records, starts, 0, setting, share, draws).in_records
    least = faint(setting, share)
    count = np.maximum(ones + zeros, least)
    mean = np.where(ones + zeros > least, ones / count, 0.5)
    return mean, count


def faint(setting: CurveSetting, share: Fraction) -> float:
    """Half the scale of the noise of a sum, in records. Smaller counts are not told from none."""
    return setting.factor / (2.0 * setting.weight_steps * float(share * setting.epsilon))


def pooled(values: Floats, weights: Floats) -> Floats:
    """The nondecreasing values closest to the given ones in weighted squares."""
    return pool_adjacent_violators(np.ascontiguousarray(values), np.ascontiguousarray(weights))


def rescaled(values: Floats, ends: tuple[Fraction, Fraction]) -> Floats:
    """Values as shares of the range between the lowest and the highest prediction, and inside it."""
    low, high = float(ends[0]), float(ends[1])
    return (np.clip(values, low, high) - low) / (high - low)


def middles(floor: Ints, width: int) -> Floats:
    """The middles of intervals of values. For the lowest and the highest interval the end of the range.

    Data often are at the ends.
    """
    middle = (floor + width / 2) / FINE
    middle[floor == 0] = 0.0
    middle[floor + width == FINE] = 1.0
    return middle
