"""K-norm noise drawn by extended bipartitions: PosetMechanism, and the ball that ignores the order."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.counts.mechanism import (
    AdditiveMechanism,
    Counts,
    PureMechanism,
    check_counts,
    check_records,
    deviation,
    k_norm_total,
)
from isotone.counts.relaxation import Relaxation
from isotone.counts.sampler import (
    Method,
    Recent,
    Sampler,
    Simulate,
    mean_of_rows,
    noise_rows,
    norms,
    places,
    running_totals,
    sampler,
)
from isotone.errors import InputError
from isotone.linear.mechanism import LAW_STREAM, Law, draws_of, require_known, upper_draw, whole_width
from isotone.mechanism import Error, Progress, no_progress
from isotone.noise.simulate import Simulated, public_stream, refuse_simulated
from isotone.order import Poset
from isotone.order.closure import codings
from isotone.privacy.checks import Number, confidence_level
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Neighbours

# Half-widths of K-norm noise at rate 1.
#
# With another budget the noise is the same on another scale, and division keeps the ranks of floats. So what was drawn for
# one budget is kept for the next, and a plan that only changes the budget draws nothing.

LARGEST = 4_000_000
"""Laws of more numbers than this are not kept."""

_laws: Recent[Floats] = Recent(2)
_widths: Recent[Floats] = Recent(32)


@dataclass(frozen=True)
class RateOne:
    """A law at rate 1, of which ``draw`` draws all rows from a public stream. Laws with the same ``key`` are the same."""

    key: Hashable
    numbers: int
    """How many numbers all rows together have."""
    draw: Callable[[], Floats] = field(compare=False)

    @property
    def rows(self) -> Floats:
        """The draws, one a row. They are shared, so whoever changes them copies them first."""
        return self.draw() if self.numbers > LARGEST else _laws.get(self.key, self.draw)

    def alone(self, confidence: float) -> Floats:
        """How far each column stays from 0."""
        return _widths.get((self.key, float(confidence)), lambda: upper_draw(np.abs(self.rows), confidence))

    def together(self, confidence: float) -> float:
        """How far all columns stay from 0 at once."""
        key = (self.key, float(confidence), "together")
        return float(_widths.get(key, lambda: upper_draw(np.max(np.abs(self.rows), axis=1), confidence)))


# K-norm noise drawn by extended bipartitions, with its density, its errors and its simulation.

T = TypeVar("T", np.int64, np.float64)

_CHUNK = 1 << 20
"""Numbers simulated at a time."""

FEWEST, MOST, SECONDS = 500, 2_000, 5.0
"""Where draws are slow, a law has as many as take about so many seconds, but no fewer than the first number and no more than the second."""

_LARGEST_EXACT, _MOST_CODINGS = 300, 60
"""With choices, errors are exact for orders up to this size, and for so many options below each other."""


@dataclass(frozen=True, init=False)
class KNormMechanism(AdditiveMechanism):
    """Noise with density proportional to ``exp(-rate · norm(noise))``, for a norm whose ball the order gives.

    What follows from the norm, the rate and the sampler; how noise is released is the subclass's.
    """

    sampler: Sampler = field(repr=False, compare=False)
    """Draws for the elements in canonical sequence: no result depends on how the order was described."""

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """The rate of the exponential steps."""

    @property
    def _coded(self) -> Poset:
        """The order that the noise is drawn for, in which exclusive options are running totals."""
        return self.P.coding.order if self.P.choices else self.P

    def _back(self, noise: NDArray[T]) -> NDArray[T]:
        """Noise (last axis) in the canonical sequence of the coded order, as noise on the counts."""
        totals = self._coded.canonical.back(noise)
        return self.P.coding.decode(totals) if self.P.choices else totals

    @property
    def method(self) -> Method:
        """Which of ``exact``, ``rejection`` and ``relaxed`` is in force, and what it costs."""
        return self.sampler.method

    def norm(self, y: ArrayLike) -> NDArray[np.float64]:
        """The norm of ``y`` (of each row), in O(n + covers).

        It is 1 at most for the change by one record, and that of the relaxed order if the method is ``relaxed``.
        """
        totals, possible = running_totals(self.P, y)
        forth = self._coded.canonical.forth
        return np.where(possible, self._norms(forth(totals)), np.inf)

    def _norms(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """The norms of rows in the canonical sequence of the coded order."""
        return norms(self.sampler.order, totals)

    def possible_outputs(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs near those given in which partitions add up, one per row."""
        return self.P.coding.decode(self.P.coding.encode(outputs)) if self.P.choices else outputs

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row.

        Up to an additive constant of at most 1e-8 for each element; if the method is ``rejection``, the constant
        is estimated.
        """
        constant = len(self._coded) * math.log(self.rate) - self.sampler.log_count
        return constant - float(self.rate) * self.norm(deviation(self.P, output, counts))

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding.

        Exact if the order is series-parallel, as forests are; otherwise from simulated bipartitions, each of
        which contributes its exact variance, with the standard error (docs/theory/counts.md, section 8).
        """
        if self.P.choices:
            return self._counted_errors
        return self._in_given_sequence(self.sampler.squares)

    @cached_property
    def _counted_errors(self) -> Error:
        """The variance of counts with choices, which are differences of running totals.

        Each is a running total if the options on its way come first, which changes nothing about the noise.
        """
        if self.sampler.drawn.name != "exact" or len(self.P) > _LARGEST_EXACT:
            return self._simulated_errors()
        variance = np.full(len(self.P), np.nan)
        for tried, coding in enumerate(codings(self.P)):
            order = coding.order.canonical
            squares = self._squares(order.order)
            if squares.method != "exact" or tried == _MOST_CODINGS:
                return self._simulated_errors()
            own = coding.before < 0
            variance[own] = order.back(squares.variance)[coding.target[own]]
        return Error(variance / float(self.rate) ** 2)

    def _squares(self, order: Poset) -> Error:
        """The expected squares at rate 1 of the noise for an order in canonical sequence."""
        return sampler(order).squares

    def _simulated_errors(self) -> Error:
        plus, minus = self.sampler.simulate_places(np.random.default_rng(0))
        up, down = self._back(plus), self._back(minus)  # a running total takes all steps of those below it
        return mean_of_rows(((up - down) ** 2 + up + down) / float(self.rate) ** 2)

    def least_total(self) -> float:
        """A lower bound of the total squared error from the volume of the unit ball, or 0 if that is not known."""
        if self.sampler.source.log_count is None:
            return 0.0
        n, rate = len(self.P), float(self.rate)
        log_volume = n * math.log(rate) - float(self.log_density(np.zeros(n))) - math.lgamma(n + 1)
        return k_norm_total(n, rate, log_volume)

    def _in_given_sequence(self, at_rate_one: Error) -> Error:
        """An error in canonical sequence and at rate 1, in the sequence given and at this rate."""
        back, scale = self.P.canonical.back, 1 / float(self.rate) ** 2
        spread = at_rate_one.standard_error
        return Error(
            back(at_rate_one.variance) * scale,
            at_rate_one.method,
            back(spread) * scale if spread.size else spread,
        )

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        return Simulated.wrap(self._back(self._simulate(size, rng, self.sampler.simulate)) / float(self.rate))

    def simulate_independent(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate like :meth:`simulate`, with rows that are independent of each other."""
        drawn = self._simulate(size, rng, self.sampler.simulate_independent)
        return Simulated.wrap(self._back(drawn) / float(self.rate))

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate what is added to the counts. Running totals are rounded, and their differences are released."""
        return self._simulate_released(size, rng, self.sampler.simulate_independent, total=False)

    def _simulate_scales(self, size: int, rng: np.random.Generator, total: bool) -> Simulated:
        return self._simulate_released(size, rng, self.sampler.simulate, total)

    def _simulate_released(
        self, size: int, rng: np.random.Generator, draw: Simulate, total: bool
    ) -> Simulated:
        if not total:
            return Simulated.wrap(
                self._back(np.floor(self._simulate(size, rng, draw) / float(self.rate) + 0.5))
            )
        rounded = np.floor(self._with_total(size, rng, draw) + 0.5)
        return Simulated.wrap(np.concatenate((self._back(rounded[:, :-1]), rounded[:, -1:]), axis=1))

    def _simulate(self, size: int, rng: np.random.Generator, draw: Simulate) -> NDArray[np.float64]:
        """Draws at rate 1 from bipartitions of ``draw``, the elements of the coded order in canonical sequence."""
        result, step = np.empty((size, len(self._coded))), max(1, _CHUNK // len(self.sampler.order))
        for start in range(0, size, step):
            rows = result[start : start + step]
            rows[:] = self._simulate_rows(len(rows), rng, draw)
        return result

    def _simulate_rows(self, size: int, rng: np.random.Generator, draw: Simulate) -> NDArray[np.float64]:
        orders, sizes = draw(size, rng)
        return noise_rows(self.sampler.order, orders, sizes, rng.standard_exponential(orders.shape))

    @property
    def law_draws(self) -> int:
        """How many draws the law has, fewer where draws are slow, as they must be independent."""
        return self._law_draws

    @cached_property
    def _law_draws(self) -> int:
        if self.sampler.source.quick:
            return draws_of(len(self.P))
        return min(MOST, max(FEWEST, int(SECONDS / self.sampler.drawn.seconds)))

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far a release stays from the truth with at least the given probability."""
        if self.P.choices:
            return self._released.half_widths(confidence)
        return whole_width(self.unrounded_half_widths(confidence))

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        if self.P.choices:
            return self._released.simultaneous_half_width(confidence)
        return float(whole_width(self.unrounded_simultaneous_half_width(confidence)))

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding to integers."""
        require_known(self.law_draws, confidence)
        if self.P.choices:
            return upper_draw(np.abs(self._unrounded), confidence)
        return self._back(self._rate_one.alone(confidence)) / float(self.rate)

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, before rounding to integers."""
        require_known(self.law_draws, confidence)
        if self.P.choices:
            return float(upper_draw(np.max(np.abs(self._unrounded), axis=1), confidence))
        return self._rate_one.together(confidence) / float(self.rate)

    @cached_property
    def _rate_one(self) -> RateOne:
        """The law at rate 1, for the elements of the coded order in canonical sequence."""
        draws, stream, draw = self.law_draws, f"{LAW_STREAM} draws ", self.sampler.simulate_independent
        key = (type(self), self.sampler, self.max_size, draws)
        numbers = draws * len(self._coded)
        return RateOne(key, numbers, lambda: self._simulate(draws, public_stream(stream), draw))

    @cached_property
    def _unrounded(self) -> NDArray[np.float64]:
        return self._back(self._rate_one.rows) / float(self.rate)

    @cached_property
    def _released(self) -> Law:
        """The law of the released whole numbers, without scales."""
        rounded = self._back(np.floor(self._rate_one.rows / float(self.rate) + 0.5))
        return Law(rounded, rounded[:0])

    def simulate_released_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate what is added to the counts and, in the last column, to the number of records."""
        return self._simulate_released(size, rng, self.sampler.simulate_independent, total=True)

    def simulate_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on the counts and, in the last column, on the number of records, in independent rows."""
        drawn = self._with_total(size, rng, self.sampler.simulate_independent)
        return Simulated.wrap(np.concatenate((self._back(drawn[:, :-1]), drawn[:, -1:]), axis=1))

    def _with_total(self, size: int, rng: np.random.Generator, draw: Simulate) -> NDArray[np.float64]:
        """Running totals in canonical sequence, and the number of records."""
        self._require_total()
        n = len(self._coded)
        result = np.empty((size, n + 1))
        for start in range(0, size, max(1, _CHUNK // n)):
            rows = result[start : start + max(1, _CHUNK // n)]
            orders, sizes = draw(len(rows), rng)
            steps, last = rng.standard_exponential(orders.shape), rng.laplace(size=len(rows))
            rows[:, :-1] = noise_rows(self.sampler.order, orders, sizes, steps)
            rows[:, -1] = np.sum(np.where(np.arange(n) < sizes[:, None], steps, -steps), axis=1) + last
        return result / float(self.rate)

    def total_covariance(self) -> Error:
        """The covariance of the noise on each count with that on the number of records, before rounding.

        Exact if the order is series-parallel; otherwise from simulated bipartitions, with the standard error.
        """
        self._require_total()
        result, scale = self.sampler.total_products, 1 / float(self.rate) ** 2
        spread = result.standard_error
        if not spread.size:
            return Error(self._back(result.variance) * scale, result.method)
        back = self._coded.canonical.back(spread)
        if self.P.choices:  # a difference of two running totals is no worse known than both together
            back = np.abs(self.P.coding.decode(-back)) + 2 * back.max()
        return Error(self._back(result.variance) * scale, result.method, back * scale)

    def _require_total(self) -> None:
        if not self.has_total:
            raise InputError(f"{type(self).__name__} releases no number of records.")

    @cached_property
    def _covariances(self) -> tuple[NDArray[np.float64], float]:
        matrix, spread = self.sampler.products
        return self._back(self._back(matrix).T) / float(self.rate) ** 2, spread

    @property
    def has_total(self) -> bool:
        """Whether the number of records can be released as well, for free."""
        return True

    def total_variance(self) -> float:
        """The variance of the noise on the number of records (simulated if the method is ``rejection``)."""
        return self.sampler.total_square / float(self.rate) ** 2


# The K-norm mechanism shaped by the order. The main mechanism of the package.


@dataclass(frozen=True, init=False)
class PosetMechanism(KNormMechanism):
    """Counts over a poset with noise shaped by the hull of all possible records.

    Releases ``counts + noise`` rounded to integers, where the noise has density proportional to
    ``exp(-rate · norm(noise))`` and ``rate`` is epsilon over the number of records that a unit can change:
    ``contributions``, twice that for ``replace``. Exclusive options are recoded as running totals, so that the
    noise covers no record that cannot be, and counts of partitions add up.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/counts.md, section 4, and exclusive.md, section 1).
    Error: ``error()`` needs no data.
    Cost: one draw is O(n log n) to O(n²); the tables, built once, are O(n²) on series-parallel orders.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> m = PosetMechanism(P, epsilon=1)
    >>> m.release([120, 80, 33]).shape
    (3,)
    >>> float(m.norm([1, 1, 0]))
    1.0
    """

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        *,
        relaxation: Relaxation | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        self._prepare(relaxation, progress)

    def _prepare(self, relaxation: Relaxation | None, progress: Progress) -> None:
        """Refuse what the mechanism has no use for, and build its sampler."""
        self._refuse_size()
        self._set(sampler=sampler(self._coded.canonical.order, relaxation, progress))

    def _refuse_size(self) -> None:
        if self.max_size is not None:
            raise InputError(
                f"{type(self).__name__} covers records of every size and has no use for max_size. Use "
                "BoundedPosetMechanism, or LaplaceMechanism for very short records."
            )

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential steps.

        Epsilon over the number of records that can change.
        """
        return self._rate

    @cached_property
    def _rate(self) -> Fraction:
        # A single count moves by one at most when a record is replaced, but not together with the number of
        # records, which stays: their norm is 2. So the rate is the same for every order.
        return self.unit.per_step(self.epsilon)

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        plus, minus, _ = self._steps(draws)
        return self._decoded(draws.exponential_sums(self.rate, plus, minus))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        refuse_simulated(rows)
        return rows + self._integer_noises(len(rows), require_exact(ExactDraws()))

    def _integer_noises(self, size: int, draws: ExactDraws) -> NDArray[np.int64]:
        """``size`` exact draws of the noise, a row each."""
        orders, sizes = self.sampler.draw_rows(size, draws)
        plus, minus = places(self.sampler.order, orders, sizes)
        back = self._coded.canonical.back
        return self._decoded(draws.exponential_rows(self.rate, back(plus), back(minus)))

    @property
    def rounding(self) -> float:
        """With choices a count is the difference of two rounded running totals."""
        return 1.0 if self.P.choices else 0.5

    def rounding_variance(self) -> NDArray[np.float64]:
        """The variance of what rounding adds, twice for counts that are differences of two running totals."""
        if not self.P.choices:
            return super().rounding_variance()
        return np.where(self.P.coding.before < 0, 1 / 12, 1 / 6)

    def _decoded(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Noise on running totals, in the sequence of the coded order, as noise on the counts."""
        return self.P.coding.decode(totals) if self.P.choices else totals

    def _steps(self, draws: ExactDraws) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """How many exponential steps up and down each running total takes, and how many there are up in all."""
        order, a = self.sampler.draw(draws)
        plus, minus = places(self.sampler.order, order[None, :], np.array([a]))
        back = self._coded.canonical.back
        return back(plus[0]), back(minus[0]), a

    def release_with_total(self, counts: Counts, records: int) -> tuple[NDArray[np.int64], int]:
        """Release the counts and the number of records with noise.

        Together they are as private as the counts alone.

        The number of records is the count of an element above all others: the sum of all steps, and of one
        more, up or down (docs/theory/counts.md, section 7).
        """
        values = check_counts(self.P, counts)
        number = check_records(records, values)
        draws = require_exact(ExactDraws())
        plus, minus, a = self._steps(draws)
        up = draws.integer((1, 1))
        all_steps = np.append(plus, a + up), np.append(minus, len(self._coded) - a + 1 - up)
        rounded = draws.exponential_sums(self.rate, *all_steps)
        return values + self._decoded(rounded[:-1]), number + int(rounded[-1])


# The K-norm mechanism of the ℓ∞ ball, the strongest that ignores the order.


@dataclass(frozen=True, init=False)
class LInfinityMechanism(PureMechanism):
    """Counts with noise of density proportional to ``exp(-rate · max|y|)``.

    ``rate`` is epsilon over the ℓ∞ sensitivity, which is ``contributions`` whatever the order, the size of
    the records and the neighbours. The released integers are the exactly rounded sum of counts and noise.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 3).
    Error: (n+1)(n+2)/3 / rate² for each count, before rounding.

    >>> from isotone.order import Poset
    >>> LInfinityMechanism(Poset.chain("abcd"), epsilon=1).error().variance
    array([10., 10., 10., 10.])
    """

    @property
    def rate(self) -> Fraction:
        """Epsilon over the ℓ∞ sensitivity."""
        return self.epsilon / self.sensitivity.linf

    def norm(self, y: ArrayLike) -> NDArray[np.float64]:
        """The largest entry in units of the sensitivity.

        It is 1 for the largest change by one unit.
        """
        return np.max(np.abs(deviation(self.P, y, None)), axis=-1) / self.sensitivity.linf

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        from scipy.special import gammaln

        n = len(self.P)
        constant = n * math.log(float(self.rate) / 2) - gammaln(n + 1)
        return constant - float(self.epsilon) * self.norm(deviation(self.P, output, counts))

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of rounded noise), one per row.

        It depends on the largest magnitude and how often it occurs (docs/theory/baselines.md, section 3).
        """
        from scipy.special import gammaln, hyp1f1

        k, n, rate = np.abs(deviation(self.P, output, counts)), len(self.P), float(self.rate)
        largest = np.max(k, axis=-1)
        often = np.sum(k == largest[..., None], axis=-1)
        # ∫ f^m exp(-rate·f) df over [0, 1] is exp(-rate)/(m + 1) · 1F1(1; m + 2; rate)
        edge = np.log(1 / rate + hyp1f1(1, often + 2, rate) / (often + 1)) - rate * (largest + 0.5)
        at_zero = np.log(1 / rate + hyp1f1(1, n + 2, rate / 2) / (2 * (n + 1))) - rate / 2
        constant = (n + 1) * math.log(rate) - n * math.log(2) - gammaln(n + 1)
        return constant + np.where(largest == 0, at_zero, edge)

    def probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The probability of released integers given the counts (or of integer noise), one per row."""
        return np.exp(self.log_probability(output, counts))

    def error(self) -> Error:
        """The exact variance of the noise, the same for every count."""
        n = len(self.P)
        return Error(np.full(n, float((n + 1) * (n + 2) / (3 * self.rate**2))))

    @cached_property
    def _covariances(self) -> tuple[NDArray[np.float64], float]:
        return np.diag(self.error().variance), 0.0

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        half_sides = rng.standard_gamma(len(self.P) + 1, size=(size, 1)) / float(self.rate)
        return Simulated.wrap(self.P.canonical.back(rng.uniform(-1, 1, (size, len(self.P))) * half_sides))

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        values = [math.copysign(self._upper_quantile(min(q, 1 - q)), q - 0.5) for q in p.tolist()]
        return np.repeat(np.array(values)[:, None], len(self.P), axis=1)

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the exact half-width that its noise stays within, before rounding."""
        return np.full(len(self.P), self._upper_quantile((1 - confidence_level(confidence)) / 2))

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The exact half-width that *all* noise stays within, at once, before rounding."""
        from scipy.special import gammaincinv

        return float(gammaincinv(len(self.P), confidence_level(confidence))) / float(self.rate)

    def _upper_quantile(self, tail: float) -> float:
        from scipy.optimize import root_scalar
        from scipy.special import gammaincc

        n, rate = len(self.P), float(self.rate)

        def excess(t: float) -> float:
            return float(gammaincc(n + 1, t) - t / n * gammaincc(n, t)) - 2 * tail

        if tail >= 0.5:
            return 0.0
        largest = 10.0 * n - 10 * math.log(2 * tail)
        return float(root_scalar(excess, bracket=(0.0, largest)).root) / rate

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return draws.rounded_cube(self.rate, len(self.P))
