"""Looking at the contents of the data before a release. Nothing here is private.

A release never shows what the data contains. When something is wrong with a source, the steward has to look, and this is the
place: it releases nothing, charges nothing, and says that its output must not leave the desk. Values are read by the readers
that releases use, so what is called odd here is odd there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from isotone.reading.columns import read_columns
from isotone.reading.contributions import UNIT, UnitRows
from isotone.reading.sources import DataFile, expand, open_source
from isotone.release.checking.findings import one

if TYPE_CHECKING:
    from isotone.release.description import Description
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
    source, ledger, odd = spec.source, spec.privacy.ledger, list[str]()
    new = "://" not in ledger and not spec.resolve(ledger).exists()
    if isinstance(source, DataFile):
        odd += [*_lost_lines(source), *_odd_types(source)]
    return _report(spec.description.checked(), source, odd, new)


def check_data(described: Description, data: Any) -> DeskReport:
    """The same for any data of a description."""
    file = DataFile(str(data)) if isinstance(data, (str, Path)) else data
    return _report(described, data, _lost_lines(file) if isinstance(file, DataFile) else (), False)


def _report(described: Description, source: Any, odd: Sequence[str], new: bool) -> DeskReport:
    begin = _no_unit(new) if described.whose.column is None else _units(described, source)
    return DeskReport((*begin, *odd, *described.findings(source)))


def _no_unit(new: bool) -> list[str]:
    return [
        "no unit is declared, so the guarantee protects one row: if a person may have several rows, name the column (unit = …)"
        + (". The ledger is new, and its unit cannot be changed later" if new else "")
    ]


def _units(described: Description, source: Any) -> list[str]:
    column, most = described.whose.column, described.whose.most
    rows = UnitRows(column, most)
    frame = read_columns(open_source(source, {"unit": rows.unit_columns}), rows.unit_keys())
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
        if most == 1 and described.combines:
            return [*lines, f"{told}: a unit's rows are combined into one record"]
        lines.append(
            f"{told}: contributions = {most} leaves {found['left_out']:,} rows out, if all could count"
        )
    return lines


def _lost_lines(source: DataFile) -> list[str]:
    """Lines of texts that a release does not read, or not as they were meant."""
    lines: list[str] = []
    for file in expand(source.path):
        ending, name = Path(file).suffix.lower(), Path(file).name
        if ending not in (".csv", ".tsv", ".txt", ".jsonl", ".ndjson"):
            continue
        raw = Path(file).read_bytes()
        foreign = sum(not _is_text(line, source.encoding) for line in raw.splitlines())
        if foreign and "16" not in source.encoding:
            lines.append(
                f"{name}: {foreign:,} lines are not {source.encoding.upper()} (Latin-1?): fields with such letters are missing"
            )
        text = raw.decode(source.encoding, errors="replace").removeprefix("\ufeff")
        if ending in (".jsonl", ".ndjson"):
            records = [line for line in text.split("\n") if line.strip()]
            odd = sum(not _is_record(line) for line in records)
            if odd:
                lines.append(f"{name}: {odd:,} of {len(records):,} lines are no JSON object and are skipped")
            continue
        lines += _line_endings(file, source, text)
    return lines


def _line_endings(file: str, source: DataFile, text: str) -> list[str]:
    """Whether a CSV has other line endings than its header line, and lines with more or fewer fields."""
    from isotone.reading.text_files import layout_of, records_of

    name = Path(file).name
    form = replace(source, separator=source.separator or ("\t" if file.lower().endswith(".tsv") else ","))
    layout = layout_of(file, form, ())
    rows = list(records_of(text.encode(), layout))
    width = len(source.columns) or (len(rows[0]) if rows else 0)
    others = {"\n": ("\r",), "\r\n": ("\n", "\r"), "\r": ("\n",)}[layout.newline]
    plain = text.replace(layout.newline, "")
    lines = [
        f"{name}: {sum(len(row) != width for row in rows):,} lines have more or fewer fields than the header"
    ]
    found = [_ENDING[other] for other in others if other in plain]
    if found:
        lines.append(
            f"{name}: lines end with {_ENDING[layout.newline]}, as the header does, so {' and '.join(found)} is content. If lines were meant to "
            "end with it, write the file again"
        )
    return lines if any(len(row) != width for row in rows) else lines[1:]


_ENDING = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}


def _is_text(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_record(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _odd_types(source: DataFile) -> list[str]:
    lines: list[str] = []
    for name, kind in source.types.items():
        there = [
            one(
                open_source(form, {"answer": [name]}).select(
                    (~nw.col(name).is_null()).cast(nw.Int64).sum().alias("n")
                )
            )["n"]
            for form in (replace(source, types={}), replace(source, types={name: kind}))
        ]
        if there[0] > there[1]:
            lines.append(
                f"{name}: {there[0] - there[1]:,} values cannot be read as {kind} and count as missing"
            )
    return lines
