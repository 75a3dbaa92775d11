"""XLSForm's sheets ``survey``, ``choices`` and ``settings`` of a workbook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from isotone.errors import InputError
from isotone.forms.expressions import Expression, parse
from isotone.forms.fields import Field, Form, Option, both
from isotone.forms.workbook import WorkbookSheet, read_workbook

__all__ = ["read_xlsform"]

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
        found: Row = {}
        for head, cell in cells:
            found.setdefault(re.split(r"\s*::?\s*", head)[0] if head.startswith("label") else head, cell)
        if found:
            yield found


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
        said = row.get("relevant") or row.get("relevance") or ""
        return parse(said, "odk") if said else None

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
        asked = Field(name, "other", label, column, condition=both(around), always=always)
        yield self._typed(asked, kind, written, row)

    def _typed(self, asked: Field, kind: str, written: str, row: Row) -> Field:
        if row.get("choice_filter"):
            self.problems.append(f"{asked.name}: its choice_filter is not used: {row['choice_filter']}")
        if kind in _NUMBERS:
            return replace(asked, kind="number")
        many = "multiple" in kind or "all that apply" in kind
        found = _SELECT.match(written)
        if found is None:
            if kind.startswith("select"):
                self.problems.append(f"{asked.name}: its choices are elsewhere, and not opened: {written}")
                return replace(asked, kind="many" if many else "one", listed=False)
            return asked
        if kind.startswith("rank"):
            return asked
        options = self.lists.get(found[2], [])
        if not options:
            self.problems.append(f"{asked.name}: there is no list of choices {found[2]!r}")
        if "search(" in row.get("appearance", ""):
            self.problems.append(f"{asked.name}: its choices are searched for in a file, which is not opened")
            options = []
        if found[3]:
            options = [*options, Option("other", "Other")]
        return replace(asked, kind="many" if many else "one", options=tuple(options), listed=bool(options))
