"""From rows to one count per category of a public list, with at most k categories per privacy unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.reading.columns import ColumnRule, as_integer, as_text, name_texts, public_texts, read_columns
from isotone.reading.contributions import RowsOfUnits, UnitKey, check_contributions
from isotone.reading.operations import numbered
from isotone.reading.sources import Frame, collect, open_source

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
        public_texts(self.categories, "categories")
        if self.unit is not None:
            object.__setattr__(self, "contributions", check_contributions(self.contributions, self.unit))
        if self.count is not None and self.unit is not None:
            raise InputError("Rows that are already counts (count=) have no unit: leave out unit= or count=.")

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The categories as a column of any type would have them."""
        return name_texts(self.categories)

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        counts = [] if self.count is None else [self.count]
        return open_source(self.data, {"category": [self.category], "number": counts, **self.unit_roles})


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


# From rows to two counts per category of a public list, with at most k counts per privacy unit over both columns together.

_KIND, _SIDE, _COUNTS = "isotone_kind", "isotone_side", ("isotone_first", "isotone_second")


@dataclass(frozen=True)
class PairSource(RowsOfUnits):
    """Microdata (a row says that a unit is in a category, in one of two columns), or aggregated rows with two columns of counts.

    ``names`` are the public names of the two columns. With ``kind``, a column of the data, rows say which of the two they belong to, and
    others are ignored; a unit counts at most once in a column of a category, and in at most ``contributions`` of them over both columns, chosen
    with equal probability. Without ``kind`` the two names are columns of counts: whole numbers, clamped to [0, ``upper``].
    """

    data: Any
    category: str
    categories: tuple[str, ...]
    upper: int
    names: tuple[str, str]
    kind: str | None = None
    unit: UnitKey = None
    contributions: int = 1

    def __post_init__(self) -> None:
        public_texts(self.categories, "categories")
        public_texts(self.names, "The names of the two columns of a pair")
        if self.kind is None and self.unit is not None:
            raise InputError("Rows that are already counts have no unit: leave out unit=, or give kind=.")
        if self.unit is not None:
            check_contributions(self.contributions, self.unit)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The categories as a column of any type would have them."""
        return name_texts(self.categories)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of both columns as a column of any type would have them."""
        return name_texts(self.names)

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        counts = list(self.names) if self.kind is None else []
        names = [self.category] if self.kind is None else [self.category, self.kind]
        return open_source(self.data, {"category": names, "number": counts, **self.unit_roles})


def count_pairs(source: PairSource, frame: Frame, salt: bytes | None = None) -> NDArray[np.int64]:
    """The counts of all categories in the first column, then those in the second.

    ``frame`` is what ``source.open`` returned. ``salt`` is for tests: a release draws its own.
    """
    category = {_CATEGORY: ColumnRule(as_text, source.category)}
    counts = np.zeros((2, len(source.texts)), np.int64)
    if source.kind is None:
        numbers = {
            label: ColumnRule(as_integer, name) for name, label in zip(source.names, _COUNTS, strict=True)
        }
        clamped = [nw.col(label).fill_null(0).clip(0, source.upper) for label in _COUNTS]
        rows = read_columns(frame, {**category, **numbers}).with_columns(*clamped)
        known = numbered(rows, _CATEGORY, source.texts, _PLACE)
        found = collect(known.group_by(_PLACE).agg(*(nw.col(label).sum() for label in _COUNTS)))
        counts[:, np.array(found[_PLACE], dtype=np.intp)] = [found[label] for label in _COUNTS]
    else:
        named = {**category, _KIND: ColumnRule(as_text, source.kind), **source.unit_keys()}
        rows = numbered(read_columns(frame, named), _CATEGORY, source.texts, _PLACE)
        rows = numbered(rows, _KIND, source.kinds, _SIDE)
        rows = source.bounded(rows, [_CATEGORY, _KIND], salt, once=True)
        found = collect(rows.group_by(_SIDE, _PLACE).agg(nw.len().alias(_COUNTS[0])))
        cells = np.array(found[_SIDE], dtype=np.intp), np.array(found[_PLACE], dtype=np.intp)
        counts[cells] = found[_COUNTS[0]]
    return counts.ravel()
