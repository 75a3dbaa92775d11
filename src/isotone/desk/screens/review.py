"""The sixth screen shows the spec, the same in Python and as a command, and a preview of the report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from isotone.desk.figures.preview import preview_html
from isotone.desk.screens.common import desk_of, draft_of, go, screen, writable
from isotone.errors import IsotoneError

__all__ = ["REPORT_POLICY", "preview", "review"]

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)
"""Reports carry their style inside. Scripts in them never run."""


def review(request: Request) -> Response:
    """Show the spec, or save it."""
    draft, desk = draft_of(request), desk_of(request)

    def work(_: dict[str, str]) -> Response:
        writable(request)
        spec = draft.save(desk.root)
        desk.root.file(spec.data.path, spec.folder)
        return go("draft", draft.id, "release")

    def show(problems: Sequence[str]) -> dict[str, Any]:
        said, folder = problems, ""
        try:
            spec = draft.spec(desk.root)
            folder = desk.root.shown(desk.root.inside(spec.output.folder, spec.folder))
        except IsotoneError as error:
            said = said or str(error).splitlines()
        python = f"release, folder, new = release_spec(load_spec({draft.name!r}))"
        shown = {"text": draft.text(), "commands": _commands(draft.name, folder), "python": python}
        return {**shown, "folder": folder, "problems": said}

    return screen(request, "review.html", "review", work, show)


def _commands(name: str, folder: str) -> list[str]:
    said = [f"isotone plan {shlex.quote(name)}", f"isotone release {shlex.quote(name)}"]
    return [*said, f"isotone verify {shlex.quote(folder)}"] if folder else said


def preview(request: Request) -> Response:
    """The report as it might look, from guessed counts and simulated noise."""
    draft, desk = draft_of(request), desk_of(request)
    text = preview_html(draft.spec(desk.root), draft.guesses)
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})
