"""The screen of a series: open it once, close its periods one by one, and look at its chain.

What lies in the folder of its secrets is touched by opening and closing alone, through the functions of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk import releasing
from isotone.desk.desk import Desk
from isotone.desk.drafts import Draft
from isotone.desk.jobs import Task
from isotone.desk.pages import draft_of, go, screen, writable
from isotone.desk.releasing import CHANGED, amount_of, require_confirmed, require_data, submission
from isotone.desk.sheets import is_live
from isotone.desk.words import FormError, lines
from isotone.errors import InputError, IsotoneError
from isotone.mechanism import Progress
from isotone.release.kinds.series.description import SeriesManifest, period_of
from isotone.release.kinds.series.reader import new_since
from isotone.release.over_time import Standing, published
from isotone.release.result import Release
from isotone.release.spec import Spec

_OPENING = {"the noise is planned": 0.6, "the release is rehearsed": 0.9}
_CLOSING = {"the data is read": 1.0}


def release(request: Request) -> Response:
    """The screen of a series that is shown period by period, or that of any other release."""
    return _standing(request) if is_live(draft_of(request)) else releasing.release(request)


def _standing(request: Request) -> Response:
    """Open the series, close a period, or show how far it is."""
    draft, desk = draft_of(request), writable(request)

    def work(form: dict[str, str]) -> Response:
        spec = _spec(draft, desk)
        if form.get("request") != spec.hash:
            raise FormError(CHANGED)
        series, period = spec.over_time, form.get("period")
        require_data(spec, desk.root)
        if period is None:
            require_confirmed(spec, form.get("confirm", ""))
            return _begun(
                draft,
                desk,
                spec,
                "The series is being opened",
                _OPENING,
                lambda step: series.open(progress=step),
            )
        if period not in series.described.periods:
            raise FormError("Choose the period to close.")
        if form.get("sure") != "yes":
            raise FormError(
                "Tick that the data is as it shall be counted: a period is closed once, for good."
            )
        words = f"{period} is being closed"
        return _begun(draft, desk, spec, words, _CLOSING, lambda _: _close(series, period), charges=False)

    def show(typed: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
        try:
            spec = _spec(draft, desk)
            shown = _shown(spec.over_time, request.query_params, desk)
        except IsotoneError as error:
            problems += [] if problems else lines(error)
            return {"asked": None}
        return {"asked": spec.hash, "typed": typed.get("period", ""), **amount_of(spec), **shown}

    return screen(request, "series.html", "release", work, dict[str, str], show)


def _spec(draft: Draft, desk: Desk) -> Spec:
    """The saved spec."""
    return submission(draft, desk.root).spec


def _begun(
    draft: Draft,
    desk: Desk,
    spec: Spec,
    words: str,
    stages: Mapping[str, float],
    act: Callable[[Progress], object],
    *,
    charges: bool = True,
) -> Response:
    job = desk.jobs.run(Task(draft.id, words, stages, charges), spec, desk.root, act)
    return go("draft", draft.id, "release", job.id)


def _close(series: Standing, period: str) -> None:
    """Close a period. What is refused says whether that can be tried again."""
    try:
        series.close(period)
    except IsotoneError as error:
        with suppress(IsotoneError):
            if series.described.periods.index(period) in series.state().waiting:
                error.add_note(f"{period} is still open. Mend this, and close it then.")
        raise


def _shown(series: Standing, form: Mapping[str, str], desk: Desk) -> dict[str, Any]:
    """What is public of the series, and which periods can still be closed. No data is read."""
    try:
        state = series.state()
    except InputError:  # it was not opened, or not to the end
        return {
            "state": None,
            "planned": series.described.periods,
            "secrets": desk.root.shown(series.secrets),
        }
    release, waiting = published(state), state.waiting
    manifest = release.manifest
    assert isinstance(manifest, SeriesManifest)
    places = dict(zip(manifest.shown_names, (manifest.chain or [""])[1:], strict=True))
    rows = [
        {
            "name": name,
            "seal": places.get(name, ""),
            "waits": place in waiting,
            "gap": sum(t < place for t in waiting),
        }
        for place, name in enumerate(manifest.planned)
    ]
    shown: dict[str, Any] = {"state": state, "rows": rows, "standing": manifest.standing, "folder": None}
    shown["changed"] = manifest.description != series.described.in_manifest()
    if not places:
        return shown
    names = list(places)
    period = form.get("show", "") if form.get("show") in names else names[-1]
    since = form.get("since", "") if form.get("since") in names[: names.index(period)] else ""
    return {
        **shown,
        "folder": desk.root.shown(series.spec.target.resolve()),
        "names": names,
        "period": period,
        "since": since,
        "numbers": _numbers(release, period, since),
    }


def _numbers(release: Release, period: str, since: str) -> list[dict[str, Any]]:
    """The counts of a period, and what is new since the period before or the one that is asked for."""
    columns = (new_since(release, period, since) if since else period_of(release, period)).columns
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
