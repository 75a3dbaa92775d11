"""The comonotone coupling of two distributions on the line, as a sparse matrix of exact integer weights.

Put the masses of ``source`` and of ``target`` end to end on [0, 1]: row k is sent to column j in proportion
to the overlap of their intervals. At most ``n + m - 1`` pairs overlap, so everything is O(n + m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["UNIT", "Remap", "comonotone", "deterministic", "draw_remap", "single_row", "weighted_sums"]

BITS = 62
UNIT = 1 << BITS
"""Every row of a remap has integer weights that sum to exactly this."""


@dataclass(frozen=True, eq=False)
class Remap:
    """A row-stochastic matrix M with rational entries, stored by rows.

    Row k has the columns ``columns[starts[k]:starts[k+1]]``; ``ceilings`` are their cumulative weights, in
    units of ``1/UNIT``, and the last ceiling of each row is ``UNIT``: the rows sum to 1 exactly, and a draw
    from one with a uniform integer below ``UNIT`` is exact.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    ceilings: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of every stored entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def weights(self) -> NDArray[np.float64]:
        """The value of every stored entry."""
        floors = np.empty_like(self.ceilings)
        floors[1:] = self.ceilings[:-1]
        floors[self.starts[:-1]] = 0
        return (self.ceilings - floors) / UNIT

    def push(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """``y·M``."""
        return weighted_sums(self.columns, y[self.rows] * self.weights, len(self))

    def dense(self) -> NDArray[np.float64]:
        """M as an n by n array."""
        matrix = np.zeros((len(self), len(self)))
        np.add.at(matrix, (self.rows, self.columns), self.weights)
        return matrix


def comonotone(source: NDArray[np.float64], target: NDArray[np.float64]) -> Remap:
    """The comonotone coupling of ``source`` to ``target``, each row divided by its mass.

    Built from both ends towards the median, so that small masses far from either end of the scale keep
    their relative precision. A row whose mass has underflowed to 0 goes to the column where it stands.

    >>> comonotone(np.array([0.5, 0.5]), np.array([0.25, 0.75])).dense()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    return Remap(*_couple(source, target))


def deterministic(columns: NDArray[np.int64]) -> Remap:
    """The remap that sends row k to ``columns[k]``."""
    n = len(columns)
    return Remap(np.arange(n + 1), np.asarray(columns, np.int64), np.full(n, UNIT, np.int64))


def single_row(p: NDArray[np.float64]) -> Remap:
    """A remap with one row, the distribution ``p``."""
    ceilings = (np.minimum(np.cumsum(p), 1.0) * UNIT).astype(np.int64)
    ceilings[-1] = UNIT
    return Remap(np.array([0, len(p)]), np.arange(len(p)), ceilings)


def weighted_sums(bins: NDArray[np.int64], weights: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The sum of the weights that fall in each of ``n`` bins."""
    return np.bincount(bins, weights, minlength=n).astype(np.float64)


def draw_remap(
    noisy: NDArray[np.int64],
    words: NDArray[np.uint64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    ceilings: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw for each noisy count a column of its row.

    The probabilities are exactly the weights, with one 64-bit word for each draw.
    """
    uniform = (words >> np.uint64(64 - BITS)).astype(np.int64)
    low, high = starts[noisy], starts[noisy + 1] - 1
    for _ in range(int(np.diff(starts).max()).bit_length()):  # bisection in all rows at once
        middle = (low + high) // 2
        beyond = ceilings[middle] <= uniform
        low = np.where(beyond, np.minimum(middle + 1, high), low)
        high = np.where(beyond, high, middle)
    return columns[low]


@kernel
def _fill(
    source: NDArray[np.float64],
    left: NDArray[np.float64],
    rows: range,
    column: int,
    step: int,
    last: int,
    row_of: NDArray[np.int64],
    column_of: NDArray[np.int64],
    mass: NDArray[np.float64],
    used: int,
) -> tuple[int, int]:
    """Pour the given rows into what is ``left`` of the columns, from ``column`` in direction ``step``."""
    for k in rows:
        rest = source[k]
        first = used
        while rest > 0.0:
            poured = min(rest, left[column])
            if poured > 0.0:
                row_of[used], column_of[used], mass[used] = k, column, poured
                used += 1
                rest -= poured
                left[column] -= poured
            if rest > 0.0:
                if column == last:
                    break
                column += step
        if used == first:
            row_of[used], column_of[used], mass[used] = k, column, 1.0
            used += 1
    return used, column


@kernel(steps=lambda source, target: 4 * (source.size + target.size))
def _couple(
    source: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    n, m = source.shape[0], target.shape[0]
    median, below = 0, source[0]
    while median < n - 1 and below < 0.5:
        median += 1
        below += source[median]
    left = target.copy()
    size = 2 * n + m + 2
    row_of, column_of, mass = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    used, low = _fill(source, left, range(median), 0, 1, m - 1, row_of, column_of, mass, 0)
    lower = used
    used, high = _fill(source, left, range(n - 1, median, -1), m - 1, -1, low, row_of, column_of, mass, used)
    upper = used
    for j in range(low, high + 1):  # the median row takes what is left
        if left[j] > 0.0:
            row_of[used], column_of[used], mass[used] = median, j, left[j]
            used += 1
    if used == upper:
        row_of[used], column_of[used], mass[used] = median, low, 1.0
        used += 1
    return _by_rows(n, row_of, column_of, mass, lower, upper, used)


@kernel
def _by_rows(
    n: int,
    row_of: NDArray[np.int64],
    column_of: NDArray[np.int64],
    mass: NDArray[np.float64],
    lower: int,
    upper: int,
    used: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sort the entries by row and column, and turn masses into integer ceilings."""
    order = np.empty(used, np.int64)
    order[:lower] = np.arange(lower)
    order[lower : lower + used - upper] = np.arange(upper, used)
    order[lower + used - upper :] = np.arange(upper - 1, lower - 1, -1)
    starts, columns, ceilings = np.zeros(n + 1, np.int64), np.empty(used, np.int64), np.empty(used, np.int64)
    for t in range(used):
        starts[row_of[order[t]] + 1] += 1
        columns[t] = column_of[order[t]]
    for k in range(n):
        starts[k + 1] += starts[k]
        total = 0.0
        for t in range(starts[k], starts[k + 1]):
            total += mass[order[t]]
        before = 0.0
        for t in range(starts[k], starts[k + 1]):
            before += mass[order[t]]
            ceilings[t] = np.int64(min(before / total, 1.0) * UNIT)
        ceilings[starts[k + 1] - 1] = UNIT
    return starts, columns, ceilings
