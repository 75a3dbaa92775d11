"""Hasse diagrams on a matplotlib axis: boxes with text, as large as the space allows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isotone.errors import InputError
from isotone.order.drawing.layout import Diagram, Floats, Placed, arrange, pack, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.order.poset import Poset

__all__ = ["Direction", "draw"]

Direction = Literal["up", "left"]

# Sizes are in ems (multiples of the font size) until a font size is chosen, and then in points.
_LINE, _PADDING, _GAP, _LEVEL_GAP = 1.25, 0.5, {"up": 1.0, "left": 0.5}, {"up": 2.6, "left": 4.0}
_WRAPS = (16, 24, 34, 48)
_SHELVES = 12
_LARGEST_FONT, _GOOD_FONT, _USUAL_FONT, _LEAST_FONT = 11.0, 9.0, 8.0, 2.5
_PAGE = np.array([760.0, 500.0])  # what a picture without a given axis should not exceed where it can
_INK, _LINES, _FILL, _ACCENT = "#1b1f24", "#8a96a3", "#f3f5f7", "#0b5394"


@dataclass(frozen=True)
class _Box:
    """The text of an element: lines of its name, then of its value, and its size ``(width, height)``."""

    name: str
    value: str
    size: tuple[float, float]


@dataclass(frozen=True)
class _Picture:
    """Boxes with coordinates in ems, x to the right and y upward."""

    boxes: Sequence[_Box]
    centres: Floats
    routes: Sequence[Floats]
    extent: Floats
    direction: Direction

    def font(self, page: Floats) -> float:
        """The largest font at which the picture fits on the page."""
        return float(min(_LARGEST_FONT, *(page / (self.extent + 1))))


def draw(
    poset: Poset,
    ax: Axes | None,
    values: Mapping[Any, object] | Sequence[object] | None,
    labels: Mapping[Any, str] | None,
    direction: Direction | None,
) -> Axes:
    """Draw the diagram; see :meth:`isotone.order.Poset.plot`."""
    if direction not in (None, "up", "left"):
        raise InputError(
            f"direction must be 'up', 'left' or None (whichever reads better), not {direction!r}."
        )
    names = _names(poset, labels)
    notes = _notes(poset, values)
    page = _PAGE if ax is None else _size_in_points(ax)
    picture = _best(arrange(poset), names, notes, page, direction)
    font = picture.font(page)
    if ax is None:
        from matplotlib import pyplot

        font = max(font, _USUAL_FONT)
        page = (picture.extent + 1) * font
        ax = pyplot.figure(figsize=tuple(page / 72)).add_axes((0.0, 0.0, 1.0, 1.0))
    _paint(ax, picture, font, page)
    return ax


def _names(poset: Poset, labels: Mapping[Any, str] | None) -> list[str]:
    for name in labels or ():
        poset.index(name)
    return [str((labels or {}).get(name, name)) for name in poset.elements]


def _notes(poset: Poset, values: Mapping[Any, object] | Sequence[object] | None) -> list[str]:
    if values is None:
        return [""] * len(poset)
    if isinstance(values, Mapping):
        for name in values:
            poset.index(name)
        values = [values.get(name, "") for name in poset.elements]
    if len(values) != len(poset):
        raise InputError(f"values must hold one entry per element: {len(poset)}, not {len(values)}.")
    return [_shown(value) for value in values]


def _shown(value: object) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def _size_in_points(ax: Axes) -> Floats:
    figure = ax.get_figure(root=True)
    assert figure is not None
    box = ax.get_position()
    return np.array([box.width, box.height]) * figure.get_size_inches() * 72


def _best(
    diagrams: list[Diagram], names: list[str], notes: list[str], page: Floats, direction: Direction | None
) -> _Picture:
    """The first picture with a good font, or else the one with the largest, from many arrangements.

    Upright ones come first, and are chosen unless the others' font is a quarter larger.
    """
    best, best_font = None, 0.0
    for way in ("up", "left") if direction is None else (direction,):
        handicap = 1.25 if way != "up" and direction is None else 1.0
        for wrap in _WRAPS:
            for picture in _pictures(diagrams, _boxes(names, notes, wrap), way):
                font = min(picture.font(page), _GOOD_FONT) / handicap
                if font == _GOOD_FONT:
                    return picture
                if best is None or font > best_font * 1.03:
                    best, best_font = picture, font
            if all(len(name) <= wrap for name in names):
                break
    assert best is not None
    return best


def _boxes(names: list[str], notes: list[str], wrap: int) -> list[_Box]:
    boxes: list[_Box] = []
    for name, note in zip(names, notes, strict=True):
        lines = [part for line in name.splitlines() or [""] for part in textwrap.wrap(line, wrap) or [""]]
        extra = textwrap.wrap(note, wrap)
        width = max(_width(lines), 1.15 * _width(extra))  # values are in bold
        size = width + 2 * _PADDING, (len(lines) + len(extra)) * _LINE + 2 * _PADDING * 0.7
        boxes.append(_Box("\n".join(lines), "\n".join(extra), size))
    return boxes


def _width(lines: list[str]) -> float:
    """The width of the widest of some lines of text, in ems."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=10)
    widths = [text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines]
    return max(widths, default=0.0) / 10


def _pictures(diagrams: list[Diagram], boxes: list[_Box], way: Direction) -> Iterator[_Picture]:
    """The same boxes on one shelf, on two, and so on."""
    sizes = np.array([box.size for box in boxes])
    if way == "left":
        sizes = sizes[:, ::-1]
    parts = [place(diagram, sizes, _GAP[way], _LEVEL_GAP[way]) for diagram in diagrams]
    total = sum(part.across + 2 * _GAP[way] for part in parts)
    widest = max(part.across for part in parts)
    for shelves in range(1, min(len(parts), _SHELVES) + 1):
        for slack in (1.02, 1.1, 1.25):
            placed = pack(parts, max(widest, total / shelves * slack), 2 * _GAP[way])
            yield _turned(placed, boxes, way)


def _turned(placed: Placed, boxes: list[_Box], way: Direction) -> _Picture:
    """Coordinates (x, y) from (across, along): greater elements above, or to the left."""

    def turn(points: Floats) -> Floats:
        if way == "up":
            return points
        return np.array([placed.along, placed.across]) - points[:, ::-1]

    centres = np.empty((len(boxes), 2))
    centres[list(placed.elements)] = turn(placed.centres)
    extent = np.array([placed.across, placed.along])
    routes = [turn(route) for route in placed.routes]
    return _Picture(boxes, centres, routes, extent if way == "up" else extent[::-1], way)


def _paint(ax: Axes, picture: _Picture, font: float, page: Floats) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.path import Path

    ax.axis("off")
    margin = (page / font - picture.extent) / 2
    ax.set_xlim(-margin[0], picture.extent[0] + margin[0])
    ax.set_ylim(-margin[1], picture.extent[1] + margin[1])
    paths = [Path(*_curve(route, 1 if picture.direction == "up" else 0)) for route in picture.routes]
    ax.add_collection(
        PathCollection(paths, facecolors="none", edgecolors=_LINES, linewidths=max(font / 9, 0.3), zorder=1),
        autolim=False,
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
        if font < _LEAST_FONT:
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
        ax.text(x, y + extra * _LINE / 2, box.name, color=_INK, zorder=3, **style)
        ax.text(x, y - lines * _LINE / 2, box.value, color=_ACCENT, weight="bold", zorder=3, **style)


def _curve(route: Floats, along: int) -> tuple[Floats, list[int]]:
    """A path through the corners of a route: straight on levels, an S between them."""
    from matplotlib.path import Path

    points = [route[0]]
    codes = [Path.MOVETO]
    for k in range(1, len(route)):
        here, there = route[k - 1], route[k]
        if k % 2 == 0:
            middle = (here[along] + there[along]) / 2
            for corner in (here, there):
                control = corner.copy()
                control[along] = middle
                points.append(control)
            codes += [Path.CURVE4, Path.CURVE4, Path.CURVE4]
        else:
            codes.append(Path.LINETO)
        points.append(there)
    return np.array(points), [int(code) for code in codes]
