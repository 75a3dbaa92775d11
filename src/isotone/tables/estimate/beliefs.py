"""What a noisy count says about the true count of its category, given the histogram of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.tables.estimate.intervals import content, shortest
from isotone.tables.matrices.geometric import Rates, step_rates

__all__ = ["Beliefs", "GaussianBeliefs", "GeometricBeliefs"]

_EVEN, _ONE_OFF = 30, 40
"""Categories that are added to those believed in, before intervals are read off: spread evenly over all counts, and one count off
those believed in. Without them a prior that is too sharp in one release leaves out too many. Large tables do not notice."""


@dataclass(frozen=True, eq=False)
class Beliefs(ABC):
    """The posteriors of true counts.

    The prior are the probabilities, with a few doubtful categories more: a few categories say little about others.
    """

    probabilities: NDArray[np.float64]
    size: int

    @abstractmethod
    def _log_noise(self, k: int) -> NDArray[np.float64]:
        """The log probability of reading ``k`` from each true count, up to a constant."""

    def prior(self) -> NDArray[np.float64]:
        """The probabilities with their doubt."""
        ends = np.pad(self.probabilities, 1, mode="edge")
        one_off = (ends[:-2] + ends[2:]) / 2
        doubtful = _EVEN / len(one_off) + _ONE_OFF * one_off
        return (self.size * self.probabilities + doubtful) / (self.size + _EVEN + _ONE_OFF)

    def posterior(self, k: int, prior: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The probabilities of the true count of a category that reads ``k``."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior() if prior is None else prior) + self._log_noise(k)
        weights = np.exp(logs - np.max(logs))
        return weights / np.sum(weights)

    def mean(self, k: int) -> float:
        """The posterior mean of a category that reads ``k``, without doubt in the probabilities.

        Doubt widens intervals, but would pull the means of small tables to the middle of the range.
        """
        return float(self.posterior(k, self.probabilities) @ np.arange(len(self.probabilities)))

    def means(self, noisy: NDArray[np.int64]) -> NDArray[np.float64]:
        """The posterior mean of each reading."""
        return self._each(noisy, lambda k: [self.mean(k)])[0]

    def intervals(self, noisy: NDArray[np.int64], level: float) -> NDArray[np.int64]:
        """For each reading, the ends of the shortest interval with what an interval of this level has of the posterior."""
        share = content(level, self.size)
        return self._each(noisy, lambda k: shortest(self.posterior(k), share)).astype(np.int64)

    def _each(self, noisy: NDArray[np.int64], read: Callable[[int], Any]) -> NDArray[np.float64]:
        """What ``read`` says of each noisy count, computed once for equal ones."""
        seen, where = np.unique(noisy, return_inverse=True)
        found = np.array([read(int(k)) for k in seen])
        return found.T[:, where] if len(seen) else np.zeros((2, 0))


@dataclass(frozen=True, eq=False)
class GeometricBeliefs(Beliefs):
    """From clamped noisy counts with geometric noise, whose steps have ``rates``."""

    rates: Rates

    def _log_noise(self, k: int) -> NDArray[np.float64]:
        place = np.concatenate([[0.0], np.cumsum(step_rates(len(self.probabilities), self.rates))])
        return -np.abs(place - place[k])


@dataclass(frozen=True, eq=False)
class GaussianBeliefs(Beliefs):
    """From noisy counts, any whole numbers, with discrete Gaussian noise of weight ``exp(−d²/(2·variance))``."""

    variance: float

    def _log_noise(self, k: int) -> NDArray[np.float64]:
        apart = np.asarray(k - np.arange(len(self.probabilities)), np.float64)
        return -(apart**2) / (2 * self.variance)
