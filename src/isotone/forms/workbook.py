"""The cells of an .xlsx file as texts, from a stranger's file.

A workbook is a zip archive of XML files. Sizes are bounded before anything is unpacked, document types and entities are
refused, formulas are reported and never evaluated, and nothing outside the archive is opened.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from isotone.errors import InputError

__all__ = ["WorkbookSheet", "read_workbook"]

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


def read_workbook(path: Path, wanted: Iterable[str]) -> dict[str, WorkbookSheet]:
    """The sheets of a workbook that are called as wanted, in any case."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(
                f"{str(path)!r} is larger than {LARGEST_FILE:,} bytes: that is no questionnaire."
            )
        with zipfile.ZipFile(path) as archive:
            return _Workbook(archive).sheets({name.lower() for name in wanted})
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

    def sheets(self, wanted: set[str]) -> dict[str, WorkbookSheet]:
        """The wanted sheets by their names in small letters."""
        targets = self._targets()
        named: list[tuple[str, str]] = []

        def begin(tag: str, said: dict[str, str]) -> None:
            if tag == "sheet":
                place = next((value for key, value in said.items() if key.endswith("id") and ":" in key), "")
                named.append((said.get("name", "").strip().lower(), targets.get(place, "")))

        _parse(self._bytes("xl/workbook.xml"), begin)
        if len(named) > MOST_SHEETS:
            raise InputError(f"The workbook has {len(named):,} sheets; at most {MOST_SHEETS} are read.")
        self.shared = self._shared()
        return {name: self._sheet(target) for name, target in named if name in wanted}

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
        found: dict[str, str] = {}

        def begin(tag: str, said: dict[str, str]) -> None:
            if tag == "Relationship" and said.get("TargetMode") != "External":
                target = said.get("Target", "")
                joined = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
                found[said.get("Id", "")] = posixpath.normpath(joined)

        _parse(self._bytes("xl/_rels/workbook.xml.rels"), begin)
        return found

    def _shared(self) -> list[str]:
        """The texts that cells refer to by number."""
        if "xl/sharedStrings.xml" not in self.parts:
            return []
        found: list[str] = []
        text = _Text()

        def begin(tag: str, said: dict[str, str]) -> None:
            text.begin(tag)
            if tag == "si":
                text.clear()
                if len(found) >= MOST_CELLS:
                    raise InputError(f"The workbook has more than {MOST_CELLS:,} texts.")

        def end(tag: str) -> None:
            text.end(tag)
            if tag == "si":
                found.append(text.value())

        _parse(self._bytes("xl/sharedStrings.xml"), begin, end, text.add)
        return found

    def _sheet(self, target: str) -> WorkbookSheet:
        sheet, text = WorkbookSheet(), _Text()
        row: dict[int, str] = {}
        cell: dict[str, Any] = {"kind": "", "column": -1}

        def begin(tag: str, said: dict[str, str]) -> None:
            text.begin(tag)
            if tag == "row":
                row.clear()
                cell["column"] = -1
            elif tag == "c":
                self.left -= 1
                if self.left < 0:
                    raise InputError(f"The workbook has more than {MOST_CELLS:,} cells.")
                column = _column(said.get("r", ""))
                cell.update(kind=said.get("t", ""), column=cell["column"] + 1 if column is None else column)
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
    parser.StartElementHandler = lambda tag, said: begin(tag.rpartition(":")[2], said)
    parser.EndElementHandler = lambda tag: end(tag.rpartition(":")[2])
    parser.CharacterDataHandler = text
    parser.Parse(content, True)
