"""The fifth screen shows the ledger, what this release leaves, and how many more like it."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.figures.budget import account
from isotone.desk.figures.pictures import budget_bar
from isotone.desk.screens.common import desk_of, draft_of, go, page, submitted
from isotone.errors import IsotoneError

__all__ = ["budget"]


def budget(request: Request) -> Response:
    """Show the account, or set the ledger and its total."""
    draft, desk = draft_of(request), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        before = draft.entries
        try:
            total = form.get("total", "").strip()
            draft.change(
                "privacy", ledger=form.get("ledger", "").strip(), dataset=form.get("dataset", "").strip()
            )
            if "total" in form:
                draft.change("privacy", budget={"epsilon": total} if total else None)
            draft.spec(desk.root)
        except IsotoneError:
            draft.entries = before
            raise
        return go("draft", draft.id, "budget" if form.get("stay") else "review")

    def show(problems: Sequence[str]) -> Response:
        found, said, new = None, list(problems), False
        try:
            spec = draft.spec(desk.root)
            path = desk.root.inside(spec.privacy.ledger, spec.folder)
            new = not path.exists()
            found = account(path, spec.privacy.dataset, spec.kind.query(spec).guarantee)
        except IsotoneError as error:
            said = said or [str(error) if found is not None else LEDGER]
        return page(
            request,
            "budget.html",
            422 if problems else 200,
            draft=draft,
            step="budget",
            problems=said,
            account=found,
            new=new,
            picture="" if found is None else budget_bar(found),
            privacy=draft.section("privacy"),
        )

    return submitted(request, work, show)


LEDGER = (
    "This ledger cannot be read: it is none, or belongs to another data set. Or the spec is not complete yet."
)
