"""What all screens share. The templates, the steps, and where a form leads.

No page is the answer to a form: a form leads on to a page, or back to its own with what is wrong. So Back and a second look at a
page always work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from isotone.desk.desk import Desk, Said
from isotone.desk.drafts import Draft
from isotone.desk.folder import UnnamedError, name_public
from isotone.desk.words import FormError, lines
from isotone.errors import IsotoneError
from isotone.release.result import in_digits

STEPS = (
    ("data", "Data"),
    ("what", "What"),
    ("accuracy", "Accuracy"),
    ("budget", "Budget"),
    ("review", "Review"),
    ("release", "Release"),
)
"""The screens of a draft, in their sequence."""
_CHANGED = (
    "This page was changed since you opened it, perhaps in another tab. Below is what you typed; nothing of it is lost. Send it again to "
    "replace what was set there."
)

_HOME = Path(__file__).parent
_pages = Environment(
    loader=FileSystemLoader(_HOME / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def moment(written: str) -> str:
    """A time as people read it.

    >>> moment("2026-11-19T15:41:55+00:00")
    '2026-11-19 15:41 UTC'
    """
    return f"{written[:16].replace('T', ' ')} UTC"


_own: dict[str, Any] = {"in_digits": in_digits, "moment": moment}
_pages.filters.update(_own)


def desk_of(request: Request) -> Desk:
    """The desk that is asked."""
    return request.app.state.desk


def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent, and none of a page that is asked for."""
    return getattr(request.state, "form", {})


def draft_of(request: Request) -> Draft:
    """The draft in the address."""
    result = desk_of(request).find(request.path_params["draft"])
    if result is None:
        raise HTTPException(404, "There is no such draft. Open it, or its spec, on the first screen.")
    return result


def said_of(request: Request) -> Said:
    """What came of the form that led here."""
    return desk_of(request).said.get(request.query_params.get("said", ""), Said())


def writable(request: Request) -> Desk:
    """The desk, unless it only reads."""
    desk = desk_of(request)
    if desk.read_only:
        raise HTTPException(403, "This desk was started to read only.")
    return desk


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from its template."""
    known: dict[str, Any] = {
        "desk": desk_of(request),
        "csrf": request.state.csrf,
        "steps": STEPS,
        "draft": None,
        "step": "",
        "problems": [],
        "unnamed": [],
        "form": {},
    }
    text = _pages.get_template(template).render({**known, **values})
    return HTMLResponse(text, status_code=status)


def piece(template: str, **values: Any) -> Markup:
    """A part of a page, for a script of ours to put into its place."""
    return Markup(_pages.get_template(template).render(values))


def go(*parts: str) -> RedirectResponse:
    """Lead on to another page."""
    return RedirectResponse("/" + "/".join(parts), status_code=303)


def back(request: Request, message: Said, *parts: str) -> RedirectResponse:
    """Lead back to a page, with what came of its form."""
    return RedirectResponse(f"/{'/'.join(parts)}?said={desk_of(request).tell(message)}", status_code=303)


def screen(
    request: Request,
    template: str,
    step: str,
    work: Callable[[dict[str, str]], Response | None],
    values: Callable[[], Mapping[str, str]],
    show: Callable[[Mapping[str, str], list[str]], dict[str, Any]],
) -> Response:
    """Do what a form asks, or show the draft with what is wrong. A form that is refused changes nothing, and is kept.

    ``work`` leads on to another page, or to this one again (None). ``values`` are the fields as the draft has them; ``show`` gets
    those, or what was typed, and what is wrong, and says what its template shows.
    """
    draft, desk = draft_of(request), desk_of(request)
    if request.method == "POST":
        with draft.lock:
            return _worked(request, draft, desk, step, work, values)
    message = said_of(request)
    known = values()
    # what was kept while one typed, and what was taken over, are newer than what a form said before: Back shows them
    kept = {**message.form, **known, **draft.typed.get(step, {})}
    mended = step not in draft.typed
    problems = [] if mended else list(message.problems)
    shown: dict[str, Any] = {
        "draft": draft,
        "step": step,
        "form": kept,
        "unnamed": () if mended else message.unnamed,
        "mark": _mark(known),
    }
    shown["unfinished"] = any(kept.get(name, value) != value for name, value in known.items())
    shown |= show(kept, problems)
    return page(request, template, 200, **{**shown, "problems": problems})


def _worked(
    request: Request,
    draft: Draft,
    desk: Desk,
    step: str,
    work: Callable[[dict[str, str]], Response | None],
    values: Callable[[], Mapping[str, str]],
) -> Response:
    form, before, known = fields(request), draft.entries, values()
    typed = {name: text for name, text in form.items() if name not in ("csrf", "mark", "public")}
    here = ("draft", draft.id, step)
    try:
        if form.get("public"):
            name_public(form["public"].splitlines(), desk.root)
        same = all(form.get(name, value) == value for name, value in known.items())
        if not same and form.get("mark", _mark(known)) != _mark(known):
            raise FormError(_CHANGED)
        answer = work(form)
        draft.typed = {name: said for name, said in draft.typed.items() if name != step}
    except IsotoneError as error:
        draft.entries = before
        draft.typed = {**draft.typed, step: {name: text for name, text in typed.items() if name in known}}
        unnamed = error.files if isinstance(error, UnnamedError) else ()
        answer = back(request, Said(lines(error), typed, unnamed), *here)
    desk.keep(draft)
    return answer or back(request, Said(form=typed), *here)


def _mark(values: Mapping[str, str]) -> str:
    """What tells whether the fields of a page are as they were."""
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()[:16]
