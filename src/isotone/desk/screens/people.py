"""The third screen says whose data it is and who is protected, and reads it back as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from isotone.desk.screens.common import desk_of, draft_of, go, screen
from isotone.desk.words import FormError
from isotone.errors import IsotoneError
from isotone.privacy.adjacency import NEIGHBOURS
from isotone.release.reporting.html_report import guarantee_in_words

__all__ = ["people"]


def people(request: Request) -> Response:
    """Show or set where the data is, the unit, the neighbours and the contributions."""
    draft, desk = draft_of(request), desk_of(request)

    def work(form: dict[str, str]) -> Response:
        draft.change("data", path=form.get("path", "").strip(), unit=form.get("unit", "").strip())
        draft.change("data", contributions=_whole(form.get("contributions", "1")))
        draft.change("privacy", unit=form.get("words", "").strip(), neighbours=form.get("neighbours", ""))
        draft.spec(desk.root)
        return go("draft", draft.id, "accuracy")

    def show(_: Sequence[str]) -> dict[str, Any]:
        sentence = ""
        with suppress(IsotoneError):
            spec = draft.spec(desk.root)
            sentence = guarantee_in_words(spec.guarantee)
        kinds = list(NEIGHBOURS.values())
        sections = {name: draft.section(name) for name in ("data", "privacy")}
        return {**sections, "sentence": sentence, "neighbours": kinds}

    return screen(request, "people.html", "people", work, show)


def _whole(text: str) -> int | None:
    """A whole number, where 1 is what a spec means without it."""
    if not text.strip().isascii() or not text.strip().isdigit() or len(text) > 9:
        raise FormError("The number of records that one may give is a whole number from 1.")
    return int(text)
