"""From public parameters to a mechanism on an order. Nothing here has seen a record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.chain.blueprint import ROWS
from isotone.curves.grids import FINE, LEVELS
from isotone.curves.losses import Loss
from isotone.curves.poset.arrangement import Arrangement, Order, arrange, few_ideals, listed
from isotone.curves.poset.baseline import PosetBaseline, branches
from isotone.curves.poset.ideals import MOST_IDEALS, MOST_WORDS
from isotone.curves.poset.poset_mechanisms import MeasuredPosetTree, OrderMechanism, PosetTree
from isotone.curves.poset.product import ProductOrder
from isotone.curves.poset.regions import Region
from isotone.curves.privacy import Setting
from isotone.errors import InputError
from isotone.published.curves.poset_coupling import CoupledRegion
from isotone.published.curves.poset_threshold import PosetThresholdTree

__all__ = ["METHODS", "PosetBlueprint"]

METHODS = ("additive", "threshold", "baseline", "coupling", "auto")
MOST_THRESHOLD_LEVELS = 6
"""The published score is computed for each step of a grid of values, of at least this many halvings."""
CUTTING_SHARE = Fraction(1, 2)
"""Of epsilon, when means are measured. Depth and share were set by simulations on grids of 10 × 10 and 30 × 30."""


@dataclass(frozen=True)
class PosetBlueprint:
    """Public parameters, checked. ``mechanism(n, setting)`` is the mechanism they describe."""

    order: Order
    loss: Loss
    y_range: tuple[Fraction, Fraction]
    method: str = "additive"
    levels: Any = None
    value_levels: Any = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"There is no method {self.method!r}. Use one of {', '.join(METHODS)}.")
        deepest = MOST_THRESHOLD_LEVELS if self.method == "threshold" else LEVELS
        if self.levels is not None and not (isinstance(self.levels, int) and 1 <= self.levels <= deepest):
            raise InputError(
                f"levels must be a whole number from 1 to {deepest}, or None, not {self.levels!r}."
            )
        size = self.value_levels
        if size is not None and not (isinstance(size, int) and 2 <= size <= ROWS and size & (size - 1) == 0):
            raise InputError(f"value_levels must be a power of two from 2 to {ROWS}, or None, not {size!r}.")
        self.loss.values(self.y_range)
        if self.method == "threshold" and not few_ideals(self.order):
            raise InputError(
                f"method='threshold' lists the ideals of the order, up to {MOST_IDEALS:,} of them and "
                f"{MOST_WORDS >> 17} MB in all, and this one has more. Use method='additive'."
            )
        if self.method == "baseline":
            self._branches()

    @property
    def span(self) -> Fraction:
        """The width of ``y_range``."""
        return self.y_range[1] - self.y_range[0]

    @property
    def predictions(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction."""
        return self.loss.values(self.y_range)

    def method_used(self) -> str:
        """The method that ``auto`` stands for."""
        return "additive" if self.method == "auto" else self.method

    def arrangement(self) -> Arrangement:
        """How the order is cut; without cuts, only its size and covers matter."""
        if self.method == "threshold":
            return self._whole(listed(self.order), "listed")
        if self.method == "coupling":
            same = listed(self.order)
            return self._whole(CoupledRegion(same.elements, same.covers), "coupled")
        return arrange(self.order)

    def mechanism(self, n: int, setting: Setting) -> OrderMechanism:
        """The mechanism for about ``n`` records."""
        strength = max(1.0, float(setting.epsilon * setting.weight_steps * n / setting.factor))
        if self.method == "threshold":
            levels = self.levels or min(
                MOST_THRESHOLD_LEVELS, max(1, math.ceil(math.log2(max(2.0, strength))))
            )
            values = 1 << max(levels, 4)
            table, _ = self._table(values)
            return PosetThresholdTree(setting, self.arrangement(), levels, table, self._steepest)
        if self.method == "baseline":
            return self._baseline(strength, setting)
        return self._additive(strength, setting)

    def _additive(self, strength: float, setting: Setting) -> OrderMechanism:
        slopes = self.loss.slopes(FINE, self.span)
        if not self.loss.by_means:
            levels = self.levels or min(LEVELS, max(2, round(math.log2(strength) / 2)))
            return PosetTree(setting, self.arrangement(), slopes, levels, self._steepest)
        levels = self.levels or (4 if strength < 3000 else 5)
        low, high = (Fraction(end - self.y_range[0]) / self.span for end in self.predictions)
        return MeasuredPosetTree(setting, self.arrangement(), slopes, levels, CUTTING_SHARE, low, high)

    def _baseline(self, strength: float, setting: Setting) -> OrderMechanism:
        size = math.sqrt(strength / math.log(len(self.order) + 1))
        values = self.value_levels or 1 << min(7, max(1, round(math.log2(max(2.0, size)))))
        table, unit = self._table(values)
        return PosetBaseline(setting, self.arrangement(), self._branches(), table, unit, self._steepest)

    def _branches(self) -> Any:
        whole = arrange(self.order)
        return branches(whole.size, whole.covers, whole.bottom_up)

    def _whole(self, region: Region, way: str) -> Arrangement:
        """The whole order in one region."""
        order = self.order
        if isinstance(order, ProductOrder):
            return Arrangement(len(order), (region,), order.cover_pairs(), np.arange(len(order)), way)
        return Arrangement(len(order), (region,), order.cover_pairs, order.linear_order, way)

    def _table(self, values: int) -> tuple[Any, float]:
        return self.loss.table(ROWS, values, self.span), self.loss.unit(ROWS, values, self.span)

    @property
    def _steepest(self) -> float:
        """The largest slope of the loss per step from the lowest to the highest prediction."""
        low, high = self.predictions
        return self.loss.steepest(self.span) * float(high - low)
