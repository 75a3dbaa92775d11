"""Elements and axes of a drawing."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

__all__ = [
    "MARK",
    "SMALL",
    "Axis",
    "LogAxis",
    "below",
    "beside",
    "element",
    "labels",
    "limits",
    "number",
    "picture",
    "polyline",
    "shortened",
    "text",
    "text_width",
    "ticks",
    "wrapped",
]


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
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value if isinstance(value, str) else number(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{said}>{content}</{name}>" if content else f"<{name}{said}/>"


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
    words, found = line.split() or [""], [""]
    for place, word in enumerate(words):
        longer = f"{found[-1]} {word}".strip()
        if not found[-1] or text_width(longer) <= ems:
            found[-1] = longer
        elif len(found) == most:
            found[-1] = " ".join([found[-1], *words[place:]])
            break
        else:
            found.append(word)
    return [shortened(part, ems) for part in found]


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
