"""Noise shaped by the order: the mechanism of the package."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import noise
from isotone.counts.additive import AdditiveMechanism, deviation
from isotone.counts.bipartition_sampler import Sampler, sampler
from isotone.counts.norm import norms
from isotone.counts.simulation import noise_rows, places
from isotone.counts.statistic import Counts, check_counts
from isotone.errors import InputError
from isotone.guarantee import Guarantee, Neighbours, Number
from isotone.mechanism import Error
from isotone.noise.simulated import Simulated

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
    >>> m.norm([1, 1, 0])
    array(1.)
    """

    sampler: Sampler = field(repr=False, compare=False)

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        if max_size is not None:
            raise InputError(
                "PosetMechanism has no use for max_size: its noise covers records of every size. For short "
                "records use LaplaceMechanism or GaussianMechanism with max_size."
            )
        self._set(sampler=sampler(P))

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential steps: epsilon over the number of records that can change."""
        return self.epsilon / (self.contributions * (2 if self.neighbours == "replace" else 1))

    def norm(self, y: ArrayLike) -> NDArray[np.float64]:
        """The norm of ``y`` (of each row): 1 at most for the change by one record, in O(n + covers)."""
        return norms(self.P, y)

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        constant = len(self.P) * math.log(self.rate) - self.sampler.tables.log_count
        return constant - float(self.rate) * self.norm(deviation(self.P, output, counts))

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding."""
        return _simulated_error(self)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """``size`` float draws of the noise, one per row; not private, for planning only."""
        n = len(self.P)
        result = np.empty((size, n))
        for start in range(0, size, max(1, _CHUNK // n)):
            rows = result[start : start + max(1, _CHUNK // n)]
            orders, sizes = self.sampler.simulate(len(rows), rng)
            rows[:] = noise_rows(self.P, orders, sizes, rng.standard_exponential(rows.shape))
        result /= float(self.rate)
        return Simulated.wrap(result)

    def _integer_noise(self) -> NDArray[np.int64]:
        order, a = self.sampler.draw()
        plus, minus = places(self.P, order[None, :], np.array([a]))
        return noise.rounded_exponential_sums(self.rate, plus[0], minus[0])

    def release_with_total(self, counts: Counts, records: int) -> tuple[NDArray[np.int64], int]:
        """The counts with noise, and the number of records with noise: together as private as the counts alone.

        The number of records is the count of an element above all others. Its noise is that of a further step
        above everything, up or down, added to all steps (docs/theory/counts.md, section 7).
        """
        values = check_counts(self.P, counts)
        if records < values.max():
            raise InputError(
                "There are fewer records than one of the counts: pass the number of all records."
            )
        order, a = self.sampler.draw()
        plus, minus = places(self.P, order[None, :], np.array([a]))
        up = noise.random_bits(1)
        steps = np.append(plus[0], a + up), np.append(minus[0], len(self.P) - a + 1 - up)
        rounded = noise.rounded_exponential_sums(self.rate, *steps)
        return values + rounded[:-1], int(records) + int(rounded[-1])


def _simulated_error(m: PosetMechanism, draws: int = 20_000) -> Error:
    """From simulated bipartitions; given one, the variance is known (docs/theory/counts.md, section 4)."""
    orders, sizes = m.sampler.simulate(draws, np.random.default_rng(0))
    plus, minus = places(m.P, orders, sizes)
    squares = ((plus - minus) ** 2 + plus + minus) / float(m.rate) ** 2
    return Error(squares.mean(axis=0), "simulated", squares.std(axis=0) / math.sqrt(draws))
