"""REDCap's data dictionary, a CSV file with a line for each field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from isotone.forms.expressions import parse
from isotone.forms.fields import Field, Form, Option

__all__ = ["is_redcap", "redcap_form"]

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
_NUMBERS = ("integer", "number")
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
    wanted = {_NAMES[key].lower(), _SHORT.get(key, key)}
    return next((cell for head, cell in row.items() if head.strip().lower() in wanted), "").strip()


def _field(name: str, cells: Mapping[str, str], problems: list[str]) -> Field:
    kind = cells["field_type"].lower()
    logic = parse(cells["logic"], "redcap") if cells["logic"] else None
    label = re.sub(r"<[^<>]*>", "", cells["field_label"]).strip()
    asked = Field(name, "other", label, name, condition=logic)
    if kind in _BOOLEANS:
        return replace(asked, kind="one", options=_BOOLEANS[kind])
    if kind in ("radio", "dropdown", "checkbox"):
        options = _options(name, cells["choices"], boxes=kind == "checkbox")
        if not options:
            problems.append(f"{name}: its choices cannot be read")
        return replace(
            asked, kind="many" if kind == "checkbox" else "one", options=options, listed=bool(options)
        )
    if kind == "sql":
        problems.append(f"{name}: its choices come from a query, which is not run")
        return replace(asked, kind="one", listed=False)
    if kind == "slider" or (kind == "text" and cells["validation"].lower().startswith(_NUMBERS)):
        return replace(asked, kind="number")
    return asked


def _options(name: str, choices: str, *, boxes: bool) -> tuple[Option, ...]:
    """Options from ``1, Yes | 2, No``. Each box of a checkbox has a column of its own."""
    found: dict[str, Option] = {}
    for part in re.split(r"\||\n", choices):
        code, _, label = part.partition(",")
        code = code.strip()
        if code and code not in found:
            column = f"{name}___{re.sub(r'[^a-z0-9_]', '_', code.lower())}" if boxes else None
            found[code] = Option(code, re.sub(r"<[^<>]*>", "", label).strip(), column)
    return tuple(found.values())
