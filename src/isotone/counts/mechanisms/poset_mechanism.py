"""The K-norm mechanism shaped by the order.

The main mechanism of the package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import noise
from isotone.counts.mechanisms.additive import AdditiveMechanism, deviation
from isotone.counts.norm import as_rows, norms
from isotone.counts.sampling.bipartition_sampler import Sampler, sampler
from isotone.counts.sampling.method import Method
from isotone.counts.sampling.relaxation import Relaxation
from isotone.counts.sampling.simulation import noise_rows, places
from isotone.counts.statistic import Counts, check_counts, check_records
from isotone.errors import InputError
from isotone.mechanism import Error, Progress, no_progress
from isotone.noise.simulated import Simulated
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["PosetMechanism"]

_CHUNK = 1 << 20
"""Numbers simulated at a time."""


@dataclass(frozen=True, init=False)
class PosetMechanism(AdditiveMechanism):
    """Counts over a poset with noise shaped by the hull of all possible records.

    Releases ``counts + noise`` rounded to integers, where the noise has density proportional to
    ``exp(-rate · norm(noise))`` and ``rate`` is epsilon over the number of records that a unit can change:
    ``contributions``, twice that for ``replace``.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/counts.md, section 4).
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

    sampler: Sampler = field(repr=False, compare=False)
    """Draws for the elements in canonical sequence: no result depends on how the order was described."""

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
        if max_size is not None:
            raise InputError(
                "PosetMechanism covers records of every size and has no use for max_size. Use "
                "BoundedPosetMechanism, or LaplaceMechanism for very short records."
            )
        self._set(sampler=sampler(P.canonical.order, relaxation, progress))

    @property
    def method(self) -> Method:
        """Which of ``exact``, ``rejection`` and ``relaxed`` is in force, and what it costs."""
        return self.sampler.method

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential steps.

        Epsilon over the number of records that can change.
        """
        # A single count moves by one at most when a record is replaced, but not together with the number of
        # records, which stays: their norm is 2. So the rate is the same for every order.
        return self.unit.per_step(self.epsilon)

    def norm(self, y: ArrayLike) -> NDArray[np.float64]:
        """The norm of ``y`` (of each row), in O(n + covers).

        It is 1 at most for the change by one record.

        That of the relaxed order if the method is ``relaxed``.
        """
        return norms(self.sampler.order, self.P.canonical.forth(as_rows(self.P, y)))

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row.

        Up to an additive constant of at most 1e-8 for each element; if the method is ``rejection``, the constant
        is estimated.
        """
        constant = len(self.P) * math.log(self.rate) - self.sampler.log_count
        return constant - float(self.rate) * self.norm(deviation(self.P, output, counts))

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding.

        Exact if the order is series-parallel, as forests are; otherwise from simulated bipartitions, each of
        which contributes its exact variance, with the standard error (docs/theory/counts.md, section 8).
        """
        return self._in_given_sequence(self.sampler.squares)

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
        """Simulate ``size`` float draws of the noise, one per row.

        They are not private and serve planning only.
        """
        return Simulated.wrap(self.P.canonical.back(self._simulate(size, rng)) / float(self.rate))

    def _simulate(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draws at rate 1, the elements in canonical sequence."""
        n = len(self.P)
        result = np.empty((size, n))
        for start in range(0, size, max(1, _CHUNK // n)):
            rows = result[start : start + max(1, _CHUNK // n)]
            rows[:] = self._simulate_rows(len(rows), rng)
        return result

    def _simulate_rows(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        orders, sizes = self.sampler.simulate(size, rng)
        return noise_rows(self.sampler.order, orders, sizes, rng.standard_exponential(orders.shape))

    def _integer_noise(self) -> NDArray[np.int64]:
        plus, minus, _ = self._steps()
        return noise.rounded_exponential_sums(self.rate, plus, minus)

    def _steps(self) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """How many exponential steps up and down each count takes, and how many there are up in all."""
        order, a = self.sampler.draw()
        plus, minus = places(self.sampler.order, order[None, :], np.array([a]))
        back = self.P.canonical.back
        return back(plus[0]), back(minus[0]), a

    @property
    def has_total(self) -> bool:
        """Whether the number of records can be released as well, for free."""
        return True

    def release_with_total(self, counts: Counts, records: int) -> tuple[NDArray[np.int64], int]:
        """Release the counts and the number of records with noise.

        Together they are as private as the counts alone.

        The number of records is the count of an element above all others: the sum of all steps, and of one
        more, up or down (docs/theory/counts.md, section 7).
        """
        values = check_counts(self.P, counts)
        number = check_records(records, values)
        plus, minus, a = self._steps()
        up = noise.random_bits(1)
        all_steps = np.append(plus, a + up), np.append(minus, len(self.P) - a + 1 - up)
        rounded = noise.rounded_exponential_sums(self.rate, *all_steps)
        return values + rounded[:-1], number + int(rounded[-1])

    def total_variance(self) -> float:
        """The variance of the noise on the number of records (simulated if the method is ``rejection``)."""
        return self.sampler.total_square / float(self.rate) ** 2
