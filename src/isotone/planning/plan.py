"""A plan lists mechanisms with their errors, best first. Nothing is read and nothing is spent.

Counts, tables and curves each have rows of their own, which say what their columns are. What a plan can do with rows is the
same for all: it prints as a table in a terminal and in a notebook, draws itself, and turns into plain values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from isotone.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Column", "Plan", "Row"]


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

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a line for each mechanism, the best on top."""
        from isotone.planning.view import draw

        return draw(self, ax)

    def __str__(self) -> str:
        from isotone.planning.view import text

        return text(self)

    def __rich__(self) -> Any:
        from isotone.planning.view import table

        return table(self)

    def _repr_html_(self) -> str:
        from isotone.planning.view import html

        return html(self)
