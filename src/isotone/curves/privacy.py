"""How much a privacy unit can move a score: shared by every mechanism on curves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Neighbours

__all__ = ["Setting"]

LARGEST_EPSILON = 10**9
"""Exponents of weights are 64-bit integers; up to here none can overflow."""


@dataclass(frozen=True)
class Setting:
    """The promise of a mechanism on curves, and what a unit may hold.

    A unit has at most ``contributions`` records, each of an integer weight of at most ``weight_steps``. If one
    record of weight 1 moves all scores by amounts within an interval of length ``R``, then choosing with
    ``exp(−rate(share, R)·score)`` costs ``share`` of epsilon (docs/theory/curves.md, section 4).
    """

    epsilon: Fraction
    neighbours: Neighbours = "add-remove"
    contributions: int = 1
    weight_steps: int = 1
    unit: str = "record"

    def __post_init__(self) -> None:
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                f"epsilon={float(self.epsilon):g} promises nothing: take at most {LARGEST_EPSILON:,}."
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release promises."""
        return Guarantee.pure(self.epsilon, neighbours=self.neighbours, unit=self.unit)

    @property
    def factor(self) -> int:
        """How many records of weight 1, added or removed, a change of one unit can amount to."""
        return self.contributions * self.weight_steps * (2 if self.neighbours == "replace" else 1)

    def rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate at which scores that one record moves by at most ``scale`` may be used."""
        return share * self.epsilon / (self.factor * scale)
