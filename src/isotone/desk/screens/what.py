"""The second screen describes what is released, for counts the order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from isotone.desk.screens.common import desk_of, draft_of, fields, go, screen
from isotone.desk.sheets import sheet_of

__all__ = ["look", "what"]


def what(request: Request) -> Response:
    """Show or set the section of the kind."""
    draft, sheet, desk = draft_of(request), sheet_of(draft_of(request)), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        sheet.change(draft, form)
        sheet.require(draft.spec(desk.root))
        return go("draft", draft.id, "people")

    def show(problems: Sequence[str]) -> dict[str, Any]:
        return sheet.shown(draft, desk.root, fields(request) if problems else None)

    return screen(request, sheet.template, "what", work, show)


def look(request: Request) -> Response:
    """What was typed so far, as a picture and its problems, for the page to show at once. Nothing is kept."""
    return HTMLResponse(sheet_of(draft_of(request)).look(draft_of(request), fields(request)))
