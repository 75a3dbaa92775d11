"""Counts over a partial order, by region, sex and the like."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isotone.desk.drafts import Draft
from isotone.desk.folder import Root
from isotone.desk.sheets.attributes import (
    default_margins,
    read_attributes,
    read_margins,
    write_attributes,
    write_margins,
)
from isotone.desk.sheets.counts import USUAL, CountsSheet
from isotone.desk.sheets.searching import least_budget
from isotone.desk.sheets.sheet import SIMULATED
from isotone.desk.words import FormError, number
from isotone.release.kinds.counts.description import Counts, CountStatistic
from isotone.release.pipeline import Job
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["BreakdownSheet"]


class BreakdownSheet(CountsSheet):
    """An outline of questions, attributes with their public lists, and the tables to release."""

    id: ClassVar[str] = "breakdown"
    first: ClassVar[Mapping[str, Any]] = MappingProxyType({"margins": []})
    name: ClassVar[str] = "Counts of answers, broken down"
    about: ClassVar[str] = "The same by region, sex, age and the like, in tables that add up."

    def holds(self, section: Mapping[str, Any]) -> bool:
        """Whether there are margins that add up."""
        return not super().holds(section)

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """The outline, the attributes and the margins."""
        super().change(draft, form)
        read = read_attributes(form.get("attributes", ""))
        # as pairs: a table inside a table would be written after the lists, and their sequence matters
        by = {
            name: [list(pair) for pair in held.items()] if isinstance(held, dict) else held
            for name, held in read.items()
        }
        margins = read_margins(form.get("margins", "")) or default_margins(list(read))
        draft.change(self.key, by=by, margins=margins)

    def require(self, spec: Spec) -> None:
        """Lists and margins are checked where they are typed."""
        _query(spec)

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """The outline, and what was typed below it."""
        section = draft.section(self.key)
        said = {
            "attributes": write_attributes(section.get("by", {})),
            "margins": write_margins(section.get("margins", [])),
        }
        kept = {key: (typed or {}).get(key, value) for key, value in said.items()}
        return {**super().shown(draft, root, typed), "broken": kept}

    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """The errors of each margin."""
        query, half, found = _query(spec), _widest(spec), _counts(spec).breakdown
        margins = zip(found.margins, query.known.sd, query.known.half, strict=True)
        confidence = f"{100 * query.described.confidence:g} %"
        return {
            "half": float(f"{half:.4g}"),
            "rows": [
                {
                    "name": found.label(margin),
                    "label": "",
                    "guess": None,
                    "sd": float(np.sqrt(np.mean(sd**2))),
                    "half": float(np.max(width)),
                }
                for margin, sd, width in margins
            ],
            "plan": spec.plan().view,
            "words": f"every number by itself stays within ± {half:,.0f} of the truth with a probability of {confidence}.",
        }

    def budget(self, spec: Spec, asked: Mapping[str, str]) -> str:
        """The least budget at which every number by itself stays within the error."""
        wanted = number(asked.get("error", ""), "The error")
        return least_budget(spec, lambda tried: _widest(tried) <= wanted)

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """The guesses in equal parts, with noise."""
        query, described = _query(spec), _counts(spec)
        groups = described.groups
        assert groups is not None
        cells = int(np.prod([len(values) for _, values in groups.lists]))
        counts = np.array([guesses.get(str(x), USUAL) for x in described.P.elements], dtype=np.int64)
        each = np.tile(-(-counts // cells), (groups.size, 1))
        return query.publish(query.draw(CountStatistic(each, counts[:0])), SIMULATED)


def _query(spec: Spec) -> Job:
    if not _counts(spec).is_breakdown:
        raise FormError("Name the attributes, with their public lists of values.")
    return spec.job


def _counts(spec: Spec) -> Counts:
    described = spec.description
    assert isinstance(described, Counts)
    return described


def _widest(spec: Spec) -> float:
    """The half-width of the number that is known worst."""
    return max(float(np.max(width)) for width in _query(spec).known.half)
