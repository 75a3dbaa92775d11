"""Look at the contents of data before a release, for the steward. NOT private, and nothing here is published."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from isotone.errors import IsotoneError
from isotone.reading.columns import as_integer, as_real, as_text, name_texts, read_columns
from isotone.reading.contributions import UNIT, UnitRows
from isotone.reading.operations import listed
from isotone.reading.public_csv import separator_of
from isotone.reading.questions import is_one_of
from isotone.reading.sources import DataFile, Frame, collect, expand, open_source

if TYPE_CHECKING:
    from isotone.release.description import Description
    from isotone.release.spec import Spec

SHOWN = 5


def several(number: int, one: str, more: str) -> str:
    """So many of something, in words."""
    return f"{number:,} {one if number == 1 else more}"


def unlisted(
    source: Any,
    column: str,
    known: Sequence[Any],
    what: str,
    fate: str = "ignored",
    upper: int | None = None,
) -> list[str]:
    """Rows whose text is none of the public list, with the commonest of them, and names of the list that no row has.

    With ``upper`` also how many names have more rows than that.
    """
    frame = open_source(source, {"category": [column]})
    text = frame.select(as_text(column, frame.collect_schema()[column]).alias("value"))
    names = list(dict.fromkeys(name_texts(known)))
    placed = listed(text, "value", names, {"place": range(len(names))})
    odd, shown = commonest(placed.filter(nw.col("place").is_null()).select("value"))
    lines = [
        f"{column}: {several(odd, 'row has', 'rows have')} {what} that is not in the list ({fate}){shown}"
    ]
    met = placed.filter(~nw.col("place").is_null()).group_by("place").agg(nw.len().alias("rows"))
    sizes = collect(met)
    seen = {int(place) for place in sizes["place"]}
    full = 0 if upper is None else sum(rows > upper for rows in sizes["rows"])
    if upper is not None and full:
        lines.append(
            f"{column}: {full:,} of the {len(names):,} names in the list: more than {several(upper, 'row', 'rows')}, which count as {upper:,} (upper)"
        )
    absent = [repr(name) for place, name in enumerate(names) if place not in seen]
    if absent:
        few = ", ".join(absent[:SHOWN]) + (", …" if len(absent) > SHOWN else "")
        lines.append(f"{column}: no row has {len(absent):,} of the {len(names):,} names in the list: {few}")
    return lines


def numbers(source: Any, column: str, low: float, high: float, *, whole: bool) -> list[str]:
    """The range of a column of numbers, values outside their public range, and values that are none."""
    frame = open_source(source, {"number": [column]})
    dtype = frame.collect_schema()[column]
    number = (as_integer if whole else as_real)(column, dtype).alias("number")
    value = nw.col("number")
    read = frame.select(number, as_text(column, dtype).alias("value"))
    result = one(
        read.select(
            nw.len().alias("rows"),
            (~value.is_null()).cast(nw.Int64).sum().alias("numbers"),
            value.min().alias("least"),
            value.max().alias("most"),
            (value < low).fill_null(False).cast(nw.Int64).sum().alias("below"),
            (value > high).fill_null(False).cast(nw.Int64).sum().alias("above"),
        )
    )
    if not result["numbers"]:
        lines = [
            f"{column}: none of {result['rows']:,} values is a number: the release would be made from nothing"
        ]
    else:
        lines = [f"{column}: numbers from {result['least']:g} to {result['most']:g}"]
    outside = result["below"] + result["above"]
    if outside:
        lines.append(
            f"{column}: {outside:,} values are outside {low:g} to {high:g} and are moved to its ends ({result['below']:,} below, "
            f"{result['above']:,} above). Is the unit of measurement the declared one (percent, share)?"
        )
    texts = (nw.col("value").str.len_chars() > 0).fill_null(False)
    odd, shown = commonest(read.filter(value.is_null() & texts).select("value"))
    missing = result["rows"] - result["numbers"] - odd
    if odd or missing:
        effect = "count as 0" if whole else "their rows are dropped"
        lines.append(
            f"{column}: {odd:,} values are not numbers and {missing:,} are missing ({effect}){shown}"
        )
        if re.search(r"'-?\d+,\d+'", shown):
            lines.append(
                f"{column}: a number has a decimal point, not a comma. Write the file again with points"
            )
    return lines


def outside(source: Any, columns: Sequence[tuple[str, tuple[Any, Any]]]) -> list[str]:
    """What :func:`numbers` finds in columns with public limits, which are exact text."""
    result: list[str] = []
    for column, limits in columns:
        low, high = (float(Fraction(end)) for end in limits)
        result += numbers(source, column, low, high, whole=False)
    return result


def other_words(source: Any, column: str, words: Any) -> list[str]:
    """How many rows say yes and no, and what the others say."""
    frame = open_source(source, {"answer": [column]})
    dtype = frame.collect_schema()[column]
    answers = {
        name: is_one_of(column, dtype, getattr(words, name)).fill_null(False) for name in ("yes", "no")
    }
    read = frame.select(
        as_text(column, dtype).alias("value"), *(rule.alias(name) for name, rule in answers.items())
    )
    result = one(read.select(*(nw.col(name).cast(nw.Int64).sum().alias(name) for name in answers)))
    odd, shown = commonest(read.filter(~nw.col("yes") & ~nw.col("no")).select("value"))
    return [
        f"{column}: {several(result['yes'], 'row says', 'rows say')} yes, {result['no']:,} no, {odd:,} neither (they are left out){shown}"
    ]


def commonest(values: Frame) -> tuple[int, str]:
    """How many rows there are, and the commonest values in words."""
    sizes = values.group_by("value").agg(nw.len().alias("rows"))
    total = one(sizes.select(nw.col("rows").sum().alias("n")))["n"]
    top = collect(
        sizes.filter(~nw.col("value").is_null()).sort("rows", "value", descending=[True, False]).head(SHOWN)
    )
    shown = ", ".join(f"{value!r} ({rows:,})" for value, rows in zip(top["value"], top["rows"], strict=True))
    return total, f": {shown}" if shown else ""


def one(frame: Frame) -> dict[str, Any]:
    """The single row of a query. Sums of nothing are 0."""
    return {name: values[0] or 0 for name, values in collect(frame).items()}


# Looking at the contents of the data before a release. Nothing here is private.
#
# A release never shows what the data contains. When something is wrong with a source, the steward has to look, and this is the
# place: it releases nothing, charges nothing, and says that its output must not leave the desk. Values are read by the readers
# that releases use, so what is called odd here is odd there.

WARNING = "NOT PRIVATE: this looks at the contents of the data. Do not publish it or act on it in public."

VOID = (
    "Mend the data, and mend in the spec what your codebook or your export says: the name of a column, a separator, the codes of a "
    "yes. Do not tune anything to what you saw: a bound, a list or a number of contributions that follows the data is chosen by "
    "the data, and the guarantee is void."
)

_FOREIGN = (
    'it is not all {}. State what your export writes, such as encoding = "latin-1" or "cp1252" in [data]'
)

_TABLES = (".csv", ".tsv", ".txt")
_LONGEST_LINE = 1 << 16
_MOST_NAMES = 60


@dataclass(frozen=True)
class DeskReport:
    """Findings about the contents of the data, for the steward alone."""

    findings: tuple[str, ...]
    error: IsotoneError | None = field(default=None, compare=False)
    """Why the rest could not be looked at, if it could not. A release stops for the same reason, before the charge."""

    def __str__(self) -> str:
        stopped = [] if self.error is None else [f"  The rest could not be looked at: {self.error}"]
        return "\n".join([WARNING, *(f"  {line}" for line in self.findings), *stopped, VOID, WARNING])


def check_spec(spec: Spec) -> DeskReport:
    """Look at rows, units, odd values and order-breaking records in the data of a spec."""
    source, ledger, described = spec.source, spec.privacy.ledger, spec.description.checked()
    new = "://" not in ledger and not spec.resolve(ledger).exists()
    if not isinstance(source, DataFile):
        return _report(described, source, (), new)
    data = source
    try:
        if source.header is None and Path(source.path).suffix.lower() in _TABLES:
            source = replace(source, header=True)  # this is for the steward: an error may name the columns
        odd = [*_lost_lines(source), *_odd_types(source)]
        result = _report(described, source, odd, new)
    except IsotoneError as error:
        first = _first_lines(data, wrong=True)
        if not first:
            raise
        return DeskReport(tuple(first), error)
    return replace(result, findings=(*_first_lines(data, wrong=False), *result.findings))


def check_data(described: Description, data: Any) -> DeskReport:
    """The same for any data of a description."""
    file = DataFile(str(data)) if isinstance(data, (str, Path)) else data
    return _report(described, data, _lost_lines(file) if isinstance(file, DataFile) else (), False)


def _report(described: Description, source: Any, odd: Sequence[str], new: bool) -> DeskReport:
    begin = _no_unit(new) if described.privacy_unit.column is None else _units(described, source)
    return DeskReport((*begin, *odd, *described.findings(source)))


def _no_unit(new: bool) -> list[str]:
    return [
        "no unit is declared, so the guarantee protects one row: if a person may have several rows, name the column (unit = …)"
        + (". The ledger is new, and its unit cannot be changed later" if new else "")
    ]


def _units(described: Description, source: Any) -> list[str]:
    column, most = described.privacy_unit.column, described.privacy_unit.most
    rows = UnitRows(column, most)
    frame = read_columns(open_source(source, rows.unit_roles), rows.unit_keys())
    sizes, nobody = frame.group_by(UNIT).agg(nw.len().alias("rows")), nw.col(UNIT).is_null()
    cut = nw.when(~nobody & (nw.col("rows") > most))
    result = one(
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
        f"{several(result['rows'], 'row', 'rows')}, {result['units']:,} different values of the unit {column!r}, {several(result['nobody'], 'row', 'rows')} without one (dropped)"
    ]
    if result["cut_units"]:
        hint = f"{several(result['cut_units'], 'unit has', 'units have')} more than {several(most, 'row', 'rows')}, the largest {result['largest']:,}"
        if most == 1 and described.combines:
            return [*lines, f"{hint}: a unit's rows are combined into one record"]
        lines.append(
            f"{hint}: contributions = {most} leaves {several(result['left_out'], 'row', 'rows')} out, if all could count"
        )
    return lines


def _first_lines(source: DataFile, *, wrong: bool) -> list[str]:
    """What the first line of a CSV looks like, and the lines for [data] that would say so, if something may be ``wrong``."""
    lines: list[str] = []
    for file in expand(source.path):
        if Path(file).suffix.lower() not in _TABLES or source.header is False:
            continue
        with Path(file).open("rb") as stream:
            raw = stream.read(_LONGEST_LINE)
        name, mark = Path(file).name, raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if mark else source.encoding
        text = raw.decode(encoding, errors="replace").removeprefix("\ufeff")
        first, ends = (text.splitlines() or [""])[0], re.findall(r"\r\n|\n|\r", text)
        if not first.strip():
            lines.append(f"{name}: the first line is empty")
            continue
        separator = separator_of(first)
        names = next(csv.reader([first], delimiter=separator), [])
        shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
        words = "a tabulator" if separator == "\t" else f"{separator!r}"
        lines.append(f"{name}: the first line, cut at {words}, reads {shown}")
        if "\ufffd" in first:
            lines.append(f"{name}: {_FOREIGN.format(encoding.upper())}")
        usual = "\t" if file.lower().endswith(".tsv") else ","
        stated: list[str] = []
        if separator != (source.separator or usual):
            stated.append(f"separator = {json.dumps(separator)}")
        if encoding != source.encoding:
            stated.append(f'encoding = "{encoding}"')
        if source.header is None and (stated or wrong):
            stated.append("header = true")
        if stated:
            hint = "\n    ".join(stated)
            lines.append(f"{name}: if these are names of columns, write in [data]:\n    {hint}")
        if source.header is None and wrong and ends:
            lines.append(
                f"{name}: if they are somebody's answers, the file does not name its columns. Then state their {len(names)} names in [data]:\n"
                f'    header = false\n    newline = {json.dumps(ends[0])}\n    names = ["…", "…"]'
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
                f"{name}: fields with other letters are missing, in {foreign:,} lines; {_FOREIGN.format(source.encoding.upper())}"
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
    *rows, last = records_of(f"{text}{layout.newline}{_END}".encode(), layout)
    opened = [] if last == [_END.encode()] else [last]
    rows += opened
    width = len(source.columns) or (len(rows[0]) if rows else 0)
    others = {"\n": ("\r",), "\r\n": ("\n", "\r"), "\r": ("\n",)}[layout.newline]
    plain = text.replace(layout.newline, "")
    lines = [
        f"{name}: {sum(len(row) != width for row in rows):,} lines have more or fewer fields than the header"
    ]
    if opened:
        lines.append(
            f"{name}: record {len(rows) - (not source.columns):,} opens a quote that is never closed: all lines after it are part of that record"
        )
    result = [_ENDING[other] for other in others if other in plain]
    if result:
        lines.append(
            f"{name}: lines end with {_ENDING[layout.newline]}, as the header does, so {' and '.join(result)} is content. If lines were meant to "
            "end with it, write the file again"
        )
    return lines if any(len(row) != width for row in rows) else lines[1:]


_END = "end"
"""A record behind the last one, which shows whether a quote is still open."""
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
