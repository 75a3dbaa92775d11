"""The fourth screen shows errors and the budget, each from the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from isotone.desk.desk import Desk
from isotone.desk.drafts import Draft
from isotone.desk.figures import odds, read_guesses
from isotone.desk.jobs import release_at
from isotone.desk.screens.common import desk_of, draft_of, fields, go, piece, screen
from isotone.desk.sheets import sheet_of
from isotone.desk.words import FormError, lines
from isotone.errors import IsotoneError

__all__ = ["accuracy", "look"]

_EMPTY: dict[str, Any] = {
    "goal": None,
    "half": None,
    "rows": [],
    "bars": "",
    "plan": None,
    "text": "",
    "words": "",
}
"""What a kind of release that says nothing of it shows."""


def accuracy(request: Request) -> Response:
    """Show errors for a budget, the budget for an error, and keep the budget."""
    draft, desk = draft_of(request), desk_of(request)

    def work(form: dict[str, str]) -> Response | None:
        tried = _tried(draft, desk, form)
        draft.entries, draft.guesses = tried.entries, tried.guesses
        return go("draft", draft.id, "budget") if form.get("ask") == "next" else None

    def show(problems: Sequence[str]) -> dict[str, Any]:
        said, shown = problems, _nothing(draft)
        try:
            shown = _shown(draft, desk, fields(request) if not problems else {})
        except IsotoneError as error:
            said = said or lines(error)
        return {**shown, "form": fields(request), "problems": said}

    return screen(request, "accuracy.html", "accuracy", work, show)


def look(request: Request) -> Response:
    """Both numbers and the tables for what is typed at the moment. Nothing is kept."""
    desk, form = desk_of(request), fields(request)
    try:
        tried = _tried(draft_of(request), desk, form)
        shown = _shown(tried, desk, form)
    except IsotoneError as error:
        return JSONResponse({"problems": lines(error)})
    privacy, half = shown["privacy"], shown["found"]["half"]
    return JSONResponse(
        {
            "problems": [],
            "amount": str(privacy.get("rho") or privacy.get("epsilon", "")),
            "error": "" if half is None else f"{half:g}",
            "answer": piece("answer.html", **shown),
            "numbers": piece("numbers.html", **shown),
        }
    )


def _tried(draft: Draft, desk: Desk, form: Mapping[str, str]) -> Draft:
    """The draft with what was typed, if a release could follow it."""
    tried = replace(draft, guesses=_guesses(form, desk))
    name = "rho" if "rho" in draft.section("privacy") else "epsilon"
    if form.get("ask") == "budget":
        amount = sheet_of(draft).budget(tried.spec(desk.root), form)
    else:
        amount = form.get("amount", "").strip()
    tried.change("privacy", **{name: amount})
    spec = tried.spec(desk.root)
    spec.job  # noqa: B018 (what would be refused is refused here)
    return tried


def _guesses(form: Mapping[str, str], desk: Desk) -> dict[str, int]:
    """The guesses that were typed, or the values of an earlier release."""
    earlier = form.get("earlier", "").strip()
    if not earlier:
        return read_guesses(form.get("guesses", ""))
    _, release = release_at(earlier, desk.root)
    names = release.columns.get("element", release.columns.get("category"))
    if names is None or len(set(names)) < len(names):
        raise FormError("This release has no count for each name that could serve as a guess.")
    return {
        str(name): max(int(value), 0) for name, value in zip(names, release.columns["value"], strict=True)
    }


def _nothing(draft: Draft) -> dict[str, Any]:
    guesses = "\n".join(f"{name} {value}" for name, value in draft.guesses.items())
    return {"found": None, "risk": [], "privacy": draft.section("privacy"), "guesses": guesses}


def _shown(draft: Draft, desk: Desk, form: Mapping[str, str]) -> dict[str, Any]:
    """What the templates show."""
    spec = draft.spec(desk.root)
    found = {**_EMPTY, **sheet_of(draft).accuracy(spec, form, draft.guesses)}
    risk = odds(spec.guarantee)
    return {**_nothing(draft), "found": found, "risk": risk, "form": form}
