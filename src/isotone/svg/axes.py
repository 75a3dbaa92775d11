"""Axes of charts. Where a value is, round numbers on the way, and their labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isotone.svg.elements import polyline, shortened, text

__all__ = ["SMALL", "Axis", "LogAxis", "below", "beside", "labels", "limits", "ticks"]

SMALL = 13.0
"""The size of the letters."""


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` drawn from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def marks(self) -> list[float]:
        """Round numbers on the axis."""
        return ticks(self.low, self.high, 6 if abs(self.end - self.start) > 300 else 4)


@dataclass(frozen=True)
class LogAxis:
    """Values from 0 to ``high``, evenly by the logarithm of one more. What is below 0 is drawn at 0."""

    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        share = math.log1p(min(max(value, 0.0), self.high)) / math.log1p(self.high)
        return self.start + share * (self.end - self.start)

    @property
    def marks(self) -> list[float]:
        """Zero and powers of ten."""
        most = math.floor(math.log10(self.high) + 1e-9)
        return [0.0, *(10.0**k for k in range(0 if most < 3 else 1, most + 1))]


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``, about so many.

    >>> ticks(0, 10)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def limits(low: float, high: float) -> tuple[float, float]:
    """Limits that are apart."""
    wide = max(abs(low), abs(high), 1.0) * 1e-9
    return (low, high) if high - low > wide else (low - 0.5, low + max(0.5, wide))


def below(across: Axis | LogAxis, y: float, top: float, label: str, grid: bool = True) -> Iterator[str]:
    """The horizontal axis, with ticks, numbers and what they are."""
    marks = across.marks
    yield polyline([(across.start, y), (across.end, y)], 1, "currentColor", 0.6)
    for mark, shown in zip(marks, labels(marks), strict=True):
        x = across.at(mark)
        yield polyline([(x, y + 5), (x, top if grid else y)], 1, "currentColor", 0.18 if grid else 0.6)
        yield text(x, y + 20, shown, SMALL, text_anchor="middle")
    shown = shortened(label, (across.end + 0.0) / SMALL)
    yield text(across.end, y + 42, shown, SMALL, text_anchor="end")


def beside(up: Axis, across: Axis | LogAxis, label: str) -> Iterator[str]:
    """The vertical axis, with lines across."""
    marks = up.marks
    for mark, shown in zip(marks, labels(marks), strict=True):
        y = up.at(mark)
        yield polyline([(across.start, y), (across.end, y)], 1, "currentColor", 0.18)
        yield text(across.start - 8, y + 0.35 * SMALL, shown, SMALL, text_anchor="end")
    middle = (up.start + up.end) / 2
    shown = shortened(label, (up.start - up.end) / SMALL)
    yield text(0, 0, shown, SMALL, text_anchor="middle", transform=f"translate(14 {middle:.2f}) rotate(-90)")


def labels(marks: Sequence[float]) -> list[str]:
    """The numbers at the ticks."""
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    far = max(map(abs, marks), default=0.0)
    if far >= 1e7 or step < 1e-4:
        return [f"{mark:.4g}" for mark in marks]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{mark + 0.0:,.{digits}f}" for mark in marks]
