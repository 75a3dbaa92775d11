"""From rows to records: one yes/no record per privacy unit, repaired by declared rules, then counted.

Everything is a lazy query that runs where the data is; what comes back is one number per element. Every rule
here looks at one unit at a time (its rows are combined first, then closed or dropped, then cut to size), so
adding or removing a unit adds or removes whole records: the sensitivity is what the mechanism assumes,
whatever the data contains.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading.answers import Answers
from isotone.reading.sources import Frame, collect, open_source
from isotone.reading.texts import as_text, as_unit, name_text

__all__ = ["Groups", "RecordRules", "RecordSource", "count_records"]

_UNIT, _GROUP, _RECORDS = "isotone_unit", "isotone_group", "isotone_records"
_DEEP = 48  # above this height records are closed in one step with long expressions, not level by level


@dataclass(frozen=True)
class Groups:
    """A public list of groups; each unit is counted in one of them."""

    column: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(map(name_text, self.values))) < len(self.values):
            raise InputError("groups must be a public list of distinct values with at least one entry.")


@dataclass(frozen=True)
class RecordRules:
    """How rows become records. All of it is declared, none of it depends on the contents.

    ``unit`` names the column of the privacy unit (None: each row is a unit). With ``contributions=1`` a
    unit's rows are combined into one record (any yes is a yes); with ``contributions=k`` the first k rows of
    a unit count, rows in lexicographic order of their answers. ``on_violation`` says what happens to a record
    that breaks the order: "close" takes the smallest filter that contains it, "drop" leaves it out.
    ``max_size=k`` keeps the first k yeses along the linear extension from the top.
    """

    unit: str | None = None
    contributions: int = 1
    on_violation: Literal["close", "drop"] = "close"
    max_size: int | None = None
    answers: Answers = field(default_factory=Answers)

    def __post_init__(self) -> None:
        if self.on_violation not in ("close", "drop"):
            raise InputError(f"on_violation must be 'close' or 'drop', not {self.on_violation!r}.")
        if isinstance(self.contributions, bool) or self.contributions < 1:
            raise InputError(f"contributions must be a whole number from 1, not {self.contributions!r}.")
        if self.contributions > 1 and self.unit is None:
            raise InputError(
                "contributions above 1 needs unit=: the column that says whose rows belong together."
            )
        if self.max_size is not None and self.max_size < 1:
            raise InputError(f"max_size must be at least 1, not {self.max_size!r}.")


@dataclass(frozen=True)
class RecordSource:
    """Where the answers stand: a column for each element (wide), or a column that names the element (long).

    ``columns`` maps elements to columns when they have other names than the elements.
    """

    data: Any
    element: str | None = None
    columns: Mapping[Any, str] = field(default_factory=dict[Any, str])

    def column(self, element: Hashable) -> str:
        """The column of an element."""
        return self.columns.get(element, str(element))

    def open(self, P: Poset, rules: RecordRules, groups: Groups | None) -> Frame:
        """The columns that are needed, lazily; refuses what names and types alone show to be wrong."""
        if self.element is not None and rules.unit is None:
            raise InputError("Long data (element=) needs unit=: a row says that this unit has this element.")
        if self.element is not None and rules.contributions > 1:
            raise InputError("Long data is one record per unit; contributions above 1 has no meaning for it.")
        unknown = set(self.columns) - set(P.elements)
        if unknown:
            raise InputError(
                f"columns= names elements that are not in the order: {sorted(map(str, unknown))}."
            )
        wanted = [self.element] if self.element is not None else [self.column(x) for x in P.elements]
        extra = [rules.unit] if rules.unit is not None else []
        return open_source(self.data, [*wanted, *extra, *([groups.column] if groups else [])])


def count_records(
    source: RecordSource, frame: Frame, P: Poset, rules: RecordRules, groups: Groups | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts (one row per group, one column per element) and the number of records of each group.

    ``frame`` is what ``source.open`` returned.
    """
    names = [f"isotone_{i}" for i in range(len(P))]
    read = _long if source.element is not None else _wide
    records = read(source, frame, P, rules, groups, names)
    records = (_close if rules.on_violation == "close" else _drop)(records, P, names)
    if rules.max_size is not None and rules.max_size < len(P):
        records = _cut(records, P, names, rules.max_size)
    sums = [
        nw.col(name).cast(nw.Int8).sum().alias(name) for name in names
    ]  # every engine sums bytes as 64 bits
    if groups is None:
        rows = collect(records.select(*sums, nw.len().alias(_RECORDS)))
        rows[_GROUP] = [0]
    else:
        rows = collect(records.group_by(_GROUP).agg(*sums, nw.len().alias(_RECORDS)))
    counts = np.zeros((len(groups.values) if groups else 1, len(P) + 1), dtype=np.int64)
    for i, group in enumerate(rows[_GROUP]):
        counts[int(group)] = [rows[name][i] or 0 for name in [*names, _RECORDS]]
    return counts[:, :-1], counts[:, -1]


def _wide(
    source: RecordSource, frame: Frame, P: Poset, rules: RecordRules, groups: Groups | None, names: list[str]
) -> Frame:
    schema = frame.collect_schema()
    columns = [source.column(x) for x in P.elements]
    answers = [
        rules.answers.read(column, schema[column]).alias(name)
        for column, name in zip(columns, names, strict=True)
    ]
    frame = _known(frame.select(*answers, *_keys(rules, groups, schema)), rules, groups)
    if rules.unit is None:
        return frame
    if rules.contributions == 1:
        return _combined(frame, groups, [nw.col(name).any() for name in names])
    order = [*names, *([_GROUP] if groups else [])]
    position = nw.col(names[0]).cum_count().over(_UNIT, order_by=order)
    return frame.with_columns(position.alias(_RECORDS)).filter(nw.col(_RECORDS) <= rules.contributions)


def _long(
    source: RecordSource, frame: Frame, P: Poset, rules: RecordRules, groups: Groups | None, names: list[str]
) -> Frame:
    assert source.element is not None
    schema = frame.collect_schema()
    item = as_text(source.element, schema[source.element]).alias("isotone_item")
    frame = _known(frame.select(item, *_keys(rules, groups, schema)), rules, groups)
    has = [(nw.col("isotone_item") == name_text(x)).fill_null(False) for x in P.elements]
    marked = frame.with_columns(*(yes.alias(name) for yes, name in zip(has, names, strict=True)))
    return _combined(marked, groups, [nw.col(name).any() for name in names])


def _keys(rules: RecordRules, groups: Groups | None, schema: Mapping[str, Any]) -> list[nw.Expr]:
    keys: list[nw.Expr] = []
    if rules.unit is not None:
        keys.append(as_unit(rules.unit, schema[rules.unit]).alias(_UNIT))
    if groups is not None:
        group = nw.lit(-1)
        text = as_text(groups.column, schema[groups.column])
        for i, value in reversed(list(enumerate(groups.values))):
            group = nw.when((text == name_text(value)).fill_null(False)).then(nw.lit(i)).otherwise(group)
        keys.append(group.cast(nw.Int32).alias(_GROUP))
    return keys


def _known(frame: Frame, rules: RecordRules, groups: Groups | None) -> Frame:
    """Without the rows that belong to no unit or to no public group."""
    if rules.unit is not None:
        frame = frame.filter(~nw.col(_UNIT).is_null())
    return frame.filter(nw.col(_GROUP) >= 0) if groups else frame


def _combined(frame: Frame, groups: Groups | None, answers: Sequence[nw.Expr]) -> Frame:
    """One row per unit; a unit in several groups is counted in the first of the public list."""
    group = [nw.col(_GROUP).min()] if groups else []
    return frame.group_by(_UNIT).agg(*answers, *group)


def _close(records: Frame, P: Poset, names: list[str]) -> Frame:
    if P.height > _DEEP:
        below = P.leq_matrix()
        closed = [
            nw.any_horizontal(*(names[w] for w in np.flatnonzero(below[:, x])), ignore_nulls=False).alias(
                names[x]
            )
            for x in range(len(P))
        ]
        return records.with_columns(*closed)
    lower: list[list[int]] = [[] for _ in names]
    level = np.zeros(len(P), dtype=np.int64)
    for w, x in P.cover_pairs:
        lower[x].append(int(w))
    for x in P.linear_order:
        level[x] = 1 + max((level[w] for w in lower[x]), default=-1)
    for height in range(1, P.height):
        at = np.flatnonzero(level == height)
        records = records.with_columns(
            *(
                nw.any_horizontal(names[x], *(names[w] for w in lower[x]), ignore_nulls=False).alias(names[x])
                for x in at
            )
        )
    return records


def _drop(records: Frame, P: Poset, names: list[str]) -> Frame:
    """Only the records that are filters: no cover has a yes below a no."""
    for w, x in P.cover_pairs:
        records = records.filter(~nw.col(names[int(w)]) | nw.col(names[int(x)]))
    return records


def _cut(records: Frame, P: Poset, names: list[str], size: int) -> Frame:
    """The first ``size`` yeses of each record, walking the linear extension from the top."""
    walk = [names[x] for x in reversed(P.canonical.positions)]
    rank = {name: f"{name}_rank" for name in walk}
    records = records.with_columns(*(nw.col(name).cast(nw.Int32).alias(rank[name]) for name in walk))
    step = 1
    while step < len(walk):  # running sums by doubling: few layers, however many elements
        records = records.with_columns(
            *(
                (nw.col(rank[walk[i]]) + nw.col(rank[walk[i - step]])).alias(rank[walk[i]])
                for i in range(step, len(walk))
            )
        )
        step *= 2
    kept = [(nw.col(name) & (nw.col(rank[name]) <= size)).alias(name) for name in walk]
    return records.with_columns(*kept)
