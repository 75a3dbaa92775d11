"""The second screen describes what is released: for counts, the order."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from isotone.desk.screens.common import desk_of, draft_of, fields, go, page, submitted
from isotone.desk.sheets import sheet_of
from isotone.errors import IsotoneError

__all__ = ["look", "what"]


def what(request: Request) -> Response:
    """Show or set the section of the kind."""
    draft, sheet, desk = draft_of(request), sheet_of(draft_of(request)), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        before = draft.entries
        try:
            sheet.change(draft, form)
            sheet.require(draft.spec(desk.root))
        except IsotoneError:
            draft.entries = before
            raise
        return go("draft", draft.id, "people")

    def show(problems: Sequence[str]) -> Response:
        typed = fields(request) if problems else None
        return page(
            request,
            sheet.template,
            422 if problems else 200,
            draft=draft,
            step="what",
            problems=problems,
            **sheet.shown(draft, desk.root, typed),
        )

    return submitted(request, work, show)


def look(request: Request) -> Response:
    """What was typed so far: a picture and its problems, for the page to show at once. Nothing is kept."""
    return HTMLResponse(sheet_of(draft_of(request)).look(draft_of(request), fields(request)))
