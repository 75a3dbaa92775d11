"""Which data sets are neighbours, and what that means for every mechanism.

A guarantee compares neighbouring data sets. All that the code knows about a kind of neighbours stands in this
file: a new kind is a new name and a new row of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from isotone.privacy.checks import one_of

__all__ = ["NEIGHBOURS", "Adjacency", "Neighbours", "adjacency", "checked_neighbours"]

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True)
class Adjacency:
    """One kind of neighbours.

    ``units`` is how many units are added or removed between neighbours. ``exchanges`` says whether a unit
    takes the place of another: then the number of units is not protected, and a statistic moves by the
    difference of two contributions. ``words`` follow "if", and ``otherwise`` follows "had".
    """

    name: Neighbours
    units: int
    exchanges: bool
    words: str
    otherwise: str


_ABSENT = "one {unit} not been in the data at all"
_DIFFERENT = "one {unit} given completely different answers"

NEIGHBOURS: dict[Neighbours, Adjacency] = {
    "add-remove": Adjacency("add-remove", 1, False, "one {unit} were added or left out", _ABSENT),
    "replace": Adjacency("replace", 2, True, "one {unit} were replaced by another", _DIFFERENT),
}
"""Every kind of neighbours by its public name."""


def checked_neighbours(value: Any) -> Neighbours:
    """``value`` as one of the public names."""
    return one_of(value, "neighbours", NEIGHBOURS)


def adjacency(neighbours: Neighbours) -> Adjacency:
    """What is known about a kind of neighbours."""
    return NEIGHBOURS[checked_neighbours(neighbours)]
