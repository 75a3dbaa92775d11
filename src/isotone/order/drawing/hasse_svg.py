"""Hasse diagrams as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isotone.array_types import Floats
from isotone.order.drawing.boxes import LINE, PAGE, USUAL_FONT, Box, Picture, compose, curve
from isotone.svg.elements import MARK, element, number, picture, text, text_width

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["JOINED", "hasse_svg"]

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
    notes = {(poset.index(a), poset.index(b)): text for (a, b), text in (edges or {}).items()}
    widest = max((_SMALL * text_width(note) for note in notes.values()), default=0.0)
    found = compose(poset, values, labels, None, PAGE, text_width, widest)
    font = 1.2 * max(found.font(PAGE), USUAL_FONT)  # readable on a screen
    width, height = (found.extent + 2 * _MARGIN) * font
    return picture(_parts(found, font, notes), width, height, title)


def _parts(found: Picture, font: float, notes: Mapping[tuple[int, int], str]) -> Iterator[str]:
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
    for kind, points in found.joins:
        line = "M" + " L".join(f"{number(x)} {number(y)}" for x, y in on_page(points))
        title = element("title", JOINED[kind])
        dashes: dict[str, str] = {"stroke_dasharray": number(font / 3)} if kind == "exclusive" else {}
        yield element("path", title, d=line, fill="none", stroke=MARK, stroke_width=font / 7, **dashes)
    met: dict[int, int] = {}
    for route, ends in zip(found.routes, found.ends, strict=True):
        if ends in notes:
            place = met[ends[0]] = met.get(ends[0], -1) + 1  # several lines may leave one element
            yield _note(notes[ends], on_page(route)[0], place, found.direction, font)
    for box, centre in zip(found.boxes, on_page(found.centres), strict=True):
        yield from _box(box, centre, font)


def _note(note: str, start: Floats, place: int, direction: str, font: float) -> str:
    """The text at a line, beside its lower end."""
    size, look = _SMALL * font, {"paint_order": "stroke", "stroke": "var(--paper, #fff)"}
    x, y = float(start[0]), float(start[1])
    if direction == "up":
        x, y, anchor = x, y - (0.45 + LINE * place) * size, "middle"
    else:
        x, y, anchor = x - 0.4 * size, y - (0.35 + LINE * place) * size, "end"
    faint = 0.6 if note.startswith("(") else 1.0
    return text(x, y, note.strip("()") if faint < 1 else note, size, text_anchor=anchor, stroke_width=size / 2,
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
