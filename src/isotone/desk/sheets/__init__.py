"""What the desk knows about each kind of release, a file for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotone.desk.drafts import Draft
from isotone.desk.sheets.breakdown import BreakdownSheet
from isotone.desk.sheets.counts import CountsSheet
from isotone.desk.sheets.curve import CurveSheet
from isotone.desk.sheets.sheet import Sheet
from isotone.desk.sheets.surface import SurfaceSheet
from isotone.desk.sheets.table import TableSheet
from isotone.desk.words import FormError
from isotone.release.spec import Spec

__all__ = ["SHEETS", "Sheet", "sheet_for", "sheet_named", "sheet_of"]

SHEETS: tuple[Sheet, ...] = (CountsSheet(), BreakdownSheet(), TableSheet(), CurveSheet(), SurfaceSheet())


def sheet_named(id: str) -> Sheet:
    """The sheet that people choose by ``id``."""
    for sheet in SHEETS:
        if sheet.id == id:
            return sheet
    raise FormError("Choose what to release.")


def sheet_of(draft: Draft) -> Sheet:
    """The sheet of a draft."""
    return _sheet({key: draft.section(key) for key in draft.entries})


def sheet_for(spec: Spec) -> Sheet:
    """The sheet of a spec."""
    return _sheet({spec.key: spec.section.given()})


def _sheet(sections: Mapping[str, Mapping[str, Any]]) -> Sheet:
    for sheet in SHEETS:
        if sheet.key in sections and sheet.holds(sections[sheet.key]):
            return sheet
    raise FormError("The desk has no screen for this kind of release yet. Use the command line.")
