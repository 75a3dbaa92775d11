"""The section of a spec that asks for a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import model_validator

from isotone.release.order_files import read_categories, read_column
from isotone.release.sections import Section, Size, Text
from isotone.tables.emphasis import Emphasis
from isotone.tables.shapes import Shape

__all__ = ["TableSection"]


class TableSection(Section):
    """``[table]``: one count per category."""

    category: Text
    """The column of the categories."""
    categories: list[str] | None = None
    """The public list of the categories: others are ignored, absent ones count 0."""
    categories_file: Text | None = None
    """A public CSV file that has the list, in a column called like category."""
    count: Text | None = None
    """For rows that are already counts: the column of the count. Without it a row counts as one."""
    counts: list[Text] | None = None
    """Two columns of counts, released with their joint distribution; or, with kind, two values of that column."""
    kind: Text | None = None
    """With counts: the column that says to which of the two a row belongs. A row then counts as one."""
    upper: Size
    """The largest count. Counts above it are clipped to it. Not chosen by the data."""
    emphasis: Emphasis | float | None = None
    """What ε is spent on, from 0 (counts) to 1 (distribution), or "counts" (0.02), "both" (0.05) or "distribution" (0.5). By default "both" for an ε below 1 or eight categories or more for each pair of counts, and otherwise "counts". Below 1 it is "counts" for two columns."""
    strata: Text | None = None
    """The column of categories_file with the public class of each category. Each class is measured with all of ε."""
    population: Text | None = None
    """The column of categories_file with the public population of each category, for rates per 100,000."""
    shape: Shape = "skewed"
    """Your guess at the distribution, for the plan alone: a release does not use it."""

    @model_validator(mode="after")
    def _one_list(self) -> TableSection:
        if (self.categories is None) == (self.categories_file is None):
            raise ValueError("give categories (the public list) or categories_file, and not both")
        if self.counts is not None and (self.count or self.strata or self.population):
            raise ValueError("counts (two columns) takes no count, strata or population")
        if self.kind is not None and self.counts is None:
            raise ValueError("kind goes with counts, the two values of that column")
        if self.categories_file is None and (self.strata or self.population):
            raise ValueError("strata and population name columns of categories_file: give that file")
        return self

    def names(self, resolve: Callable[[str], Path]) -> tuple[str, ...]:
        """The public list of categories."""
        if self.categories is not None:
            return tuple(self.categories)
        assert self.categories_file is not None
        return read_categories(resolve(self.categories_file), self.category)

    def column(self, name: str | None, resolve: Callable[[str], Path]) -> tuple[str, ...] | None:
        """A further column of the public list, in the order of the categories."""
        if name is None:
            return None
        assert self.categories_file is not None
        return read_column(resolve(self.categories_file), self.category, name)

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the list of a file in place of its name."""
        said = super().content(resolve)
        if self.categories_file is None:
            return said
        columns = {key: self.column(getattr(self, key), resolve) for key in ("strata", "population")}
        listed = {key: list(column) for key, column in columns.items() if column is not None}
        return {**said, "categories_file": list(self.names(resolve)), **listed}
