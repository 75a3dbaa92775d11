"""The screens of planning: what, who, how accurate, the budget, the review, and the look at the data where it is allowed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from isotone.desk.desk import Desk
from isotone.desk.drafts import Draft, import_draft, new_draft, open_draft
from isotone.desk.figures import account, budget_bar, odds, read_guesses
from isotone.desk.folder import UnnamedError
from isotone.desk.jobs import release_at
from isotone.desk.pages import desk_of, draft_of, fields, go, page, piece, screen, writable
from isotone.desk.sheets import SHEETS, BreakdownSheet, sheet_for, sheet_named, sheet_of
from isotone.desk.words import FormError, lines, release_lines
from isotone.errors import IsotoneError
from isotone.privacy.adjacency import NEIGHBOURS
from isotone.release.report import guarantee_in_words, report_html
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = [
    "REPORT_POLICY",
    "accuracy",
    "begin",
    "budget",
    "check",
    "look_accuracy",
    "look_what",
    "people",
    "preview",
    "review",
    "simulated_release",
    "start",
    "what",
]


# The first screen says what to release, or opens a spec.


def start(request: Request) -> Response:
    """Ask what to release."""
    return _start_page(request, ())


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
        return _start_page(request, lines(error), error.files)
    except IsotoneError as error:
        return _start_page(request, lines(error))


def _asked_for(kind: str, entries: dict[str, Any]) -> dict[str, Any]:
    """The entries of a questionnaire, which gives counts, or counts that are broken down."""
    if kind != BreakdownSheet.id:
        return entries
    key = BreakdownSheet.key
    return {**entries, key: {**entries.get(key, {}), **BreakdownSheet.first}}


def _start_page(request: Request, problems: Sequence[str], unnamed: Sequence[str] = ()) -> Response:
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


# The second screen describes what is released, for counts the order.


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


def look_what(request: Request) -> Response:
    """What was typed so far, as a picture and its problems, for the page to show at once. Nothing is kept."""
    return HTMLResponse(sheet_of(draft_of(request)).look(draft_of(request), fields(request)))


# The third screen says whose data it is and who is protected, and reads it back as a sentence.


def people(request: Request) -> Response:
    """Show or set where the data is, the unit, the neighbours and the contributions."""
    draft, desk = draft_of(request), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        draft.change("data", path=form.get("path", "").strip(), unit=form.get("unit", "").strip())
        draft.change("data", contributions=_whole(form.get("contributions", "1")))
        draft.change("privacy", unit=form.get("words", "").strip(), neighbours=form.get("neighbours", ""))
        draft.spec(desk.root)
        return go("draft", draft.id, "accuracy")

    def show(_: Sequence[str]) -> dict[str, Any]:
        sentence = ""
        with suppress(IsotoneError):
            spec = draft.spec(desk.root)
            sentence = guarantee_in_words(spec.guarantee)
        kinds = list(NEIGHBOURS.values())
        sections = {name: draft.section(name) for name in ("data", "privacy")}
        return {**sections, "sentence": sentence, "neighbours": kinds}

    return screen(request, "people.html", "people", work, show)


def _whole(text: str) -> int | None:
    """A whole number, where 1 is what a spec means without it."""
    if not text.strip().isascii() or not text.strip().isdigit() or len(text) > 9:
        raise FormError("The number of records that one may give is a whole number from 1.")
    return int(text)


# The fourth screen shows errors and the budget, each from the other.

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


def look_accuracy(request: Request) -> Response:
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


# The fifth screen shows the ledger, what this release leaves, and how many more like it.

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


# The sixth screen shows the spec, the same in Python and as a command, and a preview of the report.

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)
"""Reports carry their style inside. Scripts in them never run."""

MARKED = "SIMULATED: guessed counts and simulated noise. This is no release, and no data was read."
_STYLE = (
    "<style>.simulated{position:fixed;left:0;right:0;top:0;z-index:9;margin:0;padding:.4rem 1rem;background:#8a1c1c;"
    "color:#fff;font-weight:bold;text-align:center}main{margin-top:3rem!important}</style>"
)


def review(request: Request) -> Response:
    """Show the spec, or save it."""
    draft, desk = draft_of(request), desk_of(request)

    def work(_: dict[str, str]) -> Response:
        writable(request)
        spec = draft.save(desk.root)
        desk.root.file(spec.data.file_path, spec.folder)
        return go("draft", draft.id, "release")

    def show(problems: Sequence[str]) -> dict[str, Any]:
        said, folder = problems, ""
        try:
            spec = draft.spec(desk.root)
            folder = desk.root.shown(desk.root.inside(spec.output.folder, spec.folder))
        except IsotoneError as error:
            said = said or str(error).splitlines()
        python = f"release = isotone.load_spec({draft.name!r}).release()"
        shown = {"text": draft.text(), "commands": _commands(draft.name, folder), "python": python}
        return {**shown, "folder": folder, "problems": said}

    return screen(request, "review.html", "review", work, show)


def _commands(name: str, folder: str) -> list[str]:
    said = [f"isotone plan {shlex.quote(name)}", f"isotone release {shlex.quote(name)}"]
    return [*said, f"isotone verify {shlex.quote(folder)}"] if folder else said


def preview(request: Request) -> Response:
    """The report as it might look, from guessed counts and simulated noise."""
    draft, desk = draft_of(request), desk_of(request)
    text = _preview_html(draft.spec(desk.root), draft.guesses)
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def simulated_release(spec: Spec, guesses: Mapping[str, int]) -> Release:
    """What a release might look like, in a format that :func:`isotone.load_release` refuses."""
    made = sheet_for(spec).preview(spec, guesses)
    marked = replace(
        made.manifest,
        format="isotone simulation",
        title=f"SIMULATED: {made.manifest.title}",
        content_hash="none, because it is simulated",
    )
    return Release(made.columns, marked)


def _preview_html(spec: Spec, guesses: Mapping[str, int]) -> str:
    """The page of the preview."""
    page = report_html(simulated_release(spec, guesses))
    return page.replace("<body>", f'<body>{_STYLE}<p class="simulated">{MARKED}</p>', 1)


# The page that looks at the data. Nothing on it is private, and it is there only if it was switched on.


def check(request: Request) -> Response:
    """Say what the page does, and do it when asked. What it finds goes to the browser and nowhere else."""
    desk = desk_of(request)
    if not desk.checks:
        raise HTTPException(404, "This page is not here. It is switched on with --allow-check.")
    draft = draft_of(request)
    found, problems = "", list[str]()
    if request.method == "POST":
        try:
            spec = draft.spec(desk.root)
            desk.root.file(spec.data.file_path, spec.folder)
        except IsotoneError as error:
            problems = lines(error)
        else:
            found, problems = _looked(spec)
    return page(request, "check.html", draft=draft, step="check", found=found, problems=problems)


def _looked(spec: Spec) -> tuple[str, list[str]]:
    """What was found, or that nothing could be. Even here an error names no file and no column."""
    try:
        return str(spec.check()), []
    except (IsotoneError, OSError, ValueError) as error:
        return "", release_lines(error)
