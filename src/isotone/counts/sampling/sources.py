"""Where extended bipartitions come from. Tables, with or without rejection, or a coupling from the past."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.order.bipartitions.coupling import TwoLevels
from isotone.order.bipartitions.extended import Tables, draw
from isotone.order.bipartitions.moments import (
    expected_products,
    expected_products_with_total,
    expected_squares,
)

__all__ = ["CoupledSource", "Settle", "Source", "TableSource", "Words", "seeded"]

Orders = NDArray[np.int32]
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
