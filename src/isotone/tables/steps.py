"""How far one person can move a table of counts, in unit steps, and what each step may cost.

A *step* changes one count by one. Adding or removing a person who is in one category is one step; a person
in up to ``contributions`` categories (or counted that often in one) is as many; replacing a person is the
removal of one and the addition of another, twice as many. A mechanism that loses at most ε₀ over one step
loses at most ``steps·ε₀`` over a person, so every mechanism here spends ``epsilon/steps`` on each step.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Neighbours

__all__ = ["Unit", "natural"]


def natural(value: int, name: str, least: int = 1) -> int:
    """``value`` as an int, refused unless it is a whole number of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, not {value!r}.") from None
    if isinstance(value, bool) or number < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return number


@dataclass(frozen=True)
class Unit:
    """The privacy unit of a table: how often one person is counted, and what neighbours are.

    >>> Unit(contributions=3, neighbours="replace").steps
    6
    """

    contributions: int = 1
    neighbours: Neighbours = "add-remove"
    name: str = "record"

    def __post_init__(self) -> None:
        natural(self.contributions, "contributions")
        if self.neighbours not in ("add-remove", "replace"):
            raise InputError(f"neighbours must be 'add-remove' or 'replace', not {self.neighbours!r}.")

    @property
    def steps(self) -> int:
        """How many unit steps lie between neighbouring tables."""
        return self.contributions * (2 if self.neighbours == "replace" else 1)

    def per_step(self, epsilon: Fraction) -> Fraction:
        """The part of ``epsilon`` that one step may spend."""
        return epsilon / self.steps

    def pure(self, epsilon: Fraction) -> Guarantee:
        """ε-DP for this unit."""
        return Guarantee.pure(epsilon, neighbours=self.neighbours, unit=self.name)

    def approximate(self, epsilon: Fraction, delta: Fraction) -> Guarantee:
        """(ε, δ)-DP for this unit."""
        return Guarantee.approximate(epsilon, delta, neighbours=self.neighbours, unit=self.name)
