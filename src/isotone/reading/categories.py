"""From rows to one count per category of a public list, with at most k categories per privacy unit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.reading.columns.numbers import as_integer
from isotone.reading.columns.public_lists import numbered
from isotone.reading.columns.texts import as_text, name_text
from isotone.reading.columns.translated import ColumnRule, read_columns
from isotone.reading.contributions import RowsOfUnits, UnitKey, check_contributions
from isotone.reading.sources.opening import Frame, collect, open_source

__all__ = ["CategorySource", "count_categories"]

_CATEGORY, _PLACE, _COUNT = "isotone_category", "isotone_place", "isotone_count"


@dataclass(frozen=True)
class CategorySource(RowsOfUnits):
    """Microdata (a row says that a unit is in a category), or aggregated rows with a column of counts.

    ``categories`` is the public list; rows of other categories are ignored, absent categories count 0. A unit
    in more than ``contributions`` categories counts in that many of them, chosen with equal probability.
    With ``count`` each row carries the count of its category: whole numbers, clamped to [0, ``upper``];
    whatever else stands there counts as 0. The rows of one category are added up.
    """

    data: Any
    category: str
    categories: tuple[str, ...]
    upper: int
    count: str | None = None
    unit: UnitKey = None
    contributions: int = 1

    def __post_init__(self) -> None:
        texts = self.texts
        if len(set(texts)) < len(texts):
            twice = min(name for name, times in Counter(texts).items() if times > 1)
            raise InputError(f"categories must be distinct; {twice!r} is there twice.")
        if self.unit is not None:
            object.__setattr__(self, "contributions", check_contributions(self.contributions, self.unit))
        if self.count is not None and self.unit is not None:
            raise InputError("Rows that are already counts (count=) have no unit: leave out unit= or count=.")

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The categories as a column of any type would have them."""
        return tuple(map(name_text, self.categories))

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        counts = [] if self.count is None else [self.count]
        return open_source(self.data, [self.category, *counts, *self.unit_columns])


def count_categories(source: CategorySource, frame: Frame, salt: bytes | None = None) -> NDArray[np.int64]:
    """One count per category, in the order of the public list.

    ``frame`` is what ``source.open`` returned.

    ``salt`` is for tests: a release draws its own.
    """
    category = {_CATEGORY: ColumnRule(as_text, source.category)}
    if source.count is not None:
        number = {_COUNT: ColumnRule(as_integer, source.count)}
        clamped = nw.col(_COUNT).fill_null(0).clip(0, source.upper)
        rows = read_columns(frame, {**category, **number}).with_columns(clamped)
        known, counted = numbered(rows, _CATEGORY, source.texts, _PLACE), nw.col(_COUNT).sum()
    else:
        rows = read_columns(frame, {**category, **source.unit_keys()})
        rows = numbered(rows, _CATEGORY, source.texts, _PLACE)
        known, counted = source.bounded(rows, [_CATEGORY], salt, once=True), nw.len().alias(_COUNT)
    found = collect(known.group_by(_PLACE).agg(counted))
    counts = np.zeros(len(source.texts), dtype=np.int64)
    counts[np.array(found[_PLACE], dtype=np.intp)] = found[_COUNT]
    return counts
