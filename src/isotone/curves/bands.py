"""Bands around a curve, for the records, the population, and by the posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.curve import Curve
from isotone.curves.posterior import CurvePosterior, NoisySums, curve_posterior
from isotone.curves.posterior_fit import curve_of, spread_of
from isotone.curves.problem import FINE
from isotone.errors import InputError
from isotone.privacy.checks import confidence_level, one_of

__all__ = [
    "COUNT",
    "KINDS",
    "VALUES",
    "Band",
    "GridBand",
    "LineBand",
    "MeasuredSums",
    "StepBand",
    "TurnedBand",
    "credible_band",
    "cumulant",
    "log_threshold",
    "no_band",
    "population_band",
    "reach",
    "records_band",
    "tilts",
    "why_no_population",
]


# Limits of a curve at every point of the public grid, as shares of the range of ``y``.


class Band(NamedTuple):
    """The lower and the upper ends of a band, point by point."""

    low: Floats
    high: Floats


class GridBand(Protocol):
    """A band on the points ``0, …, points − 1``."""

    @property
    def corners(self) -> Ints:
        """Points that tell all. Between two of them both ends are linear, or keep their value."""
        ...

    def at(self, points: Ints) -> Band:
        """Both ends at grid points."""
        ...


@dataclass(frozen=True)
class StepBand:
    """A rising band, in which ``lows[i]`` holds from the point ``low_from[i]`` on, ``highs[i]`` up to the point ``high_to[i]``."""

    low_from: Ints
    lows: Floats
    high_to: Ints
    highs: Floats
    points: int

    @property
    def corners(self) -> Ints:
        """The points where an end has just changed or is about to."""
        up = self.low_from[np.diff(self.lows, prepend=0.0) != 0]
        down = self.high_to[np.diff(self.highs, append=1.0) != 0]
        result = np.concatenate([[0, self.points - 1], up, up - 1, down, down + 1])
        return np.unique(result[(result >= 0) & (result < self.points)])

    def at(self, points: Ints) -> Band:
        """Before the first lower end there is 0, after the last upper end 1.

        Sums that contradict a rising curve would leave nothing between: there the ends change places.
        """
        low = np.r_[0.0, self.lows][np.searchsorted(self.low_from, points, side="right")]
        high = np.r_[self.highs, 1.0][np.searchsorted(self.high_to, points, side="left")]
        return Band(np.minimum(low, high), np.maximum(low, high))

    def widened(self, by: float) -> StepBand:
        """The same, wider on both sides and inside the range."""
        return replace(self, lows=np.maximum(self.lows - by, 0.0), highs=np.minimum(self.highs + by, 1.0))


@dataclass(frozen=True)
class LineBand:
    """Lines through the ends at ``middles``, which may lie between two points."""

    middles: Floats
    lows: Floats
    highs: Floats
    points: int

    @property
    def corners(self) -> Ints:
        """The points beside the middles, and both ends of the grid."""
        beside = [np.floor(self.middles), np.ceil(self.middles), [0, self.points - 1]]
        return np.unique(np.concatenate(beside)).astype(np.int64)

    def at(self, points: Ints) -> Band:
        """Both ends, constant beyond the first and the last middle."""
        return Band(
            np.interp(points, self.middles, self.lows),
            np.interp(points, self.middles, self.highs),
        )


@dataclass(frozen=True)
class TurnedBand:
    """A band with the points in reverse order, for falling curves."""

    inner: GridBand
    points: int

    @property
    def corners(self) -> Ints:
        """Those of the rising band, turned."""
        return self.points - 1 - self.inner.corners[::-1]

    def at(self, points: Ints) -> Band:
        """Those of the rising band, turned."""
        return self.inner.at(self.points - 1 - points)


# A credible band of what the posterior holds likely, point by point. It is a belief of the model, and guarantees nothing.


def credible_band(sums: NoisySums, found: CurvePosterior, confidence: float) -> LineBand:
    """The central share ``confidence`` of the posterior of every bin's value, with lines through the middles of bins."""
    below = np.cumsum(found.chances, axis=1)
    below /= below[:, -1:]
    tail = (1 - confidence) / 2
    last = found.values.size - 1
    low = np.minimum((below <= tail).sum(axis=1), last)
    high = np.minimum((below < 1 - tail).sum(axis=1), last)
    lows = np.maximum.accumulate(found.values[low])
    highs = np.minimum.accumulate(found.values[high][::-1])[::-1]
    # values of straight log odds are rounded bin by bin, so that the ends may change places
    return LineBand(sums.middles, np.minimum(lows, highs), np.maximum(lows, highs), sums.points)


# E-values against "the curve is at least v from here on", and the law of noise that they need.
#
# A tilt is a pair ``(theta, eta)`` with ``v·exp(−theta) + (1 − v)·exp(eta) = 1``: then ``exp(−theta·y + eta·(1 − y))`` has mean
# at most 1 for every ``y`` in [0, 1] whose mean is at least ``v`` (docs/theory/bands.md, section 1).

COUNT = 8
"""Tilts for every value, each half as strong as the one before."""
STRONGEST, MOST = 0.85, 4.0
"""The strongest tilt is this share of the rate of the noise, and of this at most."""
VALUES: Floats = np.sin(np.linspace(0.0, math.pi / 2, 801)) ** 2
"""Values that are tested: finer near 0 and 1, where means are told apart more easily."""
SMALL_NOISE = 64
"""Up to this standard deviation the law of rounded Gaussian noise is summed up, beyond it is bounded."""


def cumulant(sums: NoisySums, t: Floats) -> Floats:
    """``log E exp(t·X)`` of the noise ``X`` of one sum, in records, or a little more."""
    step = np.abs(t) / sums.unit  # for one whole number; noise is symmetric
    if sums.rate is not None:
        rate = float(sums.rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = 2 * math.log(-math.expm1(-rate)) - _log(step - rate) - _log(-step - rate)
        return np.where(step < rate, log, np.inf)
    assert sums.variance is not None, "sums have one of both"
    variance = float(sums.variance)
    if variance > SMALL_NOISE**2:
        return variance * step**2 / 2 + step / 2
    return _rounded(sums.variance, step)


def _log(exponent: Floats) -> Floats:
    """``log(1 − exp(exponent))``."""
    return np.log(-np.expm1(exponent))


def _rounded(variance: Fraction, step: Floats) -> Floats:
    from scipy.special import log_ndtr

    deviation = math.sqrt(variance)
    far = math.ceil(deviation * (12 + deviation * float(np.max(step, initial=0.0)))) + 2
    k = np.arange(-far, far + 1.0)
    # the chance to be rounded to k, by the tail that k lies in: no digits are lost
    near, beyond = log_ndtr((0.5 - np.abs(k)) / deviation), log_ndtr((-0.5 - np.abs(k)) / deviation)
    log_chance = near + np.log1p(-np.exp(beyond - near))
    terms = log_chance + step[..., None] * k
    top = terms.max(axis=-1)
    return top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))


def reach(sums: NoisySums) -> float:
    """How strong a tilt the noise of the sums allows."""
    if sums.rate is not None:
        return float(sums.rate) * sums.unit
    assert sums.variance is not None, "sums have one of both"
    return 4.0 * sums.unit / math.sqrt(sums.variance)


def tilts(sums: NoisySums) -> tuple[Floats, Floats]:
    """``theta`` and ``eta`` for every value but 0 and 1 (rows) and every strength (columns)."""
    return _tilts(min(reach(sums), MOST))


@cache
def _tilts(top: float) -> tuple[Floats, Floats]:
    """The larger of both is the strength. ``theta = log(v/w)`` and ``eta = log((1−w)/(1−v))`` for a ``w`` below ``v``."""
    v = VALUES[1:-1, None]
    strength = STRONGEST * top * 0.5 ** np.arange(COUNT)
    # the w at which theta, or eta, is the strength; the larger of both w has neither above it
    w = np.maximum(v * np.exp(-strength), 1 - (1 - v) * np.exp(strength))
    theta = np.log(v / w)
    # from theta, so that v·exp(−theta) + (1 − v)·exp(eta) is 1 to the last digit
    return theta, np.log1p(v * -np.expm1(-theta) / (1 - v))


# A band for the curve that the records were drawn from, simultaneous, for every population and number of records.
#
# Proof: docs/theory/bands.md, section 2.


def population_band(sums: NoisySums, confidence: float) -> StepBand:
    """Limits of a rising curve, all of them right at once with probability ``confidence`` at least.

    The upper end at a point is the least upper limit of the bins that begin there or later; the lower end the largest
    lower limit of those that end there or earlier.
    """
    ends = np.r_[sums.starts[1:], sums.points] - 1
    log_limit = log_threshold(sums.points, confidence)
    highs = np.minimum.accumulate(_highs(sums, log_limit)[::-1])[::-1]
    # a curve that rises also rises turned upside down and read from the right
    lows = 1 - np.minimum.accumulate(_highs(sums.mirrored().upside_down(), log_limit)[::-1])
    return StepBand(ends, lows, sums.starts, highs, sums.points)


def log_threshold(points: int, confidence: float) -> float:
    """The least ``x`` with ``2·points·COUNT·(1 + x)·exp(−x) ≤ 1 − confidence``."""
    chances = math.log(2 * COUNT) + math.log(points) - math.log1p(-confidence)
    x = chances
    for _ in range(100):  # a contraction, from below
        x = chances + math.log1p(x)
    return x * (1 + 1e-12)


def _highs(sums: NoisySums, log_limit: float) -> Floats:
    """For every bin an upper limit of the curve at its first point, by all runs of bins that begin with it."""
    ones, zeros = sums.in_records
    thetas, etas = tilts(sums)
    noises = cumulant(sums, thetas) + cumulant(sums, etas)
    best = np.zeros_like(thetas)
    place = np.zeros(ones.size, dtype=np.int64)
    for b in range(ones.size - 1, -1, -1):
        # the best run from a bin goes on to the best run from the next one, if that gains anything
        best = np.maximum(best, 0.0) - thetas * ones[b] + etas * zeros[b] - noises
        kept = np.flatnonzero((best < log_limit).all(axis=1))
        # the largest value that is kept; 0 always is. One between two tested values is kept if the lower of them is
        place[b] = kept[-1] + 1 if kept.size else 0
    return VALUES[place + 1]


# A band for the isotonic fit to the same records in the same bins. Noise is all that is uncertain.
#
# Proof: docs/theory/bands.md, section 3.

TESTED: Floats = np.sin(np.linspace(0.0, math.pi / 2, 401)) ** 2
"""The ends of cells of values. A cell is kept as a whole or not at all."""
STRENGTHS: Floats = 0.95 * 1.5 ** -np.arange(24.0)
"""Exponents of the bound on noise, as shares of what its law allows. The best for a length and a cell is a public choice."""


def records_band(sums: NoisySums, confidence: float) -> StepBand:
    """Limits of the isotonic fit in the bins, all of them right at once with probability ``confidence`` at least.

    The fit in bin ``k`` is the largest over ``i ≤ k`` of the least over ``j ≥ k`` of the means of bins ``i, …, j``. All
    these means have limits, and those of the fit follow. Bins without records have no fit, and the band says nothing.
    """
    size = sums.starts.size
    ends = np.r_[sums.starts[1:], sums.points] - 1
    low, high = _limits(sums, confidence)
    least = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]  # over all last bins from k on
    most = np.maximum.accumulate(high, axis=0)  # over all first bins up to k
    lows = np.array([least[: k + 1, k].max() for k in range(size)])
    highs = np.array([most[k, k:].min() for k in range(size)])
    lows, highs = np.maximum.accumulate(lows), np.minimum.accumulate(highs[::-1])[::-1]
    return StepBand(sums.starts, lows, ends, highs, sums.points)


def _limits(sums: NoisySums, confidence: float) -> tuple[Floats, Floats]:
    """For every first and last bin the limits of the mean between, in a square table."""
    size = sums.starts.size
    reached = [np.r_[0.0, np.cumsum(part)] for part in sums.in_records]
    noises = _noises(sums, math.log(size) + math.log(size + 1) - math.log1p(-confidence))
    lows, highs = np.zeros((size, size)), np.ones((size, size))
    for length in range(1, size + 1):
        a, c = (total[length:] - total[:-length] for total in reached)
        low, high = _kept(a, a + c, noises(length))
        first = np.arange(size + 1 - length)
        lows[first, first + length - 1], highs[first, first + length - 1] = low, high
    return lows, highs


def _kept(ones: Floats, totals: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The ends of ``{v: |ones − v·totals| ≤ noise(v)}``, cell by cell of the tested values.

    Where no cell is left the noise was larger than it may be: then nothing is said, as for totals below 0.
    """
    apart = ones[:, None] - totals[:, None] * TESTED
    kept = (apart[:, 1:] <= noise) & (apart[:, :-1] >= -noise)
    some = (totals >= 0) & kept.any(axis=1)
    last = TESTED.size - 1 - kept[:, ::-1].argmax(axis=1)
    return np.where(some, TESTED[kept.argmax(axis=1)], 0.0), np.where(some, TESTED[last], 1.0)


def _noises(sums: NoisySums, log_limit: float) -> Callable[[int], Floats]:
    """How far noise moves ``(1 − v)·ones − v·zeros`` in so many bins at most, for the ``v`` of every cell."""
    t = STRENGTHS[:, None] * reach(sums)
    each = cumulant(sums, t * (1 - TESTED)) + cumulant(sums, t * TESTED)
    # convex in v, so largest at an end of the cell
    worst = np.maximum(each[:, 1:], each[:, :-1])
    return lambda bins: ((log_limit + bins * worst) / t).min(axis=0)


# What a curve was measured by, and the bands that follow from it.

KINDS = ("population", "records", "credible")
ROUNDING = 0.5 / FINE
"""A ``y`` that is no label was moved so far at most, as a share of its range."""


@dataclass(frozen=True)
class MeasuredSums:
    """The noisy sums of a fit, and what is public about the records.

    ``levels`` is the number of values of the posterior, ``contributions`` how many records a unit may have, and
    ``direction_given`` whether the direction was declared and not found.
    """

    sums: NoisySums
    increasing: bool
    labels: bool
    levels: int
    contributions: int = 1
    direction_given: bool = True

    def band(self, confidence: float, kind: str) -> GridBand:
        """Limits at every point, as shares of the range of ``y``."""
        kind, confidence = one_of(kind, "kind", KINDS), confidence_level(confidence)
        reason = why_no_population(self.contributions, self.direction_given)
        if kind == "population" and reason:
            raise InputError(reason)
        sums = self.sums if self.increasing else self.sums.mirrored()
        result = self._rising(sums, confidence, kind)
        return result if self.increasing else TurnedBand(result, sums.points)

    def curve(self, output: str, ends: tuple[Fraction, Fraction], even: bool) -> Curve:
        """The curve that the sums give, as shares of the range of predictions, whose ``ends`` are shares of that of ``y``."""
        sums = self.sums if self.increasing else self.sums.mirrored()
        posterior = curve_posterior(sums, self.levels, spread_of(self.labels))
        result = curve_of(sums, posterior, output, ends, even)
        return result if self.increasing else result.mirrored()

    def _rising(self, sums: NoisySums, confidence: float, kind: str) -> GridBand:
        if kind == "credible":
            posterior = curve_posterior(sums, self.levels, spread_of(self.labels))
            return credible_band(sums, posterior, confidence)
        result = (population_band if kind == "population" else records_band)(sums, confidence)
        return result if self.labels else result.widened(ROUNDING)


def why_no_population(contributions: int, direction_given: bool) -> str:
    """Why there is no band for the population, or nothing."""
    if contributions > 1:
        return (
            f"A unit may have {contributions} records, which are not independent: there is no band for the population. A band "
            "of kind 'records' needs no independence."
        )
    if not direction_given:
        return (
            "The direction is found from the data, and a band for the population needs one that is known: give "
            "increasing=True or False, or use a band of kind 'records'."
        )
    return ""


def no_band(method: str) -> InputError:
    """The error for a curve whose sums were not measured."""
    return InputError(
        f"A curve by {method!r} has no band: the law of its error depends on the data. Bands are for squared and logistic "
        "loss with method='auto', without a shape."
    )
