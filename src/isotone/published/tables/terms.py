"""A transition matrix as a list of terms.

A term is a multiple of an ε-scale, put into one column.

An *ε-scale* is a positive vector in which every entry is ``exp(ε)`` or ``exp(-ε)`` times the one before: at
every step the privacy constraint is tight. Sums of scales are private, and every private column is one
(docs/theory/tables.md, section 6). A scale is known by its *pattern*, up or down at each of the n-1 steps,
and a term by its column, its pattern, and its value at its highest row; at row i it is that value times
``exp(-ε·level)``, where the level counts steps down from the highest row. Levels are integers, so a term is
an ε-scale exactly, however its value was rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["ListedTerms", "PeeledTerms", "Terms", "levels_by_row", "row_sums", "values_by_row"]


class Terms(Protocol):
    """Terms over the counts ``0..n-1``, in a fixed order."""

    @property
    def n(self) -> int:
        """The number of rows."""
        ...

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of each term."""
        ...

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of each term at its highest row.

        A float, taken as the exact rational that it is.
        """
        ...

    @property
    def first_levels(self) -> NDArray[np.int64]:
        """The level of each term at row 0."""
        ...

    def rising(self, step: int) -> NDArray[np.bool_]:
        """Which terms go up from row ``step`` to the next."""
        ...


@dataclass(frozen=True, eq=False)
class ListedTerms:
    """Terms with patterns written out.

    ``patterns[t, i]`` is True where term t rises from row i to i+1.
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    patterns: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.patterns.shape[1] + 1

    @property
    def first_levels(self) -> NDArray[np.int64]:
        """The level of each term at row 0.

        It is the height of its highest row above row 0.
        """
        heights = np.cumsum(np.where(self.patterns, 1, -1), axis=1)
        return np.maximum(heights.max(axis=1, initial=0), 0).astype(np.int64)

    def rising(self, step: int) -> NDArray[np.bool_]:
        """Which terms go up from row ``step`` to the next."""
        return np.ascontiguousarray(self.patterns[:, step])


@dataclass(frozen=True, eq=False)
class PeeledTerms:
    """Terms as the heuristic peels them off, in O(n).

    A single peak at the column, but for the bound steps.

    From term ``bound_from[i]`` on, step i is bound and has the direction ``bound[i]`` (1 up, -1 down) in every term.
    """

    n: int
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    first_levels: NDArray[np.int64]
    bound_from: NDArray[np.int64]
    bound: NDArray[np.int64]

    def rising(self, step: int) -> NDArray[np.bool_]:
        """Which terms go up from row ``step`` to the next."""
        rising = step < self.columns
        rising[self.bound_from[step] :] = self.bound[step] > 0
        return rising


def levels_by_row(terms: Terms) -> Iterator[NDArray[np.int64]]:
    """The levels of all terms at row 0, 1, ….

    Each is a view that is overwritten by the next.
    """
    levels = terms.first_levels.copy()
    yield levels
    for step in range(terms.n - 1):
        _advance(levels, terms.rising(step))
        yield levels


def values_by_row(terms: Terms, epsilon: float) -> Iterator[NDArray[np.float64]]:
    """The values of all terms at row 0, 1, ….

    Each is a view that is overwritten by the next.
    """
    powers = np.exp(-epsilon * np.arange(terms.n))
    values = np.empty(len(terms.values))
    for levels in levels_by_row(terms):
        _evaluate(terms.values, powers, levels, values)
        yield values


def row_sums(terms: Terms, epsilon: float) -> NDArray[np.float64]:
    """The sum of all terms at each row."""
    powers = np.exp(-epsilon * np.arange(terms.n))
    levels = terms.first_levels.copy()
    sums = np.empty(terms.n)
    sums[0] = np.sum(terms.values * powers[levels])
    for step in range(terms.n - 1):
        sums[step + 1] = _advanced_sum(terms.values, powers, levels, terms.rising(step))
    return sums


@kernel
def _advanced_sum(
    tops: NDArray[np.float64],
    powers: NDArray[np.float64],
    levels: NDArray[np.int64],
    rising: NDArray[np.bool_],
) -> float:
    total = 0.0
    for t in range(levels.shape[0]):
        levels[t] += 1 - 2 * np.int64(rising[t])
        total += tops[t] * powers[levels[t]]
    return total


@kernel
def _advance(levels: NDArray[np.int64], rising: NDArray[np.bool_]) -> None:
    for t in range(levels.shape[0]):
        levels[t] += 1 - 2 * np.int64(rising[t])


@kernel
def _evaluate(
    tops: NDArray[np.float64],
    powers: NDArray[np.float64],
    levels: NDArray[np.int64],
    values: NDArray[np.float64],
) -> None:
    for t in range(tops.shape[0]):
        values[t] = tops[t] * powers[levels[t]]
