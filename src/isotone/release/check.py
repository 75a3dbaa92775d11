"""Looking at the contents of the data before a release. Nothing here is private.

A release never shows what the data contains. When something is wrong with a source, the steward has to look, and this is the
place: it releases nothing, charges nothing, and says that its output must not leave the desk. Values are read by the readers
that releases use, so what is called odd here is odd there.
"""

from __future__ import annotations

import csv
import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw

from isotone.order import Poset
from isotone.reading.answers import Answers
from isotone.reading.numbers import as_integer, as_real
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records, read_records
from isotone.reading.sources import ColumnType, Declared, Frame, collect, open_source
from isotone.reading.texts import as_text, as_unit, label, name_text
from isotone.release.kinds.counts import Order
from isotone.release.kinds.curve import Curve
from isotone.release.kinds.table import Table
from isotone.release.spec import Spec

__all__ = ["DeskReport", "check_counts", "check_curve", "check_spec", "check_table"]

WARNING = "NOT PRIVATE: this looks at the contents of the data. Do not publish it or act on it in public."
VOID = (
    "A bound, list, word or number of contributions that is changed because of what stands here is chosen by the data: the "
    "guarantee is then void. Repair the data, or change what you knew to be wrong before you looked."
)
_SHOWN = 5


@dataclass(frozen=True)
class DeskReport:
    """Findings about the contents of the data, for the steward alone."""

    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([WARNING, *(f"  {line}" for line in self.findings), VOID, WARNING])


def check_spec(spec: Spec) -> DeskReport:
    """Look at the data of a spec: rows, units, odd values, records that break the order."""
    path = str(spec.resolve(spec.data.path))
    source = Declared(path, spec.data.types)
    column = spec.data.unit
    begin = _units(spec, source, column) if column is not None else _no_unit(spec)
    return DeskReport(
        (*begin, *_lost_lines(path), *_odd_types(path, spec.data.types), *spec.kind.check(spec, source))
    )


def _no_unit(spec: Spec) -> list[str]:
    ledger = spec.privacy.ledger
    new = "://" not in ledger and not spec.resolve(ledger).exists()
    return [
        "no unit is declared, so the promise protects one row: if a person may have several rows, name the column (unit = …)"
        + (". The ledger is new, and its unit cannot be changed later" if new else "")
    ]


def _units(spec: Spec, source: Any, column: str) -> list[str]:
    frame = open_source(source, [column])
    unit = as_unit(column, frame.collect_schema()[column]).alias("unit")
    sizes = frame.select(unit).group_by("unit").agg(nw.len().alias("rows"))
    most, nobody = spec.data.contributions, nw.col("unit").is_null()
    cut = nw.when(~nobody & (nw.col("rows") > most))
    found = _one(
        sizes.select(
            nw.col("rows").sum().alias("rows"),
            (~nobody).cast(nw.Int64).sum().alias("units"),
            nw.when(nobody).then(nw.col("rows")).sum().alias("nobody"),
            cut.then(nw.col("rows") - most).sum().alias("left_out"),
            cut.then(nw.lit(1)).sum().alias("cut_units"),
            nw.when(~nobody).then(nw.col("rows")).max().alias("largest"),
        )
    )
    lines = [
        f"{found['rows']:,} rows, {found['units']:,} different values of the unit {column!r}, {found['nobody']:,} rows without one (dropped)"
    ]
    if found["cut_units"]:
        told = f"{found['cut_units']:,} units have more than {most:,} rows, the largest {found['largest']:,}"
        if spec.data.contributions == 1 and spec.kind.key == "order":
            return [*lines, f"{told}: a unit's rows are combined into one record"]
        lines.append(
            f"{told}: contributions = {most} leaves {found['left_out']:,} rows out, if all could count"
        )
    return lines


def _lost_lines(path: str) -> list[str]:
    """Lines of texts that a release does not read, or not as they were meant."""
    lines: list[str] = []
    for file in sorted(glob.glob(path)) if not Path(path).is_file() else [path]:  # noqa: PTH207 (absolute patterns)
        ending, name = Path(file).suffix.lower(), Path(file).name
        if ending not in (".csv", ".tsv", ".txt", ".jsonl", ".ndjson"):
            continue
        raw = [
            line
            for line in Path(file).read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
            if line.strip()
        ]
        foreign = sum(not _is_utf8(line) for line in raw)
        if foreign:
            lines.append(
                f"{name}: {foreign:,} lines are not UTF-8 (Latin-1?): they are skipped or lose letters"
            )
        if ending in (".jsonl", ".ndjson"):
            odd = sum(not _is_record(line) for line in raw)
            if odd:
                lines.append(f"{name}: {odd:,} of {len(raw):,} lines are no JSON object and are skipped")
            continue
        text = Path(file).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        rows = list(csv.reader(text, delimiter="\t" if ending == ".tsv" else ","))
        width = len(rows[0]) if rows else 0
        odd = sum(len(row) != width for row in rows if row)
        if odd:
            lines.append(f"{name}: {odd:,} lines have more or fewer fields than the header")
    return lines


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _odd_types(path: str, types: Mapping[str, ColumnType]) -> list[str]:
    lines: list[str] = []
    for name, kind in types.items():
        there = [
            _one(frame.select((~nw.col(name).is_null()).cast(nw.Int64).sum().alias("n")))["n"]
            for frame in (open_source(path, [name]), open_source(Declared(path, {name: kind}), [name]))
        ]
        if there[0] > there[1]:
            lines.append(
                f"{name}: {there[0] - there[1]:,} values cannot be read as {kind} and count as missing"
            )
    return lines


def check_counts(spec: Spec, source: Any) -> list[str]:
    """Records that break the order, groups and elements outside the lists, answers that are neither yes nor no."""
    P, data = spec.said(Order).order(spec.resolve), spec.data
    words = {key: tuple(value) for key, value in (("yes", data.yes), ("no", data.no)) if value}
    answers = Answers(missing=data.missing, **words)
    where = RecordSource(source, data.element, {**data.columns})
    groups = Groups(data.by, tuple(map(label, data.groups))) if data.by and data.groups else None
    rules = RecordRules(data.unit, data.contributions, "close", None, answers)
    lines = _broken(where, P, rules, groups)
    if groups is not None:
        lines += _unlisted(source, groups.column, groups.values, "a group")
    if data.element is not None:
        return lines + _unlisted(source, data.element, P.elements, "an element")
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
    found = _one(records.select(*(sums.alias(f"n{i}") for i, sums in enumerate(breaks))))
    often = sorted(
        ((found[f"n{i}"], P.elements[w], P.elements[x]) for i, (w, x) in enumerate(pairs)),
        key=lambda b: -b[0],
    )
    shown = [
        f"  {str(low)!r} implies {str(high)!r}: broken by {n:,} records"
        for n, low, high in often[:_SHOWN]
        if n
    ]
    hidden = sum(n > 0 for n, _, _ in often) - len(shown)
    return [*lines, *shown, *([f"  and {hidden:,} relations more"] if hidden else [])]


def _unlisted(source: Any, column: str, listed: Sequence[Any], what: str) -> list[str]:
    """Rows whose text is none of the public list, with the commonest of them."""
    frame = open_source(source, [column])
    text = frame.select(as_text(column, frame.collect_schema()[column]).alias("value"))
    known = nw.col("value").is_in([name_text(name) for name in listed]).fill_null(False)
    odd, shown = _commonest(text.filter(~known))
    return [f"{column}: {odd:,} rows have {what} that is not in the list (ignored){shown}"]


def _odd_answers(frame: Frame, column: str, dtype: Any, answers: Answers) -> list[str]:
    # What is a yes only because it is missing, and a no only because it is missing, is neither.
    said = replace(answers, missing="no").read(column, dtype)
    not_denied = replace(answers, missing="yes").read(column, dtype)
    text = as_text(column, dtype).alias("value")
    odd = frame.select(text, (~said & not_denied).alias("odd")).filter(nw.col("odd")).select("value")
    known = (nw.col("value").str.len_chars() > 0).fill_null(False)
    rows, shown = _commonest(odd.filter(known))
    if not rows:
        return []
    return [f"{column}: {rows:,} values that are neither yes nor no count as {answers.missing}{shown}"]


def check_table(spec: Spec, source: Any) -> list[str]:
    """Rows outside the list of categories, and counts that are no numbers or outside their range."""
    table = spec.said(Table)
    lines = _unlisted(source, table.category, table.names(spec.resolve), "a category")
    return lines + (_numbers(source, table.count, 0, table.upper, whole=True) if table.count else [])


def check_curve(spec: Spec, source: Any) -> list[str]:
    """Values of x and y that are no numbers or outside their public ranges."""
    curve = spec.said(Curve)
    lines: list[str] = []
    for column, (low, high) in ((curve.x, curve.bounds), (curve.y, curve.y_range)):
        lines += _numbers(source, column, float(Fraction(low)), float(Fraction(high)), whole=False)
    return lines


def _numbers(source: Any, column: str, low: float, high: float, *, whole: bool) -> list[str]:
    frame = open_source(source, [column])
    dtype = frame.collect_schema()[column]
    number = (as_integer if whole else as_real)(column, dtype).alias("number")
    value = nw.col("number")
    read = frame.select(number, as_text(column, dtype).alias("value"))
    found = _one(
        read.select(
            nw.len().alias("rows"),
            (~value.is_null()).cast(nw.Int64).sum().alias("numbers"),
            value.min().alias("least"),
            value.max().alias("most"),
            (value < low).fill_null(False).cast(nw.Int64).sum().alias("below"),
            (value > high).fill_null(False).cast(nw.Int64).sum().alias("above"),
        )
    )
    if not found["numbers"]:
        lines = [
            f"{column}: none of {found['rows']:,} values is a number: the release would be made from nothing"
        ]
    else:
        lines = [f"{column}: numbers from {found['least']:g} to {found['most']:g}"]
    outside = found["below"] + found["above"]
    if outside:
        lines.append(
            f"{column}: {outside:,} values are outside {low:g} to {high:g} and are moved to its ends ({found['below']:,} below, "
            f"{found['above']:,} above). Is the unit of measurement the declared one (percent, share)?"
        )
    texts = (nw.col("value").str.len_chars() > 0).fill_null(False)
    odd, shown = _commonest(read.filter(value.is_null() & texts).select("value"))
    missing = found["rows"] - found["numbers"] - odd
    if odd or missing:
        effect = "count as 0" if whole else "their rows are dropped"
        lines.append(
            f"{column}: {odd:,} values are not numbers and {missing:,} are missing ({effect}){shown}"
        )
    return lines


def _commonest(values: Frame) -> tuple[int, str]:
    """How many rows there are, and the commonest values in words."""
    sizes = values.group_by("value").agg(nw.len().alias("rows"))
    total = _one(sizes.select(nw.col("rows").sum().alias("n")))["n"]
    top = collect(
        sizes.filter(~nw.col("value").is_null()).sort("rows", "value", descending=[True, False]).head(_SHOWN)
    )
    shown = ", ".join(f"{value!r} ({rows:,})" for value, rows in zip(top["value"], top["rows"], strict=True))
    return total, f": {shown}" if shown else ""


def _one(frame: Frame) -> dict[str, Any]:
    """The single row of a query; sums of nothing are 0."""
    return {name: values[0] or 0 for name, values in collect(frame).items()}
