"""The screen that releases, and those of the releases that were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from isotone.desk.drafts import Draft
from isotone.desk.folder import PathError, Root, require_inside
from isotone.desk.jobs import Task, archive, made_in, release_at, report_of, request_of
from isotone.desk.pages import desk_of, draft_of, fields, go, page, screen, writable
from isotone.desk.screens import REPORT_POLICY
from isotone.desk.words import FormError, lines
from isotone.errors import InputError, IsotoneError
from isotone.ledger import Charge, Ledger
from isotone.privacy.guarantee import exact
from isotone.release.kinds.kind import kind_named
from isotone.release.report import HEADINGS, guarantee_in_words
from isotone.release.spec import Spec, load_spec
from isotone.release.verify import verify

# The last screen releases. Type the budget to confirm, see the stages, read the result.

CHANGED = "The spec is not the one that was reviewed. Go back to the review."


@dataclass(frozen=True)
class Submission:
    """The saved spec, the id that the ledger keeps for it, and the charges it has."""

    spec: Spec
    id: str
    charges: list[Charge]

    @property
    def last(self) -> Charge | None:
        """The last charge if it is drawn. Only a second draw can follow it."""
        drawn = [charge for charge in self.charges if charge.state in ("sealed", "drawn")]
        return drawn[-1] if drawn else None


def release(request: Request) -> Response:
    """Ask for the confirmation, or begin."""
    draft, desk = draft_of(request), writable(request)

    def work(form: dict[str, str]) -> Response:
        intent = submission(draft, desk.root)
        if form.get("request") != intent.id:
            raise FormError(CHANGED)
        require_confirmed(intent.spec, form.get("confirm", ""))
        require_data(intent.spec, desk.root)
        begun = desk.jobs.start(draft.id, intent.spec, desk.root, intent.id, again_after=_again(intent, form))
        return go("draft", draft.id, "release", begun.id)

    def show(typed: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
        del typed
        try:
            asked = submission(draft, desk.root)
        except IsotoneError as error:
            problems += [] if problems else lines(error)
            return {"asked": None}
        spec = asked.spec
        return {"asked": asked, **amount_of(spec)}

    return screen(request, "release.html", "release", work, dict[str, str], show)


def amount_of(spec: Spec) -> dict[str, str]:
    """What a release spends, as it is typed and in words."""
    return {
        "amount": _decimal(exact(spec.privacy.rho or spec.privacy.epsilon)),
        "letter": "ε" if spec.privacy.rho is None else "ρ",
        "guarantee": guarantee_in_words(spec.guarantee, "the release"),
    }


def submission(draft: Draft, root: Root) -> Submission:
    """What the file of the draft asks for. Only a saved spec is released."""
    draft.spec(root)
    try:
        spec = load_spec(root.file(draft.name))
    except PathError:
        raise FormError("Save the spec first: the review does it.") from None
    require_inside(spec, root)  # before its hash, which reads public files
    if draft.saved is None or spec.hash != draft.spec(root).hash:
        raise FormError(CHANGED)
    id, ledger = request_of(spec), root.inside(spec.privacy.ledger, spec.folder)
    charges = Ledger(ledger, dataset=spec.privacy.dataset).charges() if ledger.exists() else []
    return Submission(spec, id, [charge for charge in charges if charge.request == id])


def require_confirmed(spec: Spec, typed: str) -> None:
    """Refuse a release of which nobody typed what it spends."""
    expected = spec.privacy.rho or spec.privacy.epsilon
    try:
        same = exact(typed.strip()) == exact(expected)
    except InputError:
        same = False
    if not same:
        amount = _decimal(exact(expected))
        raise FormError(f"Type {amount} to confirm: that is what is spent. Nothing was charged.")


def require_data(spec: Spec, root: Root) -> None:
    """Refuse a release whose data is not there any more."""
    try:
        root.file(spec.data.file_path, spec.folder)
    except PathError:
        raise FormError(
            f"The data {spec.data.file_path} is not there any more. Nothing was charged."
        ) from None


def _decimal(amount: Fraction) -> str:
    """A number as people write it, where that is exact.

    >>> _decimal(Fraction(37, 80)), _decimal(Fraction(1, 3))
    ('0.4625', '1/3')
    """
    text = f"{float(amount):.12g}"
    return text if Fraction(text) == amount else str(amount)


def _again(intent: Submission, form: dict[str, str]) -> int | None:
    """The charge that a second draw follows, if one is asked for."""
    if form.get("again") != "yes":
        return None
    after = form.get("after", "")
    if intent.last is None or not after.isdigit():
        raise FormError("There is no draw yet that a second one could follow.")
    return int(after)


def _job(request: Request) -> Task:
    jobs, id = desk_of(request).jobs, request.path_params["job"]
    if id not in jobs:
        raise HTTPException(404, "This release is not under way here. Its state is in the ledger.")
    return jobs[id]


def job(request: Request) -> Response:
    """The stages, and at the end the report and what verify found."""
    result, desk = _job(request), desk_of(request)
    if result.finished and result.folder is None and not result.problems:  # a series shows itself
        return go("draft", request.path_params["draft"], "release")
    folder = "" if result.folder is None else desk.root.shown(result.folder.resolve())
    return page(request, "job.html", draft=draft_of(request), step="release", job=result, folder=folder)


def progress(request: Request) -> Response:
    """How far it is, for the page to ask."""
    result = _job(request)
    return JSONResponse(
        {
            "fraction": round(result.fraction, 2),
            "reached": [stage for stage, there in result.reached if there],
            "finished": result.finished,
        }
    )


# The eighth screen shows the releases that were made.

_MOST_ROWS = 500


def releases(request: Request) -> Response:
    """All releases in the folder of the desk."""
    return page(request, "releases.html", step="releases", made=made_in(desk_of(request).root))


def one(request: Request) -> Response:
    """One release with its numbers, and what verify finds."""
    desk, path = desk_of(request), request.query_params.get("folder", "")
    folder, release = release_at(path, desk.root)
    verdict = verify(folder) if request.query_params.get("verify") else None
    written = kind_named(release.kind).page(release)
    headed = {HEADINGS.get(name, name): column for name, column in written.shown(release).items()}
    shown = {name: column for name, column in headed.items() if name}
    rows = [list(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True)]
    folded = written.few_rows is not None and len(rows) > 2 * written.few_rows
    few = written.some(release, written.sequence(release), written.few_rows or 0) if folded else []
    return page(
        request,
        "one.html",
        step="releases",
        folder=desk.root.shown(folder),
        release=release,
        verdict=verdict,
        labels=written.labels(release),
        headings=list(shown),
        few=[rows[place] for place, _ in few],
        rows=rows[:_MOST_ROWS],
        left_out=max(0, len(rows) - _MOST_ROWS),
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
