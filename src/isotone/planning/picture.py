"""A plan as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.lazy import from_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.planning.plan import Plan

__all__ = ["draw"]

_FAR = 20
"""Errors further apart than this factor are drawn on a logarithmic axis."""


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
