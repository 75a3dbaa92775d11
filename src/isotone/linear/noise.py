"""The laws of independent noise, of which a mechanism draws one number for each measured sum.

Each draws exactly, as integers, for releases; simulates floats for plans; and knows its variance and its quantiles.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from isotone import noise
from isotone.array_types import Floats, Ints
from isotone.privacy.draws import Draws, ExactDraws

__all__ = ["DiscreteGaussian", "Gaussian", "Geometric", "Laplace", "Noise"]

_WIDE = 10.0
"""From this standard deviation on, the discrete Gaussian is a rounded Gaussian to about four digits."""

_LARGEST_RATE = 700.0


@dataclass(frozen=True)
class Noise(ABC):
    """One symmetric law. ``rounding`` is how far rounding to integers moves a number, 0 for laws on integers."""

    rounding: ClassVar[float] = 0.5
    normal: ClassVar[bool] = False
    """Whether weighted sums of such numbers are Gaussian."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance, before rounding."""

    @abstractmethod
    def part(self, share: Fraction) -> Self:
        """The noise of a number that has this share of the budget."""

    @abstractmethod
    def integers(self, draws: Draws, size: int) -> Ints:
        """Exact draws, as integers."""

    @abstractmethod
    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Seeded draws before rounding, for planning."""

    @abstractmethod
    def upper_quantile(self, tail: float) -> float:
        """The smallest h such that a number is above h with probability at most ``tail`` (below 1/2)."""

    @abstractmethod
    def log_probability(self, k: Floats) -> Floats:
        """The log probability of integers, summed over the last axis."""


@dataclass(frozen=True)
class Laplace(Noise):
    """Density proportional to ``exp(-rate·|y|)``, exactly rounded. A share is one of the rate."""

    rate: Fraction

    @property
    def variance(self) -> float:
        """Twice the squared scale."""
        return float(2 / self.rate**2)

    def part(self, share: Fraction) -> Self:
        """A share of the rate."""
        return replace(self, rate=self.rate * share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Exactly rounded."""
        assert isinstance(draws, ExactDraws)
        return draws.rounded_laplaces(self.rate, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Before rounding."""
        return rng.laplace(scale=float(1 / self.rate), size=shape)

    def upper_quantile(self, tail: float) -> float:
        """Of the real number."""
        return -math.log(2 * tail) / float(self.rate)

    def log_density(self, y: Floats) -> Floats:
        """The log density, summed over the last axis."""
        rate = float(self.rate)
        return y.shape[-1] * math.log(rate / 2) - rate * np.sum(np.abs(y), axis=-1)

    def log_probability(self, k: Floats) -> Floats:
        """That of the rounded number."""
        k, rate = np.abs(k), float(self.rate)
        at_zero = math.log(-math.expm1(-rate / 2))
        elsewhere = math.log(-math.expm1(-rate) / 2) - rate * (k - 0.5)
        return np.sum(np.where(k == 0, at_zero, elsewhere), axis=-1)


@dataclass(frozen=True)
class Geometric(Noise):
    """Integers with probability proportional to ``exp(-rate·|k|)``. A share is one of the rate.

    ``lazy`` draws by code that prepares nothing, for many different rates.
    """

    rounding: ClassVar[float] = 0.0

    rate: Fraction
    lazy: bool = False

    @property
    def variance(self) -> float:
        """``2a/(1-a)²`` with ``a = exp(-rate)``."""
        return 0.5 / math.sinh(min(float(self.rate), _LARGEST_RATE) / 2) ** 2

    def part(self, share: Fraction) -> Self:
        """A share of the rate."""
        return replace(self, rate=self.rate * share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Two-sided geometric numbers."""
        return (draws.lazy_geometrics if self.lazy else draws.geometrics)(self.rate, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """The same integers."""
        return np.asarray(noise.simulate.two_sided_geometrics(rng, self.rate, shape), dtype=np.float64)

    def upper_quantile(self, tail: float) -> float:
        """A whole number."""
        rate = float(self.rate)  # above h with probability exp(-rate·(h + 1)) / (1 + exp(-rate))
        return max(0.0, math.ceil(-(math.log(tail) + math.log1p(math.exp(-rate))) / rate - 1))

    def log_probability(self, k: Floats) -> Floats:
        """The normalised weight."""
        rate = float(self.rate)
        return k.shape[-1] * math.log(math.tanh(rate / 2)) - rate * np.sum(np.abs(k), axis=-1)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Gaussian noise, exactly rounded, or drawn as a discrete Gaussian. A share divides the variance.

    A ``discrete`` one has the laws of a Gaussian of the same variance nearly, and is stated as that.
    """

    normal: ClassVar[bool] = True

    sigma2: Fraction
    discrete: bool = False

    @property
    def variance(self) -> float:
        """The variance as a float."""
        return float(self.sigma2)

    def part(self, share: Fraction) -> Self:
        """The variance over the share."""
        return replace(self, sigma2=self.sigma2 / share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Rounded or discrete."""
        return (draws.discrete_gaussians if self.discrete else draws.rounded_gaussians)(self.sigma2, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Before rounding."""
        return rng.normal(scale=math.sqrt(self.sigma2), size=shape)

    def upper_quantile(self, tail: float) -> float:
        """Of the real number."""
        from scipy.special import ndtri

        return -math.sqrt(self.sigma2) * float(ndtri(tail))

    def log_density(self, y: Floats) -> Floats:
        """The log density, summed over the last axis."""
        variance = float(self.sigma2)
        return -np.sum(y**2, axis=-1) / (2 * variance) - y.shape[-1] / 2 * math.log(2 * math.pi * variance)

    def log_probability(self, k: Floats) -> Floats:
        """That of the rounded number."""
        from scipy.special import log_ndtr

        k, sd = np.abs(k), math.sqrt(self.sigma2)
        upper, lower = log_ndtr((0.5 - k) / sd), log_ndtr((-0.5 - k) / sd)
        return np.sum(upper + np.log(-np.expm1(lower - upper)), axis=-1)


@dataclass(frozen=True)
class DiscreteGaussian(Noise):
    """Integers with probability proportional to ``exp(-k² / 2·sigma2)``. A share divides ``sigma2``."""

    rounding: ClassVar[float] = 0.0

    sigma2: Fraction

    @property
    def variance(self) -> float:
        """The variance of the integers, which is ``sigma2`` unless that is small."""
        if self.sigma2 >= 4:  # the difference is below 1e-30
            return float(self.sigma2)
        k, law = self._law()
        return float(2 * np.sum(k**2 * law))

    def part(self, share: Fraction) -> Self:
        """The variance over the share."""
        return replace(self, sigma2=self.sigma2 / share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Discrete Gaussians."""
        return draws.discrete_gaussians(self.sigma2, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """The same integers."""
        return noise.simulate.discrete_gaussians(rng, self.sigma2, shape).astype(float)

    def upper_quantile(self, tail: float) -> float:
        """A whole number."""
        from scipy.special import ndtri

        sd = math.sqrt(self.sigma2)
        if sd >= _WIDE:
            return max(0.0, math.ceil(-sd * float(ndtri(tail)) - 0.5))
        k, law = self._law()
        above = np.cumsum(law[::-1])[::-1] - law  # summed from the small end: tails keep their digits
        return float(k[np.argmax(above <= tail)])

    def log_probability(self, k: Floats) -> Floats:
        """The normalised weight."""
        return -np.sum(k**2, axis=-1) / (2 * float(self.sigma2)) - k.shape[-1] * self._log_total()

    def _log_total(self) -> float:
        """The logarithm of the sum of exp(-k² / 2·sigma2) over all integers k."""
        sigma2 = float(self.sigma2)
        if sigma2 >= 1:  # Poisson summation: the second term of the transformed sum is below 1e-8
            dual = 2 * sum(math.exp(-2 * sigma2 * (math.pi * m) ** 2) for m in range(1, 4))
            return 0.5 * math.log(2 * math.pi * sigma2) + math.log1p(dual)
        return math.log1p(2 * sum(math.exp(-(k**2) / (2 * sigma2)) for k in range(1, 12)))

    def _law(self) -> tuple[Floats, Floats]:
        """The values 0, 1, 2, … and their probabilities, as far as floating point can tell."""
        k = np.arange(math.ceil(40 * math.sqrt(self.sigma2)) + 2, dtype=float)
        return k, np.exp(-(k**2) / (2 * float(self.sigma2)) - self._log_total())
