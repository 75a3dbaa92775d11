"""The privacy unit, its records and its neighbours.

What follows from them for a mechanism is computed here too.

A *step* adds or removes one record of one unit. A unit with up to ``contributions`` records is as many steps
away from its absence, and replacing it is a removal and an addition, twice as many. A mechanism that loses at
most ε₀ over one step loses at most ``steps·ε₀`` over a unit (group privacy), so it spends ``epsilon/steps``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from isotone.privacy.adjacency import Adjacency, Neighbours, adjacency, checked_neighbours
from isotone.privacy.checks import Number, epsilon_or_rho, plain_text, whole_number
from isotone.privacy.guarantee import Guarantee

__all__ = ["Neighbours", "Unit", "budget_of"]


@dataclass(frozen=True)
class Unit:
    """A privacy unit with at most ``contributions`` records.

    >>> import numpy as np
    >>> Unit(contributions=np.uint8(200), neighbours="replace").steps
    400
    """

    contributions: int = 1
    neighbours: Neighbours = "add-remove"
    name: str = "record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "contributions", whole_number(self.contributions, "contributions"))
        object.__setattr__(self, "neighbours", checked_neighbours(self.neighbours))
        object.__setattr__(self, "name", plain_text(self.name, "unit"))

    @property
    def adjacency(self) -> Adjacency:
        """What is known about the neighbours."""
        return adjacency(self.neighbours)

    @property
    def changes(self) -> int:
        """How many records change between neighbours, at most, where one that takes the place of another is one change.

        The sensitivity of a statistic is so many times that of one change: see :class:`~isotone.privacy.adjacency.Adjacency`.
        """
        return self.contributions * self.adjacency.changes

    @property
    def steps(self) -> int:
        """How many records are added or removed between neighbours, at most."""
        return self.contributions * self.adjacency.units

    def per_step(self, epsilon: Fraction) -> Fraction:
        """The part of ``epsilon`` that one step may spend."""
        return epsilon / self.steps

    def pure(self, epsilon: Number) -> Guarantee:
        """ε-DP for this unit."""
        return Guarantee.pure(epsilon, neighbours=self.neighbours, unit=self.name)

    def approximate(self, epsilon: Number, delta: Number) -> Guarantee:
        """(ε, δ)-DP for this unit."""
        return Guarantee.approximate(epsilon, delta, neighbours=self.neighbours, unit=self.name)

    def zcdp(self, rho: Number) -> Guarantee:
        """ρ-zCDP for this unit."""
        return Guarantee.zcdp(rho, neighbours=self.neighbours, unit=self.name)

    def guarantee(
        self, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None
    ) -> Guarantee:
        """The guarantee with these parameters for this unit.

        Give ``rho``, or ``epsilon`` with or without ``delta``.

        >>> Unit(name="person").guarantee(epsilon="0.5")
        Guarantee(ε = 1/2, add-remove one person)
        """
        return Guarantee(*epsilon_or_rho(epsilon, delta, rho), self.neighbours, self.name)


def budget_of(guarantee: Guarantee) -> dict[str, Any]:
    """The arguments that :meth:`Unit.guarantee` and mechanisms take for the budget of a guarantee.

    >>> budget_of(Guarantee.approximate(1, "1e-6"))
    {'epsilon': Fraction(1, 1), 'delta': Fraction(1, 1000000)}
    """
    names = ("rho",) if guarantee.kind == "zcdp" else ("epsilon", "delta")
    return {name: getattr(guarantee, name) for name in names if getattr(guarantee, name)}
