"""Counts over a partial order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from isotone.counts.fixed_root import FixedRootMechanism
from isotone.desk.drafts import Draft
from isotone.desk.figures import Goal, budget_for, count_accuracy, order_picture
from isotone.desk.folder import Root
from isotone.desk.outline import Outline, Problem, can_be_written, read_outline, write_outline
from isotone.desk.sheets.sheet import SIMULATED, Sheet
from isotone.desk.words import FormError
from isotone.errors import IsotoneError
from isotone.order import Poset
from isotone.release.kinds.counts.description import Counts, CountStatistic
from isotone.release.result import Release
from isotone.release.spec import Spec

__all__ = ["USUAL", "CountsSheet"]

_SHAPE = ("elements", "relations", "parents", "file", "lower", "upper", "choice", "children", "relaxation")
USUAL = 100
"""The guess for a count that nobody guessed."""


class CountsSheet(Sheet):
    """An outline of questions, where indenting means that a question is asked only after a yes."""

    id: ClassVar[str] = "order"
    key: ClassVar[str] = "order"
    name: ClassVar[str] = "Counts of answers"
    about: ClassVar[str] = (
        "How many say yes to each question of a questionnaire, or have each item of a list."
    )
    template: ClassVar[str] = "order.html"

    def holds(self, section: Mapping[str, Any]) -> bool:
        """Whether there are no margins that add up."""
        by = section.get("by") or {}
        return not section.keys() & {"margins", "importance"} and len(by) < 2

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """The outline and the words for yes."""
        yes = [word.strip() for word in form.get("yes", "").split(",") if word.strip()]
        draft.change("data", yes=yes or None)
        if "outline" not in form:  # an order that no outline can hold stays as it is
            return
        found = read_outline(form["outline"])
        if found.problems:
            raise FormError("\n".join(map(str, found.problems)))
        kept = {key: value for key, value in draft.section(self.key).items() if key not in _SHAPE}
        order: dict[str, Any] = {"elements": list(found.elements)}
        if found.relations:
            order["relations"] = [list(pair) for pair in found.relations]
        if found.children:
            order["children"] = {
                name: [[kind, list(options)] for kind, options in groups]
                for name, groups in found.children.items()
            }
        draft.entries = {**draft.entries, self.key: {**order, **kept}}
        draft.ask(found.elements)

    def require(self, spec: Spec) -> None:
        """The outline was checked line by line. The mechanism, which may take long to find, waits for its screen."""

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """The outline as typed or as it is, with its picture."""
        yes = ", ".join(draft.section("data").get("yes", []))
        said = _said(draft, root, self.key)
        fixed = said is not None and not can_be_written(said)
        outline = "" if said is None else write_outline(said)
        if typed is not None and not fixed:
            outline, yes = typed.get("outline", outline), typed.get("yes", yes)
        drawn = said if fixed else _order(read_outline(outline))
        picture = "" if drawn is None else order_picture(drawn, draft.labels)
        return {
            "outline": outline,
            "yes": yes,
            "fixed": fixed,
            "picture": picture,
            "labels": draft.labels,
            "broken": None,
        }

    def look(self, draft: Draft, form: Mapping[str, str]) -> str:
        """The diagram of the outline, and its problems."""
        found = read_outline(form.get("outline", ""))
        P = _order(found)
        return _problems(found.problems) + ("" if P is None else order_picture(P, draft.labels))

    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """The error of every count, in both directions."""
        return count_accuracy(spec, Goal.of(asked), guesses)

    def budget(self, spec: Spec, asked: Mapping[str, str]) -> str:
        """The least budget of the mechanism that releases."""
        return budget_for(spec, Goal.of(asked), asked.get("error", ""))

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """The guesses with noise from a seeded generator."""
        query, described = spec.job, _counts(spec)
        groups = 1 if described.groups is None else described.groups.size
        counts = np.array([guesses.get(str(x), USUAL) for x in described.P.elements])
        if isinstance(query.mechanism, FixedRootMechanism):
            counts = query.mechanism.with_root(counts)
        noise = np.asarray(query.mechanism.simulate_released(groups, np.random.default_rng(1)))
        totals = np.full(groups if described.total else 0, max(counts, default=0), dtype=np.int64)
        drawn = CountStatistic((counts + noise).astype(np.int64), totals)
        return query.publish(drawn, SIMULATED)


def _counts(spec: Spec) -> Counts:
    described = spec.description
    assert isinstance(described, Counts)
    return described


def _said(draft: Draft, root: Root, key: str) -> Poset | None:
    """The order of the draft, whatever else is missing."""
    shape = {name: said for name, said in draft.section(key).items() if name in _SHAPE}
    rest = {name: said for name, said in draft.entries.items() if name != key}
    try:
        return replace(draft, entries={**rest, key: shape}).spec(root).poset
    except IsotoneError:
        return None


def _order(found: Outline) -> Poset | None:
    try:
        return found.order() if found.elements else None
    except IsotoneError:
        return None


def _problems(problems: tuple[Problem, ...]) -> str:
    from markupsafe import escape

    items = "".join(f"<li>{escape(str(problem))}</li>" for problem in problems)
    return f'<ul class="problems">{items}</ul>' if items else ""
