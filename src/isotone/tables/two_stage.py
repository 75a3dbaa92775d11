"""The mechanisms for tables of counts: thresholds first, then counts, with geometric or with Gaussian noise, stratum by stratum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, expm1
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise import Simulated
from isotone.privacy.calibration import discrete_sigma_squared, largest_pure, largest_rho
from isotone.privacy.checks import Number, positive, truth, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit
from isotone.tables.distribution import Counts, top_coded
from isotone.tables.estimate import GaussianBeliefs, estimate_histogram
from isotone.tables.published_table import Measurement, PublishedTable, Stratum
from isotone.tables.smooth import BINNED, DirectViews, GaussianViews, binned_channel
from isotone.tables.thresholds import (
    DENSE,
    FEW,
    LEAST_SIZE,
    MOST_SIZE,
    POINTS,
    SMALL,
    Climb,
    Emphasis,
    Thresholds,
    any_deviation,
    checked_emphasis,
    default_emphasis,
    share_of,
    thresholds_for,
)

# Noisy counts to published counts, by their ranks in the whole table.
#
# The published table has the estimated histogram, up to rounding, and keeps the order of the noisy counts
# (docs/theory/tables-whole.md, section 5).


def cuts_of(histogram: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """How many of ``size`` categories to publish as at most ``t``, for ``t = 0..n-2``.

    >>> cuts_of(np.array([2.0, 3.0, 1.0]), 6)
    array([2, 5])
    """
    cumulative = np.clip(np.cumsum(histogram)[:-1], 0, size)
    return np.floor(np.maximum.accumulate(cumulative) + 0.5).astype(np.int64)


def assign(noisy: NDArray[np.int64], cuts: NDArray[np.int64], ties: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The published counts, from the ranks of the noisy ones.

    The k-th smallest noisy count gets the k-th value that the ``cuts`` allow. Equal noisy counts are ordered by
    ``ties``, random words: the order of categories must not matter.

    >>> assign(np.array([2, 0, 1, 1]), np.array([1, 3]), np.array([5, 6, 8, 7], np.uint64))
    array([2, 0, 1, 1])
    """
    most = max(len(cuts), int(np.max(noisy, initial=0)))
    free = np.uint64(64 - most.bit_length())  # one key to sort by: the noisy count, then chance
    order = np.argsort((noisy.astype(np.uint64) << free) | (ties >> (np.uint64(64) - free)))
    published = np.empty_like(noisy)
    published[order] = np.searchsorted(cuts, np.arange(len(noisy)), side="right")
    return published


# Tables that are measured stratum by stratum, where a stratum is a public class of categories.


class StratifiedMechanism(ABC):
    """A mechanism that measures a table, or each stratum of it, and publishes what the measurements tell."""

    upper: Any  # a whole number, or None where counts have no bound
    guarantee: Guarantee

    def release(self, counts: Counts) -> Ints:
        """One private count for each category, from exact noise and cryptographic bits."""
        return self.release_in_full(counts).values

    def release_in_full(self, counts: Counts, strata: Sequence[Ints] | None = None) -> PublishedTable:
        """Release a table with all its private parts.

        Estimates, intervals, distribution and noisy measurements. ``strata`` are the positions of the categories of each
        public class, and each is measured with the whole budget.
        """
        return self.run(self._counts(counts), require_exact(ExactDraws()), strata)

    def simulate(self, counts: Counts, rng: np.random.Generator) -> Simulated:
        """Simulate the published counts of a seeded run. They are not private and serve experiments only."""
        return Simulated.wrap(self.simulate_in_full(counts, rng).values)

    def simulate_in_full(
        self, counts: Counts, rng: np.random.Generator, strata: Sequence[Ints] | None = None
    ) -> PublishedTable:
        """Simulate a release with all its parts, for experiments only."""
        return self.run(self._counts(np.asarray(counts)), SeededDraws(rng), strata)

    def _counts(self, counts: Counts) -> Ints:
        """The counts as they are measured: none is above the largest, or above what integers of 64 bits can add up."""
        return top_coded(counts, LARGEST_COUNT if self.upper is None else self.upper)

    def run(self, table: Ints, draws: Draws, strata: Sequence[Ints] | None = None) -> PublishedTable:
        """Both measurements of a top-coded table with the given draws, and what is made of them.
        Private only if they are :class:`ExactDraws`; with all others the published values are marked as simulated.
        """
        parts = [np.arange(len(table))] if strata is None else _checked_strata(strata, len(table))
        if self.upper is None and (strata is not None or len(table) < SMALL):
            raise InputError(
                f"Strata, and tables of fewer than {SMALL} categories, need upper=, the largest count."
            )
        values: NDArray[Any] = np.empty(len(table), np.int64)
        result: list[Stratum] = []
        for members in parts:
            measurement = self.begun(len(members))
            values[members], stratum = published_stratum(members, table[members], measurement, draws)
            result.append(stratum)
        if not isinstance(draws, ExactDraws):
            values = Simulated.wrap(values)
        upper = result[0].thresholds.upper if self.upper is None else self.upper
        return PublishedTable(values, upper, tuple(result), self.guarantee)

    def begun(self, size: int) -> Measurement | Climb:
        """What measures a table of ``size`` categories. Where counts have no bound, it begins with finding the largest one."""
        return self.measurement(size)

    @abstractmethod
    def measurement(self, size: int, upper: int | None = None) -> Measurement:
        """The two measurements of a table, or a stratum, of ``size`` categories. ``upper`` is what was found, if counts have no bound."""


def published_stratum(
    members: Ints, table: Ints, measurement: Measurement | Climb, draws: Draws
) -> tuple[Ints, Stratum]:
    """The published counts of a stratum, and all that was measured of it.

    Only the measurement reads the table; all the rest is post-processing.
    """
    climb, cumulative, noisy = measurement.measure(table, draws)
    upper, size = climb.upper, len(members)
    words = draws.words(size)
    if size < SMALL or upper == 0:
        even = np.full(upper + 1, 1 / (upper + 1))
        values = np.clip(noisy, 0, upper)
        return values, Stratum(members, noisy, cumulative, climb, even, "none", "noise")
    histogram, model = climb.histogram(cumulative, noisy)
    ranks = np.unique(climb.seen(noisy), return_inverse=True)[1]
    values = assign(ranks.astype(np.int64), cuts_of(histogram, size), words)
    return values, Stratum(members, noisy, cumulative, climb, histogram / size, model, "table")


def _checked_strata(strata: Sequence[Ints], size: int) -> list[Ints]:
    """The strata, refused unless each category is in exactly one."""
    parts = [np.asarray(part, np.int64).reshape(-1) for part in strata]
    joined = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
    if not np.array_equal(joined, np.arange(size)):
        raise InputError("strata must hold each of the categories exactly once.")
    return parts


# The mechanism for tables of counts.
#
# A few noisy cumulative numbers, noisy counts, and the table that is estimated from both.

LARGEST = 1_000_000  # time and memory for the estimate grow with the largest count


LARGEST_COUNT = 1 << 40
"""Larger counts are taken for this one where there is no bound: a million of them can still be added up."""


@dataclass(frozen=True, init=False)
class TwoStageMechanism(StratifiedMechanism):
    """A table of counts, one for each category, whose distribution of counts survives the noise.

    The numbers of categories of at most ``t`` are measured with geometric noise for a few thresholds ``t``, then for those in gaps
    that these noisy numbers show to be rough, and every count with geometric noise that is stronger on the steps across
    all these thresholds. The rest is post-processing.

    Guarantee: epsilon-DP for adding or removing one person who is counted at most ``contributions`` times, or
    for replacing one (``neighbours="replace"``). A step of one count costs ε, shared between the one threshold that
    it crosses and the noise of the count (docs/theory/tables-whole.md, section 1). The number and the order of the
    categories and their strata are public. A step touches one category and so one stratum, and every stratum is measured
    with all of ε.
    Error: depends on the table; ``tables.plan`` tells it for a guessed shape, without data.
    Cost: O(N log N + n log n); a million categories and a thousand counts take seconds.

    Parameters
    ----------
    upper
        The largest count, public: larger ones are top-coded. It must not be chosen by looking at the data. None: counts have no
        bound. The largest count of the distribution is then found privately, ``noisy`` goes on beyond it, and the number of
        cases beyond is measured.
    emphasis
        What ε is spent on, from 0 (the counts alone) to 1 (their distribution alone), or the name of a point: ``counts`` is 0.02,
        ``both`` 0.05 and ``distribution`` 0.5. ``tables.plan`` shows both errors along the scale. None takes ``both`` for an
        epsilon per step below 1 or eight categories or more for each pair of counts, and otherwise ``counts``.
    >>> m = TwoStageMechanism(upper=9, epsilon=1)
    >>> published = m.release([0, 0, 1, 3, 2, 0, 12, 5])
    >>> len(published), bool(published.max() <= 9), m.guarantee
    (8, True, Guarantee(ε = 1, add-remove one record))
    """

    upper: int | None
    epsilon: Fraction
    emphasis: Fraction | None
    unit: Unit
    guarantee: Guarantee = field(repr=False)

    def __init__(
        self,
        upper: int | None = None,
        epsilon: Number | None = None,
        emphasis: Number | Emphasis | None = None,
        *,
        contributions: int = 1,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        unit = Unit(contributions, neighbours)
        if epsilon is None:  # which must be said, though upper need not
            raise InputError("epsilon is missing: say how much of the budget this table may spend.")
        values: dict[str, Any] = {
            "upper": None if upper is None else whole_number(upper, "upper", least=0, most=LARGEST),
            "epsilon": positive(epsilon, "epsilon"),
            "emphasis": None if emphasis is None else checked_emphasis(emphasis),
            "unit": unit,
            "guarantee": unit.pure(epsilon),  # all measurements together
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def begun(self, size: int) -> Thresholds | Climb:
        """See :class:`StratifiedMechanism`."""
        return self._climb(size) if self.upper is None else self.measurement(size)

    def _climb(self, size: int) -> Climb:
        return Climb(self.unit.per_step(self.epsilon), self.emphasis, size)

    def measurement(self, size: int, upper: int | None = None) -> Thresholds:
        """The two measurements of a table, or a stratum, of ``size`` categories, by public numbers.

        Where counts have no bound, ``upper`` is the private one that was found.

        >>> TwoStageMechanism(upper=9, epsilon=1, emphasis="distribution").measurement(1000).share
        Fraction(11, 20)
        """
        if self.upper is None:
            if upper is None:
                raise InputError(
                    "Which thresholds are measured is known when the largest count has been found: give upper=."
                )
            return self._climb(size).up_to(upper)
        step = self.unit.per_step(self.epsilon)
        emphasis = default_emphasis(step, self.upper, size) if self.emphasis is None else self.emphasis
        return thresholds_for(emphasis, self.upper, step, size)

    def error(self) -> Error:
        """The largest mean squared error of the unbiased noisy counts.

        Estimates are nearer to the truth on average, by how much depends on the table: see ``tables.plan``. It is the
        largest over all numbers of categories that the rule for thresholds tells apart, and without a bound on counts over all
        designs: one number for all of them.
        """
        if self.upper is None:
            most = any_deviation(self.unit.per_step(self.epsilon))
            return Error(np.array([most**2]), method="upper bound, of the unbiased noisy counts")
        powers = [round(2 ** (half / 2)) for half in range(LEAST_SIZE, MOST_SIZE + 1)]
        dense = DENSE * (self.upper + 1) ** 2
        sizes = {SMALL, FEW, FEW + 1, *powers, dense, dense - 1}
        most = max(self.measurement(size).deviation_bound for size in sizes if size >= SMALL) ** 2
        return Error(np.full(self.upper + 1, most), method="upper bound, of the unbiased noisy counts")


# Public classes of categories by their populations.


def population_bands(population: Sequence[float], classes: int = 6) -> list[str]:
    """Classes of about the same number of categories, from the smallest populations to the largest.

    The populations must be public.

    >>> population_bands([5, 80, 7, 900], 2)
    ['band 1', 'band 2', 'band 1', 'band 2']
    """
    values, number = np.asarray(population, np.float64), whole_number(classes, "classes")
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return [f"band {1 + at * number // max(len(values), 1)}" for at in rank.tolist()]


# The two measurements of a table with discrete Gaussian noise, for zCDP and (ε, δ).
#
# With zCDP what a measurement tells is linear in its budget, so nothing is gained by few thresholds: all are measured, with the
# same share (docs/theory/tables-whole.md, section 10). Everything here is a function of public numbers.


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
    def largest(self) -> float:
        """See :class:`~isotone.tables.published_table.Measurement`."""
        return self.upper

    @property
    def places(self) -> tuple[int, ...]:
        """The thresholds that are measured."""
        return () if self.cumulative is None else tuple(range(self.upper))

    @property
    def finer(self) -> tuple[int, ...]:
        """None: all thresholds are measured at once."""
        return ()

    def with_finer(self, finer: tuple[int, ...]) -> GaussianMeasurement:
        """See :class:`~isotone.tables.published_table.Measurement`."""
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
        if self.upper < BINNED:
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
        """See :class:`~isotone.tables.published_table.Measurement`."""
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
        """See :class:`~isotone.tables.published_table.Measurement`."""
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


# The mechanism for tables of counts under zCDP and (ε, δ), with discrete Gaussian noise on both measurements.


@dataclass(frozen=True, init=False)
class GaussianTableMechanism(StratifiedMechanism):
    """A table of counts with Gaussian noise, whose distribution of counts survives the noise.

    Two measurements are made: the numbers of categories of at most ``t`` for every ``t`` below ``upper``, and every count,
    all with discrete Gaussian noise. All the rest is post-processing of the two.

    Guarantee: ρ-zCDP, or (ε, δ)-DP by the conversion of ``largest_rho``, for adding or removing one person who is counted at
    most ``contributions`` times, or for replacing one (``neighbours="replace"``): docs/theory/tables-whole.md, section 10. The
    number and the order of the categories and their strata are public. Every stratum is measured with all of ρ: a person with
    a share of the contributions in a stratum costs at most that share there, as costs are convex in contributions.
    Error: depends on the table; ``Table.plan`` tells it for a guessed shape, without data.
    Cost: O(N log N), and matrices of up to 512 rows for the estimate.

    Parameters
    ----------
    upper
        The largest count, public: larger ones are top-coded.
    guarantee
        ρ-zCDP or (ε, δ)-DP, for its neighbours.
    emphasis
        What the budget is spent on, as for :class:`TwoStageMechanism`: of ρ 3 % go to the distribution under ``counts``, 8 % under ``both`` and
        half under ``distribution``.
    once
        Whether a person is counted at most once in each category. Then noise grows with the root of ``contributions``, and
        otherwise in proportion to it.

    >>> m = GaussianTableMechanism(9, Guarantee.zcdp("1/2"))
    >>> len(m.release([0, 0, 1, 3, 2, 0, 12, 5])), m.guarantee
    (8, Guarantee(ρ = 0.5, add-remove one record))
    """

    upper: int
    emphasis: Fraction | None
    once: bool
    unit: Unit
    guarantee: Guarantee

    def __init__(
        self,
        upper: int,
        guarantee: Guarantee,
        emphasis: Number | Emphasis | None = None,
        *,
        once: bool = True,
        contributions: int = 1,
    ) -> None:
        if not isinstance(guarantee, Guarantee) or guarantee.kind not in ("zcdp", "approximate"):  # pyright: ignore[reportUnnecessaryIsInstance] - what users pass
            raise InputError("Gaussian noise gives no pure ε: give a Guarantee with ρ, or with ε and δ.")
        unit = Unit(contributions, guarantee.neighbours)
        values: dict[str, Any] = {
            "upper": whole_number(upper, "upper", least=0, most=LARGEST),
            "emphasis": None if emphasis is None else checked_emphasis(emphasis),
            "once": truth(once, "once"),
            "unit": unit,
            "guarantee": replace(guarantee, unit=unit.name),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def rho(self) -> Fraction:
        """The ρ that is spent, that of the guarantee, or the largest that implies it."""
        guarantee = self.guarantee
        return guarantee.rho if guarantee.kind == "zcdp" else largest_rho(guarantee.epsilon, guarantee.delta)

    def measurement(self, size: int, upper: int | None = None) -> GaussianMeasurement:
        """The noise for a table, or a stratum, of ``size`` categories. A function of public numbers.
        >>> round(GaussianTableMechanism(9, Guarantee.approximate(1, "1e-6")).measurement(10).deviation, 2)
        4.23
        """
        top = self.upper if upper is None else upper
        result = measurement_for(self.emphasis, top, self.rho, self.unit, self.once, size)
        guarantee = self.guarantee
        alone = result.cumulative is None and change(self.unit, self.once, Fraction(0), Fraction(1)) == 1
        if alone and guarantee.kind == "approximate":  # one count moves by one: the exact condition is known
            return GaussianMeasurement(
                top, None, discrete_sigma_squared(guarantee.epsilon, guarantee.delta, 1)
            )
        return result

    def error(self) -> Error:
        """The mean squared error of the noisy counts of a large table, at most."""
        most = float(self.measurement(10**9).counts)
        return Error(np.full(self.upper + 1, most), method="upper bound, of the unbiased noisy counts")


# Which mechanism keeps a guarantee about a table best, by public numbers alone.

TableMechanism = TwoStageMechanism | GaussianTableMechanism


def table_mechanism(
    upper: int | None,
    guarantee: Guarantee,
    emphasis: Number | Emphasis | None = None,
    *,
    contributions: int = 1,
    once: bool = True,
    small: Number | Emphasis | None = None,
) -> TableMechanism:
    """The mechanism for a guarantee.

    Geometric noise for ε, Gaussian noise for ρ. For (ε, δ) the one with less noise on a count: one that keeps ε keeps (ε, δ).
    ``small`` takes the place of an emphasis that is not given, at an ε below 1 for each step of a count.

    >>> type(table_mechanism(9, Guarantee.approximate(1, "1e-6"))).__name__
    'TwoStageMechanism'
    >>> type(table_mechanism(9, Guarantee.approximate(1, "1e-6"), contributions=20)).__name__
    'GaussianTableMechanism'
    """
    if guarantee.kind != "zcdp":
        unit = Unit(contributions, guarantee.neighbours)
        usual = small if emphasis is None and unit.per_step(guarantee.epsilon) < 1 else emphasis
        pure = TwoStageMechanism(
            upper,
            guarantee.epsilon,
            usual,
            contributions=contributions,
            neighbours=guarantee.neighbours,
        )
        if guarantee.kind == "pure" or upper is None:
            return pure
        geometric, gaussian = noises(guarantee, contributions, once)
        if geometric <= gaussian:
            return pure
    if upper is None:
        raise InputError("Under rho a table needs upper=, the largest count. State one, or give epsilon.")
    return GaussianTableMechanism(upper, guarantee, emphasis, once=once, contributions=contributions)


def noises(guarantee: Guarantee, contributions: int, once: bool) -> tuple[float, float]:
    """The standard deviations of geometric and of Gaussian noise on a count, if all is spent on counts."""
    mechanism = GaussianTableMechanism(1, guarantee, once=once, contributions=contributions)
    rate = float(mechanism.unit.per_step(largest_pure(guarantee)))
    geometric = (2 * (1 + 1 / expm1(rate)) / expm1(rate)) ** 0.5 if rate < 50 else 0.0
    return geometric, mechanism.measurement(1).deviation
