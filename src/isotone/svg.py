"""Charts and orders as SVG."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

# Elements and axes of a drawing.

# Elements of an SVG picture as escaped text, and about how wide a text is.
#
# Colours follow the page that holds the picture: text and lines take its text colour, the rest its variable
# ``--mark``. So a picture can be read on light and on dark paper.

MARK = "var(--mark, #1f4e79)"

_FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_UNSEEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML cannot hold

# Widths of letters in thousandths of an em, by the letters that share one: those of a usual sans-serif font.
_WIDTHS = {
    222: "ijl'",
    280: " !,./:;I[]\\ft|",
    340: '()-`r{}"',
    500: "*Jcksvxyz",
    556: "#$0123456789?L_abdeghnopqu",
    600: "+<=>FTZ^~",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    790: "GOQ",
    850: "Mm",
    950: "%W",
    1015: "@",
}
_WIDTH = {letter: width / 1000 for width, letters in _WIDTHS.items() for letter in letters}
_ROOM = 1.17  # the widest usual font is wider than the table by this factor


def text_width(line: str) -> float:
    """About how many ems a line of text takes in any usual font, rather too many than too few.

    >>> text_width("ill") < text_width("www")
    True
    """
    return _ROOM * sum(_WIDTH.get(letter) or _other_width(letter) for letter in line)


def _other_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    return 0.9 if unicodedata.east_asian_width(letter) in "WF" or not letter.isalpha() else 0.62


def number(value: float) -> str:
    """A coordinate with two digits.

    >>> number(-0.001), number(12.5)
    ('0', '12.5')
    """
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "") else shown


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """An element around content that is SVG already. Underlines in names of attributes are hyphens.

    >>> element("line", x1=0, stroke_width=1.5)
    '<line x1="0" stroke-width="1.5"/>'
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value if isinstance(value, str) else number(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def text(x: float, y: float, line: str, size: float, **attributes: str | float) -> str:
    """A line of text with its baseline at (x, y)."""
    return element("text", _escaped(line) or " ", x=x, y=y, font_size=size, **attributes)


def polyline(points: Sequence[tuple[float, float]], width: float, colour: str, opacity: float = 1.0) -> str:
    """A line through points."""
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


def shortened(line: str, ems: float) -> str:
    """The line, cut where it would be wider than so many ems."""
    if text_width(line) <= ems:
        return line
    line = line[: int(5 * ems)]
    while line and text_width(line) + text_width("…") > ems:
        line = line[:-1]
    return line.rstrip() + "…"


def wrapped(line: str, ems: float, most: int) -> list[str]:
    """The line broken at words into lines of so many ems, at most so many of them.

    >>> wrapped("Did you try to quit?", 6, 2)
    ['Did you try', 'to quit?']
    """
    words, result = line.split() or [""], [""]
    for place, word in enumerate(words):
        longer = f"{result[-1]} {word}".strip()
        if not result[-1] or text_width(longer) <= ems:
            result[-1] = longer
        elif len(result) == most:
            result[-1] = " ".join([result[-1], *words[place:]])
            break
        else:
            result.append(word)
    return [shortened(part, ems) for part in result]


def picture(parts: Iterable[str], width: float, height: float, title: str, stretch: float = 1.0) -> str:
    """The whole picture. ``title`` is for those who cannot see it.

    It is drawn up to ``stretch`` times as wide where there is room.
    """
    return element(
        "svg",
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
        font_family=_FONT,
        fill="currentColor",
        style=f"max-width:{number(stretch * width)}px",
    )


def _escaped(line: str) -> str:
    return escape(_UNSEEN.sub("\ufffd", line))


# Axes of charts. Where a value is, round numbers on the way, and their labels.

SMALL = 13.0
"""The size of the letters."""


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` drawn from ``start`` to ``end``. ``whole`` numbers alone are named if nothing is between."""

    low: float
    high: float
    start: float
    end: float
    whole: bool = False

    def at(self, value: float) -> float:
        """The place of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def marks(self) -> list[float]:
        """Round numbers on the axis."""
        positions = ticks(self.low, self.high, 6 if abs(self.end - self.start) > 300 else 4)
        return [mark for mark in positions if not self.whole or abs(mark - round(mark)) < 1e-9]


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


_MARGIN = 18.0
"""What every picture has right of its axis, at least."""


def below(across: Axis | LogAxis, y: float, top: float, label: str, grid: bool = True) -> Iterator[str]:
    """The horizontal axis, with ticks, numbers and what they are."""
    marks = across.marks
    yield polyline([(across.start, y), (across.end, y)], 1, "currentColor", 0.6)
    for mark, shown in zip(marks, labels(marks), strict=True):
        x = across.at(mark)
        yield polyline([(x, y + 5), (x, top if grid else y)], 1, "currentColor", 0.18 if grid else 0.6)
        inside = (
            across.end + _MARGIN - SMALL * text_width(shown) / 2
        )  # the last label does not leave the picture
        yield text(min(x, inside), y + 20, shown, SMALL, text_anchor="middle")
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


# Charts of intervals, bars and curves.

# Charts as SVG text. Bars with intervals, a distribution and a curve.

_CHART_WIDTH, _HEIGHT, _ROW = 480.0, 320.0, 24.0
_NAME = 0.4  # the share of the width that names may take
_TOP, _BOTTOM, _RIGHT = 16.0, 52.0, 20.0
_STRETCH = 1.35  # so that letters have a good size on a phone and on a desk


def bars(
    names: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float], label: str
) -> str:
    """Horizontal bars in the given sequence, each with a line from the low to the high end of its interval."""
    shown = [wrapped(name, _NAME * _CHART_WIDTH / SMALL, 2) for name in names]
    left = 24 + SMALL * max((text_width(line) for lines in shown for line in lines), default=0.0)
    least, most = min(0.0, *values, *lows), max(0.0, *values, *highs)
    row = max(_ROW, 8 + 15 * max(map(len, shown), default=1))
    height = _TOP + row * len(values) + _BOTTOM
    across = Axis(*limits(least, most), left, _CHART_WIDTH - _RIGHT)
    parts = list(below(across, height - _BOTTOM, _TOP, label))
    for k, (name, value, low, high) in enumerate(zip(shown, values, lows, highs, strict=True)):
        y = _TOP + row * (k + 0.5)
        first = y + 0.35 * SMALL - 7.5 * (len(name) - 1)
        ends = sorted((across.at(0.0), across.at(value)))
        parts += [
            *(text(left - 10, first + 15 * i, line, SMALL, text_anchor="end") for i, line in enumerate(name)),
            _bar(ends[0], y - 0.35 * _ROW, ends[1] - ends[0], 0.7 * _ROW),
            polyline([(across.at(low), y), (across.at(high), y)], 1.6, MARK),
        ]
    return picture(parts, _CHART_WIDTH, height, label, _STRETCH)


def distribution(
    edges: Sequence[float], shares: Sequence[float], line: Sequence[float], names: tuple[str, str]
) -> str:
    """Bars between the edges and a stair line over them. ``names`` label the two."""
    left = 66.0
    across = Axis(*limits(edges[0], edges[-1]), left, _CHART_WIDTH - _RIGHT)
    up = Axis(*limits(0.0, 1.05 * max([*shares, *line], default=1.0)), _HEIGHT - _BOTTOM, _TOP)
    parts = [*beside(up, across, "share of categories"), *below(across, up.start, up.end, "count", False)]
    corners: list[tuple[float, float]] = []
    for (begin, end), share, height in zip(pairwise(map(across.at, edges)), shares, line, strict=True):
        parts.append(
            _bar(begin + 0.05 * (end - begin), up.at(share), 0.9 * (end - begin), up.start - up.at(share))
        )
        corners += [(begin, up.at(height)), (end, up.at(height))]
    parts.append(polyline(corners, 1.8, MARK))
    x = _CHART_WIDTH - _RIGHT - 34 - SMALL * max(map(text_width, names))
    parts += [
        _bar(x, _TOP + 4, 24, 12),
        text(x + 32, _TOP + 15, names[0], SMALL),
        polyline([(x, _TOP + 31), (x + 24, _TOP + 31)], 1.8, MARK),
        text(x + 32, _TOP + 36, names[1], SMALL),
    ]
    return picture(parts, _CHART_WIDTH, _HEIGHT, f"{names[0]} and {names[1]}", _STRETCH)


def cumulative(
    counts: Sequence[int], one: Sequence[float], other: Sequence[float], names: tuple[str, str], label: str
) -> str:
    """Two shares of all that are at most so large, as stairs over a logarithmic axis. Heavy tails stay in sight."""
    across = LogAxis(max(float(counts[-1]), 10.0), 66.0, _CHART_WIDTH - _RIGHT)
    up = Axis(0.0, 1.0, _HEIGHT - _BOTTOM, _TOP)
    parts = [*beside(up, across, label), *below(across, up.start, up.end, "count, on a logarithmic axis")]
    for shares, width, opacity in ((one, 5.0, 0.42), (other, 1.8, 1.0)):
        corners: list[tuple[float, float]] = [(across.start, up.at(shares[0]))]
        for (_, before), (count, share) in pairwise(zip(counts, shares, strict=True)):
            corners += [(across.at(count), up.at(before)), (across.at(count), up.at(share))]
        parts.append(polyline([*corners, (across.end, corners[-1][1])], width, MARK, opacity))
    x, y = _CHART_WIDTH - _RIGHT - 40 - SMALL * max(map(text_width, names)), up.start - 44
    for k, (name, width, opacity) in enumerate(((names[0], 5.0, 0.42), (names[1], 1.8, 1.0))):
        parts.append(polyline([(x, y + 20 * k), (x + 24, y + 20 * k)], width, MARK, opacity))
        parts.append(text(x + 32, y + 20 * k + 5, name, SMALL))
    return picture(parts, _CHART_WIDTH, _HEIGHT, f"{label}: {names[0]} and {names[1]}", _STRETCH)


def curve(
    xs: Sequence[float],
    ys: Sequence[float],
    y_range: tuple[float, float],
    labels: tuple[str, str],
    band: tuple[Sequence[float], ...] | None = None,
    *,
    whole: bool = False,
) -> str:
    """A curve through the points, in the whole range of y, with a band between two more curves if given. ``whole`` says that x is counted."""
    left = 78.0
    across = Axis(*limits(min(xs), max(xs)), left, _CHART_WIDTH - _RIGHT, whole)
    up = Axis(*limits(*y_range), _HEIGHT - _BOTTOM, _TOP)
    points = [(across.at(x), up.at(y)) for x, y in zip(xs, ys, strict=True)]
    parts = [*beside(up, across, labels[1]), *below(across, up.start, up.end, labels[0])]
    if band is not None:
        low, high = ([(across.at(x), up.at(y)) for x, y in zip(xs, end, strict=True)] for end in band)
        around = " ".join(f"{number(x)},{number(y)}" for x, y in [*low, *high[::-1]])
        parts.append(element("polygon", points=around, fill=MARK, fill_opacity=0.22))
    parts.append(polyline(points, 2.4, MARK))
    return picture(parts, _CHART_WIDTH, _HEIGHT, f"{labels[1]} by {labels[0]}", _STRETCH)


def curves(
    lines: Sequence[tuple[str, Sequence[float], Sequence[float], tuple[Sequence[float], ...] | None]],
    y_range: tuple[float, float],
    labels: tuple[str, str],
    rows: tuple[Sequence[float], Sequence[tuple[str, Sequence[str]]]] = ((), ()),
) -> str:
    """Several lines with their names and bands, each thinner and lighter than the one before.

    ``rows`` are words below places of the axis, in named rows.
    """
    across = Axis(
        *limits(min(xs[0] for _, xs, _, _ in lines), max(xs[-1] for _, xs, _, _ in lines)),
        78.0,
        _CHART_WIDTH - _RIGHT,
    )
    up = Axis(*limits(*y_range), _HEIGHT - _BOTTOM, _TOP)
    parts = [*beside(up, across, labels[1]), *below(across, up.start, up.end, labels[0])]
    marks, words = rows
    for place, (name, row) in enumerate(words):
        y = _HEIGHT + 12 + 18 * place
        parts.append(text(4, y, shortened(name, 56 / SMALL), SMALL))
        parts += [
            text(across.at(mark), y, label, SMALL, text_anchor="middle")
            for mark, label in zip(marks, row, strict=True)
        ]
    height = _HEIGHT + (18 * len(words) + 4 if words else 0)
    x = _CHART_WIDTH - _RIGHT - 40 - SMALL * max(text_width(name) for name, *_ in lines)
    falls = all(ys[-1] < ys[0] for _, _, ys, _ in lines)  # names stand where lines are not
    for place, (name, xs, ys, band) in enumerate(lines):
        width, opacity = 3.4 - 0.7 * place, 1.0 - 0.22 * place
        if band is not None:
            low, high = ([(across.at(x), up.at(y)) for x, y in zip(xs, end, strict=True)] for end in band)
            around = " ".join(f"{number(x)},{number(y)}" for x, y in [*low, *high[::-1]])
            parts.append(element("polygon", points=around, fill=MARK, fill_opacity=0.12))
        parts.append(
            polyline([(across.at(x), up.at(y)) for x, y in zip(xs, ys, strict=True)], width, MARK, opacity)
        )
        if not name:
            continue
        y = up.end + 16 + 20 * place if falls else up.start - 16 - 20 * place
        parts += [polyline([(x, y), (x + 24, y)], width, MARK, opacity), text(x + 32, y + 5, name, SMALL)]
    return picture(parts, _CHART_WIDTH, height, f"{labels[1]} by {labels[0]}", _STRETCH)


def heat_map(
    across: Sequence[float],
    up: Sequence[float],
    values: Sequence[Sequence[float]],
    span: tuple[float, float],
    labels: tuple[str, str],
) -> str:
    """Cells between the edges of two axes, the darker the higher. ``values`` has a row for each cell of the first."""
    first = Axis(*limits(across[0], across[-1]), 78.0, _CHART_WIDTH - _RIGHT)
    second = Axis(*limits(up[0], up[-1]), _HEIGHT - _BOTTOM, _TOP)
    low, high = limits(*span)
    parts: list[str] = []
    for (left, right), row in zip(pairwise(map(first.at, across)), values, strict=True):
        for (bottom, top), value in zip(pairwise(map(second.at, up)), row, strict=True):
            shade = 0.04 + 0.92 * min(max((value - low) / (high - low), 0.0), 1.0)
            parts.append(_bar(left, top, right - left, bottom - top, shade))
    parts += [*beside(second, first, labels[1]), *below(first, second.start, second.end, labels[0], False)]
    return picture(parts, _CHART_WIDTH, _HEIGHT, f"by {labels[0]} and {labels[1]}", _STRETCH)


def _bar(x: float, y: float, width: float, height: float, shade: float = 0.42) -> str:
    size = {"width": max(width, 0.0), "height": max(height, 0.0)}
    return element("rect", x=x, y=y, **size, fill=MARK, fill_opacity=shade)


# A dot with its interval for each of many names, nested as an outline. It can be read for two hundred of them.

_OUTLINE_WIDTH, _CHART_FONT, _LINE = 480.0, 12.5, 15.0
_NAMES = 210.0
"""The room for names."""
_STEP, _DEEPEST = 11.0, 7
_OUTLINE_TOP, _OUTLINE_BOTTOM, _OUTLINE_RIGHT, _LONG = 10.0, 50.0, 18.0, 20
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
    names = [wrapped(row.name, (_NAMES - _indent(row)) / _CHART_FONT, 3) for row in rows]
    heights = [_LINE * len(lines) + 5 for lines in names]
    across = _axis(rows)
    top = _OUTLINE_TOP if len(rows) < _LONG else _OUTLINE_TOP + 18  # numbers above a long picture, too
    bottom = top + sum(heights)
    words = f"{label}, on a logarithmic axis" if isinstance(across, LogAxis) else label
    parts = [*below(across, bottom, top, words)]
    if top > _OUTLINE_TOP:
        marks = across.marks
        parts += [
            text(across.at(mark), top - 8, shown, SMALL, text_anchor="middle")
            for mark, shown in zip(marks, labels(marks), strict=True)
        ]
    y = top
    for row, lines, height in zip(rows, names, heights, strict=True):
        middle = y + height / 2
        first = middle - _LINE * (len(lines) - 1) / 2 + 0.35 * _CHART_FONT
        parts += [
            text(6 + _indent(row), first + _LINE * k, line, _CHART_FONT) for k, line in enumerate(lines)
        ]
        ends = [(across.at(row.low), middle), (across.at(row.high), middle)]
        parts.append(polyline(ends, 1.6, MARK))
        parts.append(element("circle", cx=across.at(row.value), cy=middle, r=3.6, fill=MARK))
        y += height
    return picture(parts, _OUTLINE_WIDTH, bottom + _OUTLINE_BOTTOM, label, 1.35)


def _indent(row: NestedRow) -> float:
    return _STEP * min(row.depth, _DEEPEST)


def _axis(rows: Sequence[NestedRow]) -> Axis | LogAxis:
    """A linear axis, or a logarithmic one where most values are far below the largest."""
    high = max((max(row.high, row.value) for row in rows), default=1.0)
    sizes = sorted(max(row.value, 1.0) for row in rows)
    start, end = _NAMES + 16.0, _OUTLINE_WIDTH - _OUTLINE_RIGHT
    if high > 10 and sizes and high > _SPREAD * sizes[len(sizes) // 2]:
        return LogAxis(high, start, end)
    low = min(0.0, min((row.value for row in rows), default=0.0))
    return Axis(*limits(low, max(high, low)), start, end)
