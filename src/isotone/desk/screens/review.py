"""The sixth screen shows the spec, the same in Python and as a command, and a preview of the report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from isotone.desk.screens.common import desk_of, draft_of, go, screen, writable
from isotone.desk.sheets import sheet_named
from isotone.errors import IsotoneError
from isotone.release.reporting.html_report import report_html
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["REPORT_POLICY", "preview", "review", "simulated_release"]

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
    text = _preview_html(draft.spec(desk.root), draft.guesses)
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def simulated_release(spec: Spec, guesses: Mapping[str, int]) -> Release:
    """What a release might look like, in a format that :func:`isotone.load_release` refuses."""
    made = sheet_named(spec.kind.key).preview(spec, guesses)
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
