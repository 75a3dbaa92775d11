"""Public groups of records, one list of values, or the cells of several lists.

What is in no list is left out with its row, or is one more value that all such rows share. Either way the group of a row
depends on that row alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError
from isotone.reading.columns.public_lists import listed, numbered
from isotone.reading.columns.texts import as_text, name_text
from isotone.reading.columns.translated import ColumnRule

__all__ = ["GROUP", "Groups"]

Frame = nw.LazyFrame[Any]

GROUP = "isotone_group"
"""The column with the number of the group, or of the cell, of a row."""


@dataclass(frozen=True)
class Groups:
    """The values of a public list, or the cells of several. Their sequence is that of the first list, then of the second, and so on.

    Each unit is counted in one of them.

    ``unlisted`` says what happens to a row with a value that is in no list: "drop" leaves it out altogether, "other" puts
    it under the last value of the list, which is for all such rows.
    """

    lists: tuple[tuple[str, tuple[str, ...]], ...]
    unlisted: Literal["drop", "other"] = "drop"

    def __post_init__(self) -> None:
        for _, values in self.lists:
            if not values or len(set(map(name_text, values))) < len(values):
                raise InputError("groups must be a public list of distinct values with at least one entry.")

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [column for column, _ in self.lists]

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(len(values) for _, values in self.lists)

    def keys(self) -> dict[str, ColumnRule]:
        """The texts that say the cell of a row."""
        return {_text(i): ColumnRule(as_text, column) for i, column in enumerate(self.columns)}

    def placed(self, frame: Frame) -> Frame:
        """The rows that have a cell, with its number."""
        number = nw.lit(0).cast(nw.Int64)
        for i, (_, values) in enumerate(self.lists):
            texts = [name_text(value) for value in values]
            if self.unlisted == "drop":
                frame = numbered(frame, _text(i), texts, _place(i))
            else:
                places: list[int | None] = list(range(len(texts) - 1))
                frame = listed(frame, _text(i), texts[:-1], {_place(i): places})
            place = nw.col(_place(i)).fill_null(len(values) - 1).cast(nw.Int64)
            number = number * len(values) + place
        used = [name(i) for i in range(len(self.lists)) for name in (_text, _place)]
        return frame.with_columns(number.alias(GROUP)).drop(*used)


def _text(i: int) -> str:
    return f"isotone_group_name_{i}"


def _place(i: int) -> str:
    return f"isotone_group_place_{i}"
