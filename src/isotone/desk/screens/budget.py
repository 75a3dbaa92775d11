"""The fifth screen shows the ledger, what this release leaves, and how many more like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.figures import account, budget_bar
from isotone.desk.screens.common import desk_of, draft_of, go, screen
from isotone.errors import IsotoneError

__all__ = ["budget"]

_LEDGER = (
    "This ledger cannot be read: it is none, or belongs to another data set. Or the spec is not complete yet."
)


def budget(request: Request) -> Response:
    """Show the account, or set the ledger and its total."""
    draft, desk = draft_of(request), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        total = form.get("total", "").strip()
        draft.change(
            "privacy", ledger=form.get("ledger", "").strip(), dataset=form.get("dataset", "").strip()
        )
        if "total" in form:
            draft.change("privacy", budget={"epsilon": total} if total else None)
        draft.spec(desk.root)
        return go("draft", draft.id, "budget" if form.get("stay") else "review")

    def show(problems: Sequence[str]) -> dict[str, Any]:
        found, said, new = None, problems, False
        try:
            spec = draft.spec(desk.root)
            path = desk.root.inside(spec.privacy.ledger, spec.folder)
            new = not path.exists()
            found = account(path, spec.privacy.dataset, spec.job.guarantee)
        except IsotoneError:
            said = said or [_LEDGER]
        picture = "" if found is None else budget_bar(found)
        shown = {"account": found, "new": new, "picture": picture, "privacy": draft.section("privacy")}
        return {**shown, "problems": said}

    return screen(request, "budget.html", "budget", work, show)
