"""Charts as SVG text.

Bars with intervals, a distribution and a curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from isotone.svg.elements import MARK, element, number, picture, text, text_width

__all__ = ["bars", "curve", "distribution", "heat_map", "ticks"]

_WIDTH, _HEIGHT, _SMALL, _ROW = 720.0, 400.0, 13.0, 24.0
_NAME = 0.4  # the share of the width that names may take
_TOP, _BOTTOM, _RIGHT = 16.0, 52.0, 20.0


@dataclass(frozen=True)
class _Axis:
    """Values from ``low`` to ``high`` drawn from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


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


def bars(
    names: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float], label: str
) -> str:
    """Horizontal bars in the given sequence, each with a line from the low to the high end of its interval."""
    shown = [_shortened(name, _NAME * _WIDTH / _SMALL) for name in names]
    left = 24 + _SMALL * max(map(text_width, shown), default=0.0)
    least, most = min(0.0, *values, *lows), max(0.0, *values, *highs)
    height = _TOP + _ROW * len(values) + _BOTTOM
    across = _Axis(*_limits(least, most), left, _WIDTH - _RIGHT)
    parts = list(_below(across, height - _BOTTOM, _TOP, label))
    for k, (name, value, low, high) in enumerate(zip(shown, values, lows, highs, strict=True)):
        y = _TOP + _ROW * (k + 0.5)
        ends = sorted((across.at(0.0), across.at(value)))
        parts += [
            text(left - 10, y + 0.35 * _SMALL, name, _SMALL, text_anchor="end"),
            _bar(ends[0], y - 0.35 * _ROW, ends[1] - ends[0], 0.7 * _ROW),
            _line([(across.at(low), y), (across.at(high), y)], 1.6, MARK),
        ]
    return picture(parts, _WIDTH, height, label)


def distribution(
    edges: Sequence[float], shares: Sequence[float], line: Sequence[float], names: tuple[str, str]
) -> str:
    """Bars between the edges and a stair line over them.

    ``names`` label the two.
    """
    left = 66.0
    across = _Axis(*_limits(edges[0], edges[-1]), left, _WIDTH - _RIGHT)
    up = _Axis(*_limits(0.0, 1.05 * max([*shares, *line], default=1.0)), _HEIGHT - _BOTTOM, _TOP)
    parts = [*_beside(up, across, "share of categories"), *_below(across, up.start, up.end, "count", False)]
    corners: list[tuple[float, float]] = []
    for (begin, end), share, height in zip(pairwise(map(across.at, edges)), shares, line, strict=True):
        parts.append(
            _bar(begin + 0.05 * (end - begin), up.at(share), 0.9 * (end - begin), up.start - up.at(share))
        )
        corners += [(begin, up.at(height)), (end, up.at(height))]
    parts.append(_line(corners, 1.8, MARK))
    x = _WIDTH - _RIGHT - 34 - _SMALL * max(map(text_width, names))
    parts += [
        _bar(x, _TOP + 4, 24, 12),
        text(x + 32, _TOP + 15, names[0], _SMALL),
        _line([(x, _TOP + 31), (x + 24, _TOP + 31)], 1.8, MARK),
        text(x + 32, _TOP + 36, names[1], _SMALL),
    ]
    return picture(parts, _WIDTH, _HEIGHT, f"{names[0]} and {names[1]}")


def curve(
    xs: Sequence[float],
    ys: Sequence[float],
    y_range: tuple[float, float],
    labels: tuple[str, str],
    band: tuple[Sequence[float], ...] | None = None,
) -> str:
    """A curve through the points, in the whole range of y, with a band between two more curves if given."""
    left = 78.0
    across = _Axis(*_limits(min(xs), max(xs)), left, _WIDTH - _RIGHT)
    up = _Axis(*_limits(*y_range), _HEIGHT - _BOTTOM, _TOP)
    points = [(across.at(x), up.at(y)) for x, y in zip(xs, ys, strict=True)]
    parts = [*_beside(up, across, labels[1]), *_below(across, up.start, up.end, labels[0])]
    if band is not None:
        low, high = ([(across.at(x), up.at(y)) for x, y in zip(xs, end, strict=True)] for end in band)
        around = " ".join(f"{number(x)},{number(y)}" for x, y in [*low, *high[::-1]])
        parts.append(element("polygon", points=around, fill=MARK, fill_opacity=0.22))
    parts.append(_line(points, 2.4, MARK))
    return picture(parts, _WIDTH, _HEIGHT, f"{labels[1]} by {labels[0]}")


def heat_map(
    across: Sequence[float],
    up: Sequence[float],
    values: Sequence[Sequence[float]],
    limits: tuple[float, float],
    labels: tuple[str, str],
) -> str:
    """Cells between the edges of two axes, the darker the higher; ``values`` has a row for each cell of the first."""
    first = _Axis(*_limits(across[0], across[-1]), 78.0, _WIDTH - _RIGHT)
    second = _Axis(*_limits(up[0], up[-1]), _HEIGHT - _BOTTOM, _TOP)
    low, high = _limits(*limits)
    parts: list[str] = []
    for (left, right), row in zip(pairwise(map(first.at, across)), values, strict=True):
        for (bottom, top), value in zip(pairwise(map(second.at, up)), row, strict=True):
            shade = 0.04 + 0.92 * min(max((value - low) / (high - low), 0.0), 1.0)
            parts.append(
                element(
                    "rect",
                    x=left,
                    y=top,
                    width=right - left,
                    height=bottom - top,
                    fill=MARK,
                    fill_opacity=shade,
                )
            )
    parts += [*_beside(second, first, labels[1]), *_below(first, second.start, second.end, labels[0], False)]
    return picture(parts, _WIDTH, _HEIGHT, f"by {labels[0]} and {labels[1]}")


def _limits(low: float, high: float) -> tuple[float, float]:
    """Limits that are apart."""
    wide = max(abs(low), abs(high), 1.0) * 1e-9
    return (low, high) if high - low > wide else (low - 0.5, low + max(0.5, wide))


def _below(across: _Axis, y: float, top: float, label: str, grid: bool = True) -> Iterator[str]:
    """The horizontal axis, with ticks, numbers and what they are."""
    marks = ticks(across.low, across.high)
    yield _line([(across.start, y), (across.end, y)], 1, "currentColor", 0.6)
    for mark, shown in zip(marks, _labels(marks), strict=True):
        x = across.at(mark)
        yield _line([(x, y + 5), (x, top if grid else y)], 1, "currentColor", 0.18 if grid else 0.6)
        yield text(x, y + 20, shown, _SMALL, text_anchor="middle")
    middle = (across.start + across.end) / 2
    shown = _shortened(label, (across.end - across.start) / _SMALL)
    yield text(middle, y + 42, shown, _SMALL, text_anchor="middle")


def _beside(up: _Axis, across: _Axis, label: str) -> Iterator[str]:
    """The vertical axis, with lines across."""
    marks = ticks(up.low, up.high)
    for mark, shown in zip(marks, _labels(marks), strict=True):
        y = up.at(mark)
        yield _line([(across.start, y), (across.end, y)], 1, "currentColor", 0.18)
        yield text(across.start - 8, y + 0.35 * _SMALL, shown, _SMALL, text_anchor="end")
    middle = (up.start + up.end) / 2
    shown = _shortened(label, (up.start - up.end) / _SMALL)
    yield text(
        0, 0, shown, _SMALL, text_anchor="middle", transform=f"translate(14 {number(middle)}) rotate(-90)"
    )


def _labels(marks: Sequence[float]) -> list[str]:
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    far = max(map(abs, marks), default=0.0)
    if far >= 1e7 or step < 1e-4:
        return [f"{mark:.4g}" for mark in marks]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{mark + 0.0:,.{digits}f}" for mark in marks]


def _shortened(line: str, ems: float) -> str:
    """The line, cut where it would be wider than so many ems."""
    if text_width(line) <= ems:
        return line
    line = line[: int(5 * ems)]
    while line and text_width(line) + text_width("…") > ems:
        line = line[:-1]
    return line.rstrip() + "…"


def _bar(x: float, y: float, width: float, height: float) -> str:
    return element(
        "rect", x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), fill=MARK, fill_opacity=0.42
    )


def _line(points: Sequence[tuple[float, float]], width: float, colour: str, opacity: float = 1.0) -> str:
    path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return element(
        "polyline",
        points=path,
        fill="none",
        stroke=colour,
        stroke_width=width,
        stroke_opacity=opacity,
        stroke_linejoin="round",
    )
