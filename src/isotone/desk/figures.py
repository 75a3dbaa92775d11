"""Numbers and pictures that the screens show. All come from the library.

Errors and budgets of counts are those of the mechanism that would release. Pictures follow the colours of the page, and each has a table
or a list beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from isotone.counts import LaplaceMechanism
from isotone.counts.count_plan import CountPlan, CountRow
from isotone.counts.mechanism import AdditiveMechanism
from isotone.desk.words import FormError, number
from isotone.errors import BudgetError, IsotoneError
from isotone.ledger import Charge, Cost, Ledger
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.order.drawing import hasse_figure
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.counts.description import Counts
from isotone.release.spec import Spec
from isotone.svg import MARK, Axis, bars, below, element, picture, text, wrapped

# A ledger as a steward looks at it, and what a guarantee means for one person.

_BELIEFS = ("0.01", "0.1", "0.5")


@dataclass(frozen=True)
class Account:
    """The total of a ledger, what was spent, and what a release would leave."""

    dataset: str
    total: Cost
    spent: Cost
    left: Cost
    charges: tuple[Charge, ...]
    cost: Cost | None
    """What one more release takes; None where the ledger cannot pay for it at all."""
    refused: str = ""
    other: bool = False
    """Whether it is refused since the ledger is for another unit or kind of guarantee, and not since too little is left."""

    @property
    def after(self) -> Cost | None:
        """What is left after one more release, or None where that is too much."""
        return self.left - self.cost if self.cost is not None and self.cost.within(self.left) else None

    @property
    def more(self) -> int:
        """How many more releases like it the budget can pay for."""
        return 0 if self.cost is None else _times(self.left, self.cost)

    @property
    def shares(self) -> list[tuple[str, float]]:
        """Parts of the total for a picture, each charge, this release, and the rest."""
        parts = [
            (f"charge {charge.number}", _share(_as(charge, self.total), self.total))
            for charge in self.charges
        ]
        if self.after is not None and self.cost is not None:
            parts.append(("this release", _share(self.cost, self.total)))
        return parts


def account(path: Path, dataset: str | None, guarantee: Guarantee) -> Account | None:
    """The account of a ledger for a guarantee, or None if there is no ledger yet."""
    if not path.exists():
        return None
    ledger = Ledger(path, dataset=dataset)
    cost, refused, other = None, "", False
    try:
        cost = Cost.of(guarantee, ledger.budget.kind)
        ledger.check(guarantee)
    except IsotoneError as error:
        refused, other = str(error), not isinstance(error, BudgetError)
    return Account(
        ledger.dataset,
        ledger.total,
        ledger.spent(),
        ledger.remaining(),
        tuple(ledger.charges()),
        cost,
        refused,
        other,
    )


def odds(guarantee: Guarantee) -> list[tuple[str, str]]:
    """How far a reader's belief about one person may move at most, a pair (before, after) for some beliefs.

    >>> odds(Guarantee.pure(1))
    [('1 %', '2.7 %'), ('10 %', '23 %'), ('50 %', '73 %')]
    """
    stated = guarantee.to_approximate("1e-6") if guarantee.kind == "zcdp" else guarantee
    epsilon = min(float(stated.epsilon), 700.0)
    result: list[tuple[str, str]] = []
    for belief in map(float, _BELIEFS):
        after = 1 / (1 + (1 - belief) / belief * math.exp(-epsilon))
        result.append((f"{100 * belief:g} %", f"{100 * after:.2g} %" if after < 0.995 else "more than 99 %"))
    return result


def _numbers(cost: Cost) -> tuple[Fraction, Fraction, Fraction]:
    return cost.epsilon, cost.delta, cost.rho


def _times(left: Cost, cost: Cost) -> int:
    return min(
        (int(have // need) for have, need in zip(_numbers(left), _numbers(cost), strict=True) if need),
        default=0,
    )


def _as(charge: Charge, total: Cost) -> Cost:
    return Cost.of(charge.guarantee, "zcdp") if total.rho else charge.cost


def _share(cost: Cost, total: Cost) -> float:
    """The part of the total, by the number that is used up fastest."""
    return float(
        max(part / whole for part, whole in zip(_numbers(cost), _numbers(total), strict=True) if whole)
    )


# Pictures of the desk. They follow the colours of the page, and each has a table or a list beside it.

_WIDTH, _HEIGHT, _NARROW = 720.0, 64.0, 480.0
_LARGEST = 250
"""Larger orders are not drawn while one types."""


def _plain(svg: str) -> Markup:
    """A picture without a style of its own, which the policy of the pages refuses."""
    return Markup(re.sub(r' style="[^"]*"', "", svg, count=1))


def order_picture(P: Poset, labels: Mapping[str, str]) -> Markup:
    """The diagram of an order, with its labels where there are any, and how it is read."""
    if len(P) > _LARGEST:
        return Markup("<p>The diagram is left out: there are more than {} elements.</p>").format(_LARGEST)
    shown = {name: label for name, label in labels.items() if name in P}
    drawn, words = hasse_figure(P, labels=shown, title=f"Diagram of {len(P)} elements")
    return Markup('{}<p class="help">{}</p>').format(_plain(drawn), words)


def budget_bar(account: Account) -> Markup:
    """The total as a bar, with its charges, this release and what is left."""
    parts, x, room = [], 1.0, _WIDTH - 2
    for name, share in account.shares:
        width = max(min(share, 1.0) * room, 0.0)
        ours = name == "this release"
        parts.append(
            element("rect", x=x, y=8, width=width, height=28, fill=MARK, fill_opacity=0.15 if ours else 0.6,
                    stroke=MARK, stroke_width=1.5, stroke_dasharray="4 3" if ours else "none")
        )  # fmt: skip
        label = "this" if ours else name.removeprefix("charge ")
        if width > 8.0 * len(label) + 8:
            parts.append(text(x + width / 2, 54, label, 13, text_anchor="middle"))
        x += width
    parts.append(element("rect", x=1, y=8, width=room, height=28, fill="none", stroke="currentColor"))
    return _plain(
        picture(parts, _WIDTH, _HEIGHT, f"{account.spent} spent of {account.total}, {account.left} left")
    )


def guessed_bars(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Guessed counts with the intervals that a release would have."""
    shown = rows[:60]
    guesses = [float(row["guess"]) for row in shown]
    lows = [max(guess - row["half"], 0.0) for guess, row in zip(guesses, shown, strict=True)]
    highs = [guess + row["half"] for guess, row in zip(guesses, shown, strict=True)]
    names = [str(row["label"] or row["name"]) for row in shown]
    return _plain(bars(names, guesses, lows, highs, "guessed count, with the interval of a release"))


def simulated_dots(rows: Sequence[Mapping[str, Any]], noise: NDArray[Any]) -> Markup:
    """Simulated releases of guessed counts, a dot each."""
    shown = rows[:60]
    values = np.array([float(row["guess"]) for row in shown])[:, None] + noise[:, : len(shown)].T
    low, high = float(min(values.min(), 0.0)), float(max(values.max(), 1.0))
    left, row_height, top = 210.0, 34.0, 12.0
    across = Axis(low, high, left, _NARROW - 18)
    bottom = top + row_height * len(shown)
    parts = list(below(across, bottom, top, "guessed count with simulated noise"))
    for k, row in enumerate(shown):
        y = top + row_height * (k + 0.5)
        lines = wrapped(str(row["label"] or row["name"]), (left - 14) / 13, 2)
        first = y + 4 - 7.5 * (len(lines) - 1)
        parts += [text(left - 8, first + 15 * i, line, 13, text_anchor="end") for i, line in enumerate(lines)]
        parts += [
            element("circle", cx=across.at(float(value)), cy=y, r=4, fill=MARK, fill_opacity=0.45)
            for value in values[k]
        ]
    words = f"SIMULATED releases of guessed counts: {noise.shape[0]} for each name, on an axis from {low:,.0f} to {high:,.0f}"
    return _plain(picture(parts, _NARROW, bottom + 52, words))


# Errors and budgets of counts, in both directions. All numbers are those of the mechanism that would release.

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
    result: dict[str, int] = {}
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, value = line.strip().rpartition(" ")
        digits = value.replace(",", "")
        if not name.strip(" =:") or not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
            raise FormError(
                f"Line {place} of the guesses is not a name and a whole number, such as smoke 400."
            )
        result[name.strip(" =:")] = int(digits)
    return result


def budget_for(spec: Spec, goal: Goal, error: str) -> str:
    """The least budget at which the mechanism of the spec keeps within ``error``, as text for the spec."""
    plan = _made(spec)
    expected = number(error, "The error")
    named = isinstance(spec.description, Counts) and spec.description.method != "auto"
    chosen = replace(plan, rows=plan.rows[:1]) if named else plan
    ask = chosen.rho_for if plan.guarantee.kind == "zcdp" else chosen.epsilon_for
    if goal.which == "element" and goal.element not in map(str, plan.P.elements):
        raise FormError("Choose one of the names for 'this one'.")
    element = goal.element if goal.which == "element" else None
    return f"{ask(expected, goal.confidence, goal.which == 'all', element):.10g}"


def _plan(spec: Spec) -> CountPlan:
    """The plan, with the mechanism first that would release."""
    plan = _made(spec)
    return replace(plan, rows=(*plan.rows, *_plain_noise(plan)))


def _made(spec: Spec) -> CountPlan:
    view = spec.plan().view
    assert isinstance(view, CountPlan)
    return view


def _plain_noise(plan: CountPlan) -> list[CountRow]:
    """Laplace noise, which knows nothing of choices and which the plan leaves out where counts must add up."""
    guarantee, best = plan.guarantee, plan.best
    if not plan.P.choices or guarantee.kind != "pure" or any(row.name == _LAPLACE for row in plan.rows):
        return []

    def build(guarantee: Guarantee, progress: Progress) -> AdditiveMechanism:
        del progress
        free = plan.P.forget_choices()
        return LaplaceMechanism(free, guarantee.epsilon, guarantee.neighbours, best.contributions)

    made = CountRow.of(build(guarantee, no_progress), build)
    return [
        replace(made, name=f"{_LAPLACE}, which does not add up", ratio=(made.rmse / plan.rows[0].rmse) ** 2)
    ]


def count_accuracy(spec: Spec, goal: Goal, guesses: Mapping[str, int]) -> dict[str, Any]:
    """The error of every count, and of other mechanisms with the same guarantee."""
    described: Any = spec.description
    mechanism, names = described.mechanism(spec.guarantee), [str(x) for x in described.P.elements]
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
    plan, labels = (
        _plan(spec),
        {name: question.shown for name, question in spec.book.items() if question.label},
    )
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
