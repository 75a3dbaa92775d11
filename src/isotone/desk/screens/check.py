"""The page that looks at the data. Nothing on it is private, and it is there only if it was switched on."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.screens.common import desk_of, draft_of, page
from isotone.desk.words import lines, release_lines
from isotone.errors import IsotoneError
from isotone.release.checking.contents import check_spec
from isotone.release.spec import Spec

__all__ = ["check"]


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
        return str(check_spec(spec)), []
    except (IsotoneError, OSError, ValueError) as error:
        return "", release_lines(error)
