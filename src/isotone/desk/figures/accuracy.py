"""Errors and budgets of counts, in both directions. All numbers are those of the mechanism that would release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from isotone.counts import LaplaceMechanism
from isotone.counts.count_plan import CountPlan, CountRow
from isotone.counts.mechanism import AdditiveMechanism
from isotone.desk.figures.pictures import guessed_bars, simulated_dots
from isotone.desk.words import FormError, number
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.counts.query import CountQuery
from isotone.release.spec import Spec
from isotone.release.steward import plan_spec

__all__ = ["Goal", "budget_for", "count_accuracy", "read_guesses"]

_SIMULATED = 20
_LAPLACE = LaplaceMechanism.__name__


@dataclass(frozen=True)
class Goal:
    """Which error is meant, and how sure one wants to be of it."""

    which: Literal["all", "worst", "element"] = "all"
    element: str = ""
    confidence: float = 0.95

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Goal:
        """What a form says."""
        said = form.get("which", "all")
        which: Literal["all", "worst", "element"] = (
            "worst" if said == "worst" else "element" if said == "element" else "all"
        )
        try:
            percent = float(form.get("confidence") or "95")
        except ValueError:
            percent = 0.0
        if not 0 < percent < 100:
            raise FormError("The confidence is a number of percent above 0 and below 100.")
        return cls(which, form.get("element", ""), percent / 100)


def read_guesses(text: str) -> dict[str, int]:
    """Guessed counts, a name and a number on each line."""
    found: dict[str, int] = {}
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, value = line.strip().rpartition(" ")
        digits = value.replace(",", "")
        if not name.strip(" =:") or not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
            raise FormError(f"Line {place} of the guesses is not a name and a whole number.")
        found[name.strip(" =:")] = int(digits)
    return found


def budget_for(spec: Spec, goal: Goal, error: str) -> str:
    """The least budget at which the mechanism of the spec keeps within ``error``, as text for the spec."""
    plan = _plan(spec)
    wanted = number(error, "The error")
    chosen = replace(plan, rows=plan.rows[:1])
    ask = chosen.rho_for if plan.guarantee.kind == "zcdp" else chosen.epsilon_for
    if goal.which == "element" and goal.element not in map(str, plan.P.elements):
        raise FormError("Choose one of the names for 'this one'.")
    element = goal.element if goal.which == "element" else None
    return f"{ask(wanted, goal.confidence, goal.which == 'all', element):.10g}"


def _plan(spec: Spec) -> CountPlan:
    """The plan, with the mechanism first that would release."""
    made = plan_spec(spec).view
    assert isinstance(made, CountPlan)
    query = spec.kind.query(spec)
    rows = sorted(made.rows, key=lambda row: row.name != query.mechanism_name)
    return replace(made, rows=(*rows, *_plain_noise(made)))


def _plain_noise(plan: CountPlan) -> list[CountRow]:
    """Laplace noise, which knows nothing of choices and which the plan leaves out where counts must add up."""
    guarantee, best = plan.guarantee, plan.best
    if not plan.P.choices or guarantee.kind != "pure" or any(row.name == _LAPLACE for row in plan.rows):
        return []

    def build(asked: Guarantee, progress: Progress) -> AdditiveMechanism:
        del progress
        free = plan.P.forget_choices()
        return LaplaceMechanism(free, asked.epsilon, asked.neighbours, best.contributions)

    made = CountRow.of(build(guarantee, no_progress), build)
    return [
        replace(made, name=f"{_LAPLACE}, which does not add up", ratio=(made.rmse / plan.rows[0].rmse) ** 2)
    ]


def count_accuracy(spec: Spec, goal: Goal, guesses: Mapping[str, int]) -> dict[str, Any]:
    """The error of every count, and of other mechanisms with the same guarantee."""
    query = spec.kind.query(spec)
    assert isinstance(query, CountQuery)
    mechanism, names = query.mechanism, [str(x) for x in query.P.elements]
    alone = np.asarray(mechanism.half_widths(goal.confidence))
    together = float(mechanism.simultaneous_half_width(goal.confidence))
    errors = mechanism.error()
    if goal.which == "element" and goal.element not in names:
        raise FormError("Choose one of the names for 'this one'.")
    half = {
        "all": together,
        "worst": float(np.max(alone)),
        "element": float(alone[names.index(goal.element)]) if goal.element in names else 0.0,
    }[goal.which]
    plan, labels = _plan(spec), {name: question.label for name, question in spec.asked.items()}
    rows: list[dict[str, Any]] = [
        {"name": name, "label": labels.get(name, ""), "guess": guesses.get(name), "sd": sd, "half": width}
        for name, sd, width in zip(names, errors.sd.tolist(), alone.tolist(), strict=True)
    ]
    guessed = [row for row in rows if row["guess"] is not None]
    noise = np.asarray(mechanism.simulate_released(_SIMULATED, np.random.default_rng(20)))
    places = [place for place, row in enumerate(rows) if row["guess"] is not None]
    return {
        "goal": goal,
        "half": half,
        "rows": rows,
        "plan": plan,
        "bars": guessed_bars(guessed) if guessed else "",
        "dots": simulated_dots(guessed, noise[:, places]) if guessed else "",
        "simulated": [[int(row["guess"] + noise[k, i]) for k in range(_SIMULATED)]
                      for row, i in zip(guessed, places, strict=True)],
        "guessed": guessed,
    }  # fmt: skip
