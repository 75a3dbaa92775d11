"""At which thresholds the cumulative histogram is measured, and with which share of ε.

The number of categories of at most ``t`` is changed by one step only, that from ``t`` to ``t + 1``. So measuring it costs a
share of ε on that step alone, and the noise on the counts keeps all of ε on every other step. A measurement carries
information in proportion to the square of its ε, so few thresholds with more each tell more than all of them with little
(docs/theory/tables-whole.md, sections 1 and 6). Few thresholds blur what lies between them. Where their own noisy numbers show
that there is much, the thresholds between are measured too, after a first look. Everything here is a function of public numbers and of
private outputs.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.noise import UnevenLine
from isotone.privacy.draws import Draws
from isotone.tables.emphasis import POINTS, Emphasis, chosen_design, places_apart
from isotone.tables.estimate.beliefs import GeometricBeliefs
from isotone.tables.estimate.unbiased import (
    deviation_bound,
    error_law,
    largest_deviation,
    unbiased,
    variances,
)
from isotone.tables.estimate.views import Views, noise_precision
from isotone.tables.estimate.whole import estimate_histogram
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.rough_gaps import rough_gaps

__all__ = [
    "DENSE",
    "FEW",
    "SMALL",
    "Thresholds",
    "default_emphasis",
    "preset_thresholds",
    "share_of",
    "thresholds_for",
]

SMALL = 50
"""Categories below which nothing is spent on the distribution, and nothing is made of it."""

FEW = 100
"""Categories up to which the predictions of a design say too little, and three designs that were measured stand for the scale."""

_SHARES: dict[Emphasis, tuple[Fraction, Fraction, Fraction]] = {
    "counts": (Fraction(15, 1000), Fraction(15, 100), Fraction(0)),
    "both": (Fraction(2, 100), Fraction(30, 100), Fraction(9, 100)),
    "distribution": (Fraction(8, 100), Fraction(80, 100), Fraction(18, 100)),
}
"""The share of ε that each threshold would have if all were measured, the most that one may have, and that of one between two."""

_SCATTER = 4
"""How the scatter of real tables between thresholds compares with the noise of a threshold: see :func:`_apart`."""

_TRIED, _TRIED_OF_MANY = 300, 20  # true counts at most for which the law of a sum is computed

DENSE = 8
"""Categories for each pair of counts from which on thresholds are measured at an ε of 1 or more, unless told otherwise."""


@dataclass(frozen=True)
class Thresholds:
    """The two measurements of a table with counts up to ``upper``, for ``step`` of ε on every step.

    ``places`` are the thresholds that are measured, each with ``share`` of ``step``. ``finer`` are those between them that are measured
    after a look at the first, each with ``finer_share``.
    """

    upper: int
    step: Fraction
    places: tuple[int, ...]
    share: Fraction
    finer_share: Fraction = Fraction(0)
    finer: tuple[int, ...] = ()

    @property
    def rate(self) -> Fraction:
        """The ε of a measured threshold."""
        return self.share * self.step

    @property
    def finer_rate(self) -> Fraction:
        """The ε of a threshold that is measured after a look at the first."""
        return self.finer_share * self.step

    @cached_property
    def line(self) -> UnevenLine:
        """The line on which counts get their noise. Its steps have what the thresholds leave of ε."""
        full = lcm(self.share.denominator, self.finer_share.denominator)
        weights = [full] * self.upper
        for places, share in ((self.places, self.share), (self.finer, self.finer_share)):
            for place in places:
                weights[place] = int(full * (1 - share))
        return UnevenLine(self.step / full, tuple(weights), full)

    def measure(self, table: Ints, draws: Draws) -> tuple[Thresholds, Ints, Ints]:
        """All private measurements, cumulative numbers at the thresholds, and counts. Nothing else reads the table.

        Which thresholds are measured after the first follows from what the first gave, and comes back with the numbers.
        """
        below = np.cumsum(np.bincount(table, minlength=self.upper + 1))
        first = _noisy(below, self.places, self.rate, draws)
        made = replace(self, finer=self._between(first, len(table)))
        cumulative = np.concatenate([first, _noisy(below, made.finer, made.finer_rate, draws)])
        return made, cumulative, draws.uneven(table, made.line)

    def _between(self, cumulative: Ints, size: int) -> tuple[int, ...]:
        """The thresholds in gaps that the first noisy numbers show to be rough. It reads nothing else."""
        if not self.finer_share or len(self.places) == self.upper:
            return ()
        enough = float(1 / self.rate), float(1 / self.finer_rate)
        rough = rough_gaps(self._ends, np.concatenate([[0], cumulative, [size]]), enough, _smooth(self.step))
        return self._within(rough)

    def _within(self, gaps: list[int]) -> tuple[int, ...]:
        """The thresholds inside these gaps, in order."""
        ends, last = self._ends, len(self.places)
        return tuple(place for at in gaps if 0 <= at <= last for place in range(ends[at] + 1, ends[at + 1]))

    @cached_property
    def _ends(self) -> list[int]:
        """Where gaps between thresholds end, the first of them before 0."""
        return [-1, *self.places, self.upper]

    def with_finer(self, finer: tuple[int, ...]) -> Thresholds:
        """The same measurements with these thresholds between the first, which must fill the gaps that they lie in."""
        gaps = sorted({bisect_left(self._ends, place) - 1 for place in finer})
        if finer != self._within(gaps) or (finer and not self.finer_share):
            raise InputError("The thresholds that were measured last do not fill gaps between the first.")
        return replace(self, finer=finer)

    def histogram(self, cumulative: Ints, noisy: Ints) -> tuple[NDArray[np.float64], str]:
        """The histogram that both measurements tell, and the model it comes from. Post-processing."""
        direct = np.zeros(self.upper, np.int64)
        direct[[*self.places, *self.finer]] = cumulative
        return estimate_histogram(Views.of(direct, self.seen(noisy), self.precision(), self.line.rates))

    def seen(self, noisy: Ints) -> Ints:
        """What a posterior is computed from, the noisy counts within 0..upper. Geometric noise beyond says nothing more."""
        return np.clip(noisy, 0, self.upper)

    def beliefs(self, probabilities: NDArray[np.float64], size: int) -> GeometricBeliefs:
        """The posteriors of the true counts."""
        return GeometricBeliefs(probabilities, size, self.line.rates)

    def channel(self) -> NDArray[np.float64]:
        """The probability of every clamped noisy count, given every true count."""
        return geometric_matrix(self.upper + 1, self.line.rates)

    def readings(self, unbiased: float) -> list[int]:
        """See :class:`~isotone.tables.measurement.Measurement`."""
        known: list[int] = np.flatnonzero(
            np.abs(self._inside - unbiased) <= 1e-4 + 1e-9 * abs(unbiased)
        ).tolist()
        if unbiased == int(unbiased) and not 0 <= unbiased <= self.upper:
            known.append(0 if unbiased < 0 else self.upper)
        return known

    @cached_property
    def _inside(self) -> NDArray[np.float64]:
        return self.unbiased(np.arange(self.upper + 1))

    def unbiased(self, noisy: Ints) -> NDArray[np.float64]:
        """For each noisy count an estimate whose mean is the true count."""
        return unbiased(noisy, self.line)

    def errors(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far :meth:`unbiased` is from a true count, and with which probabilities."""
        return error_law(self.line, count)

    @property
    def deviation(self) -> float:
        """The largest standard deviation of :meth:`unbiased` over all true counts."""
        return largest_deviation(self.line)

    @property
    def deviation_bound(self) -> float:
        """At least :attr:`deviation`, whichever thresholds are measured after the first, a public number."""
        if not self.finer_share:
            return self.deviation
        filled = replace(self, finer=self._within(list(range(len(self._ends)))))
        return max(self.deviation, deviation_bound(self.line, filled.line))

    def widest(self, many: bool) -> list[int]:
        """See :class:`~isotone.tables.measurement.Measurement`."""
        if not self.places:
            return [0]
        variance = variances(self.line)
        # counts between steps that look alike have one law, and one variance
        unlike = np.unique(np.round(variance / variance.max(), 4), return_index=True)[1]
        tried = unlike[-_TRIED_OF_MANY:] if many else unlike[:: 1 + len(unlike) // _TRIED]
        return sorted({0, self.upper, *tried.tolist()})

    def precision(self) -> NDArray[np.float64]:
        """One over the variance of each noisy cumulative number, and 0 where none was measured."""
        precision = np.zeros(self.upper)
        precision[list(self.places)] = noise_precision(float(self.rate))
        precision[list(self.finer)] = noise_precision(float(self.finer_rate))
        return precision


def _noisy(below: Ints, places: tuple[int, ...], rate: Fraction, draws: Draws) -> Ints:
    """The noisy cumulative numbers at some thresholds."""
    if not places:
        return np.zeros(0, np.int64)
    return (below[list(places)] + draws.geometrics(rate, len(places))).astype(np.int64)


_OF_RHO = {0: 1, Fraction(1, 50): 3, Fraction(1, 20): 8, Fraction(1, 10): 12, Fraction(1, 2): 50, 1: 98}
"""Hundredths of ρ for the distribution at some points of the scale."""


def share_of(emphasis: Fraction) -> Fraction:
    """The share of ρ for the distribution, for which all thresholds are measured: linear between a few points.

    >>> [float(share_of(Fraction(tenths, 10))) for tenths in (0, 1, 3, 5, 10)]
    [0.01, 0.12, 0.31, 0.5, 0.98]
    """
    points = [Fraction(point) for point in _OF_RHO]
    at = max(1, bisect_left(points, emphasis))
    low, high = points[at - 1], points[at]
    part = (emphasis - low) / (high - low)
    return (_OF_RHO[low] + part * (_OF_RHO[high] - _OF_RHO[low])) / 100


def default_emphasis(step: Fraction, upper: int, size: int) -> Fraction:
    """What keeps both errors small, by public numbers (docs/theory/tables-whole.md, section 6).

    It is that of ``both`` for an ε of a step below 1, or where the table is dense, and otherwise that of ``counts``.

    >>> default_emphasis(Fraction(1), 50, 3000), default_emphasis(Fraction(1), 50, 30_000)
    (Fraction(1, 50), Fraction(1, 20))
    """
    return POINTS["both" if step < 1 or size >= DENSE * (upper + 1) ** 2 else "counts"]


def thresholds_for(emphasis: Fraction, upper: int, step: Fraction, size: int) -> Thresholds:
    """The thresholds of an emphasis for ``size`` categories with counts up to ``upper``.

    Few categories take one of three designs that were measured, and fewer than 50 none.

    >>> thresholds_for(Fraction(1, 50), 50, Fraction(1, 10), 3000)
    Thresholds(upper=50, step=Fraction(1, 10), places=(0, 1, 2, 4, 8, 15, 24, 32, 39, 48, 49), share=Fraction(2, 5), ...)
    """
    if size < SMALL or upper == 0:
        return Thresholds(upper, step, (), Fraction(0))
    if size <= FEW:
        near: Emphasis = "counts" if 25 * emphasis < 1 else "both" if 10 * emphasis < 3 else "distribution"
        return preset_thresholds(near, upper, step, size)
    design, finer = chosen_design(emphasis, size, upper, step)
    if not design.share:
        return Thresholds(upper, step, (), Fraction(0))
    if finer and 25 * emphasis >= 1:  # less would not see what it is measured for
        finer = max(finer, _between("distribution", step))
    return Thresholds(upper, step, places_apart(upper, design.apart), design.share, finer)


def preset_thresholds(preset: Emphasis, upper: int, step: Fraction, size: int) -> Thresholds:
    """The thresholds of one of three designs that were chosen by measurement, for tables of few categories.

    >>> preset_thresholds("counts", 50, Fraction(1, 10), 3000)
    Thresholds(upper=50, step=Fraction(1, 10), places=(0, 1, 2, 4, 8, 15, 24, 32, 39, 48, 49), share=Fraction(3, 20), ...)
    """
    each, most, _ = _SHARES[preset]
    each *= (1 + _loud(step) / 4) / max(Fraction(1), step)
    if preset == "counts" and step >= 1:
        return Thresholds(upper, step, (), Fraction(0))
    apart = _apart(upper + 1, size, each * step, int(most / each))
    share = Fraction(round(100 * each * apart), 100)
    if not share:
        return Thresholds(upper, step, (), share)
    finer = _between(preset, step) if apart > 1 else Fraction(0)
    return Thresholds(upper, step, places_apart(upper, apart), share, finer)


def _between(preset: Emphasis, step: Fraction) -> Fraction:
    """The share of a threshold between two, in hundredths."""
    return Fraction(round(100 * _SHARES[preset][2] * (1 + _loud(step) / 2) / max(Fraction(1), step)), 100)


def _loud(step: Fraction) -> Fraction:
    """From 1 at an ε of 0.1 to 0 at 0.3. Where noise is strong, estimates lose little if thresholds have a quarter more."""
    return min(Fraction(1), max(Fraction(0), (3 - 10 * step) / 2))


def _smooth(step: Fraction) -> float:
    """The share of a gap's categories up to which its excess is left to the smooth models."""
    return 0.3 / float(1 + _loud(step) / 2)


def _apart(counts: int, size: int, rate: Fraction, most: int) -> int:
    """How far apart thresholds are best, at most ``most``.

    Thresholds ``g`` apart, for what all of them would cost with ``rate`` each, have noise of the variance ``2/(g·rate)²``. What lies
    between two of them is interpolated, and there real tables scatter with a variance in proportion to ``g·size/counts``. Both are
    alike where ``g³ = _SCATTER·counts/(size·rate²)``.

    >>> _apart(51, 3000, Fraction(1, 100), 10), _apart(51, 100_000, Fraction(1, 100), 10)
    (9, 3)
    """
    apart = 1
    while apart < most and (apart + Fraction(1, 2)) ** 3 * size * rate**2 <= _SCATTER * counts:
        apart += 1
    return apart
