"""A plan as text, rich table, HTML and picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from isotone.lazy import from_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from isotone.planning.plan import Plan

__all__ = ["draw", "html", "table", "text"]

_FAR = 20
"""Errors further apart than this factor are drawn on a logarithmic axis."""


def _lines(plan: Plan[Any]) -> list[tuple[str, ...]]:
    """Headings and rows. The first and the last column are words, the others numbers."""
    columns = plan.rows[0].columns
    rows = [
        (row.name, *(column.written(getattr(row, column.name)) for column in columns), row.note)
        for row in plan.rows
    ]
    return [("mechanism", *(column.heading for column in columns), ""), *rows]


def text(plan: Plan[Any]) -> str:
    """A plain table."""
    lines = _lines(plan)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    body = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:-1], widths[1:-1]), line[-1]]).rstrip()
        for line in lines
    ]
    return "\n".join([plan.title, *body, *([plan.remark] if plan.remark else [])])


def table(plan: Plan[Any]) -> Table:
    """A table for rich consoles."""
    from rich.table import Table

    result = Table(title=plan.title, title_justify="left", header_style="bold")
    result.caption, result.caption_justify = plan.remark or None, "left"
    headings, *rows = _lines(plan)
    for place, heading in enumerate(headings):
        result.add_column(heading, justify="right" if 0 < place < len(headings) - 1 else "left")
    for place, cells in enumerate(rows):
        result.add_row(*cells, style=None if place else "bold")
    return result


def html(plan: Plan[Any]) -> str:
    """A table for notebooks."""
    headings, *rows = _lines(plan)
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<caption>{escape(plan.title)}</caption>"
    remark = f"<p>{escape(plan.remark)}</p>" if plan.remark else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remark}"


def draw(plan: Plan[Any], ax: Axes | None = None) -> Axes:
    """One line per mechanism, best on top, with a mark for each column that has one."""
    if ax is None:
        figure = from_extra("matplotlib.figure", "plot").Figure
        new: Axes = figure(figsize=(7, 1 + 0.45 * len(plan.rows)), layout="constrained").subplots()
        ax = new
    places = range(len(plan.rows))
    drawn = [column for column in plan.rows[0].columns if column.marker]
    values = {column: [float(getattr(row, column.name)) for row in plan.rows] for column in drawn}
    ends = [(min(marks), max(marks)) for marks in zip(*values.values(), strict=True)]
    ax.hlines(places, [low for low, _ in ends], [high for _, high in ends], color="0.8", zorder=1)
    for number, (column, numbers) in enumerate(values.items()):
        ax.plot(numbers, places, column.marker, color=f"C{number}", ms=9, mew=2, label=column.heading)
    ax.set_yticks(places, [row.name.removesuffix("Mechanism") for row in plan.rows])
    ax.set_ylim(len(plan.rows) - 0.5, -0.5)
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    if 0 < _FAR * least < most:
        ax.set_xscale("log")
    else:
        ax.set_xlim(left=0)
    ax.set_xlabel("error")
    ax.set_title(plan.title, loc="left", fontsize="medium")
    below = -0.45 / (0.2 + 0.45 * len(plan.rows))  # under the label of the axis, however low the picture
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, below), ncol=len(drawn), fontsize="small", frameon=False
    )
    return ax
