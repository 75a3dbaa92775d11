"""What a loss is, namely convex, public, and exact in integers.

On a grid of ``levels + 1`` values it has two exact forms:

- ``slopes``: the derivative at a value, times a positive constant that no choice depends on. Mechanisms with the
  additive score use it (docs/theory/curves.md, section 3).
- ``table``: the loss of every value for every ``y``, in integers, *exactly convex* along each row. Irrational
  losses are rounded slope by slope, which keeps them convex: the table is then the loss that is minimised, and
  everything proved for convex losses holds for it without a rounding error (section 6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.losses.slopes import Slopes

__all__ = ["ROWS", "Loss", "differences", "largest_range"]

ROWS = 1024
"""Levels of ``y`` in loss tables."""


class Loss(ABC):
    """What every loss can do. ``span`` below is the width of ``y_range``.

    ``name`` is what it is chosen by, and ``usage`` how users write it. ``by_means`` tells whether the best constant for a
    group of records is their mean. The loss grows with the width of ``y_range`` to the power ``degree``.
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    by_means: ClassVar[bool] = False
    degree: ClassVar[int] = 1

    @classmethod
    def parse(cls, argument: Any) -> Loss | None:
        """The loss with this argument, which is None where none is given. By default it has none.

        None if it is missing or one too many. A wrong argument raises an error.
        """
        return cls() if argument is None else None

    def on_unit(self, span: Fraction) -> Loss:
        """The loss for ``y`` moved to the unit interval. An argument in the unit of ``y`` shrinks with it."""
        return self

    def values(self, y_range: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction."""
        return y_range

    @abstractmethod
    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """The derivative on a grid of ``levels + 1`` values."""

    @abstractmethod
    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """The loss of value ``v`` of ``values`` for level ``u`` of ``levels`` in entry ``(u, v)``, convex in ``v``."""

    @abstractmethod
    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""

    def steepest(self, span: Fraction) -> float:
        """The largest slope of the loss per unit of ``y``, for bounds on the error and not for privacy."""
        return 1.0

    def flipped(self) -> Loss:
        """The loss of ``−f`` for ``−y``. The same, where both sides are treated alike."""
        return self

    @abstractmethod
    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself, for risks of public or simulated data."""


def largest_range(table: Ints) -> int:
    """How far apart one record can move the losses of two values."""
    return int(np.ptp(table, axis=1).max())


def differences(levels: int, values: int) -> tuple[Ints, int]:
    """``value − y`` for every pair, in units of the finer of the two grids. Both are powers of two."""
    unit = max(levels, values)
    v = np.arange(values + 1, dtype=np.int64) * (unit // values)
    u = np.arange(levels + 1, dtype=np.int64) * (unit // levels)
    return v[None, :] - u[:, None], unit
