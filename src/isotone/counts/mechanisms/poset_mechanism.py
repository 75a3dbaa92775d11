"""The K-norm mechanism shaped by the order. The main mechanism of the package."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.counts.mechanisms.k_norm import KNormMechanism
from isotone.counts.sampling.choosing import sampler
from isotone.counts.sampling.relaxation import Relaxation
from isotone.counts.sampling.simulation import places
from isotone.counts.statistic import Counts, check_counts, check_records
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.noise.simulate import refuse_simulated
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Guarantee

__all__ = ["PosetMechanism"]


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
        orders, sizes = self.sampler.source.draw(size, draws.words, draws.bernoulli)
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
