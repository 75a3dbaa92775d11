"""Count mechanisms that add integer noise to a count and clamp the sum to ``0..n-1``."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from isotone.mechanism import Error
from isotone.privacy.draws import Draws
from isotone.tables.distribution.distribution import DistributionLike
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.losses import Loss, loss_rows

__all__ = ["AdditiveCountMechanism"]


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveCountMechanism(CountMechanism):
    """Symmetric integer noise, then a clamp. A subclass says what the noise is."""

    @abstractmethod
    def _log_mass(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithm of the probability that the noise is ``distance >= 0``."""

    @abstractmethod
    def _log_tail(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithm of the probability that the noise is at least ``distance``, for 0 and above."""

    @abstractmethod
    def _noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        """The noise, with the draws given."""

    def matrix(self) -> NDArray[np.float64]:
        """The transition matrix, dense."""
        inner, tails = self._parts()
        matrix = inner.copy()
        matrix[:, 0], matrix[:, -1] = tails, tails[::-1]
        if self.n == 1:
            matrix[:] = 1.0
        return matrix

    def output(self, z: DistributionLike) -> NDArray[np.float64]:
        """``z·T``."""
        p = self._checked(z)
        inner, tails = self._parts()
        out = p @ inner
        out[0], out[-1] = p @ tails, p @ tails[::-1]
        return out if self.n > 1 else np.ones(1)

    def count_error(self, z: DistributionLike, loss: Loss = "absolute") -> float:
        """The expected loss, over the dense rows one at a time."""
        p = self._checked(z)
        costs = loss_rows(loss, self.n)
        inner, tails = self._parts()
        if self.n == 1:
            return float(costs[0, 0])
        ends = p @ (tails * costs[:, 0] + tails[::-1] * costs[:, -1])
        return float(ends + sum(p[i] * (inner[i, 1:-1] @ costs[i, 1:-1]) for i in np.flatnonzero(p)))

    def privacy_loss(self) -> float:
        """The largest log-ratio between neighbouring rows.

        Of the noise inside, and of its tails at the ends.
        """
        if self.n == 1:
            return 0.0
        tails = self._log_tail(np.arange(self.n))
        inside = self._log_mass(np.arange(self.n - 1))  # the distances of two rows from an inner column
        return float(max(np.max(np.abs(np.diff(tails))), np.max(np.abs(np.diff(inside)), initial=0.0)))

    def error(self) -> Error:
        """Mean squared error given each true count, exact."""
        i = np.arange(self.n, dtype=np.float64)
        if self.n == 1:
            return Error(np.zeros(1))
        inner, tails = self._parts()
        ends = tails * i**2 + tails[::-1] * i[::-1] ** 2
        return Error(ends + np.array([inner[k, 1:-1] @ (i[1:-1] - k) ** 2 for k in range(self.n)]))

    def _draw(self, counts: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        added = np.clip(self._noise(len(counts), draws), -self.n, self.n)
        return np.clip(counts + added, 0, self.upper)

    def _log_entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.n == 1:
            return np.zeros(len(rows))
        logs = self._log_mass(np.abs(columns - rows))
        logs = np.where(columns == 0, self._log_tail(rows), logs)
        return np.where(columns == self.upper, self._log_tail(self.upper - rows), logs)

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The matrix without its clamp (a view of one row), and the first column with it."""
        mass = np.exp(self._log_mass(np.abs(np.arange(-(self.n - 1), self.n))))
        return sliding_window_view(mass, self.n)[::-1], np.exp(self._log_tail(np.arange(self.n)))
