"""The screens of planning: start, data, what, how accurate, the budget, the review, and the look at the data where it is allowed."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from isotone.desk.desk import Desk, Said
from isotone.desk.drafts import Draft, import_draft, new_draft, open_draft
from isotone.desk.figures import account, budget_bar, odds, read_guesses
from isotone.desk.folder import CSV, DATA, DRAFT, LEDGER, PathError, UnnamedError, questionnaires
from isotone.desk.forms import Entry, cut_in_words, form_of, require_columns
from isotone.desk.jobs import release_at
from isotone.desk.pages import back, desk_of, draft_of, fields, go, page, piece, said_of, screen, writable
from isotone.desk.sheets import all_sheets, sheet_for, sheet_named, sheet_of
from isotone.desk.words import FormError, lines
from isotone.errors import IsotoneError
from isotone.privacy.guarantee import NEIGHBOURS, exact
from isotone.release.manifest import Stated
from isotone.release.report import guarantee_in_words, report_html
from isotone.release.result import Release
from isotone.release.spec import Spec, make_ledger

# The first screen says what to release, or opens a spec or a draft.


def start(request: Request) -> Response:
    """Ask what to release."""
    desk, message = desk_of(request), said_of(request)
    drafts = desk.unfinished()
    specs = [desk.root.shown(path) for path in desk.root.walk("*.toml")]
    return page(
        request,
        "start.html",
        step="start",
        sheets=all_sheets(),
        specs=[name for name in specs if name not in drafts],
        drafts=drafts,
        questionnaires=[] if desk.read_only else questionnaires(desk.root),
        problems=message.problems,
        unnamed=message.unnamed,
        form=message.form,
    )


def begin(request: Request) -> Response:
    """Start a draft, open a spec or a draft, or throw a draft away."""
    desk, form = desk_of(request), fields(request)
    try:
        if form.get("open"):
            draft = desk.add(open_draft(form["open"], desk.root, named=form.get("public") == "yes"))
            return go("draft", draft.id, "data" if form["open"].endswith(DRAFT) else "accuracy")
        if form.get("discard"):
            return _discarded(writable(request), form["discard"])
        if form.get("form", "").strip():
            if desk.read_only:
                raise FormError("A desk that reads only imports nothing: it could open data by a wrong name.")
            if not sheet_named(form.get("kind", "")).has_order:
                raise FormError("A questionnaire gives counts. Choose counts, or import none.")
            draft = import_draft(form["form"].strip(), form.get("name", ""), desk.root)
        else:
            sheet = sheet_named(form.get("kind", ""))
            draft = new_draft(form.get("name", ""), sheet.begun, desk.root)
        draft.change("output", title=form.get("title", "").strip())
        return go("draft", desk.add(draft).id, "data")
    except UnnamedError as error:
        return back(request, Said(lines(error), _typed(form), error.files))
    except IsotoneError as error:
        return back(request, Said(lines(error), _typed(form)))


def _typed(form: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in form.items() if name != "csrf"}


def _discarded(desk: Desk, name: str) -> Response:
    """Remove the file of a draft. Specs, data and ledgers are never removed here."""
    file = desk.root.file(name)
    if not name.endswith(DRAFT):
        raise FormError("Only drafts are thrown away here.")
    shown = desk.root.shown(file).removesuffix(DRAFT) + ".toml"
    desk.drafts = {id: draft for id, draft in desk.drafts.items() if draft.name != shown}
    file.unlink(missing_ok=True)
    return go()


# The second screen says where the data is, whose it is and who is protected, and reads it back as a sentence.

_MORE = ("separator", "encoding", "names", "newline", "types")


def _settings() -> list[Entry]:
    """The entries of the screen beside the path and the header."""
    form, privacy = form_of("data"), form_of("privacy")
    first = [form["unit"], privacy["unit"], form["contributions"], privacy["neighbours"]]
    return [*first, *(form[name] for name in _MORE)]


def data(request: Request) -> Response:
    """Show or set where the data is, the unit, the neighbours and the contributions."""
    draft, desk = draft_of(request), desk_of(request)

    def values() -> dict[str, str]:
        entries = {
            entry.id: entry.write(draft.section(entry.section).get(entry.name)) for entry in _settings()
        }
        held = draft.section("data")
        stated = "yes" if held.get("header") is True else "no"
        return {"data.path": str(held.get("path", "")), "data.header": stated, **entries}

    def work(form: dict[str, str]) -> Response | None:
        path = form.get("other_path", "").strip() or form.get("data.path", "").strip()
        for entry in _settings():
            if entry.id in form:
                draft.change(entry.section, **{entry.name: entry.read(form[entry.id])})
        draft.change("data", path=path, header=_header(form, draft))
        if "connection" not in draft.section("data"):
            _require_file(path, draft, desk)
        draft.require_settings(desk.root)
        problems = require_columns(
            filter(None, [draft.section("data").get("unit")]), draft.columns(desk.root)
        )
        if problems:
            raise FormError("\n".join(problems))
        return None if form.get("stay") else go("draft", draft.id, "what")

    def show(typed: Mapping[str, str], _: list[str]) -> dict[str, Any]:
        sentence = ""
        with suppress(IsotoneError):
            sentence = guarantee_in_words(draft.spec(desk.root).guarantee, "the release")
        entries = _settings()
        result = _look_at(draft, desk, typed)
        return {
            "sentence": sentence,
            "files": desk.root.names(draft.folder(desk.root), DATA),
            "first": entries[:4],
            "more": entries[4:],
            "opened": bool(typed.get("other_path")) or any(typed.get(entry.id) for entry in entries[4:]),
            "choices": [(kind.name, kind.choice) for kind in NEIGHBOURS.values()],
            **result,
        }

    return screen(request, "data.html", "data", work, values, show)


def _header(form: Mapping[str, str], draft: Draft) -> bool | None:
    """What is stated of the first line: that it holds names, that it does not, or nothing."""
    if form.get("data.header") == "yes":
        return True
    return False if draft.section("data").get("names") else None


def _require_file(path: str, draft: Draft, desk: Desk) -> None:
    """Refuse a file that is not there, where it is typed."""
    folder = draft.folder(desk.root)
    if not path:
        raise FormError("Choose the file of the data.")
    desk.root.inside(path, folder)
    try:
        empty = desk.root.file(path, folder).stat().st_size == 0
    except PathError as error:
        near = difflib.get_close_matches(path, desk.root.names(folder, DATA), n=1)
        raise FormError(f"{path}: {error}" + (f" Did you mean {near[0]}?" if near else "")) from None
    if Path(path).suffix.lower() not in DATA:
        raise FormError(
            f"{path} is no file of data that can be read: its name ends in none of {', '.join(DATA)}. Save it as a CSV, for example."
        )
    if empty:
        raise FormError(f"{path} is empty: nothing is in it, not even a line of names.")


def look_data(request: Request) -> Response:
    """The columns of the file that is chosen, for the page to show at once. Nothing is kept."""
    draft, desk = draft_of(request), desk_of(request)
    return HTMLResponse(piece("columns.html", **_look_at(draft, desk, fields(request))))


def _look_at(draft: Draft, desk: Desk, typed: Mapping[str, str]) -> dict[str, Any]:
    """The columns, if they are public, and whether the file is a CSV, whose first line somebody must have named so."""
    path = typed.get("other_path", "").strip() or typed.get("data.path", "").strip()
    entries = {
        name: form_of("data")[name].read(typed.get(f"data.{name}", "")) for name in ("separator", "encoding")
    }
    header = True if typed.get("data.header") == "yes" else None
    tried = replace(draft, entries={"data": {**entries, "path": path, "header": header}})
    columns = tried.columns(desk.root)
    return {
        "columns": columns,
        "cut": cut_in_words(columns or ()),
        "is_csv": Path(path).suffix.lower() in CSV,
    }


# The third screen describes what is released. Its form follows from the model.


def what(request: Request) -> Response:
    """Show or set the section of the kind."""
    draft, sheet, desk = draft_of(request), sheet_of(draft_of(request)), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        sheet.change(draft, form)
        sheet.require(draft, desk.root)
        return go("draft", draft.id, "accuracy")

    def show(typed: Mapping[str, str], _: list[str]) -> dict[str, Any]:
        entries = sheet.entries()
        more = [entry for entry in entries if not sheet.is_first(entry)]
        shown: dict[str, Any] = {"fixed": False, "look": "", "labels": {}}
        return {
            "sheet": sheet,
            "first": [entry for entry in entries if sheet.is_first(entry)],
            "more": more,
            "opened": any(typed.get(entry.id) for entry in more),
            "columns": draft.columns(desk.root),
            **shown,
            **sheet.shown(draft, desk.root, typed),
        }

    return screen(request, "what.html", "what", work, lambda: sheet.typed(draft, desk.root), show)


def look_what(request: Request) -> Response:
    """What was typed so far, as a picture and its problems, for the page to show at once. Nothing is kept."""
    draft = draft_of(request)
    return HTMLResponse(sheet_of(draft).look(draft, fields(request)))


_KEPT = ("data", "what")


def keep(request: Request) -> Response:
    """Keep what is typed on a page, as it is typed. It is not taken over into the spec before it is sent."""
    draft, desk, step = draft_of(request), desk_of(request), request.path_params["step"]
    if step not in _KEPT:
        raise HTTPException(404, "There is no such page.")
    typed = {
        name: text
        for name, text in fields(request).items()
        if "." in name or name in ("outline", "other_path")
    }
    with draft.lock:
        draft.typed = {**draft.typed, step: typed}
        desk.keep(draft)
    return JSONResponse({"kept": not desk.read_only})


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

    def values() -> dict[str, str]:
        privacy = draft.section("privacy")
        return {"amount": str(privacy.get("rho") or privacy.get("epsilon", ""))}

    def show(typed: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
        shown = _nothing(draft)
        try:
            questions = {} if problems else {name: text for name, text in typed.items() if name != "earlier"}
            shown = _shown(draft, desk, questions)
        except IsotoneError as error:
            problems += [] if problems else lines(error)
        kept = {"form": typed, "amount": typed["amount"]}
        return {**shown, **kept} if problems else {**shown, "form": typed, "amount": values()["amount"]}

    return screen(request, "accuracy.html", "accuracy", work, values, show)


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
        if not amount:
            raise FormError("Type a budget, such as 0.5.")
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
    guessable = sheet_of(draft).guessable
    return {
        "found": None,
        "risk": [],
        "privacy": draft.section("privacy"),
        "guesses": guesses,
        "guessable": guessable,
    }


def _shown(draft: Draft, desk: Desk, form: Mapping[str, str]) -> dict[str, Any]:
    """What the templates show."""
    spec = draft.spec(desk.root)
    result = {**_EMPTY, **sheet_of(draft).accuracy(spec, form, draft.guesses)}
    risk = odds(spec.guarantee)
    return {**_nothing(draft), "found": result, "risk": risk, "form": form}


# The fifth screen shows the ledger, what this release leaves, and how many more like it.


def budget(request: Request) -> Response:
    """Show the account, or set the ledger and its total."""
    draft, desk = draft_of(request), desk_of(request)

    def values() -> dict[str, str]:
        privacy = draft.section("privacy")
        total = privacy.get("budget", {})
        return {
            "ledger": str(privacy.get("ledger", "")),
            "dataset": str(privacy.get("dataset", "")),
            "total": str(total.get("rho") or total.get("epsilon", "")),
        }

    def work(form: dict[str, str]) -> Response | None:
        privacy, total = draft.section("privacy"), form.get("total", "").strip()
        draft.change(
            "privacy", ledger=form.get("ledger", "").strip(), dataset=form.get("dataset", "").strip()
        )
        if "total" in form:
            name = "rho" if "rho" in privacy else "epsilon"
            kept = {
                key: number
                for key, number in privacy.get("budget", {}).items()
                if key not in ("epsilon", "rho")
            }
            draft.change("privacy", budget={**kept, name: total} if total else None)
        spec = draft.spec(desk.root)
        if form.get("stay"):
            return None
        spent = exact(privacy.get("rho") or privacy.get("epsilon", "0"))
        if total and exact(total) < spent:
            raise FormError(
                f"This release alone spends {float(spent):g}, which is more than a total of {total}."
            )
        new = not _ledger(spec, desk).exists()
        if not _ledger(spec, desk).parent.is_dir():
            raise FormError(
                f"There is no folder {Path(spec.privacy.ledger).parent} for this ledger. Name one that is there."
            )
        if "total" in form and not total and new:
            raise FormError(
                "This ledger is not there yet. Give its total: it is fixed for good by the first charge."
            )
        others = _other_ledgers(spec, desk) if new else []
        if others and form.get("second") != "yes":
            raise FormError(
                f"There is a ledger already: {', '.join(others)}. If these data are about the same people, type its name. If they are "
                "about other people, tick that below."
            )
        state = account(_ledger(spec, desk), spec.privacy.dataset, spec.job.guarantee)
        if state is not None and state.other:
            raise FormError(f"{state.refused} Who is protected is named on the screen Data.")
        if others and total:
            writable(request)
            make_ledger(spec)
        return go("draft", draft.id, "review")

    def show(typed: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
        found, new, others = None, False, list[str]()
        try:
            spec = draft.spec(desk.root)
            path = _ledger(spec, desk)
            new = not path.exists()
            others = _other_ledgers(spec, desk)
            found = account(path, spec.privacy.dataset, spec.job.guarantee)
        except IsotoneError as error:
            problems += [] if problems else lines(error)
        picture = "" if found is None else budget_bar(found)
        letter = "ρ" if "rho" in draft.section("privacy") else "ε"
        shown = {"account": found, "new": new or (bool(typed["total"]) and found is None), "picture": picture}
        return {**shown, "letter": letter, "others": others}

    return screen(request, "budget.html", "budget", work, values, show)


def _ledger(spec: Spec, desk: Desk) -> Path:
    return desk.root.inside(spec.privacy.ledger, spec.folder)


def _other_ledgers(spec: Spec, desk: Desk) -> list[str]:
    """The ledgers beside the one that is named, by their names."""
    path = _ledger(spec, desk)
    return [name for name in desk.root.beside(path.parent, LEDGER) if name != path.name]


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

    def values() -> dict[str, str]:
        output = draft.section("output")
        return {"title": str(output.get("title", "")), "folder": str(output.get("folder", ""))}

    def work(form: dict[str, str]) -> Response | None:
        if "title" in form:
            draft.change("output", title=form["title"].strip(), folder=form.get("folder", "").strip())
        if form.get("stay"):
            draft.spec(desk.root)
            return None
        writable(request)
        spec = draft.spec(desk.root)
        desk.root.file(spec.data.file_path, spec.folder)
        _require_readable(draft, spec, desk)
        _require_own(desk.root.inside(spec.output.folder, spec.folder))
        draft.save(desk.root)
        return go("draft", draft.id, "release")

    def show(typed: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
        del typed
        folder, previews, sheet = "", False, sheet_of(draft)
        try:
            spec = draft.spec(desk.root)
            folder = desk.root.shown(desk.root.inside(spec.output.folder, spec.folder))
            _require_readable(draft, spec, desk)
            previews = sheet.previews
        except IsotoneError as error:
            problems += [] if problems else lines(error)
        commands = sheet.commands(draft)
        commands += [f"isotone verify {shlex.quote(folder)}"] if folder else []
        texts = {"text": draft.text(), "commands": commands, "python": sheet.python(draft)}
        return {**texts, "where": folder, "previews": previews}

    return screen(request, "review.html", "review", work, values, show)


def _require_own(folder: Path) -> None:
    """Refuse a folder of other files where it is typed. What a release in it means for this one, the release says."""
    if folder.is_file():
        raise FormError(f"{folder.name} is a file, and not a folder. Name another one.")
    held = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    if held and "manifest.json" not in held:
        raise FormError(
            f"The folder {folder.name} holds other files ({held[0]}). Name a new or an empty folder."
        )


def _require_readable(draft: Draft, spec: Spec, desk: Desk) -> None:
    """Refuse what a release would refuse, in its words. Columns and types of data are looked at where they are public."""
    job = spec.job
    if draft.columns(desk.root) is not None:
        desk.root.file(spec.data.file_path, spec.folder)
        job.open()


def preview(request: Request) -> Response:
    """The report as it might look, from guessed counts and simulated noise."""
    draft, desk = draft_of(request), desk_of(request)
    text = _preview_html(draft.spec(desk.root), draft.guesses)
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def simulated_release(spec: Spec, guesses: Mapping[str, int]) -> Release:
    """What a release might look like, in a format that :func:`isotone.load_release` refuses."""
    preview = sheet_for(spec).preview(spec, guesses)
    marked = replace(
        preview.manifest,
        format="isotone simulation",
        stated=Stated(title=f"SIMULATED: {preview.manifest.stated.title}"),
        content_hash="none, because it is simulated",
    )
    return Release(preview.columns, marked)


def _preview_html(spec: Spec, guesses: Mapping[str, int]) -> str:
    """The page of the preview."""
    page = report_html(simulated_release(spec, guesses))
    return page.replace("<body>", f'<body>{_STYLE}<p class="simulated">{MARKED}</p>', 1)


# The page that looks at the data. Nothing on it is private, and it is there only if it was switched on.


def check(request: Request) -> Response:
    """Say what the page does, and do it when asked. What it finds is shown once, and goes nowhere else."""
    desk, draft = desk_of(request), draft_of(request)
    if not desk.checks:
        raise HTTPException(404, "This page is not here. It is switched on with --allow-check.")
    if request.method == "POST":
        try:
            spec = draft.spec(desk.root)
            desk.root.file(spec.data.file_path, spec.folder)
            message = Said(found=str(spec.check()))
        except (IsotoneError, OSError, ValueError) as error:
            message = Said(lines(error))
        return back(request, message, "draft", draft.id, "check")
    message = desk.said.pop(request.query_params.get("said", ""), Said())
    return page(
        request, "check.html", draft=draft, step="check", found=message.found, problems=message.problems
    )
