"""What is public about one fit, and what mechanisms compute from it. Nothing here has seen a record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from isotone.array_types import Ints
from isotone.curves.fit_budget import FitBudget
from isotone.curves.grids import FINE, LEVELS, Grid
from isotone.curves.losses.known_losses import ROWS, Loss, Slopes
from isotone.curves.setting import CurveSetting
from isotone.errors import InputError
from isotone.privacy.checks import one_of, whole_number
from isotone.privacy.guarantee import Guarantee

__all__ = ["RegressionProblem"]


@dataclass(frozen=True)
class RegressionProblem:
    """The public parameters of a fit, checked.

    The loss and the range of ``y``, what may be spent, and about how many records there are: ``n`` is public or noisy, and 1
    until it is known.
    """

    methods: ClassVar[tuple[str, ...]]

    loss: Loss
    y_range: tuple[Fraction, Fraction]
    method: str = field(default="auto", kw_only=True)
    levels: int | None = field(default=None, kw_only=True)
    value_levels: int | None = field(default=None, kw_only=True)
    increasing: bool = field(default=True, kw_only=True)
    labels: bool = field(default=False, kw_only=True)
    """Whether ``y`` is one of the two ends of its range, by declaration."""
    budget: FitBudget = field(default=FitBudget(CurveSetting(Fraction(1))), kw_only=True)
    n: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a method, a depth or a grid of values that does not exist, and store plain values."""
        method = one_of(self.method, "method", self.methods)
        levels, size = self.levels, self.value_levels
        if levels is not None:
            levels = whole_number(levels, "levels (or None)", 1, self.deepest)
        if size is not None:
            size = whole_number(size, "value_levels (or None)", 2, ROWS)
            if size & (size - 1):
                raise InputError(
                    f"value_levels must be a power of two from 2 to {ROWS}, or None, not {size}."
                )
        for name, value in (("method", method), ("levels", levels), ("value_levels", size)):
            object.__setattr__(self, name, value)
        self.loss.values(self.y_range)

    @property
    def deepest(self) -> int:
        """How often the range of values can be halved."""
        return LEVELS

    def sized(self, n: int, setting: CurveSetting) -> Self:
        """The same for about ``n`` records, with a budget for the fit alone."""
        return replace(self, n=n, budget=FitBudget(setting, n))

    @property
    def guarantee(self) -> Guarantee:
        """What the whole fit guarantees."""
        return self.budget.whole.guarantee

    @property
    def direction_given(self) -> bool:
        """Whether the direction is declared, and not found."""
        return not self.budget.finding

    @cached_property
    def setting(self) -> CurveSetting:
        """What the mechanism may spend."""
        return self.budget.rest

    @cached_property
    def strength(self) -> float:
        """Epsilon times the number of privacy units, as far as public numbers tell."""
        setting = self.setting
        return max(1.0, float(setting.epsilon * setting.weight_steps * self.n / setting.factor))

    @property
    def y_grid(self) -> Grid:
        """The values that a record's ``y`` can have."""
        return Grid(*self.y_range, FINE + 1)

    @property
    def span(self) -> Fraction:
        """The width of ``y_range``."""
        return self.y_range[1] - self.y_range[0]

    @property
    def height(self) -> Fraction:
        """The highest prediction less the lowest."""
        low, high = self.loss.values(self.y_range)
        return high - low

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction, as shares of ``y_range``."""
        low, high = self.loss.values(self.y_range)
        return (low - self.y_range[0]) / self.span, (high - self.y_range[0]) / self.span

    @property
    def steepest(self) -> float:
        """The largest slope of the loss per step from the lowest to the highest prediction."""
        return self.loss.steepest(self.span) * float(self.height)

    @property
    def slopes(self) -> Slopes:
        """The derivative of the loss on the fine grid of ``y``."""
        return self.loss.slopes(FINE, self.span)

    def table(self, values: int) -> Ints:
        """The loss of ``values + 1`` values for ``ROWS + 1`` levels of ``y``, in integers."""
        return self.loss.table(ROWS, values, self.span)

    def unit(self, values: int) -> float:
        """The loss that 1 in the table stands for."""
        return self.loss.unit(ROWS, values, self.span)
