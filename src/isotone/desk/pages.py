"""What all screens share. The templates, the steps, and where a form leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from isotone.desk.desk import Desk
from isotone.desk.drafts import Draft
from isotone.desk.words import lines
from isotone.errors import IsotoneError

__all__ = ["STEPS", "desk_of", "draft_of", "fields", "go", "page", "piece", "screen", "writable"]

STEPS = (
    ("what", "What"),
    ("people", "Who is protected"),
    ("accuracy", "Accuracy"),
    ("budget", "Budget"),
    ("review", "Review"),
    ("release", "Release"),
)
"""The screens of a draft, in their sequence."""

_HOME = Path(__file__).parent
_pages = Environment(
    loader=FileSystemLoader(_HOME / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def desk_of(request: Request) -> Desk:
    """The desk that is asked."""
    return request.app.state.desk


def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent, and none of a page that is asked for."""
    return getattr(request.state, "form", {})


def draft_of(request: Request) -> Draft:
    """The draft in the address."""
    found = desk_of(request).drafts.get(request.path_params["draft"])
    if found is None:
        raise HTTPException(
            404, "This draft is gone, as after a new start. Open its spec on the first screen."
        )
    return found


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
    }
    text = _pages.get_template(template).render({**known, **values})
    return HTMLResponse(text, status_code=status)


def piece(template: str, **values: Any) -> str:
    """A part of a page, for a script of ours to put into its place."""
    return _pages.get_template(template).render(values)


def go(*parts: str) -> RedirectResponse:
    """Lead on to another page."""
    return RedirectResponse("/" + "/".join(parts), status_code=303)


def screen(
    request: Request,
    template: str,
    step: str,
    work: Callable[[dict[str, str]], Response | None],
    show: Callable[[Sequence[str]], dict[str, Any]],
) -> Response:
    """Do what a form asks, or show the draft with what is wrong. A form that is refused changes nothing.

    ``work`` leads on to another page, or to this one again (None); ``show`` says what its template shows.
    """
    draft, problems = draft_of(request), list[str]()
    if request.method == "POST":
        before = draft.entries
        try:
            answer = work(fields(request))
            if answer is not None:
                return answer
        except IsotoneError as error:
            draft.entries, problems = before, lines(error)
    values = {"draft": draft, "step": step, "problems": problems, **show(problems)}
    return page(request, template, 422 if problems else 200, **values)
