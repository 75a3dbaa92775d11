"""Curves of means by the posterior of noisy sums, and the bands around them: for the records, the population, or credible."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.cuts import ChainProblem, Curve, CurveMechanism, RiskBound
from isotone.curves.posterior import (
    CurvePosterior,
    NoisySums,
    curve_posterior,
    even_starts,
    noisy_sums,
    rescaled,
)
from isotone.curves.problem import FINE, Records
from isotone.errors import InputError
from isotone.privacy.checks import confidence_level, one_of

# Where the bins of the next round begin, from what the last one released and public numbers.

CROWDS, RISES = 0.6, 0.25
"""At most so many of the bins go to crowds, and so many to where the curve rises; the others are even."""
RARE, FEWEST = 6.0, 8
"""Where the mean of ``y`` is ``m`` and this times ``m·(1 − m)`` is below 1, there are fewer bins by its root, but so many."""
CLEAR = 1.5
"""How clearly a crowd must stand out: so much beyond what the largest of the noises reaches."""


def placed_starts(
    sums: NoisySums, posterior: CurvePosterior, n: int, bins: int, most: int | None = None
) -> Ints:
    """The first points of about ``bins`` bins, from the noisy sums of other bins and their posterior ``found``.

    About ``n`` records are expected. A bin of the sums gets new ones by its width, by how crowded it clearly is, and by the
    posterior of its records ``r`` and of the rise ``g`` of the curve there: in proportion to ``(r·g²)^{1/3}``, which evens
    out what steps miss. ``most`` is given where what was seen decides how many bins there are: fewer where ``y`` is nearly
    always the same, which leaves little to be told apart, and up to twice as many where records are in crowds.
    """
    size = sums.starts.size
    width = np.diff(np.r_[sums.starts, sums.points]) / sums.points
    surplus = sum(sums.in_records) - n * width
    crowd = np.where(surplus > (math.log(size) + CLEAR) * math.sqrt(sums.noise.variance / 2), surplus, 0.0)
    share_in_crowds = min(1.0, float(crowd.sum()) / n)
    crowded = CROWDS * share_in_crowds
    rise = np.gradient(posterior.population) if size > 1 else np.zeros(1)
    rising = ((posterior.ones + posterior.zeros) * rise**2) ** (1 / 3)
    share = (1.0 - crowded - RISES) * width + RISES * rising / max(float(rising.sum()), 1e-9)
    if crowded > 0:
        share += crowded * crowd / crowd.sum()
    if most is not None:
        ones, zeros = float(posterior.ones.sum()), float(posterior.zeros.sum())
        varied = min(1.0, RARE * ones * zeros / max(ones + zeros, 1e-9) ** 2) ** 0.5
        bins = max(min(bins, FEWEST), round(bins * varied))
        bins = max(bins, min(most, round(bins * (1 + share_in_crowds))))
    reached = np.r_[0.0, np.cumsum(share)]
    edges = np.r_[sums.starts, sums.points].astype(np.float64)
    cuts = np.interp(np.arange(bins) / bins, reached / reached[-1], edges)
    return np.unique(np.floor(cuts + 1e-9).astype(np.int64))


# Means and probabilities, by rounds of noisy sums, and the posterior of a rising curve.

Law = tuple[Fraction | None, Fraction | None]
"""The rate or the variance of noise."""

SPREAD = 0.1
"""The variance of ``y`` about its mean ``v`` is taken as this times ``v·(1 − v)`` where ``y`` is no label."""
COARSE_LEVELS = 51
"""Values of the posterior of the first round."""
MOST_BINS = 1024
"""Of the last round."""
COARSE_BINS = ((200, 16), (float("inf"), 28))
"""The least number of bins of a coarse look, by epsilon times the number of records; more where there are more fine bins,"""
MOST_COARSE_BINS = 64
"""but never more than this."""
ONE_LOOK, TWO_LOOKS = 80, 500
"""From these products of epsilon and records on there is a coarse look, which would see nothing but noise with less, and a
second one, which sees inside the crowds of the first."""
CROWDED = 10.0
"""A bin so many times as dense as the one beside it may hold a heap on one point,"""
MANY = 150.0
"""if there are so many records in all, in standard deviations of the noise of a sum: with fewer, densities are hardly known."""
LEAST_RECORDS = 1e-3
"""No bin is expected to hold less."""
LEVELS = ((5_000, 101), (40_000, 201), (float("inf"), 401))
"""Values of the posterior, by epsilon times the number of records."""


def spread_of(labels: bool) -> float:
    """The variance of ``y`` about its mean, as a share of that of labels."""
    return 1.0 if labels else SPREAD


@dataclass(frozen=True)
class RoundShares:
    """What the coarse looks together, if there are any, and the fine one spend of epsilon, in all exactly 1."""

    coarse: Fraction = Fraction(1, 10)
    fine: Fraction = Fraction(9, 10)

    def __post_init__(self) -> None:
        if self.coarse + self.fine != 1 or not 0 <= self.coarse < 1:
            raise ValueError("The shares of the rounds must not be below 0, and 1 together.")

    @classmethod
    def of(cls, looks: int) -> RoundShares:
        """The shares with so many coarse looks."""
        return cls() if looks else cls(Fraction(0), Fraction(1))


@dataclass(frozen=True)
class PosteriorFit(CurveMechanism):
    """Coarse and fine noisy sums of ``y`` and ``1 − y``, and the posterior of a rising hidden chain.

    1. With a tenth of epsilon: both sums in ``coarse_bins`` even bins, which place the bins of the next round. With two
       ``looks`` each has half of it: the second is in as many bins, placed by the first. With none, nothing is spent.
    2. With the rest: both sums in about ``fine_bins`` bins, up to twice as many where ``x`` is crowded; in even ones
       without a coarse look.
    3. The posterior of a rising curve given these sums. ``output`` is its mean (``population``), or the pooled expected
       shares (``records``), which is near the fit to the records themselves. Lines join the middles of bins.

    ``labels``: ``y`` is 0 or 1, by declaration. ``n`` is a public or noisy number of records. ``ends`` are those of the
    predictions, as shares of ``y_range``.

    Guarantee: epsilon-DP for one privacy unit, or ρ-zCDP with Gaussian noise (docs/theory/curves.md, section 8.1).
    Error: ``error()`` is an estimate, not a bound.
    Cost: O(n) to count, and O(bins·values) for the posterior, whatever the number of records.
    """

    n: int
    coarse_bins: int
    fine_bins: int
    levels: int
    labels: bool = False
    output: str = "population"
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    even: bool = True
    looks: int = 1
    shares: RoundShares = RoundShares()

    @classmethod
    def of(cls, case: ChainProblem) -> PosteriorFit:
        """The mechanism with sizes for a case."""
        bins = case.bins(min(MOST_BINS, max(8, 0.25 * case.strength**0.75)))
        coarse = next(least for below, least in COARSE_BINS if case.strength < below)
        looks = sum(case.strength >= enough for enough in (ONE_LOOK, TWO_LOOKS))
        return cls(
            case.setting,
            case.points,
            case.n,
            case.bins(min(MOST_COARSE_BINS, max(coarse, bins))),
            bins,
            next(levels for below, levels in LEVELS if case.strength < below),
            case.labels,
            case.output,
            case.ends,
            case.grid.even,
            looks,
            RoundShares.of(looks),
        )

    @property
    def law(self) -> Law:
        """The rate, or the variance, of the noise of the last round."""
        return self.setting.law(self.shares.fine, self.top)

    @property
    def top(self) -> int:
        """In how many levels ``y`` is counted."""
        return 1 if self.labels else FINE

    @property
    def first_starts(self) -> Ints:
        """Where the bins of the first round begin, which is the last one without a coarse look."""
        return even_starts(self.points, self.coarse_bins if self.looks else self.fine_bins)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """The curve, with the noisy sums of the last round."""
        sums = self.measure(records, draws)
        result = self.posterior(sums, self.levels)
        return curve_of(sums, result, self.output, self.ends, self.even)

    def measure(self, records: Records, draws: CurveDraws) -> NoisySums:
        """Coarse looks and the fine one, which is all that looks at records."""
        starts = self.first_starts
        for left in reversed(range(self.looks)):
            seen = self.sums(records, starts, self.shares.coarse / self.looks, draws)
            result = self.posterior(seen, COARSE_LEVELS, keep=1e-2)
            bins, most = (self.coarse_bins, None) if left else (self.fine_bins, min(MOST_BINS, self.points))
            starts = placed_starts(seen, result, self.n, bins, most)
        return self.sums(records, starts, self.shares.fine, draws)

    def sums(self, records: Records, starts: Ints, share: Fraction, draws: CurveDraws) -> NoisySums:
        """The noisy sums of one round."""
        return noisy_sums(records, starts, self.points, self.setting, share, draws, self.top)

    def posterior(self, sums: NoisySums, levels: int, keep: float = 1e-3) -> CurvePosterior:
        """The posterior given the sums of a round."""
        return curve_posterior(sums, levels, spread_of(self.labels), keep)

    def error(self) -> RiskBound:
        """An estimate, from the noise of the sums of all bins, shared by a chain."""
        rate = float(self.shares.fine * self.setting.epsilon) / self.setting.unit.steps
        return RiskBound(self.fine_bins**0.5 / rate, 1.0 / self.fine_bins**2, proved=False)


@dataclass(frozen=True)
class PossibleSums:
    """What is known before any data of sums whose noise has a given law.

    ``values`` are the numbers of values that their posterior may have, and ``starts`` where their bins begin, if that is known.
    """

    values: tuple[int, ...]
    starts: tuple[int, ...] | None = None


def possible_sums(case: ChainProblem, public: bool) -> dict[Law, PossibleSums]:
    """The sums that a curve of means may be made of, by the law of their noise.

    The number of records of the case is ``public``, or the least that a noisy one can be.
    """
    fit = PosteriorFit.of(case)
    result = {fit.law: PossibleSums((fit.levels,), None if fit.looks else tuple(fit.first_starts.tolist()))}
    if not public:
        looked = case.setting.law(RoundShares.of(1).fine, fit.top)
        result[looked] = PossibleSums(tuple(levels for _, levels in LEVELS))
    return result


def curve_of(
    sums: NoisySums, posterior: CurvePosterior, output: str, ends: tuple[Fraction, Fraction], even: bool
) -> Curve:
    """Lines through the middles of bins. On points that are not even, a corner at every point.

    For ``records``, if these are many, they bend at the edge of a bin that is far more crowded than the one beside it: its
    records may all stand on one point, and the curve rises where hardly any are.
    """
    values = rescaled(posterior.of(output), ends)
    edges = np.r_[sums.starts, sums.points] - 0.5
    width = np.diff(edges)
    at, held = sums.middles, posterior.ones + posterior.zeros
    if output == "records" and held.sum() > MANY * sums.noise.variance**0.5:
        density = np.maximum(held, LEAST_RECORDS) / width
        left, right = (
            width[:-1] * _crowding(density[1:] / density[:-1]),
            width[1:] * _crowding(density[:-1] / density[1:]),
        )
        at = np.r_[at, edges[1:-1]]
        values = np.r_[values, (right * values[:-1] + left * values[1:]) / (left + right)]
        order = np.argsort(at)
        at, values = at[order], values[order]
    if even:
        # a corner between two points: both are corners
        knots = np.unique(np.concatenate([np.floor(at), np.ceil(at), [0, sums.points - 1]])).astype(np.int64)
    else:
        knots = np.arange(sums.points)
    rising = np.maximum.accumulate(np.interp(knots, at, values))
    return Curve(knots, rising, sums.points, interpolated=True, sums=sums)


def _crowding(ratio: Floats) -> Floats:
    """How a ratio of densities counts, up to ``CROWDED`` as 1, and steeply more beyond."""
    return np.maximum(ratio / CROWDED, 1.0) ** 4


# Bands around a curve, for the records, the population, and by the posterior.

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


def credible_band(sums: NoisySums, posterior: CurvePosterior, confidence: float) -> LineBand:
    """The central share ``confidence`` of the posterior of every bin's value, with lines through the middles of bins."""
    below = np.cumsum(posterior.chances, axis=1)
    below /= below[:, -1:]
    tail = (1 - confidence) / 2
    last = posterior.values.size - 1
    low = np.minimum((below <= tail).sum(axis=1), last)
    high = np.minimum((below < 1 - tail).sum(axis=1), last)
    lows = np.maximum.accumulate(posterior.values[low])
    highs = np.minimum.accumulate(posterior.values[high][::-1])[::-1]
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
