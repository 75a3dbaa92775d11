"""The steward's desk: looking at the contents of the data before a release. Nothing here is private.

A release never shows what the data contains. When something is wrong with a source, the steward has to look, and
this is the place: it releases nothing, charges nothing, and says that its output must not leave the desk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from isotone.reading.answers import Answers
from isotone.reading.numbers import as_integer, as_real
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.reading.sources import ColumnType, Declared, collect, open_source
from isotone.release.kinds.counts import Order
from isotone.release.kinds.table import Table
from isotone.release.spec import Spec

__all__ = ["DeskReport", "check_counts", "check_numbers", "check_spec", "check_table"]

WARNING = "NOT PRIVATE: this looks at the contents of the data. Do not publish it or act on it in public."


@dataclass(frozen=True)
class DeskReport:
    """Findings about the contents of the data, for the steward alone."""

    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([WARNING, *(f"  {line}" for line in self.findings), WARNING])


def check_spec(spec: Spec) -> DeskReport:
    """Look at the data of a spec: rows, missing and odd values, records that break the order."""
    path = str(spec.resolve(spec.data.path))
    source = Declared(path, spec.data.types)
    unit = [spec.data.unit] if spec.data.unit else []
    begin = [*_rows(source, unit), *_odd_types(path, spec.data.types)]
    return DeskReport((*begin, *spec.kind.check(spec, source)))


def _odd_types(path: str, types: Mapping[str, ColumnType]) -> list[str]:
    lines: list[str] = []
    for name, kind in types.items():
        there = [
            int(collect(frame.select((~nw.col(name).is_null()).cast(nw.Int64).sum().alias("n")))["n"][0] or 0)
            for frame in (open_source(path, [name]), open_source(Declared(path, {name: kind}), [name]))
        ]
        if there[0] > there[1]:
            lines.append(
                f"{name}: {there[0] - there[1]:,} values cannot be read as {kind} and count as missing"
            )
    return lines


def _rows(source: Any, unit: list[str]) -> list[str]:
    frame = open_source(source, unit) if unit else None
    if frame is None:
        return []
    name = unit[0]
    found = collect(
        frame.select(
            nw.len().alias("rows"),
            nw.col(name).is_null().cast(nw.Int64).sum().alias("missing"),
            nw.col(name).n_unique().alias("units"),
        )
    )
    rows, missing, units = (int(found[key][0] or 0) for key in ("rows", "missing", "units"))
    return [f"{rows:,} rows, {units:,} different values of the unit {name!r}, {missing:,} rows without one"]


def check_counts(spec: Spec, data_source: Any) -> list[str]:
    """Records that break the order, and answers that are neither yes nor no."""
    P = spec.said(Order).order(spec.resolve)
    data = spec.data
    words = {key: tuple(value) for key, value in (("yes", data.yes), ("no", data.no)) if value}
    answers = Answers(missing=data.missing, **words)
    source = RecordSource(data_source, data.element, {**data.columns})
    totals: dict[str, int] = {}
    for rule in ("close", "drop"):
        rules = RecordRules(data.unit, data.contributions, rule, None, answers)
        _, records = count_records(source, source.open(P, rules, None), P, rules)
        totals[rule] = int(records[0])
    broken = totals["close"] - totals["drop"]
    lines = [
        f"{totals['close']:,} records, {broken:,} of them break the order and would be closed or dropped"
    ]
    if data.element is not None:
        known = [str(x) for x in P.elements]
        text = nw.col(data.element).cast(nw.String).str.strip_chars()
        odd = collect(
            open_source(data_source, [data.element]).filter(~text.is_in(known)).select(nw.len().alias("odd"))
        )
        return [*lines, f"{int(odd['odd'][0]):,} rows name an element that is not in the order (ignored)"]
    frame = open_source(data_source, [source.column(x) for x in P.elements])
    schema = frame.collect_schema()
    for x in P.elements:
        column = source.column(x)
        lines += _odd_answers(frame, column, schema[column], answers)
    return lines


def _odd_answers(frame: Any, column: str, dtype: Any, answers: Answers) -> list[str]:
    if dtype == nw.Boolean:
        return []
    known = [*answers.yes, *answers.no, ""]
    text = nw.col(column).cast(nw.String).str.strip_chars().str.to_lowercase()
    odd = frame.select(text.alias("value")).filter(~nw.col("value").is_null() & ~nw.col("value").is_in(known))
    found = collect(odd.group_by("value").agg(nw.len().alias("rows")).sort("rows", descending=True).head(5))
    shown = ", ".join(
        f"{value!r} ({rows:,})" for value, rows in zip(found["value"], found["rows"], strict=True)
    )
    return (
        [f"{column}: values that are neither yes nor no count as {answers.missing}: {shown}"] if shown else []
    )


def check_table(spec: Spec, source: Any) -> list[str]:
    """Rows outside the list of categories, and counts that are no numbers."""
    table = spec.said(Table)
    text = nw.col(table.category).cast(nw.String).str.strip_chars()
    frame = open_source(source, [table.category])
    odd = collect(frame.filter(~text.is_in(list(table.names(spec.resolve)))).select(nw.len().alias("odd")))
    lines = [f"{int(odd['odd'][0]):,} rows have a category that is not in the list (ignored)"]
    return lines + (check_numbers(source, [table.count], real=False) if table.count else [])


def check_numbers(source: Any, columns: list[str], *, real: bool) -> list[str]:
    """The range of columns of numbers, and how many values are none."""
    frame = open_source(source, columns)
    schema = frame.collect_schema()
    lines: list[str] = []
    for column in columns:
        number = (as_real if real else as_integer)(column, schema[column])
        found = collect(
            frame.select(number.alias("number")).select(
                nw.col("number").is_null().cast(nw.Int64).sum().alias("bad"),
                nw.col("number").min().alias("low"),
                nw.col("number").max().alias("high"),
            )
        )
        low, high, bad = found["low"][0], found["high"][0], int(found["bad"][0] or 0)
        lines.append(f"{column}: from {low} to {high}; {bad:,} values are missing or not a number")
    return lines
