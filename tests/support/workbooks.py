"""Workbooks written by hand, right ones and wrong ones."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

Rows = Sequence[Sequence[str | int | None]]

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_LINK = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def parts_of(sheets: Mapping[str, Rows]) -> dict[str, str]:
    """The files of a workbook; texts are shared in the first sheet and stand in the cells of the others."""
    shared: list[str] = []
    parts: dict[str, str] = {}
    for number, rows in enumerate(sheets.values(), start=1):
        lines = "".join(f"<row r='{r}'>{_cells(row, r, shared if number == 1 else None)}</row>" for r, row in enumerate(rows, 1))  # fmt: skip
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f"{_HEAD}<worksheet {_MAIN}><sheetData>{lines}</sheetData></worksheet>"
        )
    named = "".join(f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="rId{i}"/>' for i, name in enumerate(sheets, 1))  # fmt: skip
    parts["xl/workbook.xml"] = f"{_HEAD}<workbook {_MAIN} {_LINK}><sheets>{named}</sheets></workbook>"
    links = "".join(f'<Relationship Id="rId{i}" Target="worksheets/sheet{i}.xml"/>' for i in range(1, len(sheets) + 1))  # fmt: skip
    parts["xl/_rels/workbook.xml.rels"] = f"{_HEAD}<Relationships>{links}</Relationships>"
    texts = "".join(f"<si><r><t>{escape(text)}</t></r><rPh><t>aside</t></rPh></si>" for text in shared)
    parts["xl/sharedStrings.xml"] = f"{_HEAD}<sst {_MAIN}>{texts}</sst>"
    return parts


def _cells(row: Sequence[str | int | None], number: int, shared: list[str] | None) -> str:
    said = ""
    for column, value in enumerate(row):
        place = f"{chr(ord('A') + column)}{number}"
        if isinstance(value, int):
            said += f'<c r="{place}"><v>{value}.0</v></c>'
        elif value is not None and value.startswith("="):
            said += f'<c r="{place}"><f>{escape(value[1:])}</f><v>7</v></c>'
        elif value is not None and shared is not None:
            shared.append(value)
            said += f'<c r="{place}" t="s"><v>{len(shared) - 1}</v></c>'
        elif value is not None:
            said += f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return said


def write_parts(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    """A zip archive of the parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def write_workbook(path: Path, sheets: Mapping[str, Rows]) -> Path:
    """A workbook with these sheets."""
    return write_parts(path, parts_of(sheets))
