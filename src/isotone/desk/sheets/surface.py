"""A surface that is monotone in two columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isotone.curves.grids import FINE
from isotone.desk.drafts import Draft
from isotone.desk.folder import Root
from isotone.desk.sheets.sheet import SIMULATED, Sheet
from isotone.desk.words import FormError
from isotone.reading.grids import Cells
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["SurfaceSheet"]

_FIELDS = ("x", "low", "high", "x2", "low2", "high2", "y", "least", "most")
_USUAL = 1000
"""How many records a preview has."""


class SurfaceSheet(Sheet):
    """Three columns and their public limits."""

    id: ClassVar[str] = "surface"
    key: ClassVar[str] = "curve"
    first: ClassVar[Mapping[str, Any]] = MappingProxyType({"x": ["", ""]})
    name: ClassVar[str] = "A surface"
    about: ClassVar[str] = "How one number rises or falls with two others, such as risk with age and weight."
    template: ClassVar[str] = "surface.html"

    def holds(self, section: Mapping[str, Any]) -> bool:
        """Whether x is two columns."""
        return isinstance(section.get("x"), (list, tuple))

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """The columns, their limits, and both directions."""
        said = {name: form.get(name, "").strip() for name in _FIELDS}
        if not all(said.values()):
            raise FormError("All three columns and their limits are needed.")
        draft.change(
            self.key,
            x=[said["x"], said["x2"]],
            y=said["y"],
            bounds=[[said["low"], said["high"]], [said["low2"], said["high2"]]],
            y_range=[said["least"], said["most"]],
            increasing=[form.get("direction") != "falls", form.get("direction2") != "falls"],
        )

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """The fields as typed or as they are."""
        del root
        section = draft.section(self.key)
        (low, high), (low2, high2) = section.get("bounds", (("", ""), ("", "")))
        x, x2 = section.get("x", ("", ""))
        least, most = section.get("y_range", ("", ""))
        rising: Any = section.get("increasing", True)
        first, second = rising if isinstance(rising, list) else (rising, rising)
        values = (x, low, high, x2, low2, high2, section.get("y", ""), least, most)
        said = dict(zip(_FIELDS, values, strict=True))
        said |= {
            "direction": "rises" if first else "falls",
            "direction2": "rises" if second else "falls",
        }
        return {"said": {**said, **(typed or {})}}

    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What would be released. Its error depends on the data."""
        del asked, guesses
        return {"text": spec.plan().plain()["text"]}

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """A plane with noise."""
        query = spec.job
        bins = np.array(list(product(*map(range, query.source.bins))), dtype=np.int64)
        share = bins / np.maximum(np.array(query.source.bins) - 1, 1)
        height = np.where(query.mechanism.settings["directions"], share, 1 - share).mean(axis=1)
        y = np.round(height * FINE).astype(np.int64)
        count = np.full(len(bins), max(1, _USUAL // len(bins)), dtype=np.int64)
        return query.publish(query.draw(Cells(bins, y, count)), SIMULATED)
