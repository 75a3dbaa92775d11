"""Uniform extended bipartitions, for releases and for simulations, on any order.

An order within reach of the tables is drawn from its own, and one of two levels by coupling from the past. Any
other is relaxed first; the extended bipartitions of the order itself are then drawn by rejection if enough draws are
kept, and otherwise the relaxed order takes its place. Which of these it is depends on the order alone, and
:class:`Method` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.counts.sampling.method import Method
from isotone.counts.sampling.recent import Recent
from isotone.counts.sampling.reinsertion import wander
from isotone.counts.sampling.relaxation import Relaxation, relax
from isotone.counts.sampling.simulation import places
from isotone.counts.sampling.sources import RARE, CoupledSource, Source, TableSource, seeded
from isotone.counts.sampling.telescope import log_share
from isotone.errors import InputError
from isotone.mechanism import Error, Progress, no_progress
from isotone.noise.public_stream import public_stream
from isotone.order.bipartitions.extended import Tables, draw, kept, tables, within_reach
from isotone.order.bipartitions.small import Part, is_small, part_of
from isotone.order.bipartitions.small_rows import SmallRows
from isotone.order.bipartitions.two_levels import TwoLevels
from isotone.privacy.draws import ExactDraws, require_exact

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["Sampler", "Simulate", "mean_of_rows", "sample_extended_bipartition", "sampler", "settle_method"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Orders = NDArray[np.int32]

Simulate = Callable[[int, np.random.Generator], tuple[Orders, Ints]]
"""Simulates so many extended bipartitions: positions, side A first, and the sizes of side A."""

TRIES = 1 << 16
"""Draws from a relaxed order that decide whether rejection is practical …"""

KEPT = 20
"""… which it is if at least so many are kept: a release then takes a few thousand draws."""

SWEEPS = 2
"""Sweeps of the random walk between two rows of a simulation."""

QUICK_STEPS = 30
"""Steps of a first, short search."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws uniform extended bipartitions of ``order``.

    ``order`` is the order asked for, unless the method is ``relaxed``.
    """

    order: Poset
    source: Source = field(repr=False)
    method: Method

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

    def simulate(self, size: int, rng: np.random.Generator) -> tuple[Orders, Ints]:
        """``size`` from a seeded generator, for planning only.

        Where rejection keeps few, one draw is followed by a random walk: every row is uniform, but rows near
        each other are alike.
        """
        if self.rows_are_independent or size <= 1:
            return self.simulate_independent(size, rng)
        orders, sizes = self.source.draw(1, *seeded(rng))
        return self.wander(self.order, orders[0], int(sizes[0]), size, SWEEPS, rng)

    @property
    def rows_are_independent(self) -> bool:
        """Whether rows of :meth:`simulate` are independent."""
        return self._rows is not None or self.source.quick

    def simulate_independent(self, size: int, rng: np.random.Generator) -> tuple[Orders, Ints]:
        """``size`` from a seeded generator, independent even where draws are slow."""
        if self._rows is not None:
            return self._rows.draw(size, rng)
        return self.source.draw(size, *seeded(rng))

    @classmethod
    def wander(
        cls, P: Poset, order: Orders, a: int, rows: int, sweeps: int, rng: np.random.Generator
    ) -> tuple[Orders, Ints]:
        """A random walk that keeps the law of the draws for ``P``.

        See :func:`wander`.
        """
        return wander(P, order, a, rows, sweeps, rng)

    @classmethod
    def given(cls, P: Poset, orders: Orders, sizes: Ints) -> Floats:
        """The expected square of the noise on each element at rate 1, given the extended bipartition of a row."""
        plus, minus = places(P, orders, sizes)
        return ((plus - minus) ** 2 + plus + minus).astype(np.float64)

    @classmethod
    def weighed(cls, made: Tables) -> Tables:
        """The tables to draw from, given those of an order."""
        return made

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

        Estimated if the method is ``rejection`` or ``two levels``.
        """
        known = self.source.log_count
        return self._estimated_log_count if known is None else known

    @cached_property
    def _estimated_log_count(self) -> float:
        """From that of unrelated elements, by a random walk."""
        return self._log_count_of_points(len(self.order)) + log_share(self.wander, self.order)

    @classmethod
    def _log_count_of_points(cls, n: int) -> float:
        return math.lgamma(n + 2)

    @property
    def _simulated_rows(self) -> int:
        numbers = 2_000_000 if self.source.quick else 500_000
        return max(2_000, min(100_000, numbers // len(self.order)))

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

        With the largest standard error, relative to the two standard deviations. Given the places of two elements,
        both share the first steps of each side (docs/theory/inference.md, section 3).
        """
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
    found = np.empty((lengths.shape[1], lengths.shape[1]))
    for x in range(lengths.shape[1]):
        found[x] = np.minimum(lengths, lengths[:, x : x + 1]).sum(axis=0)
    return found


S = TypeVar("S", bound=Sampler)


def mean_of_rows(squares: Floats) -> Error:
    """The mean of simulated rows, with its standard error.

    Rows may depend on rows near them, so the standard error is that of the means of 50 blocks.
    """
    blocks = squares[: len(squares) // 50 * 50].reshape(50, -1, squares.shape[1]).mean(axis=1)
    return Error(squares.mean(axis=0), "simulated", blocks.std(axis=0, ddof=1) / math.sqrt(50))


def build_sampler(P: Poset, relaxation: Relaxation | None, progress: Progress) -> Sampler:
    """Choose the method for ``P`` and build its tables."""
    if relaxation is not None:
        return _relaxed_sampler(P, relaxation)
    if within_reach(P):
        return Sampler(P, TableSource(tables(P)), Method("exact"))
    if np.max(P.levels) <= 1:
        return Sampler(P, CoupledSource(TwoLevels(P)), Method("two levels"))
    quick = relax(P, steps=QUICK_STEPS)
    if _acceptance(tables(quick.order(P)), quick.dropped(P)) >= RARE:  # good enough: no need to search on
        return _relaxed_sampler(P, quick)
    return _relaxed_sampler(P, relax(P, progress=progress))


def _relaxed_sampler(P: Poset, relaxation: Relaxation) -> Sampler:
    relaxed, dropped = relaxation.order(P), relaxation.dropped(P)
    return settle_method(Sampler, P, relaxed, tables(relaxed), dropped)


def settle_method(kind: type[S], P: Poset, relaxed: Poset, made: Tables, dropped: Ints) -> S:
    """Rejection where enough draws from the tables of the relaxed order are kept, the relaxed order elsewhere."""
    made = kind.weighed(made)
    if not len(dropped):
        return kind(P, TableSource(made), Method("exact"))
    acceptance = _acceptance(made, dropped)
    names = tuple((P.elements[x], P.elements[y]) for x, y in dropped.tolist())
    if acceptance >= KEPT / TRIES:
        return kind(P, TableSource(made, dropped, acceptance), Method("rejection", names, acceptance))
    candidate = kind(relaxed, TableSource(made), Method("relaxed", names))
    cost, error = _cost(P, candidate)
    return kind(relaxed, candidate.source, Method("relaxed", names, cost=cost, cost_error=error))


def _acceptance(made: Tables, dropped: Ints) -> float:
    """The share of draws from the relaxed order that are draws of the order itself, from public bits."""
    rng, tried, count = np.random.default_rng(0), 0, 0
    while tried < TRIES and count < 50 * KEPT:
        orders, sizes = draw(made, 4096, *seeded(rng))
        count += int(kept(orders, sizes, dropped).sum())
        tried += 4096
    return count / tried


def _cost(P: Poset, relaxed: Sampler) -> tuple[float, float]:
    """How many times larger the squared error of the relaxed order is, and the standard error of that."""
    rng = np.random.default_rng(0)
    burnt, sizes = wander(P, P.linear_order.astype(np.int32), len(P), 1, 500, rng)
    own = mean_of_rows(relaxed.given(P, *relaxed.wander(P, burnt[0], int(sizes[0]), 2_000, 2, rng)))
    larger = relaxed.squares
    ratio = larger.total / own.total
    spread = [float(np.sum(e.standard_error)) / e.total for e in (own, larger) if e.standard_error.size]
    return ratio, ratio * math.hypot(*spread)


_recent: Recent[Sampler] = Recent(4)


def sampler(P: Poset, relaxation: Relaxation | None = None, progress: Progress = no_progress) -> Sampler:
    """The sampler of ``P``.

    The last few are kept, because their tables take time.
    """
    return _recent.get((P.elements, P.covers, relaxation), lambda: build_sampler(P, relaxation, progress))


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
    if chosen.method.name == "relaxed":
        raise InputError(
            "Uniform extended bipartitions of this order are out of reach: its prime blocks are too large, and "
            "rejection from a relaxed order would keep too few. PosetMechanism releases with the relaxed order."
        )
    order, a = chosen.draw(require_exact(ExactDraws()))
    names = [chosen.order.elements[x] for x in order]
    return tuple(names[:a]), tuple(names[a:])
