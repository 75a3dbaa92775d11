"""Count mechanisms made of geometric noise and a remap. T = G·M, stored in O(n)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel
from isotone.mechanism import Error
from isotone.privacy.draws import Draws
from isotone.tables.distribution.distribution import DistributionLike
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.coupling import Remap, draw_remap, weighted_sums
from isotone.tables.matrices.geometric import end_weights, geometric_matrix, push_through, reach
from isotone.tables.matrices.losses import Loss, loss_matrix, loss_of_difference

__all__ = ["FactoredMechanism"]


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
