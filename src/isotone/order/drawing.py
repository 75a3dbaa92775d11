"""Hasse diagrams, as SVG and with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.array_types import Floats
from isotone.lazy import from_extra
from isotone.order.layout import LEAST_FONT, LINE, PAGE, USUAL_FONT, Box, Direction, Picture, compose, curve
from isotone.svg import MARK, element, number, picture, text, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.order.poset import Poset

# Hasse diagrams on a matplotlib axis. Boxes with text, as large as the space allows.

_INK, _LINES, _FILL, _ACCENT = "#1b1f24", "#8a96a3", "#f3f5f7", "#0b5394"


def draw(
    poset: Poset,
    ax: Axes | None,
    values: Mapping[Any, object] | Sequence[object] | None,
    labels: Mapping[Any, str] | None,
    direction: Direction | None,
) -> Axes:
    """Draw the Hasse diagram. See :meth:`isotone.order.Poset.plot`."""
    page = PAGE if ax is None else _size_in_points(ax)
    picture = compose(poset, values, labels, direction, page, _width)
    font = picture.font(page)
    if ax is None:
        pyplot = from_extra("matplotlib.pyplot", "plot")
        font = max(font, USUAL_FONT)
        page = (picture.extent + 1) * font
        new: Axes = pyplot.figure(figsize=tuple(page / 72)).add_axes((0.0, 0.0, 1.0, 1.0))
        ax = new
    _paint(ax, picture, font, page)
    return ax


def _size_in_points(ax: Axes) -> Floats:
    figure = ax.get_figure(root=True)
    assert figure is not None
    box = ax.get_position()
    return np.array([box.width, box.height]) * figure.get_size_inches() * 72


def _width(line: str) -> float:
    text_to_path = from_extra("matplotlib.textpath", "plot").text_to_path
    properties = from_extra("matplotlib.font_manager", "plot").FontProperties
    return text_to_path.get_text_width_height_descent(line, properties(size=10), ismath=False)[0] / 10


def _paint(ax: Axes, picture: Picture, font: float, page: Floats) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.patches import FancyBboxPatch

    ax.axis("off")
    margin = (page / font - picture.extent) / 2
    ax.set_xlim(-margin[0], picture.extent[0] + margin[0])
    ax.set_ylim(-margin[1], picture.extent[1] + margin[1])
    paths = [_path(curve(route, 1 if picture.direction == "up" else 0)) for route in picture.routes]
    ax.add_collection(
        PathCollection(paths, facecolors="none", edgecolors=_LINES, linewidths=max(font / 9, 0.3), zorder=1),
        autolim=False,
    )
    for kind, points in picture.joins:  # across the options of a choice: dashed if there may be none
        style = {"color": _ACCENT, "linewidth": max(font / 7, 0.3), "zorder": 1.5}
        ax.plot(
            *points.T, linestyle="--" if kind == "exclusive" else "-", scalex=False, scaley=False, **style
        )
    for box, (x, y) in zip(picture.boxes, picture.centres, strict=True):
        width, height = box.size
        ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.4",
                facecolor=_FILL,
                edgecolor=_LINES,
                linewidth=max(font / 12, 0.2),
                zorder=2,
            )
        )
        if font < LEAST_FONT:
            continue
        lines = box.name.count("\n") + 1
        extra = box.value.count("\n") + 1 if box.value else 0
        style: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": font,
            "linespacing": 1.25,
            "parse_math": False,
        }
        ax.text(x, y + extra * LINE / 2, box.name, color=_INK, zorder=3, **style)
        ax.text(x, y - lines * LINE / 2, box.value, color=_ACCENT, weight="bold", zorder=3, **style)


def _path(pieces: Sequence[tuple[str, Floats]]) -> Any:
    from matplotlib.path import Path

    meaning = {"move": Path.MOVETO, "line": Path.LINETO, "bend": Path.CURVE4}
    codes = [int(meaning[kind]) for kind, points in pieces for _ in points]
    return Path(np.concatenate([points for _, points in pieces]), codes)


# Hasse diagrams as SVG text.

JOINED = {
    "exclusive": "a record has at most one of these",
    "partition": "a record with the one above has exactly one of these",
}
"""What a line across the options of a choice means."""

_MARGIN = 0.5  # ems around the picture
_SMALL = 0.82  # the font of texts at lines


def hasse_svg(
    poset: Poset,
    *,
    values: Mapping[Any, object] | Sequence[object] | None = None,
    labels: Mapping[Any, str] | None = None,
    edges: Mapping[tuple[Any, Any], str] | None = None,
    title: str = "Hasse diagram",
) -> str:
    """The Hasse diagram as an SVG element.

    The same diagram as :meth:`isotone.order.Poset.plot`. ``edges`` are texts at the lines (lower, upper); those in
    brackets are shown faintly.
    """
    return hasse_figure(poset, values=values, labels=labels, edges=edges, title=title)[0]


READ = {
    "up": "An answer implies those above it that it is joined to.",
    "left": "An answer implies those to its left that it is joined to.",
}
"""How a diagram is read, by its direction."""


def hasse_figure(
    poset: Poset,
    *,
    values: Mapping[Any, object] | Sequence[object] | None = None,
    labels: Mapping[Any, str] | None = None,
    edges: Mapping[tuple[Any, Any], str] | None = None,
    title: str = "Hasse diagram",
) -> tuple[str, str]:
    """The diagram of :func:`hasse_svg`, and how it is read: greater elements are above or on the left, whichever is clearer."""
    notes = {(poset.index(a), poset.index(b)): text for (a, b), text in (edges or {}).items()}
    widest = max((_SMALL * text_width(note) for note in notes.values()), default=0.0)
    result = compose(poset, values, labels, None, PAGE, text_width, widest)
    font = 1.2 * max(result.font(PAGE), USUAL_FONT)  # readable on a screen
    width, height = (result.extent + 2 * _MARGIN) * font
    return picture(_parts(result, font, notes), width, height, title), READ[result.direction]


def _parts(picture: Picture, font: float, notes: Mapping[tuple[int, int], str]) -> Iterator[str]:
    def on_page(points: Floats) -> Floats:
        """From ems, y upward, to the picture, y downward."""
        turned = points.copy()
        turned[..., 1] = picture.extent[1] - points[..., 1]
        return (turned + _MARGIN) * font

    along = 1 if picture.direction == "up" else 0
    letter = {"move": "M", "line": "L", "bend": "C"}
    for route in picture.routes:
        path = " ".join(
            letter[kind] + " ".join(number(at) for at in on_page(points).ravel())
            for kind, points in curve(route, along)
        )
        yield element(
            "path", d=path, fill="none", stroke="currentColor", stroke_opacity=0.5, stroke_width=font / 9
        )
    for kind, points in picture.joins:
        line = "M" + " L".join(f"{number(x)} {number(y)}" for x, y in on_page(points))
        title = element("title", JOINED[kind])
        dashes: dict[str, str] = {"stroke_dasharray": number(font / 3)} if kind == "exclusive" else {}
        yield element("path", title, d=line, fill="none", stroke=MARK, stroke_width=font / 7, **dashes)
    met: dict[int, int] = {}
    for route, ends in zip(picture.routes, picture.ends, strict=True):
        if ends in notes:
            place = met[ends[0]] = met.get(ends[0], -1) + 1  # several lines may leave one element
            yield _note(notes[ends], on_page(route)[0], place, picture.direction, font)
    for box, centre in zip(picture.boxes, on_page(picture.centres), strict=True):
        yield from _box(box, centre, font)


def _note(note: str, start: Floats, place: int, direction: str, font: float) -> str:
    """The text at a line, beside its lower end."""
    size, look = (
        _SMALL * font,
        {"paint_order": "stroke", "stroke": "var(--paper, #fff)", "stroke_linejoin": "round"},
    )
    x, y = float(start[0]), float(start[1])
    if direction == "up":
        x, y, anchor = x, y - (0.45 + LINE * place) * size, "middle"
    else:
        x, y, anchor = x - 0.4 * size, y - (0.35 + LINE * place) * size, "end"
    faint = 0.6 if note.startswith("(") else 1.0
    return text(x, y, note.strip("()") if faint < 1 else note, size, text_anchor=anchor, stroke_width=size,
                fill_opacity=faint, **look)  # fmt: skip


def _box(box: Box, centre: Floats, font: float) -> Iterator[str]:
    x, y = map(float, centre)
    width, height = (side * font for side in box.size)
    yield element(
        "rect",
        x=x - width / 2,
        y=y - height / 2,
        width=width,
        height=height,
        rx=0.4 * font,
        fill="var(--box, #f3f5f7)",
        stroke="currentColor",
        stroke_opacity=0.35,
        stroke_width=font / 12,
    )
    names, notes = box.name.split("\n"), box.value.split("\n") if box.value else []
    first = y - (len(names) + len(notes) - 1) / 2 * LINE * font + 0.35 * font
    for k, line in enumerate([*names, *notes]):
        look: dict[str, str | float] = {"fill": MARK, "font_weight": "bold"} if k >= len(names) else {}
        yield text(x, first + k * LINE * font, line, font, text_anchor="middle", **look)
