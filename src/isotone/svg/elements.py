"""Elements of an SVG picture as escaped text, and about how wide a text is.

Colours follow the page that holds the picture: text and lines take its text colour, the rest its variable
``--mark``. So a picture can be read on light and on dark paper.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["MARK", "element", "number", "picture", "polyline", "shortened", "text", "text_width", "wrapped"]

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
