"""What the steward should know about the contents of records. Nothing here is private."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals as nw

from isotone.order import Poset
from isotone.reading.answers import Answers
from isotone.reading.exclusive import broken
from isotone.reading.native import any_of
from isotone.reading.records import (
    Groups,
    RecordRules,
    RecordSource,
    count_records,
    read_records,
    repaired,
)
from isotone.reading.sources import Frame, open_source
from isotone.reading.texts import as_text, label
from isotone.release.checking.findings import SHOWN, commonest, one, unlisted
from isotone.release.kinds.counts.section import Order

if TYPE_CHECKING:
    from isotone.reading.sources import Frame
    from isotone.release.spec import Spec

__all__ = ["check_counts"]


def check_counts(spec: Spec, source: Any) -> list[str]:
    """Records that break the order, groups and elements outside the lists, answers that are neither yes nor no."""
    P, data = spec.said(Order).order(spec.resolve), spec.data
    words = {key: tuple(value) for key, value in (("yes", data.yes), ("no", data.no)) if value}
    answers = Answers(missing=data.missing, **words)
    where = RecordSource(source, data.element, {**data.columns})
    groups = Groups(data.by, tuple(map(label, data.groups))) if data.by and data.groups else None
    rules = RecordRules(data.unit, data.contributions, "close", None, answers)
    lines = _broken(where, P.forget_choices(), rules, groups)
    lines += _conflicts(where, P, rules, groups)
    if groups is not None:
        lines += unlisted(source, groups.column, groups.values, "a group")
    if data.element is not None:
        return lines + unlisted(source, data.element, P.elements, "an element")
    frame = open_source(source, [where.column(x) for x in P.elements])
    schema = frame.collect_schema()
    for x in P.elements:
        lines += _odd_answers(frame, where.column(x), schema[where.column(x)], answers)
    return lines


def _broken(source: RecordSource, P: Poset, rules: RecordRules, groups: Groups | None) -> list[str]:
    kept: list[int] = []
    for rule in (rules, replace(rules, on_violation="drop")):
        _, records = count_records(source, source.open(P, rule, groups), P, rule, groups)
        kept.append(int(records.sum()))
    lines = [f"{kept[0]:,} records, {kept[0] - kept[1]:,} of them break the order"]
    if kept[0] == kept[1]:
        return lines
    records = read_records(source, source.open(P, rules, groups), P, rules, groups)
    pairs = P.cover_pairs.tolist()
    breaks = [(nw.col(f"isotone_{w}") & ~nw.col(f"isotone_{x}")).cast(nw.Int64).sum() for w, x in pairs]
    found = one(records.select(*(sums.alias(f"n{i}") for i, sums in enumerate(breaks))))
    often = sorted(
        ((found[f"n{i}"], P.elements[w], P.elements[x]) for i, (w, x) in enumerate(pairs)),
        key=lambda b: -b[0],
    )
    shown = [
        f"  {str(low)!r} implies {str(high)!r}: broken by {n:,} records"
        for n, low, high in often[:SHOWN]
        if n
    ]
    hidden = sum(n > 0 for n, _, _ in often) - len(shown)
    return [*lines, *shown, *([f"  and {hidden:,} relations more"] if hidden else [])]


def _conflicts(source: RecordSource, P: Poset, rules: RecordRules, groups: Groups | None) -> list[str]:
    """How many records have several options of a choice, or none of a partition."""
    if not P.choices:
        return []
    records = read_records(source, source.open(P, rules, groups), P, rules, groups)
    records = repaired(records, P.forget_choices(), rules)
    many, none = broken(P, [f"isotone_{i}" for i in range(len(P))])
    kinds = [any_of(said) if said else nw.lit(False) for said in (many, none)]
    found = one(records.select(*(said.cast(nw.Int64).sum().alias(f"n{i}") for i, said in enumerate(kinds))))
    return [
        f"{found['n0'] or 0:,} records have several options where one is allowed, {found['n1'] or 0:,} lack an "
        "option of a partition"
    ]


def _odd_answers(frame: Frame, column: str, dtype: Any, answers: Answers) -> list[str]:
    # What is a yes only because it is missing, and a no only because it is missing, is neither.
    said = replace(answers, missing="no").read(column, dtype)
    not_denied = replace(answers, missing="yes").read(column, dtype)
    text = as_text(column, dtype).alias("value")
    odd = frame.select(text, (~said & not_denied).alias("odd")).filter(nw.col("odd")).select("value")
    known = (nw.col("value").str.len_chars() > 0).fill_null(False)
    rows, shown = commonest(odd.filter(known))
    if not rows:
        return []
    return [f"{column}: {rows:,} values that are neither yes nor no count as {answers.missing}{shown}"]
