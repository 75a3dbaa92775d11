"""What is public about one fit on an order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from isotone.curves.grids import LEVELS
from isotone.curves.poset.arrangement import Arrangement, Order, arrange, few_ideals, listed, whole
from isotone.curves.poset.ideals import MOST_IDEALS, MOST_WORDS
from isotone.curves.problem import RegressionProblem
from isotone.errors import InputError

__all__ = ["METHODS", "MOST_THRESHOLD_LEVELS", "PosetProblem"]

METHODS = ("additive", "threshold", "baseline", "coupling", "auto")
MOST_THRESHOLD_LEVELS = 6
"""The published score is computed for each step of a grid of values, of at least this many halvings."""


@dataclass(frozen=True)
class PosetProblem(RegressionProblem):
    """Values that are monotone on a public ``order``."""

    methods: ClassVar[tuple[str, ...]] = METHODS

    order: Order

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "threshold" and not few_ideals(self.order):
            raise InputError(
                f"method='threshold' lists the ideals of the order, up to {MOST_IDEALS:,} of them and "
                f"{MOST_WORDS >> 17} MB in all, and this one has more. Use method='additive'."
            )

    @property
    def deepest(self) -> int:
        """How often the range of values can be halved."""
        return MOST_THRESHOLD_LEVELS if self.method == "threshold" else LEVELS

    @cached_property
    def arrangement(self) -> Arrangement:
        """How the order is cut. Without cuts, only its size and covers matter."""
        if self.method == "threshold":
            return whole(self.order, listed(self.order), "listed")
        if self.method == "coupling":
            from isotone.published.curves.poset_coupling import CoupledRegion

            same = listed(self.order)
            return whole(self.order, CoupledRegion(same.elements, same.covers), "coupled")
        return arrange(self.order)
