"""A plan for the eye: text, a rich table, HTML and a picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.counts.count_plan import Plan

__all__ = ["draw", "html", "table", "text"]

_HEADINGS = ("mechanism", "rms error", "worst element", "95 % all within", "squared error", "")
_FAR = 20
"""Errors further apart than this factor are drawn on a logarithmic axis."""


def _cells(plan: Plan) -> list[tuple[str, ...]]:
    least = min(row.rmse for row in plan.rows)
    return [
        (
            row.name,
            f"{row.rmse:.4g}",
            f"{row.worst:.4g}",
            f"± {row.half_width:,.0f}",
            f"× {(row.rmse / least) ** 2:.3g}" if least else "",
            row.note,
        )
        for row in plan.rows
    ]


def _title(plan: Plan) -> str:
    return f"{len(plan.P)} counts, {plan.guarantee}"


def text(plan: Plan) -> str:
    """A plain table."""
    lines = [_HEADINGS, *_cells(plan)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADINGS))]
    body = [
        "  ".join(
            cell.ljust(w) if i in (0, 5) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([_title(plan), *(line.rstrip() for line in body)])


def table(plan: Plan) -> Table:
    """A table for rich consoles."""
    result = Table(title=_title(plan), title_justify="left", header_style="bold")
    for i, heading in enumerate(_HEADINGS):
        result.add_column(heading, justify="left" if i in (0, 5) else "right")
    for i, cells in enumerate(_cells(plan)):
        result.add_row(*cells, style="bold" if i == 0 else None)
    return result


def html(plan: Plan) -> str:
    """A table for notebooks."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in _HEADINGS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in _cells(plan)
    )
    caption = f"<caption>{escape(_title(plan))}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def draw(plan: Plan, ax: Axes | None = None) -> Axes:
    """One line per mechanism, best on top: error of a typical and of the worst element, and the 95 % width."""
    from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=(7, 1 + 0.45 * len(plan.rows)), layout="constrained").subplots()
    places = range(len(plan.rows))
    errors = [row.rmse for row in plan.rows]
    widths = [row.half_width for row in plan.rows]
    ax.hlines(places, errors, widths, color="0.8", zorder=1)
    ax.plot(errors, places, "o", color="C0", label="root mean squared error")
    ax.plot([row.worst for row in plan.rows], places, "|", color="C3", ms=14, mew=2, label="worst element")
    ax.plot(widths, places, "D", color="C1", label="95 %: all within")
    ax.set_yticks(places, [row.name.removesuffix("Mechanism") for row in plan.rows])
    ax.set_ylim(len(plan.rows) - 0.5, -0.5)
    if max(widths) > _FAR * min(errors):
        ax.set_xscale("log")
    else:
        ax.set_xlim(left=0)
    ax.set_xlabel("error of a count")
    ax.set_title(_title(plan), loc="left", fontsize="medium")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncol=3, fontsize="small", frameon=False)
    return ax
