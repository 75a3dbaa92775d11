"""Hasse diagrams on a matplotlib axis. Boxes with text, as large as the space allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.array_types import Floats
from isotone.lazy import from_extra
from isotone.order.drawing.boxes import LEAST_FONT, LINE, PAGE, USUAL_FONT, Direction, Picture, compose, curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.order.poset import Poset

__all__ = ["Direction", "draw"]

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
