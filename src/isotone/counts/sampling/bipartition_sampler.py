"""Uniform extended bipartitions, for releases and for simulations, on any order.

Where they come from depends on the order alone (:mod:`isotone.counts.sampling.choosing`), and :class:`Method` says it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.sampling.kept_draws import KeptDraws
from isotone.counts.sampling.method import Method
from isotone.counts.sampling.reinsertion import wander
from isotone.counts.sampling.relaxation import Relaxation
from isotone.counts.sampling.relaxations.restoring import estimated_share
from isotone.counts.sampling.simulation import places
from isotone.counts.sampling.sources import Source, TableSource, seeded
from isotone.linear.law import LAW_STREAM
from isotone.mechanism import Error
from isotone.noise.public_stream import public_stream
from isotone.order.bipartitions.extended import Tables
from isotone.order.bipartitions.small import Part, SmallRows, is_small, part_of
from isotone.order.poset import Poset
from isotone.privacy.draws import ExactDraws

__all__ = ["Sampler", "Simulate", "mean_of_rows"]

Orders = NDArray[np.int32]
Matrix = NDArray[np.bool_]

Simulate = Callable[[int, np.random.Generator], tuple[Orders, Ints]]
"""Simulates so many extended bipartitions: positions, side A first, and the sizes of side A."""

COST_ROWS = 6_000
"""Simulated extended bipartitions that tell what a relaxed order costs."""

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

    def described(self, draws: int) -> Relaxation | None:
        """The relaxation with the first ``draws`` draws of the law, if these were slow and were drawn."""
        if self.relaxation is None or self._kept is None or self.source.quick:
            return self.relaxation
        stream = self._stream(public_stream(f"{LAW_STREAM} draws "))
        found = self._kept.known.get(stream, ())[:draws]
        return replace(self.relaxation, draws=((stream, found),) if found else ())

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
    found = np.empty((lengths.shape[1], lengths.shape[1]))
    for x in range(lengths.shape[1]):
        found[x] = np.minimum(lengths, lengths[:, x : x + 1]).sum(axis=0)
    return found


def mean_of_rows(squares: Floats) -> Error:
    """The mean of simulated rows, with its standard error.

    Rows may depend on rows near them, so the standard error is that of the means of 50 blocks.
    """
    blocks = squares[: len(squares) // 50 * 50].reshape(50, -1, squares.shape[1]).mean(axis=1)
    return Error(squares.mean(axis=0), "simulated", blocks.std(axis=0, ddof=1) / math.sqrt(50))
