"""The fourth screen shows errors and the budget, each from the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.figures.accuracy import Goal, budget_for, read_guesses
from isotone.desk.figures.risk import odds
from isotone.desk.made import release_at
from isotone.desk.screens.common import desk_of, draft_of, fields, go, page, submitted
from isotone.desk.sheets import sheet_of
from isotone.errors import IsotoneError

__all__ = ["accuracy"]


def accuracy(request: Request) -> Response:
    """Show errors for a budget, the budget for an error, and keep the budget."""
    draft, desk, sheet = draft_of(request), desk_of(request), sheet_of(draft_of(request))

    def work(form: dict[str, str]) -> Response:
        before = draft.entries
        try:
            _keep(form)
        except IsotoneError:
            draft.entries = before
            raise
        return go("draft", draft.id, "budget") if form.get("ask") == "next" else show(())

    def _keep(form: dict[str, str]) -> None:
        name = "rho" if "rho" in draft.section("privacy") else "epsilon"
        draft.guesses = read_guesses(form.get("guesses", ""))
        if form.get("earlier", "").strip():
            _, release = release_at(form["earlier"].strip(), desk.root)
            columns = release.columns
            names = columns.get("element", columns.get("category", ()))
            draft.guesses = {str(n): max(int(v), 0) for n, v in zip(names, columns["value"], strict=False)}
        if form.get("ask") == "budget":
            draft.change(
                "privacy", **{name: budget_for(draft.spec(desk.root), Goal.of(form), form.get("error", ""))}
            )
        else:
            draft.change("privacy", **{name: form.get("amount", "").strip()})
        draft.spec(desk.root)

    def show(problems: Sequence[str]) -> Response:
        form, said = fields(request), list(problems)
        found: dict[str, Any] | None = None
        risk: list[tuple[str, str]] = []
        try:
            spec = draft.spec(desk.root)
            found = sheet.accuracy(spec, form if not problems else {}, draft.guesses)
            risk = odds(spec.privacy.guarantee(spec.unit))
        except IsotoneError as error:
            said = said or str(error).splitlines()
        return page(
            request,
            "accuracy.html",
            422 if problems else 200,
            draft=draft,
            step="accuracy",
            problems=said,
            found=found,
            form=form,
            risk=risk,
            privacy=draft.section("privacy"),
            guesses="\n".join(f"{name} {value}" for name, value in draft.guesses.items()),
        )

    return submitted(request, work, show)
