"""From rows to two counts per category of a public list, with at most k counts per privacy unit over both columns together."""

from __future__ import annotations

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

__all__ = ["PairSource", "count_pairs"]

_CATEGORY, _KIND, _COUNTS = "isotone_category", "isotone_kind", ("isotone_first", "isotone_second")


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
        texts = self.texts
        if len(set(texts)) < len(texts):
            raise InputError("categories must be distinct.")
        if len(set(self.kinds)) < 2:
            raise InputError("The two columns of a pair must have different names.")
        if self.kind is None and self.unit is not None:
            raise InputError("Rows that are already counts have no unit: leave out unit=, or give kind=.")
        if self.unit is not None:
            check_contributions(self.contributions, self.unit)

    @property
    def texts(self) -> tuple[str, ...]:
        """The categories as a column of any type would have them."""
        return tuple(map(name_text, self.categories))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of both columns as a column of any type would have them."""
        return tuple(map(name_text, self.names))

    def open(self) -> Frame:
        """The columns that are needed, lazily."""
        extra = list(self.names) if self.kind is None else [self.kind]
        return open_source(self.data, [self.category, *extra, *self.unit_columns])


def count_pairs(source: PairSource, frame: Frame, salt: bytes | None = None) -> NDArray[np.int64]:
    """The counts of all categories in the first column, then those in the second.

    ``frame`` is what ``source.open`` returned. ``salt`` is for tests: a release draws its own.
    """
    category = {_CATEGORY: ColumnRule(as_text, source.category)}
    known = nw.col(_CATEGORY).is_in(list(source.texts)).fill_null(False)
    if source.kind is None:
        numbers = {
            label: ColumnRule(as_integer, name) for name, label in zip(source.names, _COUNTS, strict=True)
        }
        clamped = [nw.col(label).fill_null(0).clip(0, source.upper) for label in _COUNTS]
        rows = read_columns(frame, {**category, **numbers}).filter(known).with_columns(*clamped)
        counted = collect(rows.group_by(_CATEGORY).agg(*(nw.col(label).sum() for label in _COUNTS)))
        parts = [dict(zip(counted[_CATEGORY], counted[label], strict=True)) for label in _COUNTS]
    else:
        parts = _of_rows(source, frame, category, known, salt)
    return np.array(
        [min(int(part.get(name, 0)), 1 << 62) for part in parts for name in source.texts], np.int64
    )


def _of_rows(
    source: PairSource, frame: Frame, category: dict[str, ColumnRule], known: Any, salt: bytes | None
) -> list[dict[str, int]]:
    assert source.kind is not None
    named = {**category, _KIND: ColumnRule(as_text, source.kind)}
    listed = known & nw.col(_KIND).is_in(list(source.kinds)).fill_null(False)
    rows = read_columns(frame, {**named, **source.unit_keys()}).filter(listed)
    rows = source.bounded(rows, [_CATEGORY, _KIND], salt, once=True)
    counted = collect(rows.group_by(_CATEGORY, _KIND).agg(nw.len().alias(_COUNTS[0])))
    cells = zip(counted[_CATEGORY], counted[_KIND], counted[_COUNTS[0]], strict=True)
    parts: list[dict[str, int]] = [{}, {}]
    for name, which, number in cells:
        parts[source.kinds.index(which)][name] = number
    return parts
