"""How much a privacy unit can move a score, for every mechanism on curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.privacy.checks import positive
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit

__all__ = ["ConcentratedSetting", "CurveSetting", "root_below"]

Noisy = tuple[Ints, Fraction | None, Fraction | None]
"""Noisy values, and the rate or the variance of their noise."""

LARGEST_EPSILON = 10**9
"""Exponents of weights are 64-bit integers; up to here none can overflow."""


@dataclass(frozen=True)
class CurveSetting:
    """The guarantee of a mechanism on curves, and what a unit may hold.

    Each record of a unit has an integer weight of at most ``weight_steps``. If one record of weight 1 moves all scores by
    amounts within an interval of length ``R``, then choosing with ``exp(−rate(share, R)·score)`` costs ``share`` of
    epsilon (docs/theory/curves.md, section 4).
    """

    epsilon: Fraction
    unit: Unit = field(default_factory=Unit)
    weight_steps: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                f"epsilon={float(self.epsilon):g} guarantees nothing: take at most {LARGEST_EPSILON:,}."
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release guarantees."""
        return self.unit.pure(self.epsilon)

    @property
    def factor(self) -> int:
        """How many records of weight 1, added or removed, a change of one unit can amount to."""
        return self.unit.steps * self.weight_steps

    def rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate at which scores that one record moves by at most ``scale`` may be used."""
        return share * self.epsilon / (self.factor * scale)

    def noise_rate(self, share: Fraction, scale: int) -> Fraction:
        """The same for geometric noise, refused if the noise would not fit 64 bits."""
        rate = self.rate(share, scale)
        if rate < Fraction(1, 1 << 44):
            raise InputError(
                f"epsilon={float(self.epsilon):g} is too small for this setting: its noise would not fit 64-bit "
                "integers. Take a larger epsilon, or fewer contributions."
            )
        return rate

    def law(self, share: Fraction, scale: int) -> tuple[Fraction | None, Fraction | None]:
        """The rate, or the variance, of the noise of :meth:`perturbed`."""
        return self.noise_rate(share, scale), None

    def check_noise(self, share: Fraction, scale: int) -> None:
        """Refuse noise that would not fit 64 bits."""
        self.noise_rate(share, scale)

    def part(self, share: Fraction) -> CurveSetting:
        """The same with a share of the budget."""
        return replace(self, epsilon=self.epsilon * share)

    def perturbed(self, values: Ints, share: Fraction, scale: int, draws: Draws) -> Noisy:
        """Values that a record of weight 1 changes by at most ``scale`` in sum, with noise for ``share`` of the budget."""
        rate = self.noise_rate(share, scale)
        return np.asarray(draws.perturb(values, rate)), rate, None


@dataclass(frozen=True)
class ConcentratedSetting(CurveSetting):
    """ρ-zCDP by Gaussian noise on sums, and by choices of bounded range.

    A choice whose losses lie in an interval of length ε costs ρ = ε²/8, and geometric noise that loses at most ε costs
    ρ = ε²/2 (docs/theory/curves.md, section 4.1). ``epsilon`` is the budget whose geometric noise has the same variance as
    Gaussian noise, ``2√ρ``: it sets sizes, and guarantees nothing.
    """

    rho: Fraction = Fraction(0)

    @classmethod
    def of(cls, rho: Fraction, unit: Unit, weight_steps: int = 1) -> ConcentratedSetting:
        """The setting for a budget."""
        if _alike(rho) > LARGEST_EPSILON:
            raise InputError(
                f"rho={float(rho):g} guarantees nothing: take at most {LARGEST_EPSILON**2 / 4:g}."
            )
        return cls(_alike(rho), unit, weight_steps, rho)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release guarantees."""
        return self.unit.zcdp(self.rho)

    def rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate at which scores may be used by a choice that costs ``share`` of ρ."""
        return root_below(8 * share * self.rho) / (self.factor * scale)

    def noise_rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate of geometric noise that costs ``share`` of ρ."""
        self.check_noise(share, scale)
        return root_below(2 * share * self.rho) / (self.factor * scale)

    def variance(self, share: Fraction, scale: int) -> Fraction:
        """The variance for values that a record of weight 1 changes by at most ``scale`` in sum, and so in length."""
        return Fraction((self.factor * scale) ** 2) / (2 * share * self.rho)

    def law(self, share: Fraction, scale: int) -> tuple[Fraction | None, Fraction | None]:
        """See above."""
        return None, self.variance(share, scale)

    def check_noise(self, share: Fraction, scale: int) -> None:
        """Refuse noise that would not fit 64 bits."""
        if self.variance(share, scale) > 1 << 88:
            raise InputError(
                f"rho={float(self.rho):g} is too small for this setting: its noise would not fit 64-bit integers. Take a "
                "larger rho, or fewer contributions."
            )

    def part(self, share: Fraction) -> ConcentratedSetting:
        """The same with a share of the budget."""
        return replace(self, epsilon=_alike(self.rho * share), rho=self.rho * share)

    def perturbed(self, values: Ints, share: Fraction, scale: int, draws: Draws) -> Noisy:
        """The same with Gaussian noise, rounded to integers."""
        self.check_noise(share, scale)
        variance = self.variance(share, scale)
        return values + draws.rounded_gaussians(variance, values.size).reshape(values.shape), None, variance


def root_below(square: Fraction) -> Fraction:
    """The root of a number above 0, rounded down by less than one part in 2^26.

    >>> root_below(Fraction(1, 4)), root_below(Fraction(2)) ** 2 < 2
    (Fraction(1, 2), True)
    """
    places = max(0, 28 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 1)
    return Fraction(math.isqrt((square.numerator << 2 * places) // square.denominator), 1 << places)


def _alike(rho: Fraction) -> Fraction:
    """The epsilon of geometric noise with the same variance, about."""
    return Fraction(2 * math.sqrt(rho))
