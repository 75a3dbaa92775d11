"""Noise shaped by the differences of two records, for when the number of records is public."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.counts.norm import difference_norms
from isotone.counts.sampling.bipartition_sampler import Simulate, mean_of_rows
from isotone.counts.sampling.interleaved_sampler import InterleavedSampler, interleaved_sampler
from isotone.counts.sampling.relaxation import Relaxation
from isotone.counts.statistic import Counts
from isotone.errors import InputError
from isotone.mechanism import Error, Progress, no_progress
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number
from isotone.privacy.draws import ExactDraws

__all__ = ["DifferenceBodyMechanism"]


@dataclass(frozen=True, init=False)
class DifferenceBodyMechanism(PosetMechanism):
    """Counts over a poset with noise shaped by the hull of all differences of two records.

    That hull is the difference body of the order polytope. It is smaller than twice the body of
    :class:`PosetMechanism`, so the noise is smaller where a unit may be replaced. Releases ``counts + noise``
    rounded to integers, where the noise has density proportional to ``exp(-rate · norm(noise))`` and ``rate`` is
    epsilon over ``contributions``.

    Guarantee: epsilon-DP for ``neighbours``, whether a unit is replaced or added or removed
    (docs/theory/difference.md, section 2).
    Error: ``error()`` needs no data, and is exact if the order is series-parallel, as forests are.
    Cost: that of PosetMechanism, from the same tables.

    The number of records is not read. Whoever publishes it states it as a public number.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> m = DifferenceBodyMechanism(P, epsilon=1)
    >>> m.release([120, 80, 33]).shape
    (3,)
    >>> float(m.norm([0, 1, -1]))
    1.0
    """

    sampler: InterleavedSampler = field(repr=False, compare=False)

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "replace",
        contributions: int = 1,
        max_size: int | None = None,
        *,
        relaxation: Relaxation | None = None,
        progress: Progress = no_progress,
    ) -> None:
        super().__init__(
            P, epsilon, neighbours, contributions, max_size, relaxation=relaxation, progress=progress
        )

    def _prepare(self, relaxation: Relaxation | None, progress: Progress) -> None:
        self._refuse_size()
        self._set(sampler=interleaved_sampler(self._coded.canonical.order, relaxation, progress))

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential steps. Epsilon over the number of records of a unit."""
        # the old records and the new ones of a unit have norm at most 1 together, one by one: section 2
        return self.epsilon / self.sensitivity.records

    def _norms(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return difference_norms(self.sampler.order, totals)

    def _squares(self, order: Poset) -> Error:
        return interleaved_sampler(order).squares

    def _simulated_errors(self) -> Error:
        rows = max(4_000, min(50_000, 4_000_000 // len(self.P)))
        return mean_of_rows(np.asarray(self.simulate(rows, np.random.default_rng(0))) ** 2)

    def _simulate_rows(self, size: int, rng: np.random.Generator, draw: Simulate) -> NDArray[np.float64]:
        return self.sampler.simulate_noise(size, rng, draw)

    @cached_property
    def _covariances(self) -> tuple[NDArray[np.float64], float]:
        exact = self.sampler.exact_products()
        if exact is None:
            return self._simulated_covariances()
        return self._back(self._back(exact).T) / float(self.rate) ** 2, 0.0

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        upper, lower = self.sampler.draw_spans(draws)
        return self._back(draws.exponential_spans(self.rate, upper, lower))

    def _integer_noises(self, size: int, draws: ExactDraws) -> NDArray[np.int64]:
        return np.array([self._integer_noise(draws) for _ in range(size)]).reshape(size, len(self.P))

    @property
    def has_total(self) -> bool:
        """Whether the number of records is covered, which it is not.

        It is public, or an element above all others.
        """
        return False

    def release_with_total(self, counts: Counts, records: int) -> NoReturn:
        """Raise an error, since this noise does not cover the number of records."""
        raise InputError(
            "DifferenceBodyMechanism releases no total. Publish the number of records if it is public, or add "
            "an element above all others to the order and count all records there."
        )
