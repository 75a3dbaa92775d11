"""How far one privacy unit can move the vector of counts, in the ℓ1, ℓ2 and ℓ∞ norms.

One record moves the counts by the indicator of a filter; replacing it by another moves them by the
difference of two, whose entries are -1, 0 or 1. So one number decides all three norms: the largest number of
coordinates that can move (docs/theory/baselines.md, section 1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from isotone.order import Poset
from isotone.order.closure import Options, innermost_first
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import whole_number
from isotone.privacy.guarantee import Unit

__all__ = ["Sensitivity", "largest_record"]


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move the counts.

    ``records`` records change (:attr:`~isotone.privacy.guarantee.Unit.changes`), each moving at most ``coordinates`` counts by one.

    >>> from isotone.order import Poset
    >>> Sensitivity.of(Poset.antichain("abcdef"), max_size=4)
    Sensitivity(records=1, coordinates=4)
    >>> Sensitivity.of(Poset.antichain("abcdef"), neighbours="replace", contributions=2).l1
    12
    """

    records: int
    coordinates: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", whole_number(self.records, "records"))
        object.__setattr__(self, "coordinates", whole_number(self.coordinates, "coordinates", least=0))

    @classmethod
    def of(
        cls,
        P: Poset,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> Sensitivity:
        """The sensitivity of the counts over ``P`` when a unit gives up to ``contributions`` records, each
        with at most ``max_size`` yeses (None: no bound).
        """
        unit = Unit(contributions, neighbours)
        longest = largest_record(P)
        largest = longest if max_size is None else min(longest, whole_number(max_size, "max_size"))
        if not unit.adjacency.exchanges or largest == len(P):
            return cls(unit.changes, largest)
        top = _top_chain(P)
        return cls(unit.changes, max(largest, min(2 * (largest - top), len(P) - top)))

    @property
    def l1(self) -> int:
        """The largest ℓ1 norm of a unit's change."""
        return self.records * self.coordinates

    @property
    def l2_squared(self) -> int:
        """The largest squared ℓ2 norm of a unit's change."""
        return self.records**2 * self.coordinates

    @property
    def linf(self) -> int:
        """The largest ℓ∞ norm of a unit's change."""
        return self.records


def largest_record(P: Poset) -> int:
    """The largest number of elements in one record.

    Of the options of a choice only the one with the largest part of a record below it counts.

    >>> from isotone.order import Poset
    >>> largest_record(Poset.from_mapping({"a": "q", "b": "q", "b1": "b"}, children={"q": "exclusive"}))
    3
    """
    if not P.choices:
        return len(P)
    options = Options.of(P)
    most = Counter(options.nearest.values())  # elements whose lowest option this is, itself included
    for choice in innermost_first(P):
        most[options.enclosing[choice.options[0]]] += max(most[option] for option in choice.options)
    return most[None]


def _top_chain(P: Poset) -> int:
    """The number of elements that form a chain above all the rest.

    Every filter that is not among them holds them all.
    """
    below = np.sort(np.sum(P.leq_matrix(), axis=0))[::-1]
    expected = len(P) - np.arange(len(P))
    differs = np.flatnonzero(below != expected)
    return int(differs[0]) if differs.size else len(P)
