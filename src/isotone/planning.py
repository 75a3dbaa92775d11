"""A plan lists mechanisms with their errors, best first. Nothing is read and nothing is spent.

Counts, tables and curves each have rows of their own, which say what their columns are. What a plan can do with rows is the
same for all: it prints as a table in a terminal and in a notebook, draws itself, and turns into plain values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from isotone.errors import InputError
from isotone.lazy import from_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

_FAR = 20
"""Errors further apart than this factor are drawn on a logarithmic axis."""

_LEAST, _MOST = 1e-3, 20.0


def least_budget(is_enough: Callable[[float], bool], near: float | None = None) -> float:
    """The least ε or ρ between 0.001 and 20 that is enough, to three digits and within 2 %, where no formula gives it.

    ``near`` is about where it is; where it is not, it is looked for everywhere.
    """
    low, high = _LEAST, _MOST
    if near is not None and _LEAST < 0.8 * near < 1.25 * near < _MOST:
        below, above = float(f"{0.8 * near:.2e}"), float(f"{1.25 * near:.2e}")
        if is_enough(above) and not is_enough(below):
            low, high = below, above
    # another kind of noise, with wider intervals, may be the best at a larger budget: then a smaller one is tried
    while not is_enough(high):
        high /= 2
        if high < low:
            raise InputError(f"Not even a budget of {_MOST:g} keeps within this error.")
    while high > low * 1.02:
        middle = float(f"{math.sqrt(low * high):.2e}")
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Column:
    """One number of every row, with its attribute, its heading and its format.

    A column with a ``marker`` is drawn with it, as matplotlib calls markers.
    """

    name: str
    heading: str
    written: Callable[[Any], str] = "{:.4g}".format
    marker: str = ""


@dataclass(frozen=True)
class Row:
    """One mechanism of a plan, ready to release, and what it is called there."""

    columns: ClassVar[tuple[Column, ...]]
    """The numbers of a row, the first one being the error."""

    name: str
    mechanism: Any = field(compare=False)

    @property
    def note(self) -> str:
        """What else to know, in words."""
        return ""

    def plain(self) -> dict[str, Any]:
        """The row as plain values."""
        numbers = {column.name: float(getattr(self, column.name)) for column in self.columns}
        return {"mechanism": self.name, **numbers, "note": self.note}


def aligned(lines: Sequence[Sequence[str]], words: Collection[int]) -> list[str]:
    """Headings and rows as plain lines. The columns numbered in ``words`` begin at their left, the others end at their right."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


RowT = TypeVar("RowT", bound=Row, covariant=True)


@dataclass(frozen=True)
class Plan(ABC, Generic[RowT]):
    """Mechanisms for one question, best first. ``best`` is ready to release."""

    rows: tuple[RowT, ...]

    @property
    @abstractmethod
    def title(self) -> str:
        """The question in words."""

    @property
    def remark(self) -> str:
        """What is said below the table, if anything."""
        return ""

    @property
    def best(self) -> Any:
        """The mechanism of the first row."""
        return self.rows[0].mechanism

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> RowT:
        for row in self.rows:
            if row.name == name:
                return row
        raise InputError(f"The plan has no {name!r}. It has: {', '.join(row.name for row in self.rows)}.")

    def plain(self) -> dict[str, Any]:
        """The plan as plain values, which JSON can hold."""
        return {"best": self.rows[0].name, "rows": [row.plain() for row in self.rows]}

    def lines(self) -> list[tuple[str, ...]]:
        """Headings and rows as texts. The first and the last column are words, the others numbers."""
        columns = self.rows[0].columns
        rows = [
            (row.name, *(column.written(getattr(row, column.name)) for column in columns), row.note)
            for row in self.rows
        ]
        return [("mechanism", *(column.heading for column in columns), ""), *rows]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a line for each mechanism, the best on top, with a mark for each column that has one."""
        if ax is None:
            figure = from_extra("matplotlib.figure", "plot").Figure
            new: Axes = figure(figsize=(7, 1 + 0.45 * len(self.rows)), layout="constrained").subplots()
            ax = new
        places = range(len(self.rows))
        drawn = [column for column in self.rows[0].columns if column.marker]
        values = {column: [float(getattr(row, column.name)) for row in self.rows] for column in drawn}
        ends = [(min(marks), max(marks)) for marks in zip(*values.values(), strict=True)]
        ax.hlines(places, [low for low, _ in ends], [high for _, high in ends], color="0.8", zorder=1)
        for number, (column, numbers) in enumerate(values.items()):
            ax.plot(numbers, places, column.marker, color=f"C{number}", ms=9, mew=2, label=column.heading)
        ax.set_yticks(places, [row.name.removesuffix("Mechanism") for row in self.rows])
        ax.set_ylim(len(self.rows) - 0.5, -0.5)
        least, most = min(low for low, _ in ends), max(high for _, high in ends)
        if 0 < _FAR * least < most:
            ax.set_xscale("log")
        else:
            ax.set_xlim(left=0)
        ax.set_xlabel("error")
        ax.set_title(self.title, loc="left", fontsize="medium")
        below = -0.45 / (0.2 + 0.45 * len(self.rows))  # under the label of the axis, however low the picture
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, below), ncol=len(drawn), fontsize="small", frameon=False
        )
        return ax

    def __str__(self) -> str:
        lines = self.lines()
        last = len(lines[0]) - 1
        body = aligned(lines, words={0, last})
        return "\n".join([self.title, *body, *([self.remark] if self.remark else [])])

    def __rich__(self) -> Table:
        from rich.table import Table

        result = Table(title=self.title, title_justify="left", header_style="bold")
        result.caption, result.caption_justify = self.remark or None, "left"
        headings, *rows = self.lines()
        for place, heading in enumerate(headings):
            result.add_column(heading, justify="right" if 0 < place < len(headings) - 1 else "left")
        for place, cells in enumerate(rows):
            result.add_row(*cells, style=None if place else "bold")
        return result

    def _repr_html_(self) -> str:
        headings, *rows = self.lines()
        head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        caption = f"<caption>{escape(self.title)}</caption>"
        remark = f"<p>{escape(self.remark)}</p>" if self.remark else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remark}"
