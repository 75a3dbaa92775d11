"""What is public about one fit, and what mechanisms compute from it. Nothing here has seen a record.

The number of records enters as ``n``: public, or noisy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from isotone.array_types import Ints
from isotone.curves.grids import FINE
from isotone.curves.losses.known_losses import ROWS, Loss, Slopes
from isotone.curves.setting import CurveSetting
from isotone.errors import InputError
from isotone.privacy.checks import one_of, whole_number

__all__ = ["Case", "check_sizes"]


@dataclass(frozen=True)
class Case:
    """The facts of a fit that the choice of a mechanism may use.

    The loss and the range of ``y``, about how many records, and what the mechanism may spend.
    """

    loss: Loss
    y_range: tuple[Fraction, Fraction]
    setting: CurveSetting
    n: int
    levels: int | None
    value_levels: int | None

    @cached_property
    def strength(self) -> float:
        """Epsilon times the number of privacy units, as far as public numbers tell."""
        setting = self.setting
        return max(1.0, float(setting.epsilon * setting.weight_steps * self.n / setting.factor))

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


def check_sizes(problem: Any, methods: Sequence[str], deepest: int) -> None:
    """Refuse a method, a depth or a grid of values that does not exist, and store plain values."""
    method = one_of(problem.method, "method", methods)
    levels, size = problem.levels, problem.value_levels
    if levels is not None:
        levels = whole_number(levels, "levels (or None)", 1, deepest)
    if size is not None:
        size = whole_number(size, "value_levels (or None)", 2, ROWS)
        if size & (size - 1):
            raise InputError(f"value_levels must be a power of two from 2 to {ROWS}, or None, not {size}.")
    for name, value in (("method", method), ("levels", levels), ("value_levels", size)):
        object.__setattr__(problem, name, value)
