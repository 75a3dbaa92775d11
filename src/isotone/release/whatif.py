"""Plans side by side, from an error to ε, and whether a difference would be seen. No data is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.mechanism import AdditiveMechanism
from isotone.errors import InputError, SpecError
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.checks import (
    Number,
    confidence_level,
    did_you_mean,
    exact,
    positive,
    share,
    truth,
    whole_number,
)
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.counts.columns import planned_waves
from isotone.release.manifest import guarantee_to
from isotone.release.spec import SpecPlan, plan_of

if TYPE_CHECKING:
    from rich.table import Table

    from isotone.counts.count_plan import CountPlan
    from isotone.release.kinds.counts.description import Counts
    from isotone.release.spec import Spec

_DRAWS, _SEED = 40_000, 20
_MOST = 50


@dataclass(frozen=True)
class Variant:
    """A description under a guarantee, which is planned like a spec."""

    description: Any
    guarantee: Guarantee

    def plan(self, progress: Progress = no_progress, *, records: int | None = None) -> SpecPlan:
        """The plan. ``records`` is what it may assume about the data."""
        return plan_of(self.description, self.guarantee, records, None, progress, "")


def variants(
    spec: Spec,
    *,
    epsilon: Sequence[Any] = (),
    max_size: Sequence[Any] = (),
    add: Sequence[tuple[str, str]] = (),
    drop: Sequence[tuple[str, str]] = (),
) -> list[tuple[str, Spec | Variant]]:
    """The spec with each ε, each ``max_size``, and with relations ``(lower, upper)`` more or fewer, each with a name."""
    one = Variant(spec.description, spec.guarantee)
    result: list[tuple[str, Spec | Variant]] = [("as it is", spec)]
    steps: list[tuple[str, Variant]] = [("as it is", one)]
    if add or drop or max_size:
        spec.poset  # noqa: B018 (what has no order is refused)
    if add or drop:
        steps += [_related(one, pair, True) for pair in add] + [_related(one, pair, False) for pair in drop]
        result += steps[1:]
    if max_size:
        sizes = [(size, whole_number(size, "max_size")) for size in max_size]
        steps = [
            (f"max_size {size}", replace(one, description=one.description.changed(max_size=k)))
            for size, k in sizes
        ]
        result = [*steps]
    if epsilon:
        if spec.privacy.rho is not None:
            raise SpecError("This spec spends rho: change it there to compare others.")
        before = {name: "" if name == "as it is" else f"{name}, " for name, _ in steps}
        result = [
            (f"{before[name]}ε = {e}", replace(variant, guarantee=_with_epsilon(spec.guarantee, e)))
            for name, variant in steps
            for e in epsilon
        ]
    if len(result) > _MOST:
        raise InputError(f"These are {len(result)} plans. At most {_MOST} are compared.")
    return result


def _with_epsilon(guarantee: Guarantee, epsilon: Any) -> Guarantee:
    return replace(guarantee, epsilon=positive(epsilon, "epsilon"))


def _related(one: Variant, pair: tuple[str, str], more: bool) -> tuple[str, Variant]:
    """The same with one relation more or fewer. All others stay."""
    P, (lower, upper) = one.description.order, pair
    for name in pair:
        if name not in P.elements:
            known = [str(x) for x in P.elements]
            raise InputError(f"{name!r} is no element of the order{did_you_mean(name, known) or '.'}")
    pairs = [(a, b) for a in P.elements for b in P.elements if a != b and P.leq(a, b)]
    if not more and pair not in P.covers:
        raise InputError(f"{lower!r} is not directly below {upper!r}, so there is no relation to leave out.")
    related = [*pairs, pair] if more else [one for one in pairs if one != pair]
    changed = one.description.changed(order=Poset(P.elements, related, P.choices))
    return f"{'with' if more else 'without'} {lower} implies {upper}", replace(one, description=changed)


def side_by_side(
    specs: Sequence[tuple[str, Spec | Variant]],
    *,
    records: int | None = None,
    guess: Any = None,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """The best mechanism of each plan with its numbers, and with a guessed count also the errors as shares of it."""
    count = None if guess is None else whole_number(guess, "guess")
    rows: list[dict[str, Any]] = []
    for place, (name, spec) in enumerate(specs):
        result = spec.plan(records=records)
        if result.view is None:
            raise SpecError(
                f"The plan of {name} compares no mechanisms, so there is nothing to put side by side. {result}"
            )
        best = result.view.rows[0]
        progress((place + 1) / len(specs), name)
        numbers = {column.heading: float(getattr(best, column.name)) for column in best.columns}
        numbers.pop("squared error", None)  # of the best: always × 1
        if count is not None:
            first, *_ = numbers
            numbers[f"{first} of {count:,}"] = numbers[first] / count
        rows.append({"plan": name, "mechanism": best.name, **numbers})
    return rows


def epsilon_for(
    spec: Spec,
    error: float,
    confidence: float = 0.95,
    *,
    each: bool = False,
    records: int | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The least budget at which all counts, or ``each`` for itself, stay within ``error``.

    For a distribution the least at which its largest error is expected to be that, for about so many records; for a
    table that of most counts, if it has the guessed shape.
    """
    described = spec.description
    guess = type(described).guessed(spec.section, records)
    if records not in (None, guess):
        raise SpecError(
            "--records has no meaning beside --error for a table, which has one count a category."
        )
    budgets = described.least_budget(spec.guarantee, error, guess, confidence_level(confidence))
    if budgets is not None:
        budget, of = budgets
        if each and "confidence" not in of:
            raise SpecError("--each is for counts of an [order].")
        return {"rho" if spec.guarantee.kind == "zcdp" else "epsilon": budget, "error": error, **of}
    others = " Plans for several budgets say what to expect: --epsilon 0.5,1,2."
    result = _counts(spec, progress, "The way from an error to a budget is", others)
    if records is not None:
        raise SpecError(
            "--records has no meaning beside --error for counts: their noise does not depend on it."
        )
    concentrated = result.guarantee.kind == "zcdp"
    budget = (result.rho_for if concentrated else result.epsilon_for)(
        error, confidence, simultaneous=not each
    )
    return {
        "rho" if concentrated else "epsilon": budget,
        "error": error,
        "confidence": confidence_level(confidence),
        "of": "each count" if each else "all counts at once",
    }


@dataclass(frozen=True)
class WavePlan:
    """What each wave costs, and how far its counts and the changes between two waves stay from the truth."""

    waves: int
    together: Guarantee
    each: Guarantee
    mechanism: AdditiveMechanism = field(repr=False)
    confidence: float
    sd: NDArray[np.float64] = field(repr=False)
    count: NDArray[np.float64] = field(repr=False)
    change: NDArray[np.float64] = field(repr=False)
    all_changes: float
    """How far all changes from one wave to another stay from the truth at once."""

    @property
    def title(self) -> str:
        """What the waves cost."""
        return f"{self.waves} waves with {self.each} each; all together: {self.together}"

    def plain(self) -> dict[str, Any]:
        """The plan as plain values."""
        numbers = zip(*(part.tolist() for part in (self.sd, self.count, self.change)), strict=True)
        return {
            "waves": self.waves,
            "together": guarantee_to(self.together),
            "each": guarantee_to(self.each),
            "mechanism": type(self.mechanism).__name__,
            "confidence": self.confidence,
            "all_changes": self.all_changes,
            "elements": [
                {"element": str(x), "sd": round(sd, 4), "count": count, "change": change}
                for x, (sd, count, change) in zip(self.mechanism.P.elements, numbers, strict=True)
            ],
        }

    def __rich__(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        level = f"{100 * self.confidence:g} %"
        result = Table(title=self.title, title_justify="left")
        for heading in ("element", "sd of a count", "a count within", "a change within"):
            result.add_column(heading, justify="left" if heading == "element" else "right")
        for row in self.plain()["elements"]:
            numbers = f"{row['sd']:,.4g}", f"± {row['count']:,.0f}", f"± {row['change']:,.0f}"
            result.add_row(Text(row["element"]), *numbers)
        result.caption = (
            f"{type(self.mechanism).__name__}. All changes from one wave to another stay within ± {self.all_changes:,.0f} at "
            f"once. Each ±: {level} of the time."
        )
        result.caption_justify = "left"
        return result

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        table = self.__rich__()
        table.title, table.caption, table.box = None, None, None
        Console(file=text, width=120, highlight=False).print(table)
        level = f"{100 * self.confidence:g} %"
        last = f"All changes at once: ± {self.all_changes:,.0f}, by {type(self.mechanism).__name__}. Each ±: {level} of the time."
        lines = [line.rstrip() for line in text.getvalue().rstrip().splitlines()]
        return "\n".join([self.title, *lines, last])


def plan_waves(
    survey: Counts,
    waves: int,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    same_units: bool = True,
) -> WavePlan:
    """Plan several releases of counts from one budget, such as one a year. Nothing is read and nothing is spent.

    ``epsilon`` (with ``delta``) or ``rho`` is what all waves cost together: each gets an equal part, unless
    ``same_units`` is False, which states that no unit is in two waves; each wave then has the whole. The plan says how far
    counts and the changes between two waves stay from the truth.

    >>> import isotone as iso
    >>> plan = plan_waves(iso.Counts(iso.Poset.chain("ab")), 5, epsilon=5)
    >>> plan.each, plan.together
    (Guarantee(ε = 1, add-remove one record), Guarantee(ε = 5, add-remove one record))
    """
    number, together = planned_waves(waves), survey.guarantee(epsilon, delta, rho)
    each = _part(together, number) if truth(same_units, "same_units") else together
    if survey.is_breakdown:
        raise InputError("Waves are planned for counts without margins: plan one wave at its price.")
    return waves_with(survey.mechanism(each), number, each, together, survey.confidence)


def waves_with(
    noise: AdditiveMechanism, waves: int, each: Guarantee, together: Guarantee, level: float
) -> WavePlan:
    """So many releases with this noise, at these prices."""
    first, second = noise.law("0"), noise.law("1")
    off = np.abs(second.draws.astype(np.float64) - first.draws.astype(np.float64))
    return WavePlan(
        waves,
        together,
        each,
        noise,
        level,
        noise.error().sd,
        noise.half_widths(level),
        first.upper(off, level),
        float(first.upper(np.max(off, axis=1), level)),
    )


def _part(guarantee: Guarantee, waves: int) -> Guarantee:
    """An equal part for each wave, so that all together keep the guarantee."""
    share = Fraction(1, waves)
    parts = {name: getattr(guarantee, name) * share for name in ("epsilon", "delta", "rho")}
    return replace(guarantee, **parts)


def waves_of(
    spec: Spec, waves: int, confidence: float = 0.95, *, progress: Progress = no_progress
) -> WavePlan:
    """So many releases of what a spec asks for, each at its price."""
    each, number = spec.guarantee, planned_waves(waves)
    noise, level = _counts(spec, progress, "A plan of waves is").best, confidence_level(confidence)
    return waves_with(noise, number, each, each.times(number), level)


@dataclass(frozen=True)
class Visible:
    """How likely a difference between two shares is seen, at a false alarm of one minus the confidence."""

    shares: tuple[float, float]
    people: int
    element: str
    sd: float
    confidence: float
    chances: dict[str, float]

    def plain(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**vars(self), "shares": list(self.shares)}

    def __str__(self) -> str:
        one, other = (f"{100 * p:g} %" for p in self.shares)
        difference = abs(self.shares[1] - self.shares[0]) * self.people
        lines = [
            f"{one} against {other} of {self.people:,} people is a difference of {difference:,.4g}. The noise on "
            f"{self.element} has a standard deviation of {self.sd:.3g}.",
            f"Seen at {100 * self.confidence:g} % confidence, by {_DRAWS:,} simulated releases:",
            *(f"  {what:<58} {100 * chance:>4.0f} %" for what, chance in self.chances.items()),
        ]
        return "\n".join(lines)


def visible(
    spec: Spec | Variant,
    shares: tuple[Any, Any],
    people: Any,
    *,
    element: str | None = None,
    confidence: float = 0.95,
    progress: Progress = no_progress,
) -> Visible:
    """Whether one share can be told from another in so many people, by the best mechanism of the plan.

    The noise is that of ``element``, by default of the one with the most. Two cases: against a share that is known, and
    between two groups that are released both; each for these people, and for the population that they are a sample of.
    """
    result, number, level = (
        _counts(spec, progress, "Comparing two shares is"),
        whole_number(people, "people"),
        confidence_level(confidence),
    )
    first, second = (float(share(p, "share")) for p in shares)
    noise, place = _noise(result, element)
    rng = np.random.default_rng(_SEED)
    drawn, other = noise[:_DRAWS], noise[_DRAWS:]
    shift = round(number * second) - round(number * first)

    def seen(null: Any, real: Any) -> float:
        return float(np.mean(np.abs(real) > np.quantile(np.abs(null), level)))

    def people_with(p: float) -> Any:
        return rng.binomial(number, p, _DRAWS)

    known, both = people_with(first) - number * first + drawn, people_with(first) - people_with(first)
    between = people_with(second) - people_with(first)
    chances = {
        "against a known share, in these people": seen(drawn, drawn + shift),
        "against a known share, in their population": seen(
            known, people_with(second) - number * first + drawn
        ),
        "between two groups of so many, in these people": seen(drawn - other, drawn - other + shift),
        "between two groups of so many, in their populations": seen(
            both + drawn - other, between + drawn - other
        ),
    }
    sd = float(result.best.error().sd[place])
    return Visible((first, second), number, str(result.P.elements[place]), sd, level, chances)


def _noise(plan: CountPlan, element: str | None) -> tuple[Any, int]:
    names, sd = [str(x) for x in plan.P.elements], plan.best.error().sd
    if element is not None and element not in names:
        raise InputError(f"{element!r} is no element of the order{did_you_mean(element, names) or '.'}")
    place = int(np.argmax(sd)) if element is None else names.index(element)
    drawn = plan.best.simulate_released(2 * _DRAWS, np.random.default_rng(_SEED + 1))
    return np.asarray(drawn)[:, place], place


def _counts(spec: Spec | Variant, progress: Progress, question: str, instead: str = "") -> CountPlan:
    """The plan of a spec for counts, of which a question is asked."""
    from isotone.counts.count_plan import CountPlan

    result = spec.plan(progress).view
    if not isinstance(result, CountPlan):
        words = spec.description.words
        article = "" if words.startswith(("counts", "survival")) else "a "
        raise SpecError(f"{question} not for {article}{words}: its plan does not say that.{instead}")
    return result


def percent(text: str) -> Any:
    """A share as text, such as ``3%``, ``3 %`` or ``0.03``."""
    number = text.strip()
    result = exact(number[:-1].strip(), "share") / 100 if number.endswith("%") else exact(number, "share")
    if not 0 < result < 1:
        raise InputError(
            f"A share is a percentage such as 3% or a number such as 0.03, not {text.strip()!r}."
        )
    return result
