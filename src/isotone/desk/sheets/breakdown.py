"""Counts over a partial order, by region, sex and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from isotone.desk.drafts import Draft
from isotone.desk.root import Root
from isotone.desk.sheets.attributes import read_attributes, read_margins, write_attributes, write_margins
from isotone.desk.sheets.counts import USUAL, CountsSheet
from isotone.desk.sheets.searching import least_budget
from isotone.desk.sheets.sheet import SIMULATED
from isotone.desk.words import number
from isotone.release.kinds.breakdown.query import BreakdownQuery
from isotone.release.result import Release
from isotone.release.spec import Spec
from isotone.release.steward import plan_spec

__all__ = ["BreakdownSheet"]


class BreakdownSheet(CountsSheet):
    """An outline of questions, attributes with their public lists, and the tables to release."""

    id: ClassVar[str] = "breakdown"
    key: ClassVar[str] = "breakdown"
    name: ClassVar[str] = "Counts of answers, broken down"
    about: ClassVar[str] = "The same by region, sex, age and the like, in tables that add up."

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """The outline, the attributes and the margins."""
        super().change(draft, form)
        by, groups = read_attributes(form.get("attributes", ""))
        draft.change(self.key, by=by, groups=groups, margins=read_margins(form.get("margins", "")))

    def require(self, spec: Spec) -> None:
        """Lists and margins are checked where they are typed."""
        _query(spec)

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """The outline, and what was typed below it."""
        section = draft.section(self.key)
        said = {
            "attributes": write_attributes(section.get("by", []), section.get("groups", {})),
            "margins": write_margins(section.get("margins", [])),
        }
        kept = {key: (typed or {}).get(key, value) for key, value in said.items()}
        return {**super().shown(draft, root, typed), "broken": kept}

    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """The errors of each margin."""
        query, half = _query(spec), _widest(spec)
        margins = zip(query.breakdown.margins, query.known.sd, query.known.half, strict=True)
        confidence = f"{100 * query.confidence:g} %"
        return {
            "half": float(f"{half:.4g}"),
            "rows": [
                {
                    "name": query.breakdown.label(margin),
                    "label": "",
                    "guess": None,
                    "sd": float(np.sqrt(np.mean(sd**2))),
                    "half": float(np.max(width)),
                }
                for margin, sd, width in margins
            ],
            "plan": plan_spec(spec).view,
            "words": f"every number by itself stays within ± {half:,.0f} of the truth with a probability of {confidence}.",
        }

    def budget(self, spec: Spec, asked: Mapping[str, str]) -> str:
        """The least budget at which every number by itself stays within the error."""
        wanted = number(asked.get("error", ""), "The error")
        return least_budget(spec, lambda tried: _widest(tried) <= wanted)

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """The guesses in equal parts, with noise."""
        query = _query(spec)
        cells = int(np.prod([len(values) for _, values in query.cells.lists]))
        counts = np.array([guesses.get(str(x), USUAL) for x in query.P.elements], dtype=np.int64)
        each = np.tile(-(-counts // cells), (query.cells.size, 1))
        return query.publish(query.draw(each), SIMULATED)


def _query(spec: Spec) -> BreakdownQuery:
    query = spec.kind.query(spec)
    assert isinstance(query, BreakdownQuery)
    return query


def _widest(spec: Spec) -> float:
    """The half-width of the number that is known worst."""
    return max(float(np.max(width)) for width in _query(spec).known.half)
