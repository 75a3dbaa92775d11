"""A curve by its posterior: where bins are placed, and what is fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.cuts import ChainProblem
from isotone.curves.posterior import (
    CurvePosterior,
    NoisySums,
    curve_posterior,
    even_starts,
    noisy_sums,
    rescaled,
)
from isotone.curves.problem import FINE, Records

__all__ = [
    "PossibleSums",
    "PosteriorFit",
    "RoundShares",
    "curve_of",
    "placed_starts",
    "possible_sums",
    "spread_of",
]


# Where the bins of the next round begin, from what the last one released and public numbers.

CROWDS, RISES = 0.6, 0.25
"""At most so many of the bins go to crowds, and so many to where the curve rises; the others are even."""
RARE, FEWEST = 6.0, 8
"""Where the mean of ``y`` is ``m`` and this times ``m·(1 − m)`` is below 1, there are fewer bins by its root, but so many."""
CLEAR = 1.5
"""How clearly a crowd must stand out: so much beyond what the largest of the noises reaches."""


def placed_starts(sums: NoisySums, found: CurvePosterior, n: int, bins: int, most: int | None = None) -> Ints:
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
    rise = np.gradient(found.population) if size > 1 else np.zeros(1)
    rising = ((found.ones + found.zeros) * rise**2) ** (1 / 3)
    share = (1.0 - crowded - RISES) * width + RISES * rising / max(float(rising.sum()), 1e-9)
    if crowded > 0:
        share += crowded * crowd / crowd.sum()
    if most is not None:
        ones, zeros = float(found.ones.sum()), float(found.zeros.sum())
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
    sums: NoisySums, found: CurvePosterior, output: str, ends: tuple[Fraction, Fraction], even: bool
) -> Curve:
    """Lines through the middles of bins. On points that are not even, a corner at every point.

    For ``records``, if these are many, they bend at the edge of a bin that is far more crowded than the one beside it: its
    records may all stand on one point, and the curve rises where hardly any are.
    """
    values = rescaled(found.of(output), ends)
    edges = np.r_[sums.starts, sums.points] - 0.5
    width = np.diff(edges)
    at, held = sums.middles, found.ones + found.zeros
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
