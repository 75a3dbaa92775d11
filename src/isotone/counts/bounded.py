"""Noise shaped by the order and by the size of the records at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from isotone.array_types import Floats, Ints
from isotone.counts.knorm import PosetMechanism
from isotone.counts.norm import norms
from isotone.counts.relaxation import Relaxation
from isotone.counts.sampler import RARE, Simulate, sampler
from isotone.counts.statistic import Counts, deviation, largest_record
from isotone.errors import InputError
from isotone.mechanism import Error, Progress
from isotone.noise.exponential import first_places
from isotone.order.closure import Coding
from isotone.privacy.draws import ExactDraws

__all__ = ["BoundedPosetMechanism", "TooFewDrawsError"]

LEAST_ACCEPTANCE = 1e-3
"""A mechanism that keeps fewer of its draws is refused: a release would take seconds."""

KEPT, LARGEST = 4_000, 1 << 19
"""The acceptance and the error are estimated from so many kept draws, or from so many draws."""


class TooFewDrawsError(InputError):
    """Rejection would keep too few draws. The order and the bound alone decide that."""


@dataclass(frozen=True, init=False)
class BoundedPosetMechanism(PosetMechanism):
    """Counts of records with at most ``max_size`` yeses, with noise shaped by the order and by that bound.

    The noise has density proportional to ``exp(-rate · norm(noise))``, where the norm is the larger of
    :class:`PosetMechanism`'s and of the ℓ1 norm over ``max_size``: no record moves the counts by more than 1
    in it. It is drawn as PosetMechanism's noise y, kept with probability ``exp(-rate · (norm(y) - its norm))``;
    ``acceptance`` is the estimated share that is kept. Between a few yeses, where Laplace noise is better, and
    about half the elements, where the bound no longer matters, it is the best of the three.

    Guarantee: epsilon-DP for ``neighbours``, for records that are cut to ``max_size`` by ``cut``
    (docs/theory/counts.md, section 10).
    Error: simulated, with its standard error.

    >>> from isotone.order import Poset
    >>> m = BoundedPosetMechanism(Poset.antichain("abcdef"), epsilon=1, max_size=2)
    >>> float(m.norm([1, 1, 0, 0, 0, 0])), float(m.norm([1, 1, 1, 1, 0, 0]))
    (1.0, 2.0)
    """

    acceptance: float = field(compare=False)
    _at_rate_one: Error = field(repr=False, compare=False)

    def _prepare(self, relaxation: Relaxation | None, progress: Progress) -> None:
        if self.max_size is None:
            raise InputError("A bounded mechanism needs max_size: the largest number of yeses in a record.")
        self._set(sampler=sampler(self._coded.canonical.order, relaxation, progress, share=RARE))
        acceptance, squares = self._estimate()
        if acceptance < LEAST_ACCEPTANCE:
            raise TooFewDrawsError(
                f"With max_size = {self.max_size} fewer than one in {1 / LEAST_ACCEPTANCE:.0f} draws would be kept. "
                "Use LaplaceMechanism with this max_size: for such short records it is better."
            )
        self._set(acceptance=acceptance, _at_rate_one=squares)

    @property
    def largest(self) -> int:
        """The size of the largest record. ``max_size``, or that of all records if it is less."""
        longest = largest_record(self.P)
        return longest if self.max_size is None else min(self.max_size, longest)

    def norm(self, y: ArrayLike) -> Floats:
        """The larger of the order's norm and of the ℓ1 norm over ``max_size``, of each row."""
        rows = deviation(self.P, y, None)
        return np.maximum(super().norm(rows), np.sum(np.abs(rows), axis=-1) / self.largest)

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> Floats:
        """The log density of real outputs given the counts (or of noise), up to an estimated constant."""
        return super().log_density(output, counts) - math.log(self.acceptance)

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding.

        It is simulated, and has a standard error.
        """
        return self._in_given_sequence(self._at_rate_one)

    def _counts(self, noise: Floats) -> Floats:
        """Noise of the coded order as noise on the counts, in their canonical sequence. Sums of floats depend on it."""
        return self.P.canonical.forth(self._back(noise))

    @cached_property
    def _covariances(self) -> tuple[Floats, float]:
        return self._simulated_covariances()

    def _simulate(self, size: int, rng: np.random.Generator, draw: Simulate) -> Floats:
        rows, found = np.empty((size, len(self._coded))), 0
        while found < size:
            noise_, kept = self._propose(min(int((size - found) / self.acceptance) + 16, 1 << 16), rng, draw)
            new = noise_[rng.random(kept.size) < kept][: size - found]
            rows[found : found + len(new)] = new
            found += len(new)
        return rows

    def _propose(self, size: int, rng: np.random.Generator, draw: Simulate) -> tuple[Floats, Floats]:
        """Noise of the order alone, canonical and at rate 1, and the probability with which each row is kept."""
        y = super()._simulate(size, rng, draw)
        excess = np.sum(np.abs(self._counts(y)), axis=1) / self.largest - norms(self.sampler.order, y)
        return y, np.exp(-np.maximum(excess, 0.0))

    def _estimate(self) -> tuple[float, Error]:
        """The acceptance, and the expected squares at rate 1 as weighted means with their standard errors."""
        rng, n = np.random.default_rng(0), len(self.P)
        draws, weight, squared, sums = 0, 0.0, 0.0, np.zeros((3, n))
        while weight < KEPT and draws < LARGEST and weight >= draws * LEAST_ACCEPTANCE / 4:
            y, kept = self._propose(1 << 14, rng, self.sampler.simulate)
            draws, weight, squared = draws + len(y), weight + kept.sum(), squared + np.sum(kept**2)
            square = self._counts(y) ** 2
            sums += [kept @ square, kept**2 @ square, kept**2 @ square**2]
        if weight == 0.0:  # not one draw was kept: plans leave such a mechanism out
            return 0.0, Error(np.full(n, np.inf), "simulated", np.full(n, np.inf))
        mean = sums[0] / weight
        spread = sums[2] - 2 * mean * sums[1] + mean**2 * squared
        return float(weight / draws), Error(mean, "simulated", np.sqrt(np.maximum(spread, 0.0)) / weight)

    def _integer_noise(self, draws: ExactDraws) -> Ints:
        while True:
            plus, minus, a = self._steps(draws)
            attempt = _LazyDraw(self.rate, plus, minus, a, draws)
            if draws.lazy_coin(attempt.excesses(self.largest, self.P.coding if self.P.choices else None)):
                return self._decoded(attempt.rounded())

    def _integer_noises(self, size: int, draws: ExactDraws) -> Ints:
        return np.array([self._integer_noise(draws) for _ in range(size)]).reshape(size, len(self.P))

    @property
    def has_total(self) -> bool:
        """The number of records is not free here."""
        return False

    def release_with_total(self, counts: Counts, records: int) -> tuple[Ints, int]:
        """Raise an error, since the number of records is not free here.

        Its noise would change that of the counts.
        """
        raise InputError(
            "BoundedPosetMechanism releases no total. Use PosetMechanism, or release the number of records apart."
        )


class _LazyDraw:
    """One draw of the order's noise, known to as many binary places as were needed so far."""

    def __init__(self, rate: Fraction, plus: Ints, minus: Ints, a: int, draws: ExactDraws) -> None:
        self.plus, self.minus = plus.tolist(), minus.tolist()
        self.a, self.b = a, len(self.plus) - a
        places = first_places(rate, len(self.plus), len(self.plus))
        self.up, self.down = (draws.exponentials(rate, size, places) for size in (self.a, self.b))

    def excesses(self, largest: int, coding: Coding | None) -> Iterator[tuple[Fraction, Fraction]]:
        """Ever closer bounds of ``rate · max(0, l1 norm / largest - norm)``.

        The norm is the sum of all steps. With a coding the ℓ1 norm is that of differences of running totals.
        """
        while True:
            norm = self.up.partial_sum(self.a) + self.down.partial_sum(self.b)
            bounds = [_magnitude(low, high) for low, high in _differences(self._coordinates(), coding)]
            unit = self.up.rate / 2**self.up.places
            low = Fraction(sum(low for low, _ in bounds), largest) - norm - self.a - self.b
            high = Fraction(sum(high for _, high in bounds), largest) - norm
            yield unit * max(low, 0), unit * max(high, 0)
            self._read_on()

    def rounded(self) -> Ints:
        """The noise, rounded to integers."""
        while True:
            half, places = 1 << (self.up.places - 1), self.up.places
            ends = [((low + half) >> places, (high + half) >> places) for low, high in self._coordinates()]
            if all(low == high for low, high in ends):
                return np.array([low for low, _ in ends], dtype=np.int64)
            self._read_on()

    def _read_on(self) -> None:
        self.up.read_on()
        self.down.read_on()

    def _coordinates(self) -> list[tuple[int, int]]:
        """Bounds of each coordinate in units of the last place read.

        A sum of m steps is known to m units.
        """
        ups = [self.up.partial_sum(m) for m in range(self.a + 1)]
        downs = [self.down.partial_sum(m) for m in range(self.b + 1)]
        pairs = zip(self.plus, self.minus, strict=True)
        return [(ups[p] - downs[q] - q, ups[p] - downs[q] + p) for p, q in pairs]


def _differences(totals: list[tuple[int, int]], coding: Coding | None) -> list[tuple[int, int]]:
    """Bounds of the counts, given those of running totals."""
    if coding is None:
        return totals
    found: list[tuple[int, int]] = []
    for target, before in zip(coding.target.tolist(), coding.before.tolist(), strict=True):
        low, high = totals[target]
        less, more = totals[before] if before >= 0 else (0, 0)
        found.append((low - more, high - less))
    return found


def _magnitude(low: int, high: int) -> tuple[int, int]:
    """Bounds of the absolute value of a number between ``low`` and ``high``."""
    if low >= 0:
        return low, high
    return (-high, -low) if high <= 0 else (0, max(-low, high))
