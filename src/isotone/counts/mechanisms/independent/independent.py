"""Independent noise with one law for all counts.

This is what the classical mechanisms have in common.

All that such a mechanism must know is the law of one number. Simultaneous intervals follow: n independent
numbers stay within h with the n-th power of the probability that one does.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.statistic import Counts
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated, refuse_simulated
from isotone.privacy.checks import confidence_level
from isotone.privacy.draws import ExactDraws, require_exact

__all__ = ["AlikeMechanism", "IndependentMechanism"]


@dataclass(frozen=True, init=False)
class AlikeMechanism(AdditiveMechanism):
    """Counts over ``P`` with uncorrelated noise of one symmetric law."""

    @abstractmethod
    def _variance(self) -> float:
        """The variance of one number."""

    @abstractmethod
    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        """Seeded float draws."""

    @abstractmethod
    def _upper_quantile(self, tail: float) -> float:
        """The smallest h such that one number is above h with probability at most ``tail`` (below 1/2)."""

    @abstractmethod
    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of integer noise), one per row."""

    def probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The probability of released integers given the counts (or of integer noise), one per row."""
        return np.exp(self.log_probability(output, counts))

    def error(self) -> Error:
        """The exact variance of the noise, the same for every count."""
        return Error(np.full(len(self.P), self._variance()))

    @cached_property
    def _covariances(self) -> tuple[NDArray[np.float64], float]:
        return self._variance() * np.eye(len(self.P)), 0.0

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        return Simulated.wrap(self.P.canonical.back(self._draw((size, len(self.P)), rng)))

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        values = [0.0 if q == 0.5 else math.copysign(self._upper_quantile(min(q, 1 - q)), q - 0.5) for q in p]
        return np.repeat(np.array(values)[:, None], len(self.P), axis=1)

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the exact half-width that its noise stays within, before rounding."""
        return np.full(len(self.P), self._upper_quantile((1 - confidence_level(confidence)) / 2))


@dataclass(frozen=True, init=False)
class IndependentMechanism(AlikeMechanism):
    """Counts over ``P``, each with its own draw of one symmetric noise."""

    @abstractmethod
    def _integers(self, draws: ExactDraws, size: int) -> NDArray[np.int64]:
        """Exact draws, as integers."""

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._integers(draws, len(self.P))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        refuse_simulated(rows)
        return rows + self._integers(require_exact(ExactDraws()), rows.size).reshape(rows.shape)

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The exact half-width that *all* noise stays within, at once, before rounding."""
        outside = -math.expm1(math.log(confidence_level(confidence)) / len(self.P))
        return self._upper_quantile(outside / 2)
