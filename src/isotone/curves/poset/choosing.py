"""Which mechanism fits values on an order. Nothing here has seen a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from isotone.curves.case import Case, check_sizes
from isotone.curves.grids import LEVELS
from isotone.curves.losses.known_losses import Loss
from isotone.curves.poset.arrangement import Arrangement, Order, arrange, few_ideals, listed, whole
from isotone.curves.poset.baseline import PosetBaseline, branches
from isotone.curves.poset.ideals import MOST_IDEALS, MOST_WORDS
from isotone.curves.poset.measured_elements import MeasuredElements, many_records
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
class OrderRule:
    """A mechanism with its name, the methods it stands for, and when. The first row that applies is taken."""

    name: str
    methods: tuple[str, ...]
    when: Callable[[Case, Arrangement], bool]
    build: Callable[[Case, Arrangement], OrderMechanism]


def _all_elements(case: Case, order: Arrangement) -> bool:
    return case.loss.by_means and case.levels is None and many_records(case, order)


TABLE = (
    OrderRule("threshold", ("threshold",), lambda *_: True, _threshold_tree),
    OrderRule("baseline", ("baseline",), lambda *_: True, PosetBaseline.of),
    OrderRule("all elements", ("auto",), _all_elements, MeasuredElements.of),
    OrderRule("coupling", ("coupling",), lambda case, _: case.loss.by_means, MeasuredPosetTree.of),
    OrderRule("coupling", ("coupling",), lambda *_: True, PosetTree.of),
    OrderRule("additive", ("additive", "auto"), lambda case, _: case.loss.by_means, MeasuredPosetTree.of),
    OrderRule("additive", ("additive", "auto"), lambda *_: True, PosetTree.of),
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

    def method_used(self, n: int, setting: CurveSetting) -> str:
        """The name of the mechanism that the method stands for with about ``n`` records."""
        return self._row(self._case(n, setting), self.arrangement()).name

    def arrangement(self) -> Arrangement:
        """How the order is cut. Without cuts, only its size and covers matter."""
        if self.method == "threshold":
            return whole(self.order, listed(self.order), "listed")
        if self.method == "coupling":
            from isotone.published.curves.poset_coupling import CoupledRegion

            same = listed(self.order)
            return whole(self.order, CoupledRegion(same.elements, same.covers), "coupled")
        return arrange(self.order)

    def mechanism(self, n: int, setting: CurveSetting) -> OrderMechanism:
        """The mechanism for about ``n`` records."""
        case, arrangement = self._case(n, setting), self.arrangement()
        return self._row(case, arrangement).build(case, arrangement)

    def _case(self, n: int, setting: CurveSetting) -> Case:
        return Case(self.loss, self.y_range, setting, n, self.levels, self.value_levels)

    def _row(self, case: Case, arrangement: Arrangement) -> OrderRule:
        return next(row for row in TABLE if self.method in row.methods and row.when(case, arrangement))
