"""DifferenceBodyMechanism and GroupedDifferenceMechanism: noise shaped by differences of records, for one order or several groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import noise
from isotone.array_types import Floats, Ints
from isotone.counts.knorm import PosetMechanism
from isotone.counts.mechanism import Counts, check_counts
from isotone.counts.relaxation import Relaxation
from isotone.counts.relaxation_tree import wander
from isotone.counts.sampler import (
    Sampler,
    Simulate,
    difference_norms,
    largest_parts,
    mean_of_rows,
    places,
    running_totals,
    sampler,
)
from isotone.errors import InputError
from isotone.linear.mechanism import LAW_NUMBERS, LAW_STREAM, OTHER_DRAWS, Law, draws_of
from isotone.mechanism import Error, Progress, no_progress
from isotone.noise.simulate import public_stream, refuse_simulated
from isotone.order import Poset
from isotone.order.bipartitions.counting import Tables, loosened, within_reach
from isotone.order.bipartitions.small import Part
from isotone.order.building import stacked_copies
from isotone.privacy.checks import Number, whole_number
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Neighbours

# Extended bipartitions with an interleaving of their sides, for noise shaped by differences of records.
#
# All pairs of an extended bipartition and an interleaving of its two sides are equally likely. So the extended
# bipartition alone has a weight: the number ``C(n, |A|)`` of interleavings (docs/theory/difference.md, section 3).
# One more step of the tables carries that weight exactly. It depends on the size of side A only, so a draw from a
# relaxed order that fits has the right law too.

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
    def weighed(cls, tables: Tables) -> Tables:
        """Tables with the weights of the interleavings."""
        return loosened(tables)

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


# Noise shaped by the differences of two records, for when the number of records is public.


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


# Noise for several groups whose units may be replaced, and so may change groups.

LARGEST_STACK = 1_000
"""The most counts of all groups together."""


@dataclass(frozen=True, init=False)
class GroupedDifferenceMechanism(DifferenceBodyMechanism):
    """Counts of several groups over one order, with one draw of noise for all of them.

    A record is in one group. Replacing one may take it from a group to another, so that a draw of
    :class:`DifferenceBodyMechanism` for each group would cost twice its epsilon. Here the noise of all groups together
    has density proportional to ``exp(-rate · norm)``, with the norm of the hull of all differences of two records, each
    in some group; ``rate`` is epsilon over ``contributions``. It is drawn as for one order in which the groups are
    stacked. Counts are a table with a row for each group. All groups have one law, which :meth:`error` and
    intervals are about; but the noise of two groups is not independent.

    Guarantee: epsilon-DP for ``neighbours``, whether a unit is replaced or added or removed
    (docs/theory/difference.md, section 6).
    Error: that of one group; exact if the order is series-parallel, as forests are.
    Cost: that of one order with all counts of all groups.

    >>> from isotone.order import Poset
    >>> m = GroupedDifferenceMechanism(Poset.chain("ab"), epsilon=1, groups=3)
    >>> m.release([[5, 9], [0, 0], [2, 4]]).shape
    (3, 2)
    >>> float(m.norm([[0, 1], [0, -1], [0, 0]]))
    1.0
    """

    groups: int

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "replace",
        contributions: int = 1,
        max_size: int | None = None,
        *,
        groups: int,
        progress: Progress = no_progress,
    ) -> None:
        self._set(groups=whole_number(groups, "groups"))
        super().__init__(P, epsilon, neighbours, contributions, max_size, progress=progress)

    def _prepare(self, relaxation: Relaxation | None, progress: Progress) -> None:
        self._refuse_size()
        one = self._coded.canonical.order
        if len(one) * self.groups > LARGEST_STACK:
            raise InputError(
                f"{self.groups} groups of {len(one)} counts are more than {LARGEST_STACK:,}, the most for one draw. "
                "Leave the choice to the plan."
            )
        if not can_stack(self.P):
            raise InputError("The order is beyond exact reach, and its groups cannot be stacked.")
        # in the canonical sequence of a stack the groups stand one after the other
        self._set(
            sampler=interleaved_sampler(stacked_copies(one, self.groups).canonical.order, None, progress)
        )

    def _tables(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values whose last axis, or last two, have one for each group and element, with two such axes."""
        n = len(self.P)
        if values.ndim >= 2 and values.shape[-2:] == (self.groups, n):
            return values
        if values.ndim and values.shape[-1] == self.groups * n:
            return values.reshape(*values.shape[:-1], self.groups, n)
        raise InputError(f"Give a row for each of the {self.groups} groups, with {n} numbers each.")

    def norm(self, y: ArrayLike) -> Floats:
        """The norm of a table (or of each), which is 1 at most for a unit of one record."""
        totals, possible = running_totals(self.P, self._tables(np.asarray(y, dtype=np.float64)))
        parts = largest_parts(self._coded, totals).sum(axis=-2)
        return np.where(possible.all(axis=-1), parts.max(axis=-1), np.inf)

    def possible_outputs(self, outputs: Floats) -> Floats:
        """Outputs near those given in which partitions add up."""
        return super().possible_outputs(self._tables(outputs)).reshape(outputs.shape)

    def log_density(self, output: ArrayLike, counts: Any = None) -> Floats:
        """The log density of real tables given the counts (or of noise), one each."""
        noise = self._tables(np.asarray(output, dtype=np.float64))
        if counts is not None:
            noise = noise - self._counted(counts)
        constant = len(self.sampler.order) * np.log(float(self.rate)) - self.sampler.log_count
        return constant - float(self.rate) * self.norm(noise)

    def _counted(self, counts: Any) -> Ints:
        refuse_simulated(counts)
        return np.array([check_counts(self.P, row) for row in self._tables(np.asarray(counts))], np.int64)

    def release(self, counts: Any) -> Ints:
        """Release the noisy counts of all groups as integers, in the shape in which they are given.

        Exactly private, from cryptographic bits.
        """
        rows = self._counted(counts)
        return (rows + self._group_noise(require_exact(ExactDraws()))).reshape(np.shape(counts))

    def release_rows(self, rows: Ints) -> Ints:
        """Release the counts of all groups, a row each, with one draw of noise."""
        refuse_simulated(rows)
        return self._tables(rows) + self._group_noise(require_exact(ExactDraws()))

    def _integer_noise(self, draws: ExactDraws) -> Ints:
        return self._group_noise(draws)[0]

    def _group_noise(self, draws: ExactDraws) -> Ints:
        """One exact draw of the noise of all groups, rounded to integers."""
        drawn = self.sampler.draw_slots(draws)
        upper, lower = spans(self.sampler.order, *drawn)
        first, second = self._starts(*drawn)
        rounded = draws.exponential_spans(self.rate, upper[0], lower[0], (first[0], second[0]))
        return self._back(rounded.reshape(self.groups, -1))

    def _starts(self, orders: NDArray[np.int32], sizes: Ints, slots: Ints) -> tuple[Ints, Ints]:
        """Where the steps of each element's group begin, the last place of the groups below on either side."""
        size = len(self.sampler.order) // self.groups
        on_a = np.empty(orders.shape, np.int64)
        np.put_along_axis(on_a, orders.astype(np.int64), np.arange(orders.shape[1]) < sizes[:, None], axis=1)
        of_group = on_a.reshape(len(orders), self.groups, size).sum(axis=2)
        below_a = np.cumsum(of_group, axis=1) - of_group
        below_b = np.arange(self.groups) * size - below_a
        ends = np.concatenate((np.zeros((len(slots), 1), np.int64), slots), axis=1)
        first = np.take_along_axis(ends, below_a, axis=1)
        second = np.take_along_axis(ends, np.where(below_b > 0, below_b + sizes[:, None], 0), axis=1)
        return np.repeat(first, size, axis=1), np.repeat(second, size, axis=1)

    def _squares(self, order: Poset) -> Error:
        """The expected squares of the lowest group of a stack, which are those of each."""
        return self._lowest(
            interleaved_sampler(stacked_copies(order, self.groups).canonical.order), len(order)
        )

    def _lowest(self, sampler: InterleavedSampler, size: int) -> Error:
        result = sampler.squares
        spread = result.standard_error
        return Error(result.variance[:size], result.method, spread[:size] if spread.size else spread)

    def error(self) -> Error:
        """The variance of the noise on each count of a group, before rounding."""
        if self.P.choices:
            return self._counted_errors
        return self._in_given_sequence(self._lowest(self.sampler, len(self.P)))

    def least_total(self) -> float:
        """No bound is known for one group."""
        return 0.0

    def _simulate_rows(self, size: int, rng: np.random.Generator, draw: Simulate) -> Floats:
        return self._simulate_groups(size, rng, draw)[:, 0]

    def _simulate_groups(self, size: int, rng: np.random.Generator, draw: Simulate) -> Floats:
        """The noise of all groups at rate 1, a table each."""
        drawn = self.sampler.simulate_slots(size, rng, draw)
        upper, lower = spans(self.sampler.order, *drawn)
        sums = self.sampler.simulate_sums(size, rng)
        ends = (upper, lower, *self._starts(*drawn))
        up, down, first, second = (np.take_along_axis(sums, end, axis=1) for end in ends)
        return (up - first - (down - second)).reshape(size, self.groups, -1)

    def group_law(self, stream: str, draws: int) -> Law:
        """Draws of the released noise of all groups. The rows of one draw stand together."""
        rows = [
            self._released_groups(size, public_stream(f"{LAW_STREAM} {part} {stream}"))
            for part, size in (("draws", draws), ("scales", OTHER_DRAWS))
        ]
        return Law(rows[0], rows[1])

    def _released_groups(self, size: int, rng: np.random.Generator) -> Floats:
        step, result = max(1, LAW_NUMBERS // len(self.sampler.order)), list[Floats]()
        for start in range(0, size, step):
            rows = min(step, size - start)
            noise = self._simulate_groups(rows, rng, self.sampler.simulate_independent) / float(self.rate)
            result.append(self._back(np.floor(noise + 0.5)).reshape(rows * self.groups, -1))
        return np.concatenate(result)

    @property
    def law_draws(self) -> int:
        """How many draws the law has. Each is one of all groups."""
        return draws_of(len(self.sampler.order))


def can_stack(P: Poset) -> bool:
    """Whether groups over this order can be drawn together, exactly and not from a relaxed order."""
    return within_reach((P.coding.order if P.choices else P).canonical.order)
