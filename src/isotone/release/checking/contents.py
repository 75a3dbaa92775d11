"""Looking at the contents of the data before a release. Nothing here is private.

A release never shows what the data contains. When something is wrong with a source, the steward has to look, and this is the
place: it releases nothing, charges nothing, and says that its output must not leave the desk. Values are read by the readers
that releases use, so what is called odd here is odd there.
"""

from __future__ import annotations

import csv
import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw

from isotone.reading.columns import read_columns
from isotone.reading.contributions import UNIT, UnitRows
from isotone.reading.sources import ColumnType, Declared, open_source
from isotone.release.checking.findings import one
from isotone.release.spec import Spec

__all__ = ["DeskReport", "check_spec"]

WARNING = "NOT PRIVATE: this looks at the contents of the data. Do not publish it or act on it in public."

VOID = (
    "A bound, list, word or number of contributions that is changed because of what stands here is chosen by the data: the "
    "guarantee is then void. Repair the data, or change what you knew to be wrong before you looked."
)


@dataclass(frozen=True)
class DeskReport:
    """Findings about the contents of the data, for the steward alone."""

    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([WARNING, *(f"  {line}" for line in self.findings), VOID, WARNING])


def check_spec(spec: Spec) -> DeskReport:
    """Look at rows, units, odd values and order-breaking records in the data of a spec."""
    source = spec.source
    begin = _no_unit(spec) if spec.data.unit is None else _units(spec, source)
    if isinstance(source, Declared):
        begin += [*_lost_lines(source.path), *_odd_types(source.path, source.types)]
    return DeskReport((*begin, *spec.kind.check(spec, source)))


def _no_unit(spec: Spec) -> list[str]:
    ledger = spec.privacy.ledger
    new = "://" not in ledger and not spec.resolve(ledger).exists()
    return [
        "no unit is declared, so the guarantee protects one row: if a person may have several rows, name the column (unit = …)"
        + (". The ledger is new, and its unit cannot be changed later" if new else "")
    ]


def _units(spec: Spec, source: Any) -> list[str]:
    column, most = spec.data.unit, spec.data.contributions
    rows = UnitRows(column, most)
    frame = read_columns(open_source(source, rows.unit_columns), rows.unit_keys())
    sizes, nobody = frame.group_by(UNIT).agg(nw.len().alias("rows")), nw.col(UNIT).is_null()
    cut = nw.when(~nobody & (nw.col("rows") > most))
    found = one(
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
        if most == 1 and spec.kind.combines:
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
            one(frame.select((~nw.col(name).is_null()).cast(nw.Int64).sum().alias("n")))["n"]
            for frame in (open_source(path, [name]), open_source(Declared(path, {name: kind}), [name]))
        ]
        if there[0] > there[1]:
            lines.append(
                f"{name}: {there[0] - there[1]:,} values cannot be read as {kind} and count as missing"
            )
    return lines
