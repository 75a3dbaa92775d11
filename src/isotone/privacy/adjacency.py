"""Which data sets are neighbours, and what that means for every mechanism.

A guarantee compares neighbouring data sets. All that the code knows about a kind of neighbours stands in this
file: a new kind is a new name and a new row of the table. Sensitivities follow from its two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from isotone.privacy.checks import one_of, whole_number

__all__ = ["ADDING", "NEIGHBOURS", "REPLACING", "Adjacency", "Neighbours", "adjacency", "checked_neighbours"]

Neighbours = Literal["add-remove", "replace"]
ADDING: Neighbours = "add-remove"
REPLACING: Neighbours = "replace"


@dataclass(frozen=True)
class Adjacency:
    """One kind of neighbours.

    ``units`` is how many units are added or removed between neighbours. ``exchanges`` says whether a unit
    takes the place of another: then the number of units is not protected, and a statistic moves by the
    difference of two contributions. ``words`` follow "if", and ``otherwise`` follows "had"; ``choice`` is
    what a form offers.
    """

    name: Neighbours
    units: int
    exchanges: bool
    words: str
    otherwise: str
    choice: str

    def __post_init__(self) -> None:
        whole_number(self.units, "units")
        if self.exchanges and self.units % 2:
            raise ValueError(
                f"An exchange removes a unit and adds one, so {self.units} units cannot be exchanged."
            )

    @property
    def changes(self) -> int:
        """How many units change between neighbours, where one that takes the place of another is one change."""
        return self.units // self.sides

    @property
    def sides(self) -> int:
        """How many contributions one change takes away or brings, a unit's own or those of two units."""
        return 2 if self.exchanges else 1


NEIGHBOURS: dict[Neighbours, Adjacency] = {
    ADDING: Adjacency(
        ADDING,
        units=1,
        exchanges=False,
        words="one {unit} were added or left out",
        otherwise="one {unit} not been in the data at all",
        choice="One of them being in the data or not at all (usual)",
    ),
    REPLACING: Adjacency(
        REPLACING,
        units=2,
        exchanges=True,
        words="one {unit} were replaced by another",
        otherwise="one {unit} given completely different answers",
        choice="One of them having given other answers: how many there are is public",
    ),
}
"""Every kind of neighbours by its public name."""


def checked_neighbours(value: Any) -> Neighbours:
    """``value`` as one of the public names."""
    if type(value) is str and value in NEIGHBOURS:
        return value
    return one_of(value, "neighbours", NEIGHBOURS)


def adjacency(neighbours: Neighbours) -> Adjacency:
    """What is known about a kind of neighbours."""
    return NEIGHBOURS[checked_neighbours(neighbours)]
