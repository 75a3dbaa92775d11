"""The application, which says which address is which screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from isotone.desk.desk import Desk
from isotone.desk.screens import accuracy, budget, check, people, release, releases, review, start, what
from isotone.desk.screens.common import page
from isotone.desk.web.guard import Guard
from isotone.desk.web.keys import Keys
from isotone.desk.words import lines
from isotone.errors import IsotoneError

__all__ = ["make_app"]

_STATIC = Path(__file__).parent.parent / "static"
_BOTH = ["GET", "POST"]


def make_app(desk: Desk, keys: Keys, port: int) -> Guard:
    """The application for one port of this machine, behind its guard."""
    draft = "/draft/{draft}"
    routes = [
        Route("/", start.start),
        Route("/begin", start.begin, methods=["POST"]),
        Route(f"{draft}/what", what.what, methods=_BOTH),
        Route(f"{draft}/what/look", what.look, methods=["POST"]),
        Route(f"{draft}/people", people.people, methods=_BOTH),
        Route(f"{draft}/accuracy", accuracy.accuracy, methods=_BOTH),
        Route(f"{draft}/accuracy/look", accuracy.look, methods=["POST"]),
        Route(f"{draft}/budget", budget.budget, methods=_BOTH),
        Route(f"{draft}/review", review.review, methods=_BOTH),
        Route(f"{draft}/preview", review.preview),
        Route(f"{draft}/release", release.release, methods=_BOTH),
        Route(f"{draft}/release/{{job}}", release.job),
        Route(f"{draft}/release/{{job}}/progress", release.progress),
        Route(f"{draft}/check", check.check, methods=_BOTH),
        Route("/releases", releases.releases),
        Route("/releases/one", releases.one),
        Route("/releases/report", releases.report),
        Route("/releases/zip", releases.download),
        Route("/releases/redraw", releases.redraw, methods=["POST"]),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    handlers: dict[Any, Any] = {HTTPException: _refused, IsotoneError: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.desk = desk
    return Guard(app, keys, port)


def _refused(request: Request, error: Exception) -> Response:
    """A page that says why there is nothing else."""
    if isinstance(error, HTTPException):
        return page(request, "refused.html", error.status_code, problems=[error.detail])
    assert isinstance(error, IsotoneError)
    return page(request, "refused.html", 422, problems=lines(error))
