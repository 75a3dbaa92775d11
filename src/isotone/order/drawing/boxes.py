"""Boxes with text in the place that a layout gives them, whatever paints them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.order.drawing.layout import Diagram, Placed, arrange, pack, place

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = [
    "LEAST_FONT",
    "LINE",
    "PAGE",
    "USUAL_FONT",
    "Box",
    "Direction",
    "Measure",
    "Picture",
    "compose",
    "curve",
]

Direction = Literal["up", "left"]
Measure = Callable[[str], float]
"""How wide a line of text is, in ems."""

# Sizes are in ems (multiples of the font size) until a font size is chosen, and then in points.
LINE = 1.25
_PADDING, _GAP, _LEVEL_GAP = 0.5, {"up": 1.0, "left": 0.5}, {"up": 2.6, "left": 4.0}
_WRAPS = (16, 24, 34, 48)
_SHELVES = 12
_JOIN = 0.35
_LARGEST_FONT, _GOOD_FONT, USUAL_FONT, LEAST_FONT = 11.0, 9.0, 8.0, 2.5
PAGE = np.array([760.0, 500.0])  # what a picture without a given axis should not exceed where it can


@dataclass(frozen=True)
class Box:
    """The text of an element and its size ``(width, height)``.

    Lines of its name, then of its value.
    """

    name: str
    value: str
    size: tuple[float, float]


@dataclass(frozen=True)
class Picture:
    """Boxes with coordinates in ems, x to the right and y upward."""

    boxes: Sequence[Box]
    centres: Floats
    routes: Sequence[Floats]
    ends: Sequence[tuple[int, int]]
    extent: Floats
    direction: Direction
    joins: Sequence[tuple[str, Floats]] = ()
    """The kind of each choice, and a line that joins its options on their upper side."""

    def font(self, page: Floats) -> float:
        """The largest font at which the picture fits on the page."""
        return float(min(_LARGEST_FONT, *(page / (self.extent + 1))))


def compose(
    poset: Poset,
    values: Mapping[Any, object] | Sequence[object] | None,
    labels: Mapping[Any, str] | None,
    direction: Direction | None,
    page: Floats,
    measure: Measure,
    beside_lines: float = 0.0,
) -> Picture:
    """The picture of an order that can best be read on the page.

    See :meth:`isotone.order.Poset.plot`. ``beside_lines`` is the width of the text that is to stand at the lines.
    """
    if direction not in (None, "up", "left"):
        raise InputError(
            f"direction must be 'up', 'left' or None (whichever reads better), not {direction!r}."
        )
    names, notes = _names(poset, labels), _notes(poset, values)
    found = _best(arrange(poset), names, notes, page, direction, measure, beside_lines)
    return replace(found, joins=_joins(poset, found)) if poset.choices else found


def _joins(poset: Poset, found: Picture) -> list[tuple[str, Floats]]:
    """A line for each choice with several options, just before the lines to what is above them meet their boxes."""
    up = found.direction == "up"
    joins: list[tuple[str, Floats]] = []
    for choice in poset.choices:
        places = [poset.index(option) for option in choice.options]
        sides = np.array([found.boxes[x].size for x in places]) / 2 + _JOIN
        points = found.centres[places] + (sides * (0, 1) if up else sides * (-1, 0))
        if len(places) > 1:
            joins.append((choice.kind, points[np.argsort(points[:, 0 if up else 1])]))
    return joins


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


def _best(
    diagrams: list[Diagram],
    names: list[str],
    notes: list[str],
    page: Floats,
    direction: Direction | None,
    measure: Measure,
    beside_lines: float,
) -> Picture:
    """The first picture with a good font, or else the one with the largest, from many arrangements.

    Upright ones come first, and are chosen unless the others' font is a quarter larger.
    """
    best, best_font = None, 0.0
    for way in ("up", "left") if direction is None else (direction,):
        handicap = 1.25 if way != "up" and direction is None else 1.0
        for wrap in _WRAPS:
            for picture in _pictures(diagrams, _boxes(names, notes, wrap, measure), way, beside_lines):
                font = min(picture.font(page), _GOOD_FONT) / handicap
                if font == _GOOD_FONT:
                    return picture
                if best is None or font > best_font * 1.03:
                    best, best_font = picture, font
            if all(len(name) <= wrap for name in names):
                break
    assert best is not None
    return best


def _boxes(names: list[str], notes: list[str], wrap: int, measure: Measure) -> list[Box]:
    boxes: list[Box] = []
    for name, note in zip(names, notes, strict=True):
        lines = [part for line in name.splitlines() or [""] for part in textwrap.wrap(line, wrap) or [""]]
        extra = [
            part
            for line in note.splitlines()
            for part in textwrap.wrap(line, wrap, break_long_words="\xa0" not in line)
        ]
        width = max(_width(lines, measure), 1.15 * _width(extra, measure))  # values are in bold
        size = width + 2 * _PADDING, (len(lines) + len(extra)) * LINE + 2 * _PADDING * 0.7
        boxes.append(Box("\n".join(lines), "\n".join(extra), size))
    return boxes


def _width(lines: list[str], measure: Measure) -> float:
    """The width of the widest of some lines of text."""
    return max(map(measure, lines), default=0.0)


def _pictures(
    diagrams: list[Diagram], boxes: list[Box], way: Direction, beside_lines: float
) -> Iterator[Picture]:
    """The same boxes on one shelf, on two, and so on."""
    room = (1.0 if way == "up" else beside_lines) if beside_lines else 0.0
    sizes = np.array([box.size for box in boxes])
    if way == "left":
        sizes = sizes[:, ::-1]
    parts = [place(diagram, sizes, _GAP[way], _LEVEL_GAP[way] + room) for diagram in diagrams]
    total = sum(part.across + 2 * _GAP[way] for part in parts)
    widest = max(part.across for part in parts)
    for shelves in range(1, min(len(parts), _SHELVES) + 1):
        for slack in (1.02, 1.1, 1.25):
            placed = pack(parts, max(widest, total / shelves * slack), 2 * _GAP[way])
            yield _turned(placed, boxes, way)


def _turned(placed: Placed, boxes: list[Box], way: Direction) -> Picture:
    """Coordinates (x, y) from (across, along). Greater elements are above, or to the left."""

    def turn(points: Floats) -> Floats:
        if way == "up":
            return points
        return np.array([placed.along, placed.across]) - points[:, ::-1]

    centres = np.empty((len(boxes), 2))
    centres[list(placed.elements)] = turn(placed.centres)
    extent = np.array([placed.across, placed.along])
    routes = [turn(route) for route in placed.routes]
    return Picture(boxes, centres, routes, placed.ends, extent if way == "up" else extent[::-1], way)


def curve(route: Floats, along: int) -> list[tuple[Literal["move", "line", "bend"], Floats]]:
    """A path through the corners of a route.

    Straight on levels, an S between them.

    A bend comes with its two control points and its end.
    """
    path: list[tuple[Literal["move", "line", "bend"], Floats]] = [("move", route[:1])]
    for k in range(1, len(route)):
        here, there = route[k - 1], route[k]
        if k % 2 == 0:
            controls = np.array([here, there])
            controls[:, along] = (here[along] + there[along]) / 2
            path.append(("bend", np.vstack((controls, there))))
        else:
            path.append(("line", there[None]))
    return path
