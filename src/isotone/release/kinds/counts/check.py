"""What the steward should know about the contents of records. Nothing here is private."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw

from isotone.counts.breakdown import OTHER
from isotone.counts.count_plan import spelling
from isotone.order import Poset
from isotone.reading.columns import as_text
from isotone.reading.operations import any_of
from isotone.reading.questions import Answers, read_question
from isotone.reading.records import (
    Groups,
    RecordRules,
    RecordSource,
    broken,
    count_records,
    read_records,
    repaired,
)
from isotone.reading.sources import open_source
from isotone.release.check import SHOWN, commonest, one, unlisted

if TYPE_CHECKING:
    from isotone.release.kinds.counts.description import Counts


def check_counts(described: Counts, source: Any) -> list[str]:
    """Records that break the order, groups and elements outside the lists, answers that are neither yes nor no."""
    P, answers = described.P, described.answer_rules
    where, groups = described.source(source, None).records, described.groups
    rules = replace(described.rules, on_violation="close", on_conflict="first", max_size=None)
    stated = None if described.fixed_root is None else described.fixed_root.records
    if answers.element is not None and rules.unit is None:  # every row has one code: none can break the order
        lines = _rows(where, P, rules, groups, stated)
    else:
        lines = _broken(where, P.forget_choices(), rules, groups)
    lines += [spelling(P)] * bool(spelling(P))
    lines += _conflicts(where, P, rules, groups)
    if answers.element is not None:
        fate = "ignored" if stated is None else "counted in the catch-all"
        lines += unlisted(source, answers.element, P.elements, "an element", fate)
    else:
        odd = [line for x in P.elements for line in _odd_answers(where, x, answers.words)]
        lines += [*odd, _CODES] if odd else []
    if described.is_breakdown:
        other = described.unlisted == "other"
        fate = f"counted as {OTHER}" if other else "left out of all margins"
        for attribute in described.breakdown.attributes:
            names = [name for name in attribute.finest if not (other and name == OTHER)]
            lines += unlisted(source, attribute.column, names, "a value", fate)
        return lines
    for column, values in groups.lists if groups else ():
        lines += unlisted(source, column, values, "a group")
    return lines


_CODES = 'If your codebook says which of these mean yes or no, state it in [data], such as yes = ["1"] and no = ["2"]'


def _rows(
    source: RecordSource, P: Poset, rules: RecordRules, groups: Groups | None, stated: int | None
) -> list[str]:
    """How many rows there are, and whether that is the public number."""
    _, result = count_records(source, source.open(P, rules, groups), P, rules, groups)
    number = int(result.sum())
    lines = [f"{number:,} records, a row each"]
    if stated is not None and stated != number:
        lines.append(f"  records = {stated:,} is another number; the catch-all takes the difference")
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
    result = one(records.select(*(sums.alias(f"n{i}") for i, sums in enumerate(breaks))))
    often = sorted(
        ((result[f"n{i}"], P.elements[w], P.elements[x]) for i, (w, x) in enumerate(pairs)),
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
    kinds = [any_of(answers) if answers else nw.lit(False) for answers in (many, none)]
    result = one(
        records.select(*(answers.cast(nw.Int64).sum().alias(f"n{i}") for i, answers in enumerate(kinds)))
    )
    return [
        f"{result['n0'] or 0:,} records have several options where one is allowed, {result['n1'] or 0:,} lack an "
        "option of a partition"
    ]


def _odd_answers(source: RecordSource, element: Any, answers: Answers) -> list[str]:
    question = source.questions.get(str(element))
    if question is not None and question.any_of:
        return []
    missing = question.missing if question and question.missing else answers.missing
    column = source.wanted(element)[0]
    frame = open_source(source.data, {"answer": [column]})
    schema = frame.collect_schema()
    dtype = schema[column]
    # What is a yes only because it is missing, and a no only because it is missing, is neither.
    denied, not_denied = (_read_as(source, element, answers, schema, word) for word in ("no", "yes"))
    text = as_text(column, dtype).alias("value")
    odd = frame.select(text, (~denied & not_denied).alias("odd")).filter(nw.col("odd")).select("value")
    known = (nw.col("value").str.len_chars() > 0).fill_null(False)
    rows, shown = commonest(odd.filter(known))
    if not rows:
        return []
    question_name = column if question is None or column == str(element) else f"{element} ({column})"
    return [f"{question_name}: {rows:,} values that are neither yes nor no count as {missing}{shown}"]


def _read_as(
    source: RecordSource, element: Any, answers: Answers, schema: Any, missing: Literal["no", "yes"]
) -> nw.Expr:
    """The answer if one that is missing counted as ``missing``."""
    question, rule = source.questions.get(str(element)), replace(answers, missing=missing)
    if question is None:
        (column,) = source.wanted(element)
        return rule.read(column, schema[column])
    return read_question(replace(question, missing=missing), source.questions, rule, schema)
