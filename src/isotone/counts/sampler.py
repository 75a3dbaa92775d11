"""The norm of an order, and uniform draws of its extended bipartitions for releases and simulations, by tables or by coupling."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.relaxation import REACH, KeptDraws, Relaxation, relax
from isotone.counts.relaxation_tree import estimated_share, missing_pairs, restore, wander
from isotone.errors import InputError
from isotone.kernels import has_compiler, kernel, most_steps
from isotone.linear.mechanism import LAW_STREAM
from isotone.mechanism import Error, Progress, no_progress
from isotone.noise.simulate import public_stream
from isotone.order import Poset
from isotone.order.bipartitions.counting import Tables, draw, tables, within_reach
from isotone.order.bipartitions.coupling import TwoLevels
from isotone.order.bipartitions.moments import (
    expected_products,
    expected_products_with_total,
    expected_squares,
)
from isotone.order.bipartitions.small import ELEMENTS, Part, SmallRows, is_small, part_of
from isotone.order.bipartitions.walk import kept
from isotone.order.closure import ends_by_start
from isotone.privacy.draws import ExactDraws, require_exact

# The norm whose unit ball is the hull of all records.
#
# It comes from one pass over the order, from the bottom up (docs/theory/counts.md, sections 2 and 3). Every
# vector y is a difference ``p - q`` of nonnegative functions that grow along the order, and has a smallest such
# pair; the norm is ``max p + max q``.

MANY = 64
"""From so many rows on, those of a small order are taken together."""


def norms(P: Poset, y: ArrayLike) -> Floats:
    """The norm of each row of ``y`` (of ``y`` itself if it is one vector), in O(n + covers) each.

    Infinite for a vector that breaks a partition, whose counts add up in every record.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice"], [("twice", "hyp")])
    >>> norms(P, [[1, 0], [1, 1], [0, 1], [3, -4]])
    array([ 1.,  1.,  2., 11.])
    """
    totals, possible = running_totals(P, y)
    return np.where(possible, largest_parts(P.coding.order if P.choices else P, totals).sum(axis=-1), np.inf)


def difference_norms(P: Poset, y: ArrayLike) -> Floats:
    """The norm of each row whose unit ball is the hull of all differences of two records, in O(n + covers) each.

    It is ``max(max p, max q)`` (docs/theory/difference.md, section 1).

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice"], [("twice", "hyp")])
    >>> difference_norms(P, [[1, 0], [1, 1], [0, 1], [3, -4]])
    array([1., 1., 1., 7.])
    """
    totals, possible = running_totals(P, y)
    return np.where(possible, largest_parts(P.coding.order if P.choices else P, totals).max(axis=-1), np.inf)


def running_totals(P: Poset, y: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Each row in the coordinates of ``P.coding``, and whether its partitions add up.

    Without choices the row itself.
    """
    rows = as_rows(P, y)
    if not P.choices:
        return rows, np.ones(rows.shape[:-1], np.bool_)
    totals = P.coding.encode(rows)
    off = np.abs(P.coding.decode(totals) - rows)
    scale = 1 + np.max(np.abs(rows), axis=-1, keepdims=True)
    return totals, np.all(off <= 1e-9 * scale, axis=-1)


def largest_parts(P: Poset, y: ArrayLike) -> Floats:
    """``max p`` and ``max q`` of each row, for an order without choices."""
    rows = as_rows(P, y)
    own = np.ascontiguousarray(rows.reshape(-1, len(P)))
    many = len(P) <= ELEMENTS and len(own) >= MANY
    values = (_maxima_by_columns if many else _maxima)(own, *bottom_up(P))
    return values.reshape(*rows.shape[:-1], 2)


def bottom_up(P: Poset) -> tuple[Ints, Ints, Ints]:
    """A linear extension, and the lower covers of each x.

    Those of x are ``lowers[starts[x]:starts[x + 1]]``.
    """
    lower, upper = np.ascontiguousarray(P.cover_pairs.T)
    return P.linear_order.copy(), *ends_by_start(len(P), upper, lower)


def as_rows(P: Poset, y: ArrayLike) -> Floats:
    """``y`` as floats with one entry per element in the last axis."""
    rows = np.asarray(y, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] != len(P):
        raise InputError(f"The last axis must have one entry for each of the {len(P)} elements.")
    return rows


@kernel
def _climb(y: Floats, order: Ints, starts: Ints, lowers: Ints, p: Floats, q: Floats) -> None:
    """The smallest p and q of one vector, bottom up."""
    for z in order:
        a = b = 0.0
        for w in lowers[starts[z] : starts[z + 1]]:
            a, b = max(a, p[w]), max(b, q[w])
        if y[z] > a - b:
            p[z], q[z] = y[z] + b, b
        else:
            p[z], q[z] = a, a - y[z]


def _maxima_by_columns(rows: Floats, order: Ints, starts: Ints, lowers: Ints) -> Floats:
    """:func:`_maxima` for small orders, all rows at once."""
    columns = np.ascontiguousarray(rows.T)
    p, q = np.empty_like(columns), np.empty_like(columns)
    none = np.zeros(len(rows))
    for z in order.tolist():
        below = lowers[starts[z] : starts[z + 1]]
        a, b = (part[below].max(axis=0) if below.size else none for part in (p, q))
        climbs = columns[z] > a - b
        p[z] = np.where(climbs, columns[z] + b, a)
        q[z] = np.where(climbs, b, a - columns[z])
    return np.stack((p.max(axis=0), q.max(axis=0)), axis=1)


@kernel(steps=lambda rows, order, starts, lowers: len(rows) * (order.size + lowers.size))
def _maxima(rows: Floats, order: Ints, starts: Ints, lowers: Ints) -> Floats:
    p, q = np.empty(order.size), np.empty(order.size)
    result = np.empty((rows.shape[0], 2))
    for r in range(rows.shape[0]):
        _climb(rows[r], order, starts, lowers, p, q)
        result[r, 0], result[r, 1] = p.max(), q.max()
    return result


# Noise from extended bipartitions, row by row, in NumPy for small orders and compiled for others.
#
# Given an extended bipartition ``a_1, …, a_p; b_1, …, b_q`` and a sum ``E_1 + … + E_i`` for each place on side A,
# ``E'_1 + … + E'_j`` on side B, coordinate x of the noise is the sum at the last ``a_i <= x`` minus the sum at
# the last ``b_j <= x`` (docs/theory/counts.md, section 4). One pass over the order, bottom up, finds the places.

Orders = NDArray[np.int32]


def places(P: Poset, orders: Orders, sizes: Ints) -> tuple[Ints, Ints]:
    """The places of the last ``a_i <= x`` and ``b_j <= x``.

    For each row and element x, counted from 1, and 0 if there is none.
    """
    if len(P) <= ELEMENTS:
        step = np.arange(1, len(P) + 1)
        on_a = step <= sizes[:, None]
        return _last_below(P, orders, np.where(on_a, step, 0), np.where(on_a, 0, step - sizes[:, None]))
    plus, minus = np.empty(orders.shape, np.int64), np.empty(orders.shape, np.int64)
    _places(orders, sizes, *bottom_up(P), plus, minus)
    return plus, minus


def noise_rows(P: Poset, orders: Orders, sizes: Ints, steps: Floats) -> Floats:
    """The noise of each row.

    ``steps`` has one exponential for each place, those of side A first.
    """
    if len(P) <= ELEMENTS:
        sums = np.cumsum(steps, axis=1)
        on_a = np.arange(1, len(P) + 1) <= sizes[:, None]
        of_a = np.take_along_axis(sums, np.maximum(sizes[:, None] - 1, 0), axis=1) * (sizes[:, None] > 0)
        p, q = _last_below(P, orders, np.where(on_a, sums, 0.0), np.where(on_a, 0.0, sums - of_a))
        return p - q
    noise = np.empty(steps.shape)
    _noise_rows(orders, sizes, *bottom_up(P), steps, noise)
    return noise


def _last_below(
    P: Poset, orders: Orders, on_a: NDArray[Any], on_b: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values of places, growing along each side, as those of the last place at or below each element."""
    result: list[NDArray[Any]] = []
    order, starts, lowers = (part.tolist() for part in bottom_up(P))
    for values in (on_a, on_b):
        last = np.empty_like(values)
        np.put_along_axis(last, orders.astype(np.int64), values, axis=1)
        columns = np.ascontiguousarray(last.T)
        for x in order:
            for y in lowers[starts[x] : starts[x + 1]]:
                np.maximum(columns[x], columns[y], out=columns[x])
        result.append(np.ascontiguousarray(columns.T))
    return result[0], result[1]


@kernel
def _places(
    orders: Orders, sizes: Ints, order: Ints, starts: Ints, lowers: Ints, plus: Ints, minus: Ints
) -> None:
    for r in range(sizes.size):
        for k in range(order.size):
            x = orders[r, k]
            plus[r, x] = k + 1 if k < sizes[r] else 0
            minus[r, x] = 0 if k < sizes[r] else k + 1 - sizes[r]
        for x in order:
            for w in range(starts[x], starts[x + 1]):
                plus[r, x] = max(plus[r, x], plus[r, lowers[w]])
                minus[r, x] = max(minus[r, x], minus[r, lowers[w]])


@kernel
def _noise_rows(
    orders: Orders, sizes: Ints, order: Ints, starts: Ints, lowers: Ints, steps: Floats, noise: Floats
) -> None:
    p, q = np.empty(order.size), np.empty(order.size)
    for r in range(sizes.size):
        total = 0.0
        for k in range(order.size):
            x = orders[r, k]
            total = steps[r, k] + (0.0 if k == sizes[r] else total)
            p[x] = total if k < sizes[r] else 0.0
            q[x] = 0.0 if k < sizes[r] else total
        for x in order:
            for w in range(starts[x], starts[x + 1]):
                p[x] = max(p[x], p[lowers[w]])
                q[x] = max(q[x], q[lowers[w]])
            noise[r, x] = p[x] - q[x]


# Extended bipartitions: how they are drawn, from which source, and by which method.

# How the noise of an order is drawn, and what that costs.


@dataclass(frozen=True)
class Method:
    """Which of five exactly private methods is used.

    See docs/theory/counts.md, section 9.

    * ``exact``: noise shaped by the order, from its own tables.
    * ``two levels``: the same noise for an order of height 2 at most, by coupling from the past.
    * ``rejection``: the same noise, drawn from a relaxed order until a draw fits; ``acceptance`` is the
      estimated share of draws that do.
    * ``relaxed``: noise shaped by the relaxed order. Its expected squared error is ``cost`` times that of the
      order itself, estimated with standard error ``cost_error``.
    * ``partly relaxed``: noise shaped by an order between, drawn from the relaxed one until a draw fits.

    ``dropped`` are the relations (lower, upper) of the order that draws come without, or that the noise is
    without where it is relaxed. ``seconds`` is about the mean time of a draw, by a rule of thumb for one core.

    >>> print(Method("exact"))  # about draws: errors may be simulated
    drawn exactly
    """

    name: Literal["exact", "two levels", "rejection", "relaxed", "partly relaxed"]
    dropped: tuple[tuple[Hashable, Hashable], ...] = field(default=(), repr=False)
    acceptance: float = 1.0
    cost: float = 1.0
    cost_error: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        without = f"without {len(self.dropped)} of the relations"
        larger = f"squared error {self.cost:.3f} ± {self.cost_error:.3f} times as large"
        tries = f"about 1 in {1 / self.acceptance:.0f} draws fits"
        time = f"about {self.seconds:.1g} s a draw"
        match self.name:
            case "rejection":
                return f"rejection: drawn {without}, {tries}, {time}"
            case "relaxed":
                return f"relaxed: {without}, {larger}"
            case "partly relaxed":
                return f"partly relaxed: {without}, {larger}, {tries}, {time}"
            case "two levels":
                return f"two levels: drawn exactly, by coupling from the past, {time}"
            case _:
                return "drawn exactly"


# Where extended bipartitions come from. Tables, with or without rejection, or a coupling from the past.

Words = Callable[[int], NDArray[np.uint64]]
Settle = Callable[[Fraction], bool]

RARE = 0.01
"""Below this acceptance simulations wander instead of rejecting, and a longer search is worth while."""


class Source(Protocol):
    """Draws extended bipartitions from random words, with the law that it is made for."""

    def draw(self, size: int, words: Words, settle: Settle) -> tuple[Orders, Ints]:
        """``size`` independent ones, as rows of positions (side A first) and sizes of side A."""
        ...

    @property
    def quick(self) -> bool:
        """Whether simulations can afford independent draws."""
        ...

    @property
    def log_count(self) -> float | None:
        """The logarithm of the number of extended bipartitions, with their weights, or None if it is not known."""
        ...

    def expected_squares(self) -> Floats | None:
        """The expected squares of the noise, if they are known exactly."""
        ...

    def expected_products_with_total(self) -> Floats | None:
        """The expected products of the noise with that on the number of records, if they are known exactly."""
        ...

    def expected_products(self) -> Floats | None:
        """The expected products of the noise on two elements, if they are known exactly."""
        ...

    def size_law(self) -> Floats | None:
        """The probability of each size of side A, if it is known."""
        ...


@dataclass(frozen=True, eq=False)
class TableSource:
    """Draws from tables.

    The tables may be of an order with fewer relations: draws that break a pair of ``dropped`` are not kept, and
    ``acceptance`` is the estimated share of those that are.
    """

    tables: Tables
    dropped: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    acceptance: float = 1.0

    def draw(self, size: int, words: Words, settle: Settle) -> tuple[Orders, Ints]:
        """Walk through the tables until ``size`` draws are kept."""
        return draw(self.tables, size, words, settle, self.dropped)

    @property
    def quick(self) -> bool:
        """Whether many draws are kept."""
        return self.acceptance >= RARE

    @property
    def log_count(self) -> float | None:
        """From the last table, and estimated if draws are rejected."""
        return self.tables.log_count + math.log(self.acceptance)

    def expected_squares(self) -> Floats | None:
        """By a pass over the tables, if nothing is rejected and no block is prime."""
        return None if len(self.dropped) else expected_squares(self.tables)

    def expected_products_with_total(self) -> Floats | None:
        """By a pass over the tables, if nothing is rejected and no block is prime."""
        return None if len(self.dropped) else expected_products_with_total(self.tables)

    def expected_products(self) -> Floats | None:
        """By matrix products along the tables, if nothing is rejected and no block is prime."""
        return None if len(self.dropped) else expected_products(self.tables)

    def size_law(self) -> Floats | None:
        """From the last table, if nothing is rejected."""
        return None if len(self.dropped) else self.tables.sizes


@dataclass(frozen=True, eq=False)
class CoupledSource:
    """Draws for an order of two levels, by coupling from the past."""

    levels: TwoLevels
    quick: bool = False
    log_count: float | None = None

    def draw(self, size: int, words: Words, settle: Settle) -> tuple[Orders, Ints]:
        """Draw one after the other. Nothing is left to settle."""
        rows = [self.levels.draw(words) for _ in range(size)]
        orders = np.array([row for row, _ in rows], np.int32).reshape(size, len(self.levels.order))
        return orders, np.array([a for _, a in rows], np.int64)

    def expected_squares(self) -> Floats | None:
        """Not known."""
        return None

    def expected_products_with_total(self) -> Floats | None:
        """Not known."""
        return None

    def expected_products(self) -> Floats | None:
        """Not known."""
        return None

    def size_law(self) -> Floats | None:
        """Not known."""
        return None


def seeded(rng: np.random.Generator) -> tuple[Words, Settle]:
    """Random words and random answers for planning."""

    def words(count: int) -> NDArray[np.uint64]:
        return rng.integers(0, 2**64, size=count, dtype=np.uint64)

    def settle(p: Fraction) -> bool:
        return bool(rng.random() < p)

    return words, settle


# Uniform extended bipartitions, for releases and for simulations, on any order.
#
# Where they come from depends on the order alone (:mod:`isotone.counts.sampler`), and :class:`Method` says it.

Matrix = NDArray[np.bool_]

Simulate = Callable[[int, np.random.Generator], tuple[Orders, Ints]]
"""Simulates so many extended bipartitions: positions, side A first, and the sizes of side A."""

COST_ROWS = 6_000
"""Simulated extended bipartitions that tell what a relaxed order costs."""

_STEPS = 4
"""So many steps of other plain code take as long as one element of a draw with Python's integers."""

SWEEPS = 2
"""Sweeps of the random walk between two rows of a simulation."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws uniform extended bipartitions of ``order``.

    ``order`` is the order asked for, unless the method is ``relaxed`` or ``partly relaxed``. ``relaxation`` is
    what makes this sampler again without a search.
    """

    order: Poset
    source: Source = field(repr=False)
    drawn: Method
    relaxation: Relaxation | None = field(default=None, repr=False)
    asked: Poset | None = field(default=None, repr=False)
    """The order asked for, where ``order`` has fewer relations."""

    balanced: ClassVar[bool] = False
    """Whether each extended bipartition weighs as much as its sides have interleavings."""

    @cached_property
    def method(self) -> Method:
        """How it is drawn, and what that costs. Its estimate takes a second where the order is relaxed."""
        if self.asked is None:
            return self.drawn
        cost, error = self._cost(self.asked)
        return replace(self.drawn, cost=cost, cost_error=error)

    def _cost(self, P: Poset) -> tuple[float, float]:
        """How many times larger the squared error is than that of ``P``, and the standard error of that."""
        rng, leq = np.random.default_rng(0), P.leq_matrix()
        burnt, sizes = self.wander(leq, P.linear_order.astype(np.int32), len(P), 1, 500, rng)
        own = self._total(P, self.wander(leq, burnt[0], int(sizes[0]), COST_ROWS, SWEEPS, rng))
        larger = self._total(self.order, self.simulate(COST_ROWS, rng))
        ratio = larger.total / own.total
        return ratio, ratio * math.hypot(*(float(e.standard_error[0]) / e.total for e in (own, larger)))

    def _total(self, P: Poset, rows: tuple[Orders, Ints]) -> Error:
        """The expected square of all counts together, from extended bipartitions of ``P``."""
        return mean_of_rows(self.given(P, *rows).sum(axis=1, keepdims=True))

    def draw(self, draws: ExactDraws) -> tuple[Orders, int]:
        """Draw an exactly uniform extended bipartition.

        Returns positions (side A first), and the size of side A.

        A small order is drawn with Python's integers, any other by compiled code: the same law.
        """
        if self._part is not None:
            size = draws.integer(self._size_weights(self._part))
            one, two = self._part.draw(size, draws.integer)
            return np.array(one + two, np.int32), len(one)
        orders, sizes = self.source.draw(1, draws.words, draws.bernoulli)
        return orders[0], int(sizes[0])

    def draw_rows(self, size: int, draws: ExactDraws) -> tuple[Orders, Ints]:
        """``size`` independent ones, a row each. Without a compiler few small ones are drawn with Python's integers."""
        if has_compiler() or self._part is None or size * len(self.order) > most_steps() // _STEPS:
            return self.source.draw(size, draws.words, draws.bernoulli)
        rows = [self.draw(draws) for _ in range(size)]
        orders = np.array([order for order, _ in rows], np.int32).reshape(size, len(self.order))
        return orders, np.array([a for _, a in rows], np.int64)

    def simulate(self, size: int, rng: np.random.Generator) -> tuple[Orders, Ints]:
        """``size`` from a seeded generator, for planning only.

        Where rejection keeps few, one draw is followed by a random walk: every row is uniform, but rows near
        each other are alike.
        """
        if self.rows_are_independent or size <= 1:
            return self.simulate_independent(size, rng)
        orders, sizes = self.source.draw(1, *seeded(rng))
        return self.wander(self.order.leq_matrix(), orders[0], int(sizes[0]), size, SWEEPS, rng)

    @property
    def rows_are_independent(self) -> bool:
        """Whether rows of :meth:`simulate` are independent."""
        return self._rows is not None or self.source.quick

    def simulate_independent(self, size: int, rng: np.random.Generator) -> tuple[Orders, Ints]:
        """``size`` from a seeded generator, independent even where draws are slow.

        Where few draws are kept they come from a public stream that the generator names, so that they can be remembered.
        """
        if self._rows is not None:
            return self._rows.draw(size, rng)
        if self._kept is None or self.source.quick:
            return self.source.draw(size, *seeded(rng))
        return self._kept.draw(size, self._stream(rng))

    @cached_property
    def _kept(self) -> KeptDraws | None:
        """The draws that rejection has kept so far, if there is rejection."""
        if not isinstance(self.source, TableSource) or not len(self.source.dropped):
            return None
        return KeptDraws(self.source, dict(self.relaxation.draws if self.relaxation else ()))

    def _stream(self, rng: np.random.Generator) -> str:
        """The name of a public stream that depends on the generator and on the law of the draws."""
        word = int(rng.integers(0, 2**64, size=1, dtype=np.uint64)[0])
        return f"{word:016x}" + " balanced" * self.balanced

    def described(self, draws: int, *, always: bool = False) -> Relaxation | None:
        """The relaxation with the first ``draws`` draws of the law, if these were slow and were drawn, or are drawn now as ``always``."""
        if self.relaxation is None or self._kept is None or self.source.quick:
            return self.relaxation
        stream = self._stream(public_stream(f"{LAW_STREAM} draws "))
        if always and len(self._kept.known.get(stream, ())) < draws:
            self._kept.draw(draws, stream)
        result = self._kept.known.get(stream, ())[:draws]
        return replace(self.relaxation, draws=((stream, result),) if result else ())

    @classmethod
    def wander(
        cls, leq: Matrix, order: Orders, a: int, rows: int, sweeps: int, rng: np.random.Generator
    ) -> tuple[Orders, Ints]:
        """A random walk that keeps the law of the draws for the order with these relations.

        See :func:`wander`.
        """
        return wander(leq, order, a, rows, sweeps, rng)

    @classmethod
    def given(cls, P: Poset, orders: Orders, sizes: Ints) -> Floats:
        """The expected square of the noise on each element at rate 1, given the extended bipartition of a row."""
        plus, minus = places(P, orders, sizes)
        return ((plus - minus) ** 2 + plus + minus).astype(np.float64)

    @classmethod
    def weighed(cls, tables: Tables) -> Tables:
        """The tables to draw from, given those of an order."""
        return tables

    def _size_weights(self, part: Part) -> list[int]:
        """How likely each size of side A is, in a small order."""
        return part.counts

    @cached_property
    def _part(self) -> Part | None:
        """The order, if it is small enough to do without compiled code."""
        return part_of(self.order) if is_small(self.order) else None

    @cached_property
    def _rows(self) -> SmallRows | None:
        return None if self._part is None else SmallRows(self._part, self._size_weights(self._part))

    @property
    def log_count(self) -> float:
        """The logarithm of the number of extended bipartitions.

        Estimated unless the method is ``exact`` or ``relaxed``.
        """
        known = self.source.log_count
        return self._estimated_log_count if known is None else known

    @cached_property
    def _estimated_log_count(self) -> float:
        """From that of unrelated elements, by a random walk."""
        points = Poset.antichain(self.order.elements)
        return self._log_count_of_points(len(points)) + estimated_share(self.wander, self.order, points)

    @classmethod
    def _log_count_of_points(cls, n: int) -> float:
        return math.lgamma(n + 2)

    @property
    def _simulated_rows(self) -> int:
        numbers, most = (2_000_000, 100_000) if self.source.quick else (500_000, 10_000)
        return max(2_000, min(most, numbers // len(self.order)))

    @cached_property
    def squares(self) -> Error:
        """The expected square of the noise on each element at rate 1."""
        exact = self._exact_squares()
        if exact is not None:
            return Error(exact)
        rows = self.simulate(self._simulated_rows, np.random.default_rng(0))
        return mean_of_rows(self.given(self.order, *rows))

    def simulate_places(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """How many steps up and down each element takes, in as many rows as errors are simulated from."""
        return places(self.order, *self.simulate(self._simulated_rows, rng))

    def _exact_squares(self) -> Floats | None:
        return self.source.expected_squares()

    def exact_products(self) -> Floats | None:
        """The expected products of the noise on two elements at rate 1, or None if they are not known exactly."""
        return self.source.expected_products()

    @cached_property
    def total_square(self) -> float:
        """The expected square of the noise on the number of records at rate 1."""
        n, law = len(self.order), self.source.size_law()
        if law is None:
            _, sizes = self.simulate(self._simulated_rows, np.random.default_rng(0))
            return float(np.mean((2 * sizes - n) ** 2)) + n + 2
        return float(np.sum(law * (2 * np.arange(n + 1) - n) ** 2)) + n + 2

    @cached_property
    def total_products(self) -> Error:
        """The expected product of the noise on each element with that on the number of records, at rate 1."""
        exact = self.source.expected_products_with_total()
        if exact is not None:
            return Error(exact)
        orders, sizes = self.simulate(self._simulated_rows, public_stream("isotone covariance 1"))
        plus, minus = places(self.order, orders, sizes)
        lean = 2 * sizes[:, None] - len(self.order)
        return mean_of_rows(((plus - minus) * lean + plus + minus).astype(np.float64))

    @cached_property
    def products(self) -> tuple[Floats, float]:
        """The expected products of the noise on two elements at rate 1.

        With the largest standard error, relative to the two standard deviations, 0 if they are exact. Given the places
        of two elements, both share the first steps of each side (docs/theory/inference.md, section 3).
        """
        exact = self.exact_products()
        if exact is not None:
            return exact, 0.0
        n, blocks = len(self.order), 20
        rows = max(2_000, min(40_000, 60_000_000 // n**2)) // blocks
        means = np.empty((blocks, n, n))
        rng = public_stream("isotone covariance 1")
        for block in means:
            plus, minus = (part.astype(np.float64) for part in places(self.order, *self.simulate(rows, rng)))
            lean = plus - minus
            block[:] = (lean.T @ lean + _shared(plus) + _shared(minus)) / rows
        mean = means.mean(axis=0)
        sd = np.sqrt(np.diag(mean))
        spread = means.std(axis=0, ddof=1) / math.sqrt(blocks) / np.outer(sd, sd)
        return mean, float(np.max(spread, initial=0.0))


def _shared(lengths: Floats) -> Floats:
    """The sum over rows of the smaller of two entries, for each pair of columns."""
    result = np.empty((lengths.shape[1], lengths.shape[1]))
    for x in range(lengths.shape[1]):
        result[x] = np.minimum(lengths, lengths[:, x : x + 1]).sum(axis=0)
    return result


def mean_of_rows(squares: Floats) -> Error:
    """The mean of simulated rows, with its standard error.

    Rows may depend on rows near them, so the standard error is that of the means of 50 blocks.
    """
    blocks = squares[: len(squares) // 50 * 50].reshape(50, -1, squares.shape[1]).mean(axis=1)
    return Error(squares.mean(axis=0), "simulated", blocks.std(axis=0, ddof=1) / math.sqrt(50))


# A small cache of recently built objects.

T = TypeVar("T")


class Recent(Generic[T]):
    """Keeps the ``size`` values that were asked for last, for any number of threads.

    >>> squares = Recent[int](1)
    >>> squares.get(3, lambda: 9), squares.get(3, lambda: 0)
    (9, 9)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The value of the key, built if it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = build()  # it takes time: two threads may both do it, and either value is right
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return value


# Which method draws the extended bipartitions of an order.
#
# An order within reach of the tables is drawn from its own, and one of two levels by coupling from the past. Any other is
# relaxed first, and relations are put back as long as rejection keeps enough draws: all of them if possible, so that
# the noise is that of the order itself. All this depends on the order alone, and :class:`Method` says what it came to.

S = TypeVar("S", bound=Sampler)

SHARE = 2e-4
"""The share of draws that rejection must keep, unless told otherwise: a few thousand draws for a release."""

TRIES = 1 << 13
"""Draws from a relaxed order that tell the share that is kept …"""

KEPT = 20
"""… if so many are kept. Otherwise a random walk tells it."""

QUICK_STEPS = 30
"""Steps of a first, short search."""

SECONDS_A_STEP = 1e-7
"""About how long a walk through the tables takes for each element, or a sweep of the coupling."""

_recent: Recent[Any] = Recent(4)
_searched: Recent[Relaxation] = Recent(8)
_tables: Recent[Tables] = Recent(2)
_shares: Recent[float] = Recent(8)


def sampler(
    P: Poset,
    relaxation: Relaxation | None = None,
    progress: Progress = no_progress,
    *,
    kind: type[S] = Sampler,
    share: float = SHARE,
    reach: int = REACH,
) -> S:
    """The sampler of ``P``, with the law of its ``kind``.

    Where draws are rejected, about a share ``share`` of them is kept at least, from a relaxation with blocks of ``reach`` states at
    most. The last few samplers are kept, because their tables take time.
    """
    key = (kind, P.elements, P.covers, relaxation, share, reach)
    return _recent.get(
        key, lambda: build_sampler(P, relaxation, progress, kind=kind, share=share, reach=reach)
    )


def build_sampler(
    P: Poset,
    relaxation: Relaxation | None,
    progress: Progress,
    *,
    kind: type[S] = Sampler,
    share: float = SHARE,
    reach: int = REACH,
) -> S:
    """Choose the method for ``P`` and build what it needs."""
    if relaxation is None:
        if within_reach(P):
            return kind(P, TableSource(kind.weighed(_tables_of(P))), Method("exact"))
        if np.max(P.levels) <= 1:
            levels = TwoLevels(P, kind.balanced)
            seconds = SECONDS_A_STEP * levels.sweeps * len(P)
            return kind(P, CoupledSource(levels), Method("two levels", seconds=seconds))
        relaxation = _searched.get((P.elements, P.covers, reach), lambda: _search(P, reach, progress))
    return _settle(kind, P, relaxation, share)


def _search(P: Poset, reach: int, progress: Progress) -> Relaxation:
    """A relaxation from a short search if rejection keeps many draws from it, from a longer one otherwise."""
    quick = relax(P, steps=QUICK_STEPS, reach=reach)
    count, tried = _kept(_tables_of(quick.order(P)), quick.dropped(P))
    return quick if count >= RARE * tried else relax(P, reach=reach, progress=progress)


def _settle(kind: type[S], P: Poset, relaxation: Relaxation, share: float) -> S:
    """Put relations back as far as rejection goes, and say what is left."""
    relaxed = relaxation.order(P)
    result = kind.weighed(_tables_of(relaxed))
    if relaxed == P:
        return kind(P, TableSource(result), Method("exact"))
    if relaxation.restored is None:
        order = _affordable(kind, P, relaxed, result, share)
        relaxation = Relaxation(relaxation.relations, order.covers, relaxation.draws)
    order = relaxation.kept(P)
    acceptance = _acceptance(kind, order, relaxed, result)
    if acceptance < min(share, SHARE) / 100:
        raise InputError(
            f"About 1 in {1 / acceptance:.0g} draws would fit the relations that the relaxation restores. Restore fewer of "
            "them, or leave out restored."
        )
    rejected, dropped = missing_pairs(order, relaxed), missing_pairs(P, order)
    source = TableSource(result, rejected, acceptance)
    seconds = SECONDS_A_STEP * len(P) / acceptance
    if not len(dropped):
        method = Method("rejection", _names(P, rejected), acceptance, seconds=seconds)
        return kind(P, source, method, relaxation)
    name = "partly relaxed" if len(rejected) else "relaxed"
    method = Method(name, _names(P, dropped), acceptance, seconds=seconds)
    return kind(order, source, method, relaxation, P)


def _affordable(kind: type[S], P: Poset, relaxed: Poset, table: Tables, share: float) -> Poset:
    """The order itself if many draws from the relaxed one fit it, or else one between."""
    count, tried = _kept(table, missing_pairs(P, relaxed))
    if count >= KEPT and count / tried >= share:
        return P
    return restore(kind.wander, kind.given, P, relaxed, share)


def _acceptance(kind: type[S], order: Poset, relaxed: Poset, table: Tables) -> float:
    """The share of draws for the relaxed order that fit ``order``, estimated from public bits."""
    if order == relaxed:
        return 1.0
    key = (kind, order.elements, order.covers, relaxed.covers)
    return _shares.get(key, lambda: _estimated(kind, order, relaxed, table))


def _estimated(kind: type[S], order: Poset, relaxed: Poset, table: Tables) -> float:
    count, tried = _kept(table, missing_pairs(order, relaxed))
    return count / tried if count >= KEPT else math.exp(estimated_share(kind.wander, order, relaxed))


def _kept(table: Tables, dropped: Ints) -> tuple[int, int]:
    """How many of how many draws have the dropped relations, from public bits."""
    rng, tried, count = np.random.default_rng(0), 0, 0
    while tried < TRIES and count < 50 * KEPT:
        orders, sizes = draw(table, 2048, *seeded(rng))
        count += int(kept(orders, sizes, dropped).sum())
        tried += 2048
    return count, tried


def _tables_of(P: Poset) -> Tables:
    return _tables.get((P.elements, P.covers), lambda: tables(P))


def _names(P: Poset, pairs: Ints) -> tuple[tuple[Hashable, Hashable], ...]:
    return tuple((P.elements[x], P.elements[y]) for x, y in pairs.tolist())


def sample_extended_bipartition(P: Poset) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Draw a uniform extended bipartition of ``P`` from cryptographic bits.

    Returns the sides A and B, each ascending.

    Exactly uniform: the tables that guide the draw are rounded up, and the draw starts over whenever it falls
    in what was rounded away, decided by integer arithmetic (docs/theory/counts.md, section 6). Refused for
    an order that is out of reach even of rejection.

    >>> from isotone.order import Poset
    >>> A, B = sample_extended_bipartition(Poset.chain("ab"))
    >>> sorted(A + B), list(A) == sorted(A), list(B) == sorted(B)
    (['a', 'b'], True, True)
    """
    chosen = sampler(P.canonical.order)
    if chosen.order != P.canonical.order:
        raise InputError(
            "Uniform extended bipartitions of this order are out of reach: its prime blocks are too large, and "
            "rejection from a relaxed order would keep too few. PosetMechanism releases with the relaxed order."
        )
    order, a = chosen.draw(require_exact(ExactDraws()))
    names = [chosen.order.elements[x] for x in order]
    return tuple(names[:a]), tuple(names[a:])
