"""A table of counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from isotone.desk.drafts import Draft
from isotone.desk.folder import Root
from isotone.desk.sheets.searching import least_budget
from isotone.desk.sheets.sheet import SIMULATED, Sheet
from isotone.desk.words import FormError, number
from isotone.release.kinds.table.description import Table, TableEntries
from isotone.release.result import Release
from isotone.release.spec import Spec
from isotone.tables.table_plan import expected_errors

__all__ = ["TableSheet"]


class TableSheet(Sheet):
    """A public list of categories and the largest count."""

    id: ClassVar[str] = "table"
    key: ClassVar[str] = "table"
    name: ClassVar[str] = "A table"
    about: ClassVar[str] = "How many there are in each of many categories, such as regions."
    template: ClassVar[str] = "table.html"

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """The column, the list and the largest count."""
        upper = form.get("upper", "").strip()
        if not (upper.isascii() and upper.isdigit()) or not 1 <= int(upper[:16]) <= 10**15:
            raise FormError("The largest count is a whole number from 1.")
        listed = list(
            dict.fromkeys(line.strip() for line in form.get("categories", "").splitlines() if line.strip())
        )
        draft.change(self.key, category=form.get("category", "").strip(), upper=int(upper))
        if "categories_file" not in draft.section(self.key):
            draft.change(self.key, categories=listed)

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """The fields as typed or as they are."""
        del root
        section = draft.section(self.key)
        said = {
            "category": section.get("category", ""),
            "categories": "\n".join(section.get("categories", [])),
            "upper": section.get("upper", ""),
        }
        return {"said": {**said, **(typed or {})}, "fixed": "categories_file" in section}

    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What mechanisms are expected to lose on a table of the guessed shape."""
        within = _within(spec)
        shape = spec.said(TableEntries).shape
        words = f"95 % of the counts are expected within ± {within} of the truth, if the table is {shape}."
        plan, said = spec.plan().view, "" if within is None else words
        return {"half": within, "plan": plan, "words": said}

    def budget(self, spec: Spec, asked: Mapping[str, str]) -> str:
        """The least budget at which 95 % of the counts are expected within the error, to three digits."""
        wanted = number(asked.get("error", ""), "The error")
        if _within(spec) is None:
            return super().budget(spec, asked)
        return least_budget(spec, lambda tried: (_within(tried) or 0) <= wanted)

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """The guesses with noise."""
        query = spec.job
        usual = min(100, query.source.upper)
        columns = 2 if _table(spec).counts else 1
        counts = columns * [
            min(guesses.get(name, usual), query.source.upper) for name in query.source.categories
        ]
        return query.publish(query.draw(np.array(counts, dtype=np.int64)), SIMULATED)


def _table(spec: Spec) -> Table:
    described = spec.description
    assert isinstance(described, Table)
    return described


def _within(spec: Spec) -> int | None:
    """How far 95 % of the counts are off, on a table of the guessed shape, or None for pairs of counts."""
    table = _table(spec)
    if table.counts is not None:
        return None
    mechanism = table.mechanism(spec.guarantee)
    size, shape = len(table.categories), spec.said(TableEntries).shape
    return expected_errors(mechanism, shape, size=size, upper=table.upper).within
