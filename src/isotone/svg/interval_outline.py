"""A dot with its interval for each of many names, nested as an outline. It can be read for two hundred of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isotone.svg.axes import SMALL, Axis, LogAxis, below, labels, limits
from isotone.svg.elements import MARK, element, picture, polyline, text, wrapped

__all__ = ["NestedRow", "nested_dots"]

_WIDTH, _FONT, _LINE = 480.0, 12.5, 15.0
_NAMES = 210.0
"""The room for names."""
_STEP, _DEEPEST = 11.0, 7
_TOP, _BOTTOM, _RIGHT, _LONG = 10.0, 50.0, 18.0, 20
_SPREAD = 30.0
"""A logarithmic axis from 0 is drawn if the largest value is so many times the one in the middle."""


@dataclass(frozen=True)
class NestedRow:
    """A name, how deep it is nested, its value and its interval."""

    name: str
    depth: int
    value: float
    low: float
    high: float


def nested_dots(rows: Sequence[NestedRow], label: str) -> str:
    """The rows below each other in the given sequence, each name broken at words.

    >>> nested_dots([NestedRow("all", 0, 10, 8, 12), NestedRow("some", 1, 4, 2, 6)], "count").count("<circle")
    2
    """
    names = [wrapped(row.name, (_NAMES - _indent(row)) / _FONT, 3) for row in rows]
    heights = [_LINE * len(lines) + 5 for lines in names]
    across = _axis(rows)
    top = _TOP if len(rows) < _LONG else _TOP + 18  # numbers above a long picture, too
    bottom = top + sum(heights)
    words = f"{label}, on a logarithmic axis" if isinstance(across, LogAxis) else label
    parts = [*below(across, bottom, top, words)]
    if top > _TOP:
        marks = across.marks
        parts += [
            text(across.at(mark), top - 8, shown, SMALL, text_anchor="middle")
            for mark, shown in zip(marks, labels(marks), strict=True)
        ]
    y = top
    for row, lines, height in zip(rows, names, heights, strict=True):
        middle = y + height / 2
        first = middle - _LINE * (len(lines) - 1) / 2 + 0.35 * _FONT
        parts += [text(6 + _indent(row), first + _LINE * k, line, _FONT) for k, line in enumerate(lines)]
        ends = [(across.at(row.low), middle), (across.at(row.high), middle)]
        parts.append(polyline(ends, 1.6, MARK))
        parts.append(element("circle", cx=across.at(row.value), cy=middle, r=3.6, fill=MARK))
        y += height
    return picture(parts, _WIDTH, bottom + _BOTTOM, label, 1.35)


def _indent(row: NestedRow) -> float:
    return _STEP * min(row.depth, _DEEPEST)


def _axis(rows: Sequence[NestedRow]) -> Axis | LogAxis:
    """A linear axis, or a logarithmic one where most values are far below the largest."""
    high = max((max(row.high, row.value) for row in rows), default=1.0)
    sizes = sorted(max(row.value, 1.0) for row in rows)
    start, end = _NAMES + 16.0, _WIDTH - _RIGHT
    if high > 10 and sizes and high > _SPREAD * sizes[len(sizes) // 2]:
        return LogAxis(high, start, end)
    low = min(0.0, min((row.value for row in rows), default=0.0))
    return Axis(*limits(low, max(high, low)), start, end)
