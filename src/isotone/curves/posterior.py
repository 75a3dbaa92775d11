"""Noisy sums over bins, the likelihood of their noise, and the posterior of a rising curve by a hidden chain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.problem import FINE, CurveSetting, Records
from isotone.order.isotonic import pool_adjacent_violators

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


# The posterior of a curve given noisy numbers, by a hidden chain.

# How many records a bin holds, as far as the noisy totals of all bins tell.
#
# The expected number of records of a bin is its *rate*. Rates are a chain on a public grid: the next bin has nearly the same
# rate, or one not far away, or any. What the other bins tell about a bin's rate is the message that values are weighed with.

NEAR, FAR = 0.4, 3.0
"""Scales of the two local moves, in steps of the grid,"""
MOVES = (0.55, 0.30, 0.15)
"""and how often rates move a little, further, or anywhere."""
EMPTY = 0.2
"""How much more often than other rates a rate of 0 is."""


class Rates:
    """Rates on a grid, with what the other bins tell (``others``), and what a bin's own total adds (``own``)."""

    def __init__(self, grid: Floats, others: Floats, own: Floats) -> None:
        self.grid, self.others, self.own = grid, others, own


def rates_of(totals: Floats, noise: CountNoise) -> Rates:
    """The rates of bins with noisy ``totals``, each a count plus two independent noise terms."""
    spread = 2 * noise.variance
    grid = _grid(max(8.0, 1.15 * float(totals.max()) + 1.5 * spread**0.5), spread)
    log_own = noise.total(totals[:, None], grid[None, :])
    own = np.exp(log_own - log_own.max(axis=1, keepdims=True))
    anywhere = np.gradient(np.sqrt(grid + 0.5))
    anywhere = 0.5 * anywhere / anywhere.sum() + 0.5 / grid.size
    anywhere[0] += EMPTY
    anywhere /= anywhere.sum()
    moves = _moves(grid.size, anywhere)
    forward, backward = np.empty_like(own), np.empty_like(own)
    message = anywhere
    for b in range(totals.size):
        forward[b] = message
        message = message * own[b]
        message = (message / max(message.sum(), 1e-300)) @ moves
    message = np.ones(grid.size)
    for b in range(totals.size - 1, -1, -1):
        backward[b] = message
        message = moves @ (message * own[b])
        message = message / max(message.max(), 1e-300)
    others = forward * backward
    return Rates(grid, others / others.sum(axis=1, keepdims=True), own)


def _moves(size: int, anywhere: Floats) -> Floats:
    """The probability of every rate after every other."""
    place = np.arange(size)
    apart = np.abs(place[:, None] - place[None, :])
    near, far = np.exp(-apart / NEAR), np.exp(-apart / FAR)
    local = [move / move.sum(axis=1, keepdims=True) for move in (near, far)]
    return MOVES[0] * local[0] + MOVES[1] * local[1] + MOVES[2] * anywhere[None, :]


def _grid(top: float, noise: float) -> Floats:
    """Rates from 0 to ``top``, in steps of about half the standard deviation of a total, and at least 6 %.

    ``noise`` is the variance that noise adds to a total.
    """
    result, here = [0.0], min(0.25, 0.25 * float(np.sqrt(noise + 0.25)))
    while here < top:
        result.append(here)
        here += max(min(0.5 * float(np.sqrt(here + noise)), max(0.4 * here, 0.1)), 0.06 * here)
    return np.array([*result, here])


# What the two noisy sums of every bin tell about its value, with the unknown number of records summed out.

STEP, RATIO, LEAST_STEP = 0.5, 0.3, 0.01
"""Means at which the law of a noisy count is computed are apart by this share of its standard deviation, or of the mean
if that is less; large ones by the last share of the mean, where a logarithm is nearly a parabola."""
FIRST = 1e-12
"""The lowest of them."""
CHUNK = 1 << 18
"""So many probabilities are computed at once."""


@dataclass(frozen=True)
class BinValues:
    """By bin and value, the log likelihood, and the expected sums of ``y`` and of ``1 − y`` given the value."""

    log_likelihood: Floats
    ones: Floats
    zeros: Floats


def bin_values(
    ones: Floats, zeros: Floats, rates: Rates, values: Floats, noise: CountNoise, keep: float
) -> BinValues:
    """The likelihood of every value in every bin, ``Σ_λ q(λ)·P(ones; λv)·P(zeros; λ(1−v))``.

    Rates with less than ``keep`` of the weight of the best are left out.
    """
    weight = rates.others * rates.own
    kept = weight >= keep * weight.max(axis=1, keepdims=True)
    table = CountTable(np.concatenate([ones, zeros]), np.outer(rates.grid, values), noise)
    log_others = np.log(rates.others + 1e-300)
    out = BinValues(*(np.empty((ones.size, values.size)) for _ in range(3)))
    for b in range(ones.size):
        places = np.flatnonzero(kept[b])
        log_a, mean_a = table.at(b, places)
        log_c, mean_c = table.at(ones.size + b, places)
        log_p = log_a + log_c[:, ::-1] + log_others[b, places, None]
        top = log_p.max(axis=0)
        p = np.exp(log_p - top)
        total = p.sum(axis=0)
        out.log_likelihood[b] = top + np.log(total)
        out.ones[b] = (p * mean_a).sum(axis=0) / total
        out.zeros[b] = (p * mean_c[:, ::-1]).sum(axis=0) / total
    return out


class CountTable:
    """Laws of noisy counts ``seen`` at any of the ``means`` (by rate and value).

    The law is computed at a few means. Between them its logarithm is the cubic that has the right values and slopes at
    both sides: ``d log P/dm = E[k | a]/m − 1``, and the expected count follows from the slope of the cubic.
    """

    def __init__(self, seen: Floats, means: Floats, noise: CountNoise) -> None:
        nodes = _nodes(float(means.max()), noise)
        distinct, self.rows = np.unique(seen, return_inverse=True)
        self.log_p, self.slope = _laws(distinct, nodes, noise)
        self.means = means
        self.low = np.clip(np.searchsorted(nodes, means, side="right") - 1, 0, nodes.size - 2)
        width = np.diff(nodes)[self.low]
        t = np.maximum(means - nodes[self.low], 0.0) / width
        rest = 1 - t
        self.share = t * t * (3 - 2 * t)
        self.bent = t * rest * rest * width, -t * t * rest * width
        self.turned = 6 * t * rest / width, rest * (1 - 3 * t), t * (3 * t - 2)

    def at(self, place: int, rates: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The log probability of one noisy count and the expected count given it, by rate and value."""
        row, low = self.rows[place], self.low[rates]
        before, after = self.log_p[row][low], self.log_p[row][low + 1]
        slopes = self.slope[row][low], self.slope[row][low + 1]
        rise = after - before
        log_p = before + rise * self.share[rates]
        slope = rise * self.turned[0][rates]
        for side in range(2):
            log_p += slopes[side] * self.bent[side][rates]
            slope += slopes[side] * self.turned[1 + side][rates]
        return log_p, np.maximum(self.means[rates] * (1 + slope), 0.0)


def _laws(seen: Floats, nodes: Floats, noise: CountNoise) -> tuple[Floats, Floats]:
    """Log probabilities and their slopes, by noisy count and mean."""
    result = np.empty((2, seen.size, nodes.size))
    size = max(1, CHUNK // nodes.size)
    for first in range(0, seen.size, size):
        part = slice(first, first + size)
        result[:, part] = noise.count(seen[part, None], nodes[None, :])
    # next to 0 the logarithm may be so steep that a cubic would swing: no slope is far beyond that of its neighbours' line
    steep = 3 * np.abs(np.diff(result[0], axis=1) / np.diff(nodes)) + 1.0
    steep = np.maximum(np.c_[steep[:, :1], steep], np.c_[steep, steep[:, -1:]])
    return result[0], np.clip(result[1] / nodes - 1, -steep, steep)


def _nodes(top: float, noise: CountNoise) -> Floats:
    """Means from 0 to ``top``."""
    result, small = [FIRST], max(1e-9, 0.1 * noise.blur)
    while result[-1] < top:
        here = result[-1]
        apart = max(STEP * math.sqrt(here + noise.variance), LEAST_STEP * here)
        result.append(here + min(apart, max(RATIO * here, small)))
    return np.array(result if len(result) > 1 else [FIRST, 2 * FIRST])


# Bins that contradict a rising curve so strongly that no path through all of them keeps a weight above 0.
#
# The likeliest rising path has one value along bins that contradict each other. Where these clash, all of them say the same: the
# mean of their log likelihoods, which together is what they said of paths with one value there. Other paths hardly count.

MOST = 200.0
"""So much less likely a rising path may be than the best up to some bin and the best after it: messages keep its weight."""


def without_clashes(log_likelihood: Floats) -> Floats:
    """The log likelihood by bin and value, evened out along bins that clash."""
    path, clashing = _likeliest_path(log_likelihood)
    runs = np.split(np.arange(path.size), np.flatnonzero(np.diff(path)) + 1)
    result = log_likelihood.copy()
    for run in runs:
        if clashing[run[1:]].any():
            result[run] = log_likelihood[run].mean(axis=0)
    return result


def _likeliest_path(log_likelihood: Floats) -> tuple[Ints, Bools]:
    """The place of the likeliest rising path in every bin, and the bins that clash with those before them."""
    upto, onward = log_likelihood.copy(), log_likelihood.copy()
    for b in range(1, len(upto)):
        upto[b] += np.maximum.accumulate(upto[b - 1])
        onward[-1 - b] += np.maximum.accumulate(onward[-b][::-1])[::-1]
    path = np.zeros(len(upto), dtype=np.int64)
    for b in range(len(upto)):
        least = path[b - 1] if b else 0
        path[b] = least + onward[b, least:].argmax()
    apart = upto[:-1].max(axis=1) + onward[1:].max(axis=1) - onward[0].max()
    return path, np.r_[False, apart > MOST]


# Rising hidden chains, with the priors of a curve's values from bin to bin, and their posterior by messages.
#
# A state is a value of a grid and a slope. To the next bin the value rises by the slope (rounded down or up, so that the mean
# rise is the slope), or it jumps to any higher one, evenly over the range; the slope is drawn again with some probability.

SLOPES = (0.0, 0.1, 0.3, 0.7, 1.3, 2.5, 5.0)
"""Slopes, in grids of values over the whole domain."""
JUMPS, REDRAWS = (0.3, 2.0, 8.0), (1.0, 5.0)
"""Expected numbers of jumps, and of new slopes, along the curve."""
STEPS = (2.0, 10.0, 40.0)
"""Expected numbers of jumps of curves that are flat but for them."""
ENDS = 3.0
"""How many values more the first value's lowest and highest count as."""


@dataclass(frozen=True)
class Prior:
    """Priors that share their slopes (in steps of the grid of values a bin), one for each entry of the others."""

    slopes: tuple[float, ...]
    jump: tuple[float, ...]
    redraw: tuple[float, ...]


def value_grid(values: int) -> Floats:
    """So many values from 0 to 1, denser near both ends, where shares vary less."""
    return np.sin(np.linspace(0.0, np.pi / 2, values)) ** 2


def priors(bins: int, values: int) -> tuple[Prior, ...]:
    """The nine priors for so many bins and values, in groups."""
    scale = values / bins
    slopes = tuple(slope * scale for slope in SLOPES)
    pairs = [(min(0.5, often / bins), min(0.9, anew / bins)) for often in JUMPS for anew in REDRAWS]
    smooth = Prior(slopes, tuple(jump for jump, _ in pairs), tuple(redraw for _, redraw in pairs))
    return smooth, Prior((0.0,), tuple(min(0.5, often / bins) for often in STEPS), (0.0,) * len(STEPS))


def posterior_of(likelihood: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """The log evidence of each prior of a group, and the posterior of each bin's value under it.

    ``likelihood`` is by bin and value, up to a factor for each bin.
    """
    moves = _Moves(prior, likelihood.shape[1])
    evidence, forward = _forward(likelihood, moves)
    result = np.empty((len(prior.jump), *likelihood.shape))
    message = np.ones(forward.shape[1:])
    for b in range(likelihood.shape[0] - 1, -1, -1):
        seen = np.einsum("msv,msv->mv", forward[b], message)
        result[:, b] = seen / np.maximum(seen.sum(axis=1, keepdims=True), 1e-300)
        if b:
            message = moves.back(message * likelihood[b])
            message /= np.maximum(message.max(axis=(1, 2), keepdims=True), 1e-300)
    return evidence, result


@lru_cache(maxsize=4096)
def evidence_of_nothing(bins: int, values: int) -> tuple[tuple[float, ...], ...]:
    """The log weight of all paths that stay inside the range, for each group of priors."""
    flat = np.ones((bins, values))
    return tuple(
        tuple(_forward(flat, _Moves(prior, values), keep=False)[0].tolist()) for prior in priors(bins, values)
    )


class _Moves:
    """The step from one bin to the next for all priors of a group, on arrays by prior, slope and value."""

    def __init__(self, prior: Prior, values: int) -> None:
        self.values, self.size = values, len(prior.slopes)
        self.floor = [min(int(slope), values) for slope in prior.slopes]
        self.jump = np.array(prior.jump)[:, None, None]
        self.redraw = np.array(prior.redraw)[:, None, None]
        over = np.array([slope - int(slope) for slope in prior.slopes])[:, None]
        self.rounded_down, self.rounded_up = (1 - self.jump) * (1 - over), (1 - self.jump) * over
        self.jump_to = self.jump * np.gradient(value_grid(values))  # any height is as likely

    def start(self) -> Floats:
        """The law of the first value and slope."""
        first = np.ones(self.values)
        first[[0, -1]] += ENDS
        first /= first.sum() * self.size
        return np.broadcast_to(first, (self.jump.size, self.size, self.values))

    def ahead(self, state: Floats) -> Floats:
        """Where a law of states goes."""
        moved = self.jump_to * (np.cumsum(state, axis=2) - state)
        down, up = self.rounded_down * state, self.rounded_up * state
        for s, low in enumerate(self.floor):
            moved[:, s, low:] += down[:, s, : self.values - low]
            moved[:, s, low + 1 :] += up[:, s, : max(0, self.values - low - 1)]
        return self._slopes(moved)

    def back(self, message: Floats) -> Floats:
        """What a message about the next bin tells about this one."""
        message = self._slopes(message)
        jumped = self.jump_to * message
        moved = np.cumsum(jumped[:, :, ::-1], axis=2)[:, :, ::-1] - jumped
        down, up = self.rounded_down * message, self.rounded_up * message
        for s, low in enumerate(self.floor):
            moved[:, s, : self.values - low] += down[:, s, low:]
            moved[:, s, : max(0, self.values - low - 1)] += up[:, s, low + 1 :]
        return moved

    def _slopes(self, state: Floats) -> Floats:
        """The same with slopes drawn again, now and then."""
        if self.size == 1:
            return state
        return (1 - self.redraw) * state + self.redraw * state.mean(axis=1, keepdims=True)


def _forward(likelihood: Floats, moves: _Moves, *, keep: bool = True) -> tuple[Floats, Floats]:
    """The log evidence, and the law of each bin's state given the bins up to it."""
    state = moves.start()
    kept = np.empty((likelihood.shape[0] if keep else 0, *state.shape))
    evidence = np.zeros(state.shape[0])
    for b in range(likelihood.shape[0]):
        if b:
            state = moves.ahead(state)
        state = state * likelihood[b]
        total = np.maximum(state.sum(axis=(1, 2), keepdims=True), 1e-300)
        state = state / total
        evidence += np.log(total[:, 0, 0])
        if keep:
            kept[b] = state
    return evidence, kept


# Curves whose log odds are a straight line from the first to the last point, as logistic regression would fit them.
#
# Two numbers tell such a curve, so little data tells much about it, where it is right. The log odds of both ends are on a public
# grid, and any two that do not fall are as likely as any other two. In each bin the value is rounded up or down to one of the
# hidden chain's values, at random, with the right mean.

LOG_ODDS = tuple(0.5 * step for step in range(-10, 11))
"""Log odds that an end may have."""


def straight_odds(places: Floats) -> Floats:
    """All curves, by curve and place. The places are shares of the way from the first point to the last."""
    first, last = (np.array(LOG_ODDS)[end, None] for end in np.triu_indices(len(LOG_ODDS)))
    return 1 / (1 + np.exp(-(first + (last - first) * places)))


def posterior_of_straight_odds(likelihood: Floats, places: Floats) -> tuple[float, Floats]:
    """The log evidence of these curves together, and the posterior of each bin's value.

    ``likelihood`` is by bin and value, above 0, up to a factor for each bin.
    """
    curves, values = straight_odds(places), value_grid(likelihood.shape[1])
    low = np.clip(np.searchsorted(values, curves, side="right") - 1, 0, values.size - 2)
    up = (curves - values[low]) / (values[low + 1] - values[low])
    bins = np.arange(places.size)
    below, above = (1 - up) * likelihood[bins, low], up * likelihood[bins, low + 1]
    log_p = np.log(below + above).sum(axis=1)
    weight = np.exp(log_p - log_p.max())
    share = (weight / weight.sum())[:, None] / (below + above)
    chances = np.zeros(likelihood.shape)
    np.add.at(chances, (bins, low), share * below)
    np.add.at(chances, (bins, low + 1), share * above)
    return float(log_p.max() + np.log(weight.mean())), chances


# The posterior of a rising curve, given two noisy sums for every bin.
#
# Model: a bin holds a Poisson number of records, so the sums of ``y`` and of ``1 − y`` are independent Poisson counts, whose
# rates are the bin's rate times its value and times the rest. Values are a rising hidden chain under nine priors, or have straight
# log odds. These are averaged by their evidence. The numbers of records enter as messages and not as joint states: an
# approximation. No guarantee of privacy depends on anything here (docs/theory/curves.md, section 8.1).

LEAST = 1e-130
"""No value of a bin counts less than this share of the best, so that all paths keep a weight above 0."""
STRAIGHT = 2.0
"""Curves with straight log odds count as much as so many of the nine priors."""


@dataclass(frozen=True)
class CurvePosterior:
    """The posterior by bin: ``chances`` of the ``values``, and the expected sums of ``y`` and ``1 − y`` and ``shares`` of ``y``."""

    values: Floats
    chances: Floats = field(repr=False)
    ones: Floats
    zeros: Floats
    shares: Floats
    weights: Floats
    """The posterior weights of the nine priors and of straight log odds."""

    def of(self, output: str) -> Floats:
        """One of the two curves below, by its name."""
        return self.records if output == "records" else self.population

    @property
    def population(self) -> Floats:
        """The posterior mean of the curve that the records were drawn from."""
        return np.maximum.accumulate(np.clip(self.chances @ self.values, 0.0, 1.0))

    @property
    def records(self) -> Floats:
        """The pooled shares: near the fit to the records themselves."""
        return np.clip(pooled(self.shares, np.maximum(self.ones + self.zeros, 1e-6)), 0.0, 1.0)


def values_of_bins(sums: NoisySums, values: Floats, spread: float = 1.0, keep: float = 1e-3) -> BinValues:
    """What the sums of every bin tell about its value. The values must lie evenly about 1/2."""
    noise = sums.noise.over(spread)
    a, c = (np.rint(each / spread) for each in sums.in_records)
    return bin_values(a, c, rates_of(a + c, noise), values, noise, keep)


def curve_posterior(sums: NoisySums, levels: int, spread: float = 1.0, keep: float = 1e-3) -> CurvePosterior:
    """The posterior given noisy sums.

    ``levels`` is the number of values. ``spread`` says how ``y`` varies about its mean ``v``, with the variance
    ``spread·v·(1 − v)``: 1 for labels.
    """
    values, bins = value_grid(levels), sums.starts.size
    result = values_of_bins(sums, values, spread, keep)
    log_likelihood = without_clashes(result.log_likelihood)
    best = log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.maximum(np.exp(log_likelihood - best), LEAST)
    straight, marginals = posterior_of_straight_odds(likelihood, (sums.middles + 0.5) / sums.points)
    weights, chances = [straight + math.log(STRAIGHT)], [marginals]
    for prior, nothing in zip(priors(bins, levels), evidence_of_nothing(bins, levels), strict=True):
        evidence, each = posterior_of(likelihood, prior)
        weights += (evidence - nothing).tolist()
        chances += list(each)
    share = np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    mixed = np.tensordot(share, np.array(chances), 1)
    # records that cannot be told from none through the noise count as if they had the curve's own value
    unseen = max(sums.noise.over(spread).blur, 1e-9)
    own = (result.ones + unseen * values) / (result.ones + result.zeros + unseen)
    ones, zeros = (spread * (mixed * each).sum(axis=1) for each in (result.ones, result.zeros))
    return CurvePosterior(values, mixed, ones, zeros, (mixed * own).sum(axis=1), share)
