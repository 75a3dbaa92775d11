"""Labels are two values of ``y`` that the user declares. They are never detected."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from isotone.curves.grids import parse_interval
from isotone.errors import InputError

__all__ = ["WHY_RANGE", "parse_y"]

WHY_RANGE = "The noise that hides one record depends on how far its y can lie from the others."
WHY_VALUES = "The two values of y are declared, lower first, as in y_values=(0, 1)."


def parse_y(y_range: Any, y_values: Any) -> tuple[tuple[Fraction, Fraction], bool]:
    """The public range of ``y``, and whether it has only the two ends of it as values."""
    if y_values is None:
        return parse_interval(y_range, "y_range", WHY_RANGE), False
    ends = parse_interval(y_values, "y_values", WHY_VALUES)
    if any(Fraction(float(end)) != end for end in ends):
        raise InputError(
            f"y_values={y_values!r} are not floating-point numbers exactly, so no y could be told to equal them: use whole "
            "numbers, such as (0, 1)."
        )
    if y_range is not None and parse_interval(y_range, "y_range", WHY_RANGE) != ends:
        raise InputError(
            f"y_range={y_range!r} and y_values={y_values!r} contradict each other: leave out y_range, or y_values if y has "
            "other values too."
        )
    return ends, True
