"""From rows to one yes/no record for each unit, repaired by declared rules, and from records to counts.

Give every record at most one option of each choice.

A rule that is declared beforehand and looks at one record at a time, after the rows of its unit are combined and
the record is closed upward; earlier, two rows of a unit could still bring two options together.
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
from isotone.order.building import Ends, is_hierarchy
from isotone.order.closure import Options, innermost_first, partitions_upward
from isotone.order.poset import closing_stages
from isotone.privacy.checks import one_of, whole_number
from isotone.reading.columns import ColumnRule, as_text, name_texts, public_texts, read_columns
from isotone.reading.contributions import (
    GROUP,
    UNIT,
    Groups,
    RowsOfUnits,
    UnitKey,
    at_most,
    check_contributions,
)
from isotone.reading.operations import Pick, any_of, cleared, joined, listed, picked, totals
from isotone.reading.questions import Answers, Question, asked_columns, read_answer, read_question
from isotone.reading.sources import Frame, collect, open_source

Conflict = Literal["first", "drop"]
"""What happens to a record that breaks a choice: it keeps the first option, or it is left out."""


def with_one_option(records: Frame, P: Poset, names: Sequence[str], rule: Conflict) -> Frame:
    """Every record with at most one option of each choice, and with one of a partition if it has the parent.

    ``records`` has a column of booleans for each element, called ``names``, and is closed upward. With
    ``"first"`` a yes whose partition has no option is taken back; then a record keeps the option that comes first in
    the sequence of the order's elements, and what is below it. With ``"drop"`` such records are left out.
    """
    if not P.choices:
        return records
    column = dict(zip(P.elements, names, strict=True))
    if rule == "drop":
        many, none = broken(P, names)
        return records.filter(~any_of([*many, *none]))
    # what is missing first, so that an option is not given up for one that cannot stay
    return picked(with_options(records, P, names), _conflicts(P, column))


def with_options(records: Frame, P: Poset, names: Sequence[str]) -> Frame:
    """Every record without the yeses whose partition has no option."""
    return cleared(records, _missing(P, dict(zip(P.elements, names, strict=True))))


def broken(P: Poset, names: Sequence[str]) -> tuple[list[nw.Expr], list[nw.Expr]]:
    """For each choice whether a record has several options, and for each partition whether it has none."""
    column, parent = dict(zip(P.elements, names, strict=True)), dict(P.covers)
    many: list[nw.Expr] = []
    none: list[nw.Expr] = []
    for choice in P.choices:
        options = [column[option] for option in choice.options]
        if len(options) > 1:
            many.append(nw.sum_horizontal(*(nw.col(name).cast(nw.Int32) for name in options)) > 1)
        if choice.kind == "partition":
            none.append(_without(column[parent[choice.options[0]]], options))
    return many, none


def _without(parent: str, options: Sequence[str]) -> nw.Expr:
    return nw.col(parent) & ~any_of([nw.col(name) for name in options])


def _conflicts(P: Poset, column: Mapping[Hashable, str]) -> list[list[Pick]]:
    """Which options to keep, outermost choices first, since an option that goes takes those below it along."""
    options = Options.of(P)
    inside: dict[Hashable, list[Hashable]] = {}
    for x in P.elements:
        above = options.nearest[x]
        while above is not None:
            inside.setdefault(above, []).append(x)
            above = options.enclosing[above]
    depth: dict[Hashable | None, int] = {None: 0}
    stages: list[list[Pick]] = []
    for choice in reversed(innermost_first(P)):
        level = depth[options.enclosing[choice.options[0]]]
        depth.update(dict.fromkeys(choice.options, level + 1))
        if len(choice.options) == 1:
            continue
        members = {column[x]: i for i, option in enumerate(choice.options) for x in inside[option] if i > 0}
        stages += [[] for _ in range(level + 1 - len(stages))]
        stages[level].append(Pick([column[option] for option in choice.options], members))
    return [stage for stage in stages if stage]


def _missing(P: Poset, column: Mapping[Hashable, str]) -> list[dict[str, list[tuple[str, list[str]]]]]:
    """Which yeses to take back for want of an option, lowest parents first.

    What is below an option that is missing is a no already. The rest below the parent goes with it.
    """
    levels = dict(zip(P.elements, P.levels.tolist(), strict=True))
    stages: dict[int, dict[str, list[tuple[str, list[str]]]]] = {}
    for top, options, others in partitions_upward(P):
        gone = column[top], [column[option] for option in options]
        for x in (top, *others):
            stages.setdefault(levels[top], {}).setdefault(column[x], []).append(gone)
    return [stages[level] for level in sorted(stages)]


# Count the records of a hierarchy from long data, one number for each unit.
#
# A unit's codes are joined with the public list of all codes, its record ends where the declared rule says, and the units
# of each end are counted: one grouped query, however many codes there are. The result is that of
# :mod:`isotone.reading.records`, which works for any order.

_END, _RANK, _FIRST, _UNITS = "isotone_end", "isotone_rank", "isotone_first", "isotone_units"


def count_ends(
    rows: Frame, unit: str | None, item: str, P: Poset, rule: Conflict, group: str | None, groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts (a row per group, a column per element) and the number of units of each group.

    ``rows`` has the unit (None: each row is one), the text of a code in the column ``item``, and the number of the group.
    """
    ends = Ends.of(P)
    numbers: dict[str, list[int | None]] = {
        _END: [*ends.end],
        _RANK: [*ends.rank],
        _FIRST: [*ends.first],
    }
    coded = listed(rows, item, name_texts(P.elements), numbers)
    units = coded
    if unit is not None:
        by = [nw.col(group).min()] if group else []
        ends_of = (nw.col(_END).min(), nw.col(_RANK).min(), nw.col(_FIRST).max())
        units = coded.group_by(unit).agg(*ends_of, *by)
    if rule == "drop":
        # all codes lie on the way to the end, or there is none at all
        fits = (nw.col(_END) == nw.col(_RANK)) & (nw.col(_FIRST) <= nw.col(_RANK))
        units = units.filter((fits | nw.col(_RANK).is_null()).fill_null(False))
    keys = [_END, *([group] if group else [])]
    counts = collect(units.group_by(*keys).agg(nw.len().alias(_UNITS)))
    records = np.zeros(groups, np.int64)
    at_rank: list[dict[int, int]] = [{} for _ in range(groups)]
    for i, (end, number) in enumerate(zip(counts[_END], counts[_UNITS], strict=True)):
        g = int(counts[group][i]) if group else 0
        records[g] += int(number)
        if end is not None and end == end:
            at_rank[g][int(end)] = int(number)
    return np.array([ends.sums(P, row) for row in at_rank], np.int64), records


# Turn rows into one yes/no record per privacy unit.
#
# The records are repaired by declared rules, then counted.
#
# Everything is a lazy query that runs where the data is; what comes back is one number per element. Every rule
# here looks at one unit at a time (its rows are combined first, then closed or dropped, then given one option of each choice, then cut to size), so
# adding or removing a unit adds or removes whole records: the sensitivity is what the mechanism assumes,
# whatever the data contains.

_RECORDS = "isotone_records"
_ITEM = "isotone_item"


@dataclass(frozen=True)
class RecordRules(RowsOfUnits):
    """How rows become records. All of it is declared, none of it depends on the contents.

    ``unit`` names the column of the privacy unit (None: each row is a unit). With ``contributions=1`` a
    unit's rows are combined into one record (any yes is a yes); with ``contributions=k`` at most k rows of
    a unit count, chosen with equal probability. ``on_violation`` says what happens to a record
    that breaks the order: "close" takes the smallest filter that contains it, "drop" leaves it out.
    ``on_conflict`` says what happens to a record that breaks a choice of the order, such as two options of which
    one is allowed: "first" keeps the first in the sequence of the elements, "drop" leaves the record out.
    ``max_size=k`` keeps the first k yeses along the linear extension from the top.
    """

    unit: UnitKey = None
    contributions: int = 1
    on_violation: Literal["close", "drop"] = "close"
    max_size: int | None = None
    answers: Answers = field(default_factory=Answers)
    on_conflict: Conflict = "first"

    @property
    def keyed(self) -> bool:
        """Whether a column says which record of its unit a row belongs to, so that long data may have several."""
        return False

    def __post_init__(self) -> None:
        for name, known in (("on_violation", ("close", "drop")), ("on_conflict", ("first", "drop"))):
            object.__setattr__(self, name, one_of(getattr(self, name), name, known))
        object.__setattr__(self, "contributions", check_contributions(self.contributions, self.unit))
        if self.max_size is not None:
            object.__setattr__(self, "max_size", whole_number(self.max_size, "max_size"))


@dataclass(frozen=True)
class RecordSource:
    """Where the answers are.

    A column for each element (wide), or a column that names the element (long).

    ``columns`` maps elements to columns when they have other names than the elements. ``questions`` say by name what
    counts as a yes to an element, where it is not the rule for all.
    """

    data: Any
    element: str | None = None
    columns: Mapping[Any, str] = field(default_factory=dict[Any, str])
    questions: Mapping[str, Question] = field(default_factory=dict[str, Question])

    def wanted(self, element: Hashable) -> list[str]:
        """The columns that an element is read from."""
        question = self.questions.get(str(element))
        if question is None:
            return [self.columns.get(element, str(element))]
        return asked_columns(question, self.questions)

    def answer(self, element: Hashable, answers: Answers, schema: Mapping[str, Any]) -> ColumnRule | nw.Expr:
        """The answer of each row to an element, never null."""
        question = self.questions.get(str(element))
        if question is not None:
            return read_question(question, self.questions, answers, schema)
        return ColumnRule(read_answer, self.columns.get(element, str(element)), (answers,))

    def open(self, P: Poset, rules: RecordRules, groups: Groups | None) -> Frame:
        """The columns that are needed, as a lazy frame.

        Raises an error for what names and types alone show to be wrong.
        """
        if self.element is not None and rules.unit is None and not is_hierarchy(P):
            raise InputError(
                "Long data (element=) needs unit=: a row says that this unit has this element. Without it a row is a unit "
                "with one code, which is for hierarchies."
            )
        if self.element is not None and rules.contributions > 1 and not rules.keyed:
            raise InputError("Long data is one record per unit; contributions above 1 has no meaning for it.")
        unknown = set(self.columns) - set(P.elements)
        if unknown:
            raise InputError(
                f"columns= names elements that are not in the order: {sorted(map(str, unknown))}."
            )
        public_texts(P.elements, "The elements")
        expected = (
            [self.element] if self.element is not None else [c for x in P.elements for c in self.wanted(x)]
        )
        columns = {"answer" if self.element is None else "element": expected, **rules.unit_roles}
        return open_source(self.data, {**columns, "group": groups.columns if groups else []})


def count_records(
    source: RecordSource,
    frame: Frame,
    P: Poset,
    rules: RecordRules,
    groups: Groups | None = None,
    salt: bytes | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts (one row per group or cell, one column per element) and the number of records of each.

    ``frame`` is what ``source.open`` returned; ``salt`` is for tests: a release draws its own.
    """
    whole = rules.max_size is None and rules.on_violation == "close"
    if source.element is not None and whole and is_hierarchy(P):
        rows = _long_rows(source, frame, rules, groups)
        number = groups.size if groups else 1
        unit = None if rules.unit is None else UNIT
        return count_ends(rows, unit, _ITEM, P, rules.on_conflict, GROUP if groups else None, number)
    names = _names(P)
    records = repaired(read_records(source, frame, P, rules, groups, salt), P, rules)
    rows = collect(totals(records, names, _RECORDS, GROUP if groups else None))
    places = [int(group) for group in rows[GROUP]] if groups else [0]
    counts = np.zeros((groups.size if groups else 1, len(P) + 1), dtype=np.int64)
    for column, name in enumerate([*names, _RECORDS]):
        counts[places, column] = [int(number or 0) for number in rows[name]]
    return counts[:, :-1], counts[:, -1]


def read_records(
    source: RecordSource,
    frame: Frame,
    P: Poset,
    rules: RecordRules,
    groups: Groups | None = None,
    salt: bytes | None = None,
) -> Frame:
    """The records as given, before any repair.

    A column of booleans for each element, and the group.
    """
    names = _names(P)
    rows = read_rows(source, frame, P, rules, groups)
    if rules.unit is None:
        return rows
    if rules.contributions == 1:
        return _combined(rows, groups, names)
    answers = nw.concat_str(
        *(nw.when(nw.col(name)).then(nw.lit("1")).otherwise(nw.lit("0")) for name in names)
    )
    group = [nw.col(GROUP).cast(nw.String)] if groups else []
    return at_most(rows, rules.contributions, [answers, *group], salt)


def read_rows(
    source: RecordSource, frame: Frame, P: Poset, rules: RecordRules, groups: Groups | None = None
) -> Frame:
    """The rows of units and groups, a column of booleans for each element, before those of a unit are combined."""
    return (_wide if source.element is None else _long)(source, frame, P, rules, groups)


def repaired(records: Frame, P: Poset, rules: RecordRules) -> Frame:
    """Every record a filter of the order, with one option of each choice, and cut to size."""
    records = (_close if rules.on_violation == "close" else _drop)(records, P)
    records = with_one_option(records, P, _names(P), rules.on_conflict)
    if rules.max_size is not None and rules.max_size < len(P):
        records = with_options(_cut(records, P, rules.max_size), P, _names(P))
    return records


def _names(P: Poset) -> list[str]:
    return [f"isotone_{i}" for i in range(len(P.elements))]


def _wide(source: RecordSource, frame: Frame, P: Poset, rules: RecordRules, groups: Groups | None) -> Frame:
    schema = frame.collect_schema()
    answers = {
        name: source.answer(x, rules.answers, schema) for x, name in zip(P.elements, _names(P), strict=True)
    }
    return _known(read_columns(frame, {**answers, **_keys(rules, groups)}), rules, groups)


def _long(source: RecordSource, frame: Frame, P: Poset, rules: RecordRules, groups: Groups | None) -> Frame:
    frame = _long_rows(source, frame, rules, groups)
    has = [(nw.col(_ITEM) == text).fill_null(False) for text in name_texts(P.elements)]
    return frame.with_columns(*(yes.alias(name) for yes, name in zip(has, _names(P), strict=True)))


def _long_rows(source: RecordSource, frame: Frame, rules: RecordRules, groups: Groups | None) -> Frame:
    """The text of the element of each row, with its unit and its group."""
    assert source.element is not None
    item = {_ITEM: ColumnRule(as_text, source.element)}
    return _known(read_columns(frame, {**item, **_keys(rules, groups)}), rules, groups)


def _keys(rules: RecordRules, groups: Groups | None) -> dict[str, ColumnRule]:
    return {**rules.unit_keys(), **(groups.keys() if groups else {})}


def _known(frame: Frame, rules: RecordRules, groups: Groups | None) -> Frame:
    """Without the rows that belong to no unit or to no public group."""
    frame = rules.of_somebody(frame)
    return frame if groups is None else groups.placed(frame)


def _combined(frame: Frame, groups: Groups | None, names: Sequence[str]) -> Frame:
    """One row per unit.

    A unit in several groups, or cells, is counted in the first of the public sequence.
    """
    group = [nw.col(GROUP).min()] if groups else []
    return frame.group_by(UNIT).agg(*(nw.col(name).any() for name in names), *group)


def _close(records: Frame, P: Poset) -> Frame:
    names = _names(P)
    stages = closing_stages(P)
    return joined(
        records, [{names[x]: [names[w] for w in below] for x, below in stage.items()} for stage in stages]
    )


def _drop(records: Frame, P: Poset) -> Frame:
    """Keep only the records that are filters. No cover has a yes below a no."""
    names = _names(P)
    broken = [nw.col(names[w]) & ~nw.col(names[x]) for w, x in P.cover_pairs.tolist()]
    return records.filter(~any_of(broken)) if broken else records


def _cut(records: Frame, P: Poset, size: int) -> Frame:
    """The first ``size`` yeses of each record, walking the linear extension from the top."""
    names = _names(P)
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
