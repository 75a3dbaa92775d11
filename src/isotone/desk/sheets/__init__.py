"""What the desk knows about each kind of release, a file for each."""

from __future__ import annotations

from isotone.desk.drafts import Draft
from isotone.desk.sheets.breakdown import BreakdownSheet
from isotone.desk.sheets.counts import CountsSheet
from isotone.desk.sheets.curve import CurveSheet
from isotone.desk.sheets.sheet import Sheet
from isotone.desk.sheets.surface import SurfaceSheet
from isotone.desk.sheets.table import TableSheet
from isotone.desk.words import FormError

__all__ = ["SHEETS", "Sheet", "sheet_named", "sheet_of"]

SHEETS: tuple[Sheet, ...] = (CountsSheet(), BreakdownSheet(), TableSheet(), CurveSheet(), SurfaceSheet())


def sheet_named(key: str) -> Sheet:
    """The sheet of a section of a spec."""
    for sheet in SHEETS:
        if sheet.key == key:
            return sheet
    raise FormError("Choose what to release.")


def sheet_of(draft: Draft) -> Sheet:
    """The sheet of a draft."""
    for sheet in SHEETS:
        if sheet.key in draft.entries:
            return sheet
    raise FormError("The desk has no screen for this kind of release yet. Use the command line.")
