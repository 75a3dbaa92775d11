"""The section of a spec that asks for a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from isotone.release.order_files import read_categories
from isotone.release.sections import Real, Section, Size, Text
from isotone.tables.shapes import Shape

__all__ = ["Table"]


class Table(Section):
    """``[table]``: one count per category."""

    category: Text
    """The column of the categories."""
    categories: list[str] | None = None
    """The public list of the categories: others are ignored, absent ones count 0."""
    categories_file: Text | None = None
    """A public CSV file that has the list, in a column called like category."""
    count: Text | None = None
    """For rows that are already counts: the column of the count. Without it a row counts as one."""
    upper: Size
    """The largest count. Counts above it are clipped to it. Not chosen by the data."""
    remap: Literal["auto", "rows", "table"] = "auto"
    """Whether counts are published row by row or from an estimate for the whole table; "auto" decides by public numbers and by what is already private."""
    split: Real | None = None
    """The share of ε that goes to the distribution. By default a rule of thumb."""
    shape: Shape = "skewed"
    """Your guess at the distribution, for the plan alone: a release does not use it."""

    @model_validator(mode="after")
    def _one_list(self) -> Table:
        if (self.categories is None) == (self.categories_file is None):
            raise ValueError("give categories (the public list) or categories_file, and not both")
        return self

    def names(self, resolve: Callable[[str], Path]) -> tuple[str, ...]:
        """The public list of categories."""
        if self.categories is not None:
            return tuple(self.categories)
        assert self.categories_file is not None
        return read_categories(resolve(self.categories_file), self.category)

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the list of a file in place of its name."""
        said = super().content(resolve)
        return (
            said if self.categories_file is None else {**said, "categories_file": list(self.names(resolve))}
        )
