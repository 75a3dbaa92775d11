"""XLSForm and REDCap files."""

from __future__ import annotations

import os
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat

from isotone.errors import InputError
from isotone.forms.expressions import Expression, Field, Form, Option, both, parse
from isotone.forms.questionnaire import Questionnaire, build
from isotone.order import Poset
from isotone.privacy.checks import whole_number
from isotone.reading.public_csv import column_of, public_rows
from isotone.reading.questions import Question

# The cells of an .xlsx file as texts, from a stranger's file.
#
# A workbook is a zip archive of XML files. Sizes are bounded before anything is unpacked, document types and entities are
# refused, formulas are reported and never evaluated, and nothing outside the archive is opened.

LARGEST_FILE = 20_000_000
"""Bytes of the archive."""
MOST_UNPACKED = 40_000_000
"""Bytes of all its files, unpacked."""
MOST_PARTS, MOST_SHEETS, MOST_CELLS, MOST_COLUMNS, LONGEST_CELL = 500, 30, 300_000, 500, 32_767
_BROKEN = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError, ValueError)


@dataclass
class WorkbookSheet:
    """The rows of a sheet as texts, blank where a cell is empty, and the places of its formulas."""

    rows: list[list[str]] = field(default_factory=list[list[str]])
    formulas: list[str] = field(default_factory=list[str])


def read_workbook(path: Path, names: Iterable[str]) -> dict[str, WorkbookSheet]:
    """The sheets of a workbook that are called as wanted, in any case."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(
                f"{str(path)!r} is larger than {LARGEST_FILE:,} bytes: that is no questionnaire."
            )
        with zipfile.ZipFile(path) as archive:
            return _Workbook(archive).sheets({name.lower() for name in names})
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}.") from None
    except (*_BROKEN, expat.ExpatError):
        raise InputError(f"{str(path)!r} is not an .xlsx workbook that can be read.") from None


class _Workbook:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        parts = archive.infolist()
        unpacked = sum(part.file_size for part in parts)
        if len(parts) > MOST_PARTS or unpacked > MOST_UNPACKED:
            raise InputError(
                f"The workbook unpacks to {unpacked:,} bytes in {len(parts):,} files; at most {MOST_UNPACKED:,} bytes in "
                f"{MOST_PARTS} files are read."
            )
        self.archive, self.parts = archive, {part.filename: part for part in parts}
        self.left = MOST_CELLS
        self.shared: list[str] = []

    def sheets(self, names: set[str]) -> dict[str, WorkbookSheet]:
        """The wanted sheets by their names in small letters."""
        targets = self._targets()
        named: list[tuple[str, str]] = []

        def begin(tag: str, attributes: dict[str, str]) -> None:
            if tag == "sheet":
                place = next(
                    (value for key, value in attributes.items() if key.endswith("id") and ":" in key), ""
                )
                named.append((attributes.get("name", "").strip().lower(), targets.get(place, "")))

        _parse(self._bytes("xl/workbook.xml"), begin)
        if len(named) > MOST_SHEETS:
            raise InputError(f"The workbook has {len(named):,} sheets; at most {MOST_SHEETS} are read.")
        self.shared = self._shared()
        return {name: self._sheet(target) for name, target in named if name in names}

    def _bytes(self, name: str) -> bytes:
        part = self.parts.get(name)
        if part is None:
            raise InputError(f"The workbook has no {name}: it is not an .xlsx file.")
        with self.archive.open(part) as file:
            content = file.read(MOST_UNPACKED + 1)
        if len(content) > MOST_UNPACKED:
            raise InputError("The workbook unpacks to more than it says.")
        return content

    def _targets(self) -> dict[str, str]:
        """The files of the sheets by their identifiers."""
        result: dict[str, str] = {}

        def begin(tag: str, attributes: dict[str, str]) -> None:
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                joined = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
                result[attributes.get("Id", "")] = posixpath.normpath(joined)

        _parse(self._bytes("xl/_rels/workbook.xml.rels"), begin)
        return result

    def _shared(self) -> list[str]:
        """The texts that cells refer to by number."""
        if "xl/sharedStrings.xml" not in self.parts:
            return []
        result: list[str] = []
        text = _Text()

        def begin(tag: str, attributes: dict[str, str]) -> None:
            text.begin(tag)
            if tag == "si":
                text.clear()
                if len(result) >= MOST_CELLS:
                    raise InputError(f"The workbook has more than {MOST_CELLS:,} texts.")

        def end(tag: str) -> None:
            text.end(tag)
            if tag == "si":
                result.append(text.value())

        _parse(self._bytes("xl/sharedStrings.xml"), begin, end, text.add)
        return result

    def _sheet(self, target: str) -> WorkbookSheet:
        sheet, text = WorkbookSheet(), _Text()
        row: dict[int, str] = {}
        cell: dict[str, Any] = {"kind": "", "column": -1}

        def begin(tag: str, attributes: dict[str, str]) -> None:
            text.begin(tag)
            if tag == "row":
                row.clear()
                cell["column"] = -1
            elif tag == "c":
                self.left -= 1
                if self.left < 0:
                    raise InputError(f"The workbook has more than {MOST_CELLS:,} cells.")
                column = _column(attributes.get("r", ""))
                cell.update(
                    kind=attributes.get("t", ""), column=cell["column"] + 1 if column is None else column
                )
                text.clear()
            elif tag == "f":
                sheet.formulas.append(f"row {len(sheet.rows) + 1}, column {cell['column'] + 1}")
                cell["kind"] = "formula"

        def end(tag: str) -> None:
            text.end(tag)
            if tag == "c" and 0 <= cell["column"] < MOST_COLUMNS:
                row[cell["column"]] = self._value(cell["kind"], text.value())
            elif tag == "row":
                width = max(row, default=-1) + 1
                sheet.rows.append([row.get(i, "") for i in range(width)])

        _parse(self._bytes(target), begin, end, text.add)
        return sheet

    def _value(self, kind: str, text: str) -> str:
        if kind == "formula":
            return ""
        if kind == "s":
            place = int(text) if text.isdigit() else -1
            return self.shared[place] if 0 <= place < len(self.shared) else ""
        if kind == "b":
            return {"1": "true", "0": "false"}.get(text, "")
        # numbers are written with a point where they are whole, or with 17 digits
        return re.sub(r"^(-?[0-9]+)\.0+$", r"\1", text) if kind in ("", "n") else text


class _Text:
    """The text inside ``t`` and ``v``, without the readings of Asian letters."""

    def __init__(self) -> None:
        self.inside, self.aside, self.parts = 0, 0, list[str]()

    def begin(self, tag: str) -> None:
        self.inside += tag in ("t", "v")
        self.aside += tag == "rPh"

    def end(self, tag: str) -> None:
        self.inside -= tag in ("t", "v")
        self.aside -= tag == "rPh"

    def add(self, text: str) -> None:
        if self.inside and not self.aside:
            self.parts.append(text)

    def clear(self) -> None:
        self.parts = []

    def value(self) -> str:
        return "".join(self.parts)[:LONGEST_CELL].strip()


def _column(place: str) -> int | None:
    """The number of a column from a place such as B7."""
    letters = re.match(r"[A-Z]{1,3}", place)
    if letters is None:
        return None
    number = 0
    for letter in letters[0]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _refuse(*_: Any) -> None:
    raise InputError("The workbook declares a document type, which no spreadsheet program writes.")


def _parse(
    content: bytes,
    begin: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] = lambda _: None,
    text: Callable[[str], None] = lambda _: None,
) -> None:
    """Walk an XML file. Names lose their prefix, document types are refused before they can define anything."""
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = lambda tag, attributes: begin(tag.rpartition(":")[2], attributes)
    parser.EndElementHandler = lambda tag: end(tag.rpartition(":")[2])
    parser.CharacterDataHandler = text
    parser.Parse(content, True)


# XLSForm's sheets ``survey``, ``choices`` and ``settings`` of a workbook.

Row = dict[str, str]

_NUMBERS = {"integer", "int", "decimal", "range"}
_SILENT = {
    *("note", "start", "end", "today", "deviceid", "subscriberid", "simserial", "simid", "phonenumber"),
    *("username", "email", "audit", "start-geopoint", "background-audio", "caseid", "instanceid"),
}
_GROUPS = re.compile(r"^(begin|end)[\s_]+(group|repeat|loop)(\s.*)?$")
_SELECT = re.compile(
    r"^(select_one|select_multiple|select one|select multiple|select all that apply|rank)(?:\s+from)?\s+(\S+)"
    r"(\s+or_other|\s+or specify other)?$",
    re.IGNORECASE,
)


def read_xlsform(path: Path, separator: str = "") -> Form:
    """The fields of an XLSForm.

    Tools that export answers may put the names of groups before the names of columns: ``separator`` is what they put
    between them, and nothing if they do not.
    """
    sheets = read_workbook(path, ("survey", "choices", "settings", "external_choices"))
    if "survey" not in sheets:
        raise InputError(f"{str(path)!r} has no sheet 'survey': it is no XLSForm.")
    problems = [f"{name}: a formula in {place} was not evaluated" for name, sheet in sheets.items() for place in sheet.formulas]  # fmt: skip
    reader = _XlsformReader(_choices(sheets.get("choices", WorkbookSheet())), problems, separator)
    fields = tuple(reader.fields(_rows(sheets["survey"])))
    settings = next(iter(_rows(sheets.get("settings", WorkbookSheet()))), {})
    return Form(fields, tuple(reader.problems), settings.get("form_title", ""))


def _rows(sheet: WorkbookSheet) -> Iterator[Row]:
    """The rows by the names in the first row. Of labels in several languages the first is taken."""
    if not sheet.rows:
        return
    heads = [head.strip().lower() for head in sheet.rows[0]]
    for row in sheet.rows[1:]:
        cells = [(head, cell.strip()) for head, cell in zip(heads, row, strict=False) if cell.strip()]
        result: Row = {}
        for head, cell in cells:
            result.setdefault(re.split(r"\s*::?\s*", head)[0] if head.startswith("label") else head, cell)
        if result:
            yield result


def _choices(sheet: WorkbookSheet) -> dict[str, list[Option]]:
    lists: dict[str, list[Option]] = {}
    for row in _rows(sheet):
        name = row.get("list_name") or row.get("list name") or ""
        code = row.get("name") or row.get("value") or ""
        if name and code and all(option.code != code for option in lists.get(name, [])):
            lists.setdefault(name, []).append(Option(code, row.get("label", "")))
    return lists


class _XlsformReader:
    def __init__(self, lists: dict[str, list[Option]], problems: list[str], separator: str) -> None:
        self.lists, self.problems, self.separator = lists, problems, separator
        self.conditions: list[Expression | None] = []
        self.groups: list[str] = []
        self.repeats: list[str] = []
        self.names: set[str] = set()

    def fields(self, rows: Iterable[Row]) -> Iterator[Field]:
        """The fields in their sequence. Groups open and close around them."""
        for row in rows:
            kind = " ".join(row.get("type", "").lower().split())
            edge = _GROUPS.match(kind)
            if edge is not None:
                self._edge(edge[1], edge[2], row)
            elif kind and kind not in _SILENT:
                yield from self._field(kind, " ".join(row["type"].split()), row)
        if self.groups:
            self.problems.append(f"the group {self.groups[-1]} is not closed")

    def _edge(self, edge: str, what: str, row: Row) -> None:
        if edge == "end":
            if not self.groups:
                self.problems.append("a group ends that did not begin")
                return
            closed = self.groups.pop()
            self.conditions.pop()
            if self.repeats and self.repeats[-1] == closed:
                self.repeats.pop()
            return
        name = row.get("name", "")
        self.groups.append(name)
        self.conditions.append(self._condition(row))
        if what != "group":
            self.repeats.append(name)
            self.problems.append(f"{name}: what is asked in a {what} is in a table of its own, and left out")

    def _condition(self, row: Row) -> Expression | None:
        condition = row.get("relevant") or row.get("relevance") or ""
        return parse(condition, "odk") if condition else None

    def _field(self, kind: str, written: str, row: Row) -> Iterator[Field]:
        name = row.get("name", "")
        if not re.fullmatch(r"[^\W\d][\w.:-]*", name) or name in self.names:
            self.problems.append(
                f"{name or 'a question of type ' + kind}: it has no name of its own, and is left out"
            )
            return
        self.names.add(name)
        if self.repeats:
            return
        around = [
            condition for condition in [*self.conditions, self._condition(row)] if condition is not None
        ]
        required = row.get("required", "").lower() in ("yes", "true", "true()", "1")
        column = self.separator.join([*(g for g in self.groups if g), name]) if self.separator else name
        label = re.sub(r"<[^<>]*>|[*_#]{1,3}(?=\S)|(?<=\S)[*_]{1,3}", "", row.get("label", "")).strip()
        always = required and not around
        field = Field(name, "other", label, column, condition=both(around), always=always)
        yield self._typed(field, kind, written, row)

    def _typed(self, field: Field, kind: str, written: str, row: Row) -> Field:
        if row.get("choice_filter"):
            self.problems.append(f"{field.name}: its choice_filter is not used: {row['choice_filter']}")
        if kind in _NUMBERS:
            return replace(field, kind="number")
        many = "multiple" in kind or "all that apply" in kind
        result = _SELECT.match(written)
        if result is None:
            if kind.startswith("select"):
                self.problems.append(f"{field.name}: its choices are elsewhere, and not opened: {written}")
                return replace(field, kind="many" if many else "one", listed=False)
            return field
        if kind.startswith("rank"):
            return field
        options = self.lists.get(result[2], [])
        if not options:
            self.problems.append(f"{field.name}: there is no list of choices {result[2]!r}")
        if "search(" in row.get("appearance", ""):
            self.problems.append(f"{field.name}: its choices are searched for in a file, which is not opened")
            options = []
        if result[3]:
            options = [*options, Option("other", "Other")]
        return replace(field, kind="many" if many else "one", options=tuple(options), listed=bool(options))


# REDCap's data dictionary, a CSV file with a line for each field.

_NAMES = {
    "field_name": "Variable / Field Name",
    "field_type": "Field Type",
    "field_label": "Field Label",
    "choices": "Choices, Calculations, OR Slider Labels",
    "validation": "Text Validation Type OR Show Slider Number",
    "logic": "Branching Logic (Show field only if...)",
}
_SHORT = {
    "choices": "select_choices_or_calculations",
    "validation": "text_validation_type_or_show_slider_number",
    "logic": "branching_logic",
}
_NAMED = {"field_name", "variable / field name"}
_REDCAP_NUMBERS = ("integer", "number")
_BOOLEANS = {
    "yesno": (Option("1", "Yes"), Option("0", "No")),
    "truefalse": (Option("1", "True"), Option("0", "False")),
}


def is_redcap(heads: Iterable[str]) -> bool:
    """Whether a CSV file with these columns is a data dictionary, as the site or its interface writes it."""
    known = {head.strip().lower() for head in heads}
    return {"field_type", "field_name"} <= known or {"field type", "form name"} <= known


def redcap_form(rows: Iterable[Mapping[str, str]]) -> Form:
    """The fields of a data dictionary. REDCap goes by places, so the first column has the names, whatever its head."""
    fields: list[Field] = []
    problems: list[str] = []
    seen: set[str] = set()
    for row in rows:
        cells = {key: _cell(row, key) for key in _NAMES}
        first = next(iter(row), "")
        if not _NAMED & {head.strip().lower() for head in row}:
            if not seen:
                problems.append(f"The first column is headed {first!r}; it was taken for the names of fields")
            cells["field_name"] = row[first].strip()
        name = cells["field_name"].lower()
        if not re.fullmatch(r"[a-z]\w*", name) or name in seen:
            if name:
                problems.append(f"{name}: it has no name of its own, and is left out")
            continue
        seen.add(name)
        if cells["field_type"].lower() != "descriptive":
            fields.append(_field(name, cells, problems))
    return Form(tuple(fields), tuple(problems))


def _cell(row: Mapping[str, str], key: str) -> str:
    expected = {_NAMES[key].lower(), _SHORT.get(key, key)}
    return next((cell for head, cell in row.items() if head.strip().lower() in expected), "").strip()


def _field(name: str, cells: Mapping[str, str], problems: list[str]) -> Field:
    kind = cells["field_type"].lower()
    logic = parse(cells["logic"], "redcap") if cells["logic"] else None
    label = re.sub(r"<[^<>]*>", "", cells["field_label"]).strip()
    field = Field(name, "other", label, name, condition=logic)
    if kind in _BOOLEANS:
        return replace(field, kind="one", options=_BOOLEANS[kind])
    if kind in ("radio", "dropdown", "checkbox"):
        options = _options(name, cells["choices"], boxes=kind == "checkbox")
        if not options:
            problems.append(f"{name}: its choices cannot be read")
        return replace(
            field, kind="many" if kind == "checkbox" else "one", options=options, listed=bool(options)
        )
    if kind == "sql":
        problems.append(f"{name}: its choices come from a query, which is not run")
        return replace(field, kind="one", listed=False)
    if kind == "slider" or (kind == "text" and cells["validation"].lower().startswith(_REDCAP_NUMBERS)):
        return replace(field, kind="number")
    return field


def _options(name: str, choices: str, *, boxes: bool) -> tuple[Option, ...]:
    """Options from ``1, Yes | 2, No``. Each box of a checkbox has a column of its own."""
    result: dict[str, Option] = {}
    for part in re.split(r"\||\n", choices):
        code, _, label = part.partition(",")
        code = code.strip()
        if code and code not in result:
            column = f"{name}___{re.sub(r'[^a-z0-9_]', '_', code.lower())}" if boxes else None
            result[code] = Option(code, re.sub(r"<[^<>]*>", "", label).strip(), column)
    return tuple(result.values())


# Read a questionnaire from an XLSForm, a REDCap data dictionary, or a CSV of relations.

LARGEST_CSV, MOST_LINES, MOST_FIELDS = 20_000_000, 50_000, 3_000


def read_form(
    path: str | os.PathLike[str],
    *,
    most_options: int = 12,
    separator: str = "",
    lower: str = "child",
    upper: str = "parent",
) -> Questionnaire:
    """The questions of a form and the order that its conditions imply. No data is read, and nothing is evaluated.

    Parameters
    ----------
    path
        An XLSForm (.xlsx), a REDCap data dictionary (.csv), or a CSV of relations with the columns ``lower`` and
        ``upper`` (and ``label``, ``column`` and ``yes``, where there are any).
    most_options
        Questions with more options than this give no element for each option.
    separator
        XLSForm: what stands between the names of groups and of a question in the columns of the data, if anything.
    """
    file, most = Path(path), whole_number(most_options, "most_options", least=0)
    if file.suffix.lower() == ".xlsx":
        form = read_xlsform(file, separator)
    elif file.suffix.lower() == ".csv":
        heads, rows = public_rows(file, most_bytes=LARGEST_CSV, most_lines=MOST_LINES)
        if not is_redcap(heads):
            repair = "If it lists relations, name both with --lower and --upper; a REDCap data dictionary it is not."
            return _related(rows, *(column_of(name, heads, file, repair) for name in (lower, upper)))
        form = redcap_form(rows)
    else:
        raise InputError(
            f"A questionnaire is an .xlsx or a .csv file, not {file.name!r}. Save an old .xls as .xlsx."
        )
    if len(form.fields) > MOST_FIELDS:
        raise InputError(f"The form has {len(form.fields):,} questions; at most {MOST_FIELDS:,} are read.")
    if not form.fields:
        raise InputError("The form has no questions.")
    return build(form, most)


def _related(rows: list[dict[str, str]], lower: str, upper: str) -> Questionnaire:
    """The questions of a CSV of relations. Codes for yes are separated by bars."""
    entries: dict[str, dict[str, str]] = {}
    relations: list[tuple[str, str]] = []
    for row in rows:
        low, high = row.get(lower, "").strip(), row.get(upper, "").strip()
        for name in (low, high):
            if name:
                entries.setdefault(name, {})
        if low:
            for key in ("label", "column", "yes"):
                if row.get(key, "").strip():
                    entries[low].setdefault(key, row[key].strip())
        if low and high:
            relations.append((low, high))
    if not entries:
        raise InputError("The file names no element.")
    questions = tuple(
        Question(name, _yes(entry.get("yes")), entry.get("column"), entry.get("label", ""))
        for name, entry in entries.items()
    )
    P = Poset([*entries], relations)
    return Questionnaire(questions, tuple((str(a), str(b)) for a, b in P.covers), {})


def _yes(text: str | None) -> str | list[str] | None:
    if not text or text == "answered" or text[0] in "<>":
        return text or None
    return [code.strip() for code in text.split("|") if code.strip()]
