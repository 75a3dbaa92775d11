"""A monotone curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from isotone.curves.grids import FINE
from isotone.desk.drafts import Draft
from isotone.desk.folder import Root
from isotone.desk.sheets.sheet import SIMULATED, Sheet
from isotone.desk.words import FormError
from isotone.reading.grids import Points
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["CurveSheet"]

_USUAL = 1000
"""How many records a preview has if nobody guesses."""


class CurveSheet(Sheet):
    """Two columns and their public limits."""

    id: ClassVar[str] = "curve"
    key: ClassVar[str] = "curve"
    name: ClassVar[str] = "A curve"
    about: ClassVar[str] = "How one number rises or falls with another, such as risk with age."
    template: ClassVar[str] = "curve.html"

    def holds(self, section: Mapping[str, Any]) -> bool:
        """Whether x is one column."""
        return not isinstance(section.get("x"), (list, tuple))

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """Both columns, their limits, and the direction."""
        said = {name: form.get(name, "").strip() for name in ("x", "y", "low", "high", "least", "most")}
        if not all(said.values()):
            raise FormError("Both columns and all four limits are needed.")
        draft.change(
            self.key,
            x=said["x"],
            y=said["y"],
            bounds=[said["low"], said["high"]],
            increasing=form.get("direction") != "falls",
        )
        draft.change(self.key, **{_ends(draft): [said["least"], said["most"]]})

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """The fields as typed or as they are."""
        del root
        section = draft.section(self.key)
        low, high = section.get("bounds", ("", ""))
        least, most = section.get(_ends(draft), ("", ""))
        said = {
            "x": section.get("x", ""),
            "y": section.get("y", ""),
            "low": low,
            "high": high,
            "least": least,
            "most": most,
            "direction": "rises" if section.get("increasing", True) else "falls",
        }
        return {"said": {**said, **(typed or {})}}

    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What methods are expected to lose, for a guessed number of records."""
        typed = asked.get("records", "").replace(",", "").strip()
        if typed and (not (typed.isascii() and typed.isdigit()) or not 0 < int(typed[:12]) < 10**10):
            raise FormError("The number of records is a whole number, guessed without the data.")
        plan = spec.plan(records=int(typed) if typed else None).plain()
        said = plan["text"].partition("\n")[0]
        return {"text": said, "methods": plan.get("rows", []), "records": typed}

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """A straight line with noise."""
        query = spec.job
        steps = query.mechanism.problem.points - 1
        x = np.unique(np.linspace(0, steps, min(50, steps + 1)).astype(np.int64))
        y = x * FINE // max(steps, 1)
        rising = y if query.mechanism.settings["increasing"] else FINE - y
        if query.source.labels:
            rising = np.where(2 * rising >= FINE, FINE, 0)
        count = np.full(len(x), max(1, _USUAL // len(x)), dtype=np.int64)
        return query.publish(query.draw(Points(x, rising, count)), SIMULATED)


def _ends(draft: Draft) -> str:
    return "y_values" if "y_values" in draft.section(CurveSheet.key) else "y_range"
