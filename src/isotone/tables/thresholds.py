"""Which thresholds of a table are measured, and with which share of ε, by public numbers alone.

From an emphasis between 0 (counts) and 1 (distribution) to the thresholds that are measured, by public numbers alone.

What a step of a count spends on its threshold it does not spend on the count. So thresholds everywhere or at few places, with any
share, are one family of designs, and each has two errors: that of an estimate and that of the distribution. Both are predicted without
data, for an even table whose histogram may bend. The emphasis says which error may be how far from the best that any design has: the
design with the least ``max((1 - e)·ln(estimate/best), e·ln(distance/best))`` is taken (docs/theory/tables-whole.md, section 6).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf, lcm, log2
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.noise import UnevenLine
from isotone.privacy.checks import Number, exact, one_of, shown
from isotone.privacy.draws import Draws
from isotone.tables.estimate import (
    GeometricBeliefs,
    deviation_bound,
    error_law,
    estimate_histogram,
    largest_deviation,
    unbiased,
    variances,
)
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.smooth import SILENT, Views, noise_precision

Emphasis = Literal["counts", "both", "distribution"]
"""Names of three points on the scale."""

POINTS: dict[Emphasis, Fraction] = {
    "counts": Fraction(1, 50),
    "both": Fraction(1, 20),
    "distribution": Fraction(1, 2),
}

_APART = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_WIDE = 16  # counts apart, beyond which thresholds are only on lines of many times as many counts
_APART_SHARES = tuple(
    Fraction(hundredths, 100)
    for hundredths in (
        3,
        5,
        8,
        10,
        13,
        16,
        20,
        25,
        30,
        35,
        40,
        45,
        50,
        55,
        60,
        65,
        70,
        75,
        80,
        85,
        90,
        95,
        98,
    )
)
_LEAST = Fraction(16, 100)
"""The smallest share at an ε of a step below 1: without any threshold intervals of 95 % held for 58 % of a long table."""
_MOST = Fraction(80, 100)  # the largest share of thresholds that are apart, up to an emphasis of a half
_MOST_BEYOND = Fraction(95, 100)  # and beyond
_POINTS = 64  # steps for which errors are predicted, at most: longer lines are pooled, or cut
_FINE = Fraction(1, 2)  # the ε of a pooled step, at most
_BEND = 0.2  # the length over which a histogram bends, of the range of counts
_MEAN = 0.8  # mean of |x| for a normal x of standard deviation 1
_NOTHING = (1e-6, 1e-9)  # errors too small to matter, of an estimate and of the distribution
_DIGITS = 9  # of a loss: what differs by less is a tie, and the first design of the list has it
LEAST_SIZE, MOST_SIZE = 13, 54
"""Twice the binary logarithm of the smallest and the largest number of categories that are told apart."""


@dataclass(frozen=True)
class Design:
    """Thresholds ``apart`` from each other, each with ``share`` of the ε of a step, and both predicted errors.

    No threshold is measured if the share is 0. ``estimate`` is the root mean square error of an estimate and ``distance`` the Wasserstein-1
    distance of the distributions.
    """

    apart: int
    share: Fraction
    estimate: float
    distance: float


def checked_emphasis(value: Number | Emphasis) -> Fraction:
    """A number from 0 to 1, or one of the three names.

    >>> checked_emphasis("both"), checked_emphasis(0.25)
    (Fraction(1, 20), Fraction(1, 4))
    """
    if isinstance(value, str) and not any(letter.isdigit() for letter in value):
        return POINTS[one_of(value, "emphasis", get_args(Emphasis))]
    number = exact(value, "emphasis")
    if not 0 <= number <= 1:
        raise InputError(f"emphasis must be from 0 (counts) to 1 (distribution), not {shown(value)}.")
    return number


def places_apart(upper: int, apart: int) -> tuple[int, ...]:
    """Thresholds below ``upper`` that double their distance until it is ``apart``, and the one below the top count.

    Then distances differ by one in turn: with equal ones every gap of a table of even numbers would look alike.

    >>> places_apart(20, 4), len(places_apart(20, 1))
    ((0, 1, 2, 4, 7, 12, 16, 19), 20)
    """
    places = {upper - 1} if upper else set[int]()
    place, turn = 0, 0
    while place < upper:
        places.add(place)
        if place < apart:
            place += max(1, place)
        else:
            place += max(1, apart + (-1, 1, 0)[turn % 3]) if apart > 1 else 1
            turn += 1
    return tuple(sorted(places))


def chosen_design(emphasis: Fraction, size: int, upper: int, step: Fraction) -> tuple[Design, Fraction]:
    """The design for an emphasis, and the share of thresholds in gaps that turn out to be rough.

    That share is the one that all thresholds would have if there were no gaps. The number of categories enters rounded to half a power
    of two. All of it is a function of public numbers.

    >>> design, finer = chosen_design(Fraction(1, 10), 1000, 60, Fraction(1, 10))
    >>> design.apart, float(design.share), float(finer)
    (6, 0.75, 0.16)
    """
    half_powers = min(max(round(2 * log2(max(size, 1))), LEAST_SIZE), MOST_SIZE)
    listed = designs(half_powers, upper, step)
    most = _MOST if 2 * emphasis <= 1 else _MOST_BEYOND
    something = _LEAST if step < 1 else Fraction(0)
    allowed = [each for each in listed if something <= each.share and (each.apart == 1 or each.share <= most)]
    chosen = _least(allowed, allowed, emphasis)
    if chosen.apart == 1:
        return chosen, Fraction(0)
    everywhere = [each for each in listed if each.apart == 1 and each.share]
    return chosen, _least(everywhere, allowed, emphasis).share


def _least(designs: list[Design], allowed: list[Design], emphasis: Fraction) -> Design:
    """The design with the least loss, the first one of equal ones."""
    e = float(emphasis)
    best = [min(_log(each, which) for each in allowed) for which in (0, 1)]

    def loss(design: Design) -> float:
        estimate, distance = ((1 - e) * (_log(design, 0) - best[0]), e * (_log(design, 1) - best[1]))
        return round(max(estimate, distance) + 1e-3 * (estimate + distance), _DIGITS)

    return min(designs, key=loss)


def _log(design: Design, which: int) -> float:
    return float(np.log((design.estimate, design.distance)[which] + _NOTHING[which]))


@lru_cache(maxsize=256)
def designs(half_powers: int, upper: int, step: Fraction) -> tuple[Design, ...]:
    """All designs for ``2**(half_powers/2)`` categories with counts up to ``upper``, with their predicted errors.

    Up to 64 steps are predicted as they are. Longer lines are pooled while a pooled step has at most half of ε. What is longer
    still is cut: a bound that high is a generous one, and most counts are expected below it.
    """
    kinds = [(1, Fraction(0))]
    apart_at_most = max(1, min(upper // 2, max(_WIDE, upper // 8)))
    kinds += [(apart, share) for apart in _APART if apart <= apart_at_most for share in _APART_SHARES]
    profiles = [(places_apart(upper, apart) if share else (), share) for apart, share in kinds]
    errors = predicted_errors(2 ** (half_powers / 2), upper, step, profiles)
    return tuple(Design(*kind, *both) for kind, both in zip(kinds, errors, strict=True))


def predicted_errors(
    size: float, upper: int, step: Fraction, profiles: list[tuple[tuple[int, ...], Fraction]]
) -> list[tuple[float, float]]:
    """The errors of an estimate and of the distribution for ``size`` categories, for each choice of places and their share."""
    pool = max(1, min(-(-upper // _POINTS), int(_FINE / step)))
    length = min(upper, _POINTS * pool)
    starts = np.arange(0, length, pool)
    rates, precisions = np.empty((2, len(profiles), len(starts)))
    for row, (places, share) in enumerate(profiles):
        shares = np.zeros(upper)
        shares[list(places)] = float(share)
        rates[row] = np.add.reduceat(float(step) * (1 - shares[:length]), starts)
        precisions[row] = np.add.reduceat(shares[:length] > 0, starts) * noise_precision(float(share * step))
    estimates, distances = _errors(size, rates, precisions)
    return list(zip((pool * estimates).tolist(), (pool * distances).tolist(), strict=True))


def _errors(size: float, rates: Floats, precisions: Floats) -> tuple[Floats, Floats]:
    """Both errors of a table of ``size`` categories spread evenly, for rows of rates of steps and precisions of thresholds.

    The first is the posterior deviation of a count, every count being as likely. The second is the mean distance of cumulative
    numbers, whose posterior covariance is that of three independent sources: the thresholds, the noisy counts, and a
    histogram that scatters about an even one by chance and by a bend.
    """
    rates = np.minimum(rates, SILENT)
    steps = rates.shape[1]
    n, counts = steps + 1, np.arange(steps + 1)
    edge = np.full((len(rates), 1), np.inf)
    left, right = np.hstack([edge, rates]), np.hstack([rates, edge])
    weights = -np.expm1(-left - right) / ((1 + np.exp(-left)) * (1 + np.exp(-right)))
    place = np.hstack([np.zeros_like(edge), np.cumsum(rates, axis=1)])
    channel = weights[:, None, :] * np.exp(-np.abs(place[:, :, None] - place[:, None, :]))
    seen = channel.sum(axis=1)
    means = np.einsum("i,dik->dk", counts, channel) / seen
    away = (counts[:, None] - means[:, None, :]) ** 2
    estimates = np.sqrt(np.einsum("dik,dik->d", away, channel) / n)
    slope = np.exp(-rates) / -np.expm1(-2 * rates)
    up, down = np.zeros_like(weights), np.zeros_like(weights)
    up[:, :-1], down[:, 1:] = slope / weights[:, :-1], slope / weights[:, 1:]
    seen *= size / n
    through = np.zeros((len(rates), steps, steps))
    at = np.arange(steps)
    through[:, at, at] = (up * (1 + up) * seen)[:, :-1] + (down * (1 + down) * seen)[:, 1:] + 1e-9
    through[:, at[1:], at[:-1]] = through[:, at[:-1], at[1:]] = -(up * down * seen)[:, 1:-1]
    precision = np.linalg.inv(through) + np.linalg.inv(_scatter(size, n))
    precision[:, at, at] += precisions
    variances = np.diagonal(np.linalg.inv(precision), axis1=1, axis2=2)
    return estimates, _MEAN * np.sqrt(np.maximum(variances, 0.0)).sum(axis=1) / size


def _scatter(size: float, n: int) -> NDArray[np.float64]:
    """The covariance of cumulative numbers of an even table that scatters by chance and by a bend, its total being known."""
    counts: Ints = np.arange(n)
    each = size / n
    bend = np.exp(-(((counts[:, None] - counts) / (_BEND * n)) ** 2) / 2)
    histogram = each * np.eye(n) + each**2 * bend
    total = histogram.sum(axis=1)
    histogram -= np.outer(total, total) / total.sum()
    below = np.tril(np.ones((n, n)))[:-1]
    return below @ histogram @ below.T + 1e-9 * size * np.eye(n - 1)


# Which gaps between thresholds hold more than a smooth distribution explains, from private numbers alone.

_SEEN = 8.0  # times one over the ε of the thresholds around a gap, an excess must have to be no chance
_WORTH = (
    4.0  # times one over the ε of the thresholds inside it, to be worth them: about three standard deviations
)
_ALIKE = 2.0  # times its share of the table, the excess that is clear is expected in every other gap


def rough_gaps(ends: Sequence[int], reached: Ints, one_over: tuple[float, float], smooth: float) -> list[int]:
    """The gaps whose inner thresholds are worth measuring (docs/theory/tables-whole.md, section 6).

    Gap ``i`` has the counts above ``ends[i]`` up to ``ends[i + 1]``, and ``reached`` are noisy numbers of categories up to each end.
    A gap whose density lies between those of its neighbours is smooth. The categories by which it is denser than both, or
    thinner, are its excess. ``one_over`` the ε of a threshold around a gap, and of one inside, an excess must be many times to be
    clear, and more than the share ``smooth`` of the denser ones. Heaps come together: if much of a table is clear excess, gaps with many categories count
    as rough as well.

    >>> ends, even, heaped = [-1, 4, 9, 14], np.array([0, 100, 200, 300]), np.array([0, 5, 295, 300])
    >>> rough_gaps(ends, even, (1, 2), 0.3), rough_gaps(ends, heaped, (1, 2), 0.3)
    ([], [1])
    """
    width = np.diff(ends).astype(np.float64)
    inside = np.diff(reached).astype(np.float64)
    density = np.maximum(inside / width, 0.0)
    before, after = np.append(density[0], density[:-1]), np.append(density[1:], density[-1])
    most, least = np.maximum(before, after), np.minimum(before, after)
    excess = width * np.maximum(np.maximum(density - most, least - density), 0.0)
    clear = excess > np.maximum(_SEEN * one_over[0], _WORTH * one_over[1])
    clear &= excess > smooth * width * np.maximum(density, least)
    size = max(float(reached[-1]), 1.0)
    expected = min(_ALIKE * float(np.sum(excess[clear])) / size, 1.0) * inside
    rough = np.maximum(np.where(clear, excess, 0.0), expected) > _WORTH * one_over[1]
    result: list[int] = np.flatnonzero(rough & (width > 1)).tolist()
    return result


# At which thresholds the cumulative histogram is measured, and with which share of ε.
#
# The number of categories of at most ``t`` is changed by one step only, that from ``t`` to ``t + 1``. So measuring it costs a
# share of ε on that step alone, and the noise on the counts keeps all of ε on every other step. A measurement carries
# information in proportion to the square of its ε, so few thresholds with more each tell more than all of them with little
# (docs/theory/tables-whole.md, sections 1 and 6). Few thresholds blur what lies between them. Where their own noisy numbers show
# that there is much, the thresholds between are measured too, after a first look. Everything here is a function of public numbers and of
# private outputs.

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

CLIMB, BEYOND = Fraction(1, 2), Fraction(1, 10)
"""Without a bound on counts: the share of a threshold that is measured to find the largest count, and of the number of cases beyond."""

HEIGHTS = (0, *(1 << power for power in range(15)))
"""The thresholds of a climb. It ends at the last, as estimates take the longer the more counts there are."""

_TRIED, _TRIED_OF_MANY = 300, 20  # true counts at most for which the law of a sum is computed

DENSE = 8
"""Categories for each pair of counts from which on thresholds are measured at an ε of 1 or more, unless told otherwise."""


@dataclass(frozen=True)
class Thresholds:
    """The two measurements of a table with counts up to ``upper``, for ``step`` of ε on every step.

    ``places`` are the thresholds that are measured, each with ``share`` of ``step``. ``finer`` are those between them that are measured
    after a look at the first, each with ``finer_share``.

    If ``climbed`` is not 0, counts have no bound. That many of the ``places``, the first, were measured to find ``upper``, with half of
    ``step`` each; counts beyond ``upper`` keep their noise, and the number of cases beyond it is measured too.
    """

    upper: int
    step: Fraction
    places: tuple[int, ...]
    share: Fraction
    finer_share: Fraction = Fraction(0)
    finer: tuple[int, ...] = ()
    climbed: int = 0

    @property
    def largest(self) -> float:
        """See :class:`~isotone.tables.published_table.Measurement`."""
        return inf if self.climbed else self.upper

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
        beyond = BEYOND if self.climbed else Fraction(0)
        climb = (CLIMB, BEYOND) if self.climbed else ()
        full = lcm(*(share.denominator for share in (self.share, self.finer_share, *climb)))
        weights = [full] * self.upper
        climbed, others = self.places[: self.climbed], self.places[self.climbed :]
        for places, share in ((climbed, CLIMB), (others, self.share), (self.finer, self.finer_share)):
            for place in places:
                weights[place] = int(full * (1 - share))
        return UnevenLine(self.step / full, tuple(weights), int(full * (1 - beyond)))

    def measure(
        self, table: Ints, draws: Draws, climbed: Ints | None = None
    ) -> tuple[Thresholds, Ints, Ints]:
        """All private measurements, cumulative numbers at the thresholds, and counts. Nothing else reads the table.
        Which thresholds are measured after the first follows from what the first gave, and comes back with the numbers. ``climbed`` are
        the noisy numbers that have told ``upper``. Then the last number is that of the cases beyond it.
        """
        below = np.cumsum(np.bincount(np.minimum(table, self.upper), minlength=self.upper + 1))
        first = _noisy(below, self.places[self.climbed :], self.rate, draws)
        if climbed is not None:
            first = np.concatenate([climbed, first])
        refined = replace(self, finer=self._between(first, len(table)))
        cumulative = np.concatenate([first, _noisy(below, refined.finer, refined.finer_rate, draws)])
        if self.climbed:
            beyond = np.sum(np.maximum(table - self.upper, 0)) + draws.geometrics(BEYOND * self.step, 1)
            cumulative = np.concatenate([cumulative, beyond])
        return refined, cumulative, draws.uneven(table, refined.line)

    def _between(self, cumulative: Ints, size: int) -> tuple[int, ...]:
        """The thresholds in gaps that the first noisy numbers show to be rough. It reads nothing else."""
        if not self.finer_share or len(self.places) == self.upper:
            return ()
        enough = float(1 / self.rate), float(1 / self.finer_rate)
        reached = np.concatenate([[0], cumulative[np.argsort(self.places)], [size]])
        rough = rough_gaps(self._ends, reached, enough, _smooth(self.step))
        return self._within(rough)

    def _within(self, gaps: list[int]) -> tuple[int, ...]:
        """The thresholds inside these gaps, in order."""
        ends, last = self._ends, len(self.places)
        return tuple(place for at in gaps if 0 <= at <= last for place in range(ends[at] + 1, ends[at + 1]))

    @cached_property
    def _ends(self) -> list[int]:
        """Where gaps between thresholds end, the first of them before 0."""
        return [-1, *sorted(self.places), self.upper]

    def with_finer(self, finer: tuple[int, ...]) -> Thresholds:
        """The same measurements with these thresholds between the first, which must fill the gaps that they lie in."""
        gaps = sorted({bisect_left(self._ends, place) - 1 for place in finer})
        if finer != self._within(gaps) or (finer and not self.finer_share):
            raise InputError("The thresholds that were measured last do not fill gaps between the first.")
        return replace(self, finer=finer)

    def histogram(self, cumulative: Ints, noisy: Ints) -> tuple[NDArray[np.float64], str]:
        """The histogram that both measurements tell, and the model it comes from. Post-processing."""
        direct, places = np.zeros(self.upper, np.int64), [*self.places, *self.finer]
        direct[places] = cumulative[: len(places)]
        beyond = float(self.step * (1 - BEYOND)) if self.climbed else None
        seen = np.clip(noisy, 0, self.upper + (beyond is not None))
        return estimate_histogram(Views.of(direct, seen, self.precision(), self.line.rates, beyond))

    def seen(self, noisy: Ints) -> Ints:
        """What a posterior is computed from, the noisy counts within 0..upper. Geometric noise beyond says nothing more."""
        return np.clip(noisy, 0, self.upper)

    def beliefs(self, probabilities: NDArray[np.float64], size: int) -> GeometricBeliefs:
        """The posteriors of the true counts."""
        return GeometricBeliefs(probabilities, size, self.line.rates, float(self.step))

    def channel(self) -> NDArray[np.float64]:
        """The probability of every clamped noisy count, given every true count."""
        return geometric_matrix(self.upper + 1, self.line.rates)

    def readings(self, unbiased: float) -> list[int]:
        """See :class:`~isotone.tables.published_table.Measurement`."""
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
        """See :class:`~isotone.tables.published_table.Measurement`."""
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
        precision[list(self.places[: self.climbed])] = noise_precision(float(CLIMB * self.step))
        precision[list(self.places[self.climbed :])] = noise_precision(float(self.rate))
        precision[list(self.finer)] = noise_precision(float(self.finer_rate))
        return precision


@dataclass(frozen=True)
class Climb:
    """The measurements of a table of ``size`` counts without a bound.

    Numbers of categories of at most 0, 1, 2, 4, … are measured one after the other, until one says that nearly all are: the next count is
    the largest of the distribution. Thresholds below it follow as for one that was stated (docs/theory/tables-whole.md, section 7).
    """

    step: Fraction
    emphasis: Fraction | None
    size: int

    def measure(self, table: Ints, draws: Draws) -> tuple[Thresholds, Ints, Ints]:
        """See :meth:`Thresholds.measure`."""
        rate, climbed = CLIMB * self.step, list[int]()
        slack = min(1 / rate + Fraction(len(table), 50), Fraction(len(table), 10))
        for place in HEIGHTS:
            climbed.append(int(np.count_nonzero(table <= place)) + int(draws.geometrics(rate, 1)[0]))
            if climbed[-1] >= len(table) - slack:
                break
        return self.up_to(HEIGHTS[len(climbed) - 1] + 1).measure(table, draws, np.array(climbed, np.int64))

    def up_to(self, upper: int) -> Thresholds:
        """The measurements whose climb ended below ``upper``, refused if none can."""
        if upper - 1 not in HEIGHTS:
            raise InputError(f"No climb ends at {upper}.")
        emphasis = default_emphasis(self.step, upper, self.size) if self.emphasis is None else self.emphasis
        thresholds = thresholds_for(emphasis, upper, self.step, self.size)
        climbed = HEIGHTS[: HEIGHTS.index(upper - 1) + 1]
        others = tuple(place for place in thresholds.places if place not in climbed)
        return replace(thresholds, places=climbed + others, climbed=len(climbed))


def any_deviation(step: Fraction) -> float:
    """At least the standard deviation of unbiased noisy counts for every design, where steps keep from a fiftieth to all of ``step``."""
    ends = (UnevenLine(step / 50, (weight,), weight) for weight in (1, 50))
    return deviation_bound(*ends)


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
