"""From rows to one count per category of a public list, with at most k categories per privacy unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.reading.columns.numbers import as_integer
from isotone.reading.columns.texts import as_text, name_text
from isotone.reading.columns.translated import ColumnRule, read_columns
from isotone.reading.contributions import RowsOfUnits, UnitKey, check_contributions
from isotone.reading.sources.opening import Frame, collect, open_source

__all__ = ["CategorySource", "count_categories"]

_CATEGORY, _COUNT = "isotone_category", "isotone_count"


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
            twice = sorted({name for name in texts if texts.count(name) > 1})
            raise InputError(f"categories must be distinct; {twice[0]!r} is there twice.")
        if self.unit is not None:
            object.__setattr__(self, "contributions", check_contributions(self.contributions, self.unit))
        if self.count is not None and self.unit is not None:
            raise InputError("Rows that are already counts (count=) have no unit: leave out unit= or count=.")

    @property
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
    known = nw.col(_CATEGORY).is_in(list(source.texts)).fill_null(False)
    if source.count is not None:
        number = {_COUNT: ColumnRule(as_integer, source.count)}
        clamped = nw.col(_COUNT).fill_null(0).clip(0, source.upper)
        rows = read_columns(frame, {**category, **number}).filter(known).with_columns(clamped)
        counted = rows.group_by(_CATEGORY).agg(nw.col(_COUNT).sum())
    else:
        rows = read_columns(frame, {**category, **source.unit_keys()}).filter(known)
        bounded = source.bounded(rows, [_CATEGORY], salt, once=True)
        counted = bounded.group_by(_CATEGORY).agg(nw.len().alias(_COUNT))
    return _in_public_order(collect(counted), source.texts)


def _in_public_order(rows: dict[str, list[Any]], categories: Sequence[str]) -> NDArray[np.int64]:
    place = {name: i for i, name in enumerate(categories)}
    counts = np.zeros(len(categories), dtype=np.int64)
    for name, count in zip(rows[_CATEGORY], rows[_COUNT], strict=True):
        counts[place[name]] = int(count)
    return counts
