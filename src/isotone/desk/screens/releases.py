"""The eighth screen shows the releases that were made."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.jobs import archive, made_in, release_at, report_of
from isotone.desk.screens.common import desk_of, fields, go, page, writable
from isotone.desk.screens.review import REPORT_POLICY
from isotone.release.kinds import kind_named
from isotone.release.verifying.verify import verify

__all__ = ["download", "one", "redraw", "releases", "report"]


def releases(request: Request) -> Response:
    """All releases in the folder of the desk."""
    return page(request, "releases.html", step="releases", made=made_in(desk_of(request).root))


def one(request: Request) -> Response:
    """One release with its numbers, and what verify finds."""
    desk, path = desk_of(request), request.query_params.get("folder", "")
    folder, release = release_at(path, desk.root)
    verdict = verify(folder) if request.query_params.get("verify") else None
    rows = [
        list(zip(release.columns, row, strict=True)) for row in zip(*release.columns.values(), strict=True)
    ]
    return page(
        request,
        "one.html",
        step="releases",
        folder=desk.root.shown(folder),
        release=release,
        verdict=verdict,
        labels=kind_named(release.kind).page(release).labels(release),
        rows=rows[:500],
        left_out=max(0, len(rows) - 500),
    )


def report(request: Request) -> Response:
    """The report of a release, in a page where no script runs."""
    content = report_of(request.query_params.get("folder", ""), desk_of(request).root)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


def redraw(request: Request) -> Response:
    """Draw the report again."""
    desk = writable(request)
    folder, release = release_at(fields(request).get("folder", ""), desk.root)
    release.save_report(folder)
    return go(f"releases/one?{urlencode({'folder': desk.root.shown(folder), 'verify': 'yes'})}")


def download(request: Request) -> Response:
    """The files of a release as a zip file."""
    desk, path = desk_of(request), request.query_params.get("folder", "")
    folder, _ = release_at(path, desk.root)
    name = "".join(c for c in folder.name if c.isascii() and (c.isalnum() or c in "-_.")) or "release"
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(archive(path, desk.root), media_type="application/zip", headers=headers)
