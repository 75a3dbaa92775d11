"""Extended bipartitions with an interleaving of their sides, for noise shaped by differences of records.

All pairs of an extended bipartition and an interleaving of its two sides are equally likely. So the extended
bipartition alone has a weight: the number ``C(n, |A|)`` of interleavings (docs/theory/difference.md, section 3).
One more step of the tables carries that weight exactly. It depends on the size of side A only, so a draw from a
relaxed order that fits has the right law too.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.array_types import Floats, Ints
from isotone.counts.sampling.bipartition_sampler import Sampler, Simulate
from isotone.counts.sampling.choosing import sampler
from isotone.counts.sampling.reinsertion import wander
from isotone.counts.sampling.relaxation import Relaxation
from isotone.counts.sampling.simulation import places
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.order.bipartitions.extended import Tables, loosened
from isotone.order.bipartitions.small import Part
from isotone.order.poset import Poset
from isotone.privacy.draws import ExactDraws

__all__ = ["InterleavedSampler", "interleaved_sampler", "spans"]

Orders = NDArray[np.int32]
Matrix = NDArray[np.bool_]


class InterleavedSampler(Sampler):
    """Draws extended bipartitions, each as often as its sides have interleavings."""

    balanced: ClassVar[bool] = True

    @property
    def log_count(self) -> float:
        """The logarithm of the number of pairs.

        Estimated unless the method is ``exact`` or ``relaxed``.
        """
        return super().log_count + math.lgamma(len(self.order) + 1)

    @classmethod
    def _log_count_of_points(cls, n: int) -> float:
        return n * math.log(2)

    def draw_spans(self, draws: ExactDraws) -> tuple[Ints, Ints]:
        """Draw once from cryptographic bits.

        For each element the places of its two ends among all steps.

        The noise on the element is the sum of the steps up to the first end, minus that up to the second.
        """
        upper, lower = spans(self.order, *self.draw_slots(draws))
        return upper[0], lower[0]

    def draw_slots(self, draws: ExactDraws) -> tuple[Orders, Ints, Ints]:
        """One extended bipartition and its size, as a row each, and the places of its elements, side A first."""
        order, a = self.draw(draws)
        on_a = np.array(noise.shuffle([True] * a + [False] * (len(order) - a)), np.bool_)
        slots = np.concatenate((np.flatnonzero(on_a), np.flatnonzero(~on_a))) + 1
        return order[None, :], np.array([a]), slots[None, :]

    def simulate_noise(self, size: int, rng: np.random.Generator, draw: Simulate) -> Floats:
        """``size`` rows of noise at rate 1, for planning only, from the bipartitions that ``draw`` gives."""
        drawn = self.simulate_slots(size, rng, draw)
        upper, lower = spans(self.order, *drawn)
        sums = self.simulate_sums(size, rng)
        return np.take_along_axis(sums, upper, axis=1) - np.take_along_axis(sums, lower, axis=1)

    def simulate_slots(
        self, size: int, rng: np.random.Generator, draw: Simulate
    ) -> tuple[Orders, Ints, Ints]:
        """Simulate :meth:`draw_slots`, ``size`` rows."""
        orders, sizes = draw(size, rng)
        n = len(self.order)
        slots = np.argsort(rng.random((size, n)), axis=1) + 1
        # the slots of each side in ascending order: those of side A first
        side = np.where(np.arange(n) < sizes[:, None], 0, n + 1)
        return orders, sizes, np.sort(slots + side, axis=1) - side

    def simulate_sums(self, size: int, rng: np.random.Generator) -> Floats:
        """The sums of the first 0, 1, 2, … of the steps at rate 1, ``size`` rows."""
        steps = rng.standard_exponential((size, len(self.order)))
        return np.concatenate((np.zeros((size, 1)), np.cumsum(steps, axis=1)), 1)

    @classmethod
    def wander(
        cls, leq: Matrix, order: Orders, a: int, rows: int, sweeps: int, rng: np.random.Generator
    ) -> tuple[Orders, Ints]:
        """A random walk that keeps the weights of the interleavings."""
        return wander(leq, order, a, rows, sweeps, rng, balanced=True)

    @classmethod
    def given(cls, P: Poset, orders: Orders, sizes: Ints) -> Floats:
        """The expected square given an extended bipartition, over all interleavings of its sides."""
        plus, minus = places(P, orders, sizes)
        n, a = len(P), sizes[:, None].astype(np.float64)
        b = n - a
        both = plus * (plus + 1) / ((a + 1) * (a + 2)) + minus * (minus + 1) / ((b + 1) * (b + 2))
        return (n + 1) * (n + 2) * (both - 2 * plus * minus / ((a + 1) * (b + 1)))

    @classmethod
    def weighed(cls, made: Tables) -> Tables:
        """Tables with the weights of the interleavings."""
        return loosened(made)

    def _size_weights(self, part: Part) -> list[int]:
        return [count * math.comb(part.size, a) for a, count in enumerate(part.counts)]

    def _exact_squares(self) -> Floats | None:
        # the last step of the tables divides by (a + 1)(a + 2) and its like
        n, passed = len(self.order), self.source.expected_squares()
        return None if passed is None else (n + 1) * (n + 2) * passed

    def exact_products(self) -> Floats | None:
        """The expected products of the noise on two elements at rate 1, or None if they are not known exactly."""
        n, passed = len(self.order), self.source.expected_products()
        return None if passed is None else (n + 1) * (n + 2) * passed

    @cached_property
    def total_square(self) -> float:
        """Raise an error, since this noise does not cover the number of records."""
        raise InputError("This noise does not cover the number of records.")


def spans(P: Poset, orders: Orders, sizes: Ints, slots: Ints) -> tuple[Ints, Ints]:
    """The two ends of each element's steps.

    A row of ``slots`` has those of side A first, ascending.
    """
    plus, minus = places(P, orders, sizes)
    starts = np.concatenate((np.zeros((len(slots), 1), np.int64), slots), axis=1)
    upper = np.take_along_axis(starts, plus, axis=1)
    lower = np.take_along_axis(starts, np.where(minus > 0, minus + sizes[:, None], 0), axis=1)
    return upper, lower


def interleaved_sampler(
    P: Poset, relaxation: Relaxation | None = None, progress: Progress = no_progress
) -> InterleavedSampler:
    """The sampler of ``P``.

    It shares the search and the tables with that of extended bipartitions alone.
    """
    return sampler(P, relaxation, progress, kind=InterleavedSampler)
