"""The first screen says what to release, or opens a spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.drafts import import_draft, new_draft, open_draft
from isotone.desk.folder import UnnamedError
from isotone.desk.screens.common import desk_of, fields, go, page
from isotone.desk.sheets import SHEETS, sheet_named
from isotone.desk.sheets.breakdown import BreakdownSheet
from isotone.desk.words import FormError, lines
from isotone.errors import IsotoneError

__all__ = ["begin", "start"]


def start(request: Request) -> Response:
    """Ask what to release."""
    return _shown(request, ())


def begin(request: Request) -> Response:
    """Start a draft, or open a spec."""
    desk, form = desk_of(request), fields(request)
    try:
        if form.get("open"):
            draft = open_draft(form["open"], desk.root, named=form.get("public") == "yes")
            return go("draft", desk.keep(draft).id, "accuracy")
        if form.get("form", "").strip():
            if desk.read_only:
                raise FormError("A desk that reads only imports nothing: it could open data by a wrong name.")
            draft = import_draft(form["form"].strip(), form.get("name", ""), desk.root)
            draft.entries = _asked_for(form.get("kind", ""), draft.entries)
            return go("draft", desk.keep(draft).id, "what")
        sheet = sheet_named(form.get("kind", ""))
        draft = new_draft(form.get("name", ""), {sheet.key: dict(sheet.first)}, desk.root)
        if form.get("title", "").strip():
            draft.change("output", title=form["title"].strip())
        return go("draft", desk.keep(draft).id, "what")
    except UnnamedError as error:
        return _shown(request, lines(error), error.files)
    except IsotoneError as error:
        return _shown(request, lines(error))


def _asked_for(kind: str, entries: dict[str, Any]) -> dict[str, Any]:
    """The entries of a questionnaire, which gives counts, or counts that are broken down."""
    if kind != BreakdownSheet.id:
        return entries
    key = BreakdownSheet.key
    return {**entries, key: {**entries.get(key, {}), **BreakdownSheet.first}}


def _shown(request: Request, problems: Sequence[str], unnamed: Sequence[str] = ()) -> Response:
    desk = desk_of(request)
    specs = [desk.root.shown(path) for path in desk.root.walk("*.toml")]
    return page(
        request,
        "start.html",
        422 if problems else 200,
        step="start",
        sheets=SHEETS,
        specs=specs,
        problems=problems,
        unnamed=unnamed,
        form=fields(request),
    )
