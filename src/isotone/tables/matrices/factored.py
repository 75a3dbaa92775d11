"""Count mechanisms made of geometric noise and a remap, in O(n), and the remap that is the best coupling.

The comonotone coupling of two distributions on the line, as a sparse matrix of exact integer weights.

Put the masses of ``source`` and of ``target`` end to end on [0, 1]: row k is sent to column j in proportion
to the overlap of their intervals. At most ``n + m - 1`` pairs overlap, so everything is O(n + m).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel
from isotone.mechanism import Error
from isotone.privacy.draws import Draws
from isotone.tables.distribution import DistributionLike
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.geometric import (
    Loss,
    end_weights,
    geometric_matrix,
    loss_matrix,
    loss_of_difference,
    push_through,
    reach,
)

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


class _SparseEntries(NamedTuple):
    """Entries of a sparse matrix."""

    row_of: NDArray[np.int64]
    column_of: NDArray[np.int64]
    mass: NDArray[np.float64]


@kernel
def _fill(
    source: NDArray[np.float64],
    left: NDArray[np.float64],
    rows: range,
    columns: tuple[int, int],
    entries: _SparseEntries,
    used: int,
) -> tuple[int, int]:
    """Pour the given rows into what is ``left`` of the columns, from the first of ``columns`` to the last."""
    (column, last), (row_of, column_of, mass) = columns, entries
    step = 1 if last > column else -1
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
    entries = _SparseEntries(row_of, column_of, mass)
    used, low = _fill(source, left, range(median), (0, m - 1), entries, 0)
    lower = used
    used, high = _fill(source, left, range(n - 1, median, -1), (m - 1, low), entries, used)
    upper = used
    for j in range(low, high + 1):  # the median row takes what is left
        if left[j] > 0.0:
            row_of[used], column_of[used], mass[used] = median, j, left[j]
            used += 1
    if used == upper:
        row_of[used], column_of[used], mass[used] = median, low, 1.0
        used += 1
    return _by_rows(n, entries, lower, upper, used)


@kernel
def _by_rows(
    n: int, entries: _SparseEntries, lower: int, upper: int, used: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sort the entries by row and column, and turn masses into integer ceilings."""
    row_of, column_of, mass = entries
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


# Count mechanisms made of geometric noise and a remap. T = G·M, stored in O(n).


@dataclass(frozen=True, eq=False, repr=False)
class FactoredMechanism(CountMechanism):
    """Two-sided geometric noise, clamped to ``0..n-1``, then a column drawn from a row of ``remap``.

    Guarantee: ε-DP whatever the remap is, because it is post-processing of the noise and each of its
    rows sums to exactly 1; so rounding in its construction cannot touch privacy (docs/theory/tables.md,
    section 3).
    Release: exact integer noise and one exact integer draw for each count.
    """

    remap: Remap = field(kw_only=True)

    def matrix(self) -> NDArray[np.float64]:
        """The transition matrix G·M, dense."""
        from scipy import sparse

        m = self.remap
        rows = sparse.csr_matrix((m.weights, m.columns, m.starts), shape=(self.n, self.n))
        return np.ascontiguousarray((rows.T @ geometric_matrix(self.n, self.step).T).T)

    def output(self, z: DistributionLike) -> NDArray[np.float64]:
        """``z·G·M`` in O(n)."""
        return self.remap.push(push_through(self._checked(z), self.step))

    def count_error(self, z: DistributionLike, loss: Loss = "absolute") -> float:
        """The expected loss.

        A sum over the entries of the remap and the true counts within reach of each.
        """
        p = self._checked(z)
        cost = loss_of_difference(loss, self.n)
        if cost is None:
            return float(np.sum(p[:, None] * loss_matrix(loss, self.n) * self.matrix()))
        m = self.remap
        scale = end_weights(self.n, self.step)[m.rows] * m.weights
        return float(_expected_loss(p, m.rows, m.columns, scale, cost, self._powers()))

    def privacy_loss(self) -> float:
        """ε unless the remap sends everything to one column, from logarithms, in O(n)."""
        m = self.remap
        kept = m.weights > 0
        rows, columns, weights = m.rows[kept], m.columns[kept], m.weights[kept]
        order = np.lexsort((rows, columns))
        logs = np.log(weights) + np.log(end_weights(self.n, self.step))[rows]
        return float(_worst_ratio(self.n, rows[order], columns[order], logs[order], self.step))

    def error(self) -> Error:
        """Mean squared error given each true count, exact."""
        m = self.remap
        shift = (m.columns - m.rows).astype(np.float64)
        first = weighted_sums(m.rows, m.weights * shift, self.n)
        second = weighted_sums(m.rows, m.weights * shift**2, self.n)
        return Error(_squared_error(first, second, end_weights(self.n, self.step), self._powers()))

    def _draw(self, counts: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        added = draws.geometrics(self.unit.per_step(self.epsilon), len(counts))
        return self._remapped(counts, added, draws.words(len(counts)))

    def _remapped(
        self, counts: NDArray[np.int64], added: NDArray[np.int64], words: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        noisy = np.clip(counts + np.clip(added, -self.n, self.n), 0, self.upper)
        m = self.remap
        return draw_remap(noisy, words, m.starts, m.columns, m.ceilings)

    def _log_entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        from scipy.special import logsumexp

        m = self.remap
        order = np.argsort(m.columns, kind="stable")
        bounds = np.searchsorted(m.columns[order], np.arange(self.n + 1))
        with np.errstate(divide="ignore"):
            logs = np.log(m.weights) + np.log(end_weights(self.n, self.step))[m.rows]
        out = np.empty(len(rows))
        for t, (i, j) in enumerate(zip(rows, columns, strict=True)):
            entries = order[bounds[j] : bounds[j + 1]]
            terms = logs[entries] - self.step * np.abs(m.rows[entries] - i)
            out[t] = logsumexp(terms) if len(terms) else -np.inf
        return out

    def _powers(self) -> NDArray[np.float64]:
        return np.exp(-self.step * np.arange(reach(self.n, self.step)))


@kernel(steps=lambda z, rows, *_: rows.size * z.size)
def _expected_loss(
    z: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    scale: NDArray[np.float64],
    cost: NDArray[np.float64],
    powers: NDArray[np.float64],
) -> float:
    n, width = z.shape[0], powers.shape[0]
    total = 0.0
    for t in range(rows.shape[0]):
        k, offset = rows[t], n - 1 - columns[t]
        here = 0.0
        for i in range(max(0, k - width + 1), min(n, k + width)):
            here += z[i] * powers[abs(i - k)] * cost[i + offset]
        total += scale[t] * here
    return total


@kernel(steps=lambda first, *_: first.size**2)
def _squared_error(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    weights: NDArray[np.float64],
    powers: NDArray[np.float64],
) -> NDArray[np.float64]:
    n, width = first.shape[0], powers.shape[0]
    out = np.zeros(n)
    for i in range(n):
        for k in range(max(0, i - width + 1), min(n, i + width)):
            d = k - i
            out[i] += weights[k] * powers[abs(d)] * (second[k] + 2 * d * first[k] + d * d)
    return out


@kernel(steps=lambda n, rows, *_: 16 * rows.size)
def _worst_ratio(
    n: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    logs: NDArray[np.float64],
    epsilon: float,
) -> float:
    """The largest |ln T[i, j] - ln T[i+1, j]|.

    Entries come sorted by column, then by row.

    With L the part of a column from rows of the remap up to i, as seen at i, and R the part from i+1 on, as
    seen at i+1, the two entries are ``L + aR`` and ``aL + R``. Their ratio is monotone between two
    consecutive rows of the remap, so its ends are enough.
    """
    worst = 0.0
    size = rows.shape[0]
    above = np.empty(size)
    start = 0
    while start < size:
        stop = start + 1
        while stop < size and columns[stop] == columns[start]:
            stop += 1
        if rows[start] > 0 or rows[stop - 1] < n - 1:
            return epsilon
        above[stop - 1] = logs[stop - 1]
        for t in range(stop - 2, start - 1, -1):
            above[t] = np.logaddexp(logs[t], above[t + 1] - epsilon * (rows[t + 1] - rows[t]))
        below = logs[start]
        for t in range(start, stop - 1):
            gap = rows[t + 1] - rows[t]
            if gap > 0:
                for d in (0, gap - 1):
                    left, right = below - epsilon * d, above[t + 1] - epsilon * (gap - 1 - d)
                    ratio = np.logaddexp(left, right - epsilon) - np.logaddexp(left - epsilon, right)
                    worst = max(worst, abs(ratio))
            below = np.logaddexp(logs[t + 1], below - epsilon * gap)
        start = stop
    return worst
