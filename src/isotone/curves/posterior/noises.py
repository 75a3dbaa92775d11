"""The laws of noise that a sum may carry, as the posterior sees them, of one sum, and of a total of two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isotone.array_types import Floats
from isotone.curves.posterior.likelihood import noisy_count, noisy_total

__all__ = ["CountNoise", "GaussianNoise", "GeometricNoise"]

LEAST_RATE, MOST_RATE = 1e-6, 30.0
"""Noise of a rate beyond these is like noise of these, to all that is seen here."""
LEAST_VARIANCE, MOST_VARIANCE = 0.05, 1e12
"""The same for Gaussian noise, which is rounded: a twelfth of its variance comes from that at least."""


class CountNoise(Protocol):
    """The noise on a Poisson count."""

    @property
    def variance(self) -> float:
        """Of one noise."""
        ...

    @property
    def blur(self) -> float:
        """Means far below this, 1 at most, can hardly be told apart through the noise."""
        ...

    def over(self, unit: float) -> CountNoise:
        """The same noise, counted in so many records."""
        ...

    def count(self, seen: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """The log probability of a noisy count, and the expected count given it."""
        ...

    def total(self, seen: Floats, mean: Floats) -> Floats:
        """The log probability of a count with two such noises."""
        ...


@dataclass(frozen=True)
class GeometricNoise:
    """Two-sided geometric noise, in which ``k`` has weight ``exp(−rate·|k|)``. All laws are exact."""

    rate: float

    @property
    def variance(self) -> float:
        """Of one noise."""
        return 0.5 / math.sinh(self._rate / 2) ** 2

    @property
    def blur(self) -> float:
        """See :class:`CountNoise`."""
        return min(1.0, self.variance)

    @property
    def _rate(self) -> float:
        return min(max(self.rate, LEAST_RATE), MOST_RATE)

    def over(self, unit: float) -> GeometricNoise:
        """See :class:`CountNoise`."""
        return GeometricNoise(self.rate * unit)

    def count(self, seen: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """See :class:`CountNoise`."""
        return noisy_count(seen, mean, self._rate)

    def total(self, seen: Floats, mean: Floats) -> Floats:
        """See :class:`CountNoise`."""
        return noisy_total(seen, mean, self._rate)


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise, by the saddle point of the cumulants of a Poisson count and the noise.

    ``m·e^t + σ²·t = a`` has the solution ``t = a/σ² − ω(a/σ² + log(m/σ²))`` with Wright's function ω, and the expected count
    given ``a`` is ``m·e^t`` there.
    """

    variance: float

    @property
    def blur(self) -> float:
        """See :class:`CountNoise`."""
        return math.exp(-4 / self._within(self.variance))

    def over(self, unit: float) -> GaussianNoise:
        """See :class:`CountNoise`."""
        return GaussianNoise(self.variance / unit**2)

    def count(self, seen: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """See :class:`CountNoise`."""
        return _saddle_point(seen, mean, self._within(self.variance))

    def total(self, seen: Floats, mean: Floats) -> Floats:
        """See :class:`CountNoise`."""
        return _saddle_point(seen, mean, self._within(2 * self.variance))[0]

    def _within(self, variance: float) -> float:
        return min(max(variance, LEAST_VARIANCE), MOST_VARIANCE)


def _saddle_point(seen: Floats, mean: Floats, variance: float) -> tuple[Floats, Floats]:
    from scipy.special import wrightomega

    seen, mean = np.broadcast_arrays(seen, mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = np.real(wrightomega(seen / variance + np.log(mean / variance)))
        counted = np.where(mean > 0, variance * scaled, 0.0)  # m·e^t
        tilt = (seen - counted) / variance
        log_p = counted - mean - tilt * seen + variance * tilt**2 / 2
    return log_p - 0.5 * np.log(2 * math.pi * (counted + variance)), counted
