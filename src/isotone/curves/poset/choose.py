"""Which mechanism fits values on an order. Nothing here has seen a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from isotone.curves.case import Case, check_sizes
from isotone.curves.grids import LEVELS
from isotone.curves.losses import Loss
from isotone.curves.poset.arrangement import Arrangement, Order, arrange, few_ideals, listed, whole
from isotone.curves.poset.baseline import PosetBaseline, branches
from isotone.curves.poset.ideals import MOST_IDEALS, MOST_WORDS
from isotone.curves.poset.tree import MeasuredPosetTree, OrderMechanism, PosetTree
from isotone.curves.setting import CurveSetting
from isotone.errors import InputError

__all__ = ["METHODS", "TABLE", "OrderProblem"]

METHODS = ("additive", "threshold", "baseline", "coupling", "auto")
MOST_THRESHOLD_LEVELS = 6
"""The published score is computed for each step of a grid of values, of at least this many halvings."""


def _threshold_tree(case: Case, arrangement: Arrangement) -> OrderMechanism:
    from isotone.published.curves.poset_threshold import PosetThresholdTree

    return PosetThresholdTree.of(case, arrangement, MOST_THRESHOLD_LEVELS)


@dataclass(frozen=True)
class Row:
    """A mechanism, the methods it stands for, and when. The first row that applies is taken."""

    methods: tuple[str, ...]
    when: Callable[[Case], bool]
    build: Callable[[Case, Arrangement], OrderMechanism]


TABLE = (
    Row(("threshold",), lambda case: True, _threshold_tree),
    Row(("baseline",), lambda case: True, PosetBaseline.of),
    Row(("additive", "auto", "coupling"), lambda case: case.loss.by_means, MeasuredPosetTree.of),
    Row(("additive", "auto", "coupling"), lambda case: True, PosetTree.of),
)


@dataclass(frozen=True)
class OrderProblem:
    """Public parameters of a fit on an order, checked. ``mechanism(n, setting)`` is what they ask for."""

    order: Order
    loss: Loss
    y_range: tuple[Fraction, Fraction]
    method: str = "additive"
    levels: int | None = None
    value_levels: int | None = None

    def __post_init__(self) -> None:
        deepest = MOST_THRESHOLD_LEVELS if self.method == "threshold" else LEVELS
        check_sizes(self, METHODS, deepest)
        self.loss.values(self.y_range)
        if self.method == "threshold" and not few_ideals(self.order):
            raise InputError(
                f"method='threshold' lists the ideals of the order, up to {MOST_IDEALS:,} of them and "
                f"{MOST_WORDS >> 17} MB in all, and this one has more. Use method='additive'."
            )
        if self.method == "baseline":
            cut = self.arrangement()
            branches(cut.size, cut.covers, cut.bottom_up)

    def method_used(self) -> str:
        """The method that ``auto`` stands for."""
        return "additive" if self.method == "auto" else self.method

    def arrangement(self) -> Arrangement:
        """How the order is cut.

        Without cuts, only its size and covers matter.
        """
        if self.method == "threshold":
            return whole(self.order, listed(self.order), "listed")
        if self.method == "coupling":
            from isotone.published.curves.poset_coupling import CoupledRegion

            same = listed(self.order)
            return whole(self.order, CoupledRegion(same.elements, same.covers), "coupled")
        return arrange(self.order)

    def mechanism(self, n: int, setting: CurveSetting) -> OrderMechanism:
        """The mechanism for about ``n`` records."""
        case = Case(self.loss, self.y_range, setting, n, self.levels, self.value_levels)
        row = next(row for row in TABLE if self.method in row.methods and row.when(case))
        return row.build(case, self.arrangement())
