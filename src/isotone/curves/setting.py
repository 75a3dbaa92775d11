"""How much a privacy unit can move a score, for every mechanism on curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from isotone.errors import InputError
from isotone.privacy.checks import positive
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit

__all__ = ["CurveSetting"]

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
                f"epsilon={float(self.epsilon):g} promises nothing: take at most {LARGEST_EPSILON:,}."
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release promises."""
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
