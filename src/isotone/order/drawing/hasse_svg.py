"""Hasse diagrams as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isotone.order.drawing.boxes import LINE, PAGE, USUAL_FONT, Box, Picture, compose, curve
from isotone.order.drawing.layout import Floats
from isotone.svg.elements import MARK, element, number, picture, text, text_width

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["hasse_svg"]

_MARGIN = 0.5  # ems around the picture


def hasse_svg(
    poset: Poset,
    *,
    values: Mapping[Any, object] | Sequence[object] | None = None,
    labels: Mapping[Any, str] | None = None,
    title: str = "Hasse diagram",
) -> str:
    """The Hasse diagram as an SVG element.

    The same diagram as :meth:`isotone.order.Poset.plot`.
    """
    found = compose(poset, values, labels, None, PAGE, text_width)
    font = 1.2 * max(found.font(PAGE), USUAL_FONT)  # readable on a screen
    width, height = (found.extent + 2 * _MARGIN) * font
    return picture(_parts(found, font), width, height, title)


def _parts(found: Picture, font: float) -> Iterator[str]:
    def on_page(points: Floats) -> Floats:
        """From ems, y upward, to the picture, y downward."""
        turned = points.copy()
        turned[..., 1] = found.extent[1] - points[..., 1]
        return (turned + _MARGIN) * font

    along = 1 if found.direction == "up" else 0
    letter = {"move": "M", "line": "L", "bend": "C"}
    for route in found.routes:
        path = " ".join(
            letter[kind] + " ".join(number(at) for at in on_page(points).ravel())
            for kind, points in curve(route, along)
        )
        yield element(
            "path", d=path, fill="none", stroke="currentColor", stroke_opacity=0.5, stroke_width=font / 9
        )
    for box, centre in zip(found.boxes, on_page(found.centres), strict=True):
        yield from _box(box, centre, font)


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
