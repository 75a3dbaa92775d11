"""What the screens know of each kind of release beside its parameters, whose form follows from the model (:mod:`isotone.desk.forms`).

A kind without a sheet of its own has the form alone, and its plan in words.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from markupsafe import Markup

from isotone.counts.count_plan import spelling
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.curves.problem import FINE
from isotone.desk.drafts import Draft
from isotone.desk.figures import Goal, budget_for, count_accuracy, order_picture
from isotone.desk.folder import Root
from isotone.desk.forms import Entry, form_of, require_columns
from isotone.desk.outline import Outline, can_be_written, read_outline, write_outline
from isotone.desk.words import FormError, number
from isotone.errors import IsotoneError
from isotone.order import Poset
from isotone.reading.grids import Cells, Points
from isotone.release.kinds.counts.description import Counts, CountStatistic
from isotone.release.kinds.curve.description import Curve
from isotone.release.kinds.kind import BESIDE, SECTIONS, Stamp, described_by
from isotone.release.kinds.series.description import Series
from isotone.release.kinds.table.description import Table, TableEntries
from isotone.release.result import Release
from isotone.release.spec import Spec
from isotone.release.whatif import epsilon_for

SIMULATED = Stamp(0, "2000-01-01T00:00:00+00:00", "simulated")
"""What stands in the place of a charge."""
USUAL = 100
"""The guess for a count that nobody guessed."""
_RECORDS = 1000
"""How many records the preview of a curve has."""


class Sheet:
    """The form, the accuracy and the preview of one kind of release, here of one that the desk knows nothing more about."""

    first: ClassVar[tuple[str, ...]] = ()
    """Entries that are asked for beside those that are required. All others have a default, and are folded."""
    needed: ClassVar[tuple[str, ...]] = ()
    """Those of them that are not said to be empty as a rule: they, or another entry in their place, are required."""
    left: ClassVar[tuple[str, ...]] = ()
    """Entries of its section that no field asks for."""
    answers: ClassVar[tuple[str, ...]] = ()
    """Entries of ``data`` that belong to it."""
    previews: ClassVar[bool] = False
    """Whether the report can be shown before a release."""
    usual: ClassVar[int | None] = None
    """How many records an error is for until somebody guesses."""
    guessable: ClassVar[bool] = False
    """Whether guessed counts change a picture."""
    has_order: ClassVar[bool] = False
    """Whether an order is described, which an outline shows and a questionnaire gives."""
    question: ClassVar[str] = "What is released?"
    """The heading of its form."""
    outline: ClassVar[str] = ""
    """How its order is typed."""
    name: str = ""
    about: str = ""
    """What it is, in a sentence for people who choose; by default what its class says."""

    def __init__(self, key: str) -> None:
        self.key = key
        """The section of the spec."""
        self.name = self.name or key.replace("_", " ").capitalize()
        self.about = self.about or (described_by(SECTIONS[key]).__doc__ or "").strip().partition("\n")[0]

    def begun(self, stem: str) -> dict[str, Any]:
        """The sections of a new draft, whose spec is called ``stem``."""
        del stem
        return {self.key: {}}

    def commands(self, draft: Draft) -> list[str]:
        """What does the same on the command line, up to the published folder."""
        spec = shlex.quote(draft.name)
        return [f"isotone plan {spec}", f"isotone release {spec}"]

    def python(self, draft: Draft) -> str:
        """What does the same in Python."""
        return f"release = isotone.load_spec({draft.name!r}).release()"

    def entries(self) -> list[Entry]:
        """The parameters that its form asks for."""
        own = [entry for name, entry in form_of(self.key).items() if name not in self.left]
        return [*own, *(form_of("data")[name] for name in self.answers)]

    def is_first(self, entry: Entry) -> bool:
        """Whether an entry is not folded."""
        return entry.required or (entry.section == self.key and entry.name in self.first)

    def write(self, draft: Draft, entry: Entry) -> str:
        """An entry of a draft as it is typed."""
        return entry.write(draft.section(entry.section).get(entry.name))

    def read(self, entry: Entry, text: str) -> Any:
        """What was typed for an entry."""
        return entry.read(text)

    def typed(self, draft: Draft, root: Root) -> dict[str, str]:
        """Every field of the form as the draft has it."""
        del root
        return {entry.id: self.write(draft, entry) for entry in self.entries()}

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """Put what was typed into the draft. Fields that were not sent stay as they are."""
        for entry in self.entries():
            if entry.id in form:
                draft.change(entry.section, **{entry.name: self.read(entry, form[entry.id])})

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str]) -> dict[str, Any]:
        """What its part of the page shows beside the fields."""
        del draft, root, typed
        return {}

    def columns(self, draft: Draft) -> list[str]:
        """The columns of the data that it reads."""
        return [
            name
            for entry in self.entries()
            for name in entry.columns(draft.section(entry.section).get(entry.name))
        ]

    def require(self, draft: Draft, root: Root) -> None:
        """Refuse what a release would refuse, where it is typed."""
        spec = draft.spec(root)
        problems = require_columns(self.columns(draft), draft.columns(root))
        if problems:
            raise FormError("\n".join(problems))
        self.require_whole(spec)

    def require_whole(self, spec: Spec) -> None:
        """Refuse what the spec allows and a release of this kind would not."""
        spec.job  # noqa: B018 (it is made, and what is wrong refused)

    def look(self, draft: Draft, form: Mapping[str, str]) -> Markup:
        """A piece of a page about what was typed so far."""
        del draft, form
        return Markup()

    def accuracy(self, spec: Spec, form: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What the accuracy screen shows of what it can. Nothing is read and nothing is spent."""
        del guesses
        typed, records = _records(form)
        plan = spec.plan(records=records or self.usual)
        if plan.view is None:
            return {"text": plan.plain()["text"]}
        lines = plan.view.lines()
        columns = [place for place in range(len(lines[0])) if any(row[place] for row in lines[1:])]
        lines = [[row[place] for place in columns] for row in lines]
        shown = {"lines": lines, "remark": plan.view.remark, "records": typed}
        return {"text": f"{plan.view.title}.", **shown}

    def budget(self, spec: Spec, form: Mapping[str, str]) -> str:
        """The least budget for an error that is asked for, as text for the spec."""
        raise FormError("For this kind of release a budget gives an error, and not the other way round.")

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """A release as it might be, from guesses and simulated noise."""
        raise FormError("There is no preview of the report for this kind of release.")


def _records(form: Mapping[str, str]) -> tuple[str, int | None]:
    """The guessed number of records, as it was typed and as a number."""
    typed = form.get("records", "").replace(",", "").strip()
    if typed and (not (typed.isascii() and typed.isdigit()) or not 0 < int(typed[:12]) < 10**10):
        raise FormError("The number of records is a whole number, guessed without the data.")
    return typed, int(typed) if typed else None


# Counts over a partial order.

_SHAPE = ("elements", "relations", "parents", "file", "lower", "upper", "choice", "children", "relaxation")
_TOTAL, _ALL = "total", "all"


class CountsSheet(Sheet):
    """An outline of questions, where indenting means that a question is asked only after a yes."""

    name: str = "Counts"
    about: str = "How many say yes to each question of a questionnaire, or have each item of a list or of a hierarchy; by region, sex and the like."
    has_order: ClassVar[bool] = True
    previews: ClassVar[bool] = True
    guessable: ClassVar[bool] = True
    question: ClassVar[str] = "Which questions, and which depend on which?"
    outline: ClassVar[str] = (
        "One name on each line, as in the columns of the data. Indent a question that is asked only after a yes to the one above it."
    )
    first: ClassVar[tuple[str, ...]] = ("by", "margins")
    left: ClassVar[tuple[str, ...]] = _SHAPE
    answers: ClassVar[tuple[str, ...]] = (
        "yes",
        "no",
        "missing",
        "element",
        "columns",
        "on_violation",
        "on_conflict",
    )

    def is_first(self, entry: Entry) -> bool:
        """Also the words for yes."""
        return super().is_first(entry) or entry.id == "data.yes"

    def write(self, draft: Draft, entry: Entry) -> str:
        """Words for yes on one line, and margins in words."""
        value = draft.section(entry.section).get(entry.name)
        if entry.id == "order.margins":
            return write_margins(value or ())
        if entry.id == "order.by" and value:  # pairs, whose sequence matters
            by: list[tuple[str, Any]] = list(value.items() if isinstance(value, Mapping) else value)
            value = {
                name: dict(held) if isinstance(held, list) and isinstance(held[0], list) else held
                for name, held in by
            }
        return super().write(replace(draft, entries={entry.section: {entry.name: value}}), entry)

    def read(self, entry: Entry, text: str) -> Any:
        """Margins have words of their own. A finer level is kept as pairs, since the sequence of attributes matters."""
        if entry.id == "order.margins":
            return read_margins(text)
        result = super().read(entry, text)
        if entry.id != "order.by" or result is None:
            return result
        if not isinstance(result, dict):
            raise FormError("Attributes are typed as 'name: value, value', one on each line.")
        # a table inside a table would be written after the lists, and their sequence matters
        return {
            name: [list(pair) for pair in held.items()] if isinstance(held, dict) else held
            for name, held in result.items()
        }

    def typed(self, draft: Draft, root: Root) -> dict[str, str]:
        """With the outline."""
        entries = _said(draft, root)
        return {**super().typed(draft, root), "outline": "" if entries is None else write_outline(entries)}

    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """With the outline. An order that no outline can hold, or that is in a file, stays as it is."""
        super().change(draft, form)
        if "outline" not in form:
            return
        outline = read_outline(form["outline"])
        if outline.problems:
            raise FormError("\n".join(map(str, outline.problems)))
        kept = {key: value for key, value in draft.section(Counts.key).items() if key not in _SHAPE}
        order: dict[str, Any] = {"elements": list(outline.elements)}
        if outline.relations:
            order["relations"] = [list(pair) for pair in outline.relations]
        if outline.children:
            order["children"] = {
                name: [[kind, list(options)] for kind, options in groups]
                for name, groups in outline.children.items()
            }
        draft.entries = {**draft.entries, Counts.key: {**order, **kept}}
        draft.ask(outline.elements)

    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str]) -> dict[str, Any]:
        """The outline with its picture."""
        entries = _said(draft, root)
        fixed = entries is not None and (not can_be_written(entries) or "file" in draft.section(Counts.key))
        outline = read_outline(typed.get("outline", ""))
        drawn = entries if fixed else _order(outline)
        return {
            "fixed": fixed,
            "look": Markup() if drawn is None else order_picture(drawn, draft.labels),
            "labels": draft.labels,
        }

    def columns(self, draft: Draft) -> list[str]:
        """Those of the questions, or the one that names elements; and those of the groups."""
        order, data, asked = draft.section(Counts.key), draft.section("data"), draft.section("questions")
        said = order.get("by") or {}
        by: list[tuple[str, Any]] = list(said.items() if isinstance(said, Mapping) else said)
        finer = [bool(held) and (isinstance(held, Mapping) or isinstance(held[0], list)) for _, held in by]
        # a coarser level follows from the finer one behind it, and has no column
        groups = [str(name) for (name, _), behind in zip(by, [*finer[1:], False], strict=False) if not behind]
        if data.get("element"):
            return [data["element"], *groups]
        named = data.get("columns") or {}
        questions = [
            str(asked.get(x, {}).get("column") or named.get(x, x))
            for x in [*order.get("elements", ()), *asked]
            if not asked.get(x, {}).get("any_of")
        ]
        return [*questions, *groups]

    def require_whole(self, spec: Spec) -> None:
        """Lists and margins are checked. The mechanism, which may take long to find, waits for its screen."""
        spec.description  # noqa: B018 (it is made, and what is wrong refused)

    def look(self, draft: Draft, form: Mapping[str, str]) -> Markup:
        """The diagram of the outline, and its problems."""
        outline = read_outline(form.get("outline", ""))
        P = _order(outline)
        items = Markup("").join(Markup("<li>{}</li>").format(str(problem)) for problem in outline.problems)
        problems = Markup('<ul class="problems">{}</ul>').format(items) if items else Markup()
        if P is None:
            return problems
        return (
            problems
            + Markup("<p>{}</p>").format(spelling(P)) * bool(spelling(P))
            + order_picture(P, draft.labels)
        )

    def accuracy(self, spec: Spec, form: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """The error of every count, in both directions, or of each margin."""
        described = _counts(spec)
        if not described.is_breakdown:
            return count_accuracy(spec, Goal.of(form), guesses)
        job, half, breakdown = spec.job, _widest(spec), described.breakdown
        margins = zip(breakdown.margins, job.known.sd, job.known.half, strict=True)
        rows = [
            {"name": breakdown.label(margin), "label": "", "guess": None,
             "sd": float(np.sqrt(np.mean(sd**2))), "half": float(np.max(width))}
            for margin, sd, width in margins
        ]  # fmt: skip
        level = f"{100 * described.confidence:g} %"
        words = f"every number by itself stays within ± {half:,.0f} of the truth, {level} of the time."
        return {"half": float(f"{half:.4g}"), "rows": rows, "plan": spec.plan().view, "words": words}

    def budget(self, spec: Spec, form: Mapping[str, str]) -> str:
        """The least budget of the mechanism that releases."""
        if not _counts(spec).is_breakdown:
            return budget_for(spec, Goal.of(form), form.get("error", ""))
        expected = number(form.get("error", ""), "The error")
        answer = epsilon_for(spec, expected, _counts(spec).confidence)
        return f"{answer.get('rho', answer.get('epsilon')):g}"

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """The guesses with noise from a seeded generator; in a breakdown in equal parts."""
        query, described = spec.job, _counts(spec)
        counts = np.array([guesses.get(str(x), USUAL) for x in described.P.elements], dtype=np.int64)
        groups = 1 if described.groups is None else described.groups.size
        if described.is_breakdown:
            each = np.tile(-(-counts // groups), (groups, 1))
            return query.publish(query.draw(CountStatistic(each, counts[:0])), SIMULATED)
        if isinstance(query.mechanism, FixedRootMechanism):
            counts = query.mechanism.with_root(counts)
        noise = np.asarray(query.mechanism.simulate_released(groups, np.random.default_rng(1)))
        totals = np.full(groups if described.total else 0, max(counts, default=0), dtype=np.int64)
        drawn = CountStatistic((counts + noise).astype(np.int64), totals)
        return query.publish(drawn, SIMULATED)


def read_margins(text: str) -> list[Any] | None:
    """The tables to release, one on each line. Names with commas between them, ``total`` or ``all``."""
    result: list[Any] = []
    for line in text.splitlines():
        names = [name.strip() for name in line.split(",") if name.strip()]
        if names:
            result.append({_TOTAL: "", _ALL: "*"}.get(names[0], names[0]) if len(names) == 1 else names)
    return result or None


def write_margins(margins: Sequence[Any]) -> str:
    """The lines of margins."""
    words = {"": _TOTAL, "*": _ALL}
    return "\n".join(words.get(m, m) if isinstance(m, str) else ", ".join(m) for m in margins)


def _counts(spec: Spec) -> Counts:
    described = spec.description
    assert isinstance(described, Counts)
    return described


def _widest(spec: Spec) -> float:
    """The half-width of the number that is known worst."""
    return max(float(np.max(width)) for width in spec.job.known.half)


def _said(draft: Draft, root: Root) -> Poset | None:
    """The order of the draft, whatever else is missing."""
    shape = {name: value for name, value in draft.section(Counts.key).items() if name in _SHAPE}
    rest = {name: value for name, value in draft.entries.items() if name not in SECTIONS}
    data = {"path": "data.csv", **draft.section("data")}
    try:
        return replace(draft, entries={**rest, "data": data, Counts.key: shape}).spec(root).poset
    except IsotoneError:
        return None


def _order(outline: Outline) -> Poset | None:
    try:
        return outline.order() if outline.elements else None
    except IsotoneError:
        return None


class TableSheet(Sheet):
    """A public list of categories and the largest count."""

    name: str = "A table"
    about: str = "How many there are in each of many categories, such as regions."
    previews: ClassVar[bool] = True
    guessable: ClassVar[bool] = True
    question: ClassVar[str] = "Which categories?"
    first: ClassVar[tuple[str, ...]] = ("category", "categories", "upper")
    needed: ClassVar[tuple[str, ...]] = ("categories",)

    def entries(self) -> list[Entry]:
        """The column of the categories before their list."""
        return sorted(super().entries(), key=lambda entry: (*self.first, entry.name).index(entry.name))

    def accuracy(self, spec: Spec, form: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What mechanisms are expected to lose on a table of the guessed shape."""
        shape = spec.section_of_type(TableEntries).shape
        within = _table(spec).within(spec.guarantee, shape)
        words = f"95 % of the counts are expected within ± {within} of the truth, if the table is {shape}."
        return {"half": within, "plan": spec.plan().view, "words": "" if within is None else words}

    def budget(self, spec: Spec, form: Mapping[str, str]) -> str:
        """The least budget at which 95 % of the counts are expected within the error, to three digits."""
        expected = number(form.get("error", ""), "The error")
        if _table(spec).counts is not None:
            return super().budget(spec, form)
        answer = epsilon_for(spec, expected)
        return f"{answer.get('rho', answer.get('epsilon')):g}"

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """The guesses with noise."""
        query = spec.job
        usual = min(USUAL, query.source.upper)
        columns = 2 if _table(spec).counts else 1
        counts = columns * [
            min(guesses.get(name, usual), query.source.upper) for name in query.source.categories
        ]
        return query.publish(query.draw(np.array(counts, dtype=np.int64)), SIMULATED)


def _table(spec: Spec) -> Table:
    described = spec.description
    assert isinstance(described, Table)
    return described


class CurveSheet(Sheet):
    """A curve over one column, or a surface over two."""

    name: str = "A curve or a surface"
    about: str = "How one number rises or falls with another, such as risk with age; or with two others, such as risk with age and weight."
    previews: ClassVar[bool] = True
    question: ClassVar[str] = "Which curve?"
    first: ClassVar[tuple[str, ...]] = ("x", "y", "bounds", "y_range", "y_values", "yes", "increasing")
    needed: ClassVar[tuple[str, ...]] = ("y_range",)

    def entries(self) -> list[Entry]:
        """x and y before what is said of them."""
        return sorted(super().entries(), key=lambda entry: (*self.first, entry.name).index(entry.name))

    def accuracy(self, spec: Spec, form: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What methods are expected to lose, for a guessed number of records."""
        typed, records = _records(form)
        plan = spec.plan(records=records).plain()
        sentence, methods = plan["text"].partition("\n")[0], plan.get("rows", [])
        squared = bool(methods) and getattr(spec.description, "loss", "") == "squared"
        off = (
            f"The curve is then off by about {methods[0]['excess'] ** 0.5:.2g}: the root of the first excess."
            if squared
            else ""
        )
        asked_for: dict[str, str] = (
            {} if getattr(spec.description, "is_surface", False) else {"records": typed}
        )
        return {"text": sentence, "methods": methods, "off": off, **asked_for}

    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """A straight line or a plane, with noise."""
        query, described = spec.job, spec.description
        if getattr(described, "is_surface", False):
            bins = np.array(list(product(*map(range, query.source.bins))), dtype=np.int64)
            share = bins / np.maximum(np.array(query.source.bins) - 1, 1)
            height = np.where(query.mechanism.settings["directions"], share, 1 - share).mean(axis=1)
            y = np.round(height * FINE).astype(np.int64)
            count = np.full(len(bins), max(1, _RECORDS // len(bins)), dtype=np.int64)
            return query.publish(query.draw(Cells(bins, y, count)), SIMULATED)
        steps = query.mechanism.problem.points - 1
        x = np.unique(np.linspace(0, steps, min(50, steps + 1)).astype(np.int64))
        y = x * FINE // max(steps, 1)
        rising = y if query.mechanism.settings["increasing"] else FINE - y
        if query.source.labels:
            rising = np.where(2 * rising >= FINE, FINE, 0)
        count = np.full(len(x), max(1, _RECORDS // len(x)), dtype=np.int64)
        return query.publish(query.draw(Points(x, rising, count)), SIMULATED)


class SeriesSheet(CountsSheet):
    """An outline of stages, and the periods that are planned."""

    name: str = "Counts over time"
    about: str = "How many have reached each stage, such as a dose or a licence, week by week on one budget. People move on and never go back."
    previews: ClassVar[bool] = False
    guessable: ClassVar[bool] = False
    question: ClassVar[str] = "Which stages, and which periods?"
    outline: ClassVar[str] = (
        "One stage on each line, as the data names it. Indent a stage that is reached only after the one above it."
    )
    needed: ClassVar[tuple[str, ...]] = ("secrets",)
    first: ClassVar[tuple[str, ...]] = ("periods", "secrets")
    left: ClassVar[tuple[str, ...]] = ()
    answers: ClassVar[tuple[str, ...]] = ("element", "yes", "no", "missing", "columns")

    def begun(self, stem: str) -> dict[str, Any]:
        """With the usual folder of secrets, and the order beside it."""
        return {self.key: {"secrets": f"{stem}-secrets"}, BESIDE[self.key]: {}}

    def commands(self, draft: Draft) -> list[str]:
        """Open once, and close each period."""
        if not is_live(draft):
            return super().commands(draft)
        plan, spec = super().commands(draft)[0], shlex.quote(draft.name)
        return [plan, f"isotone series open {spec}", f"isotone series close {spec} --period NAME"]

    def python(self, draft: Draft) -> str:
        """The series of the spec."""
        if not is_live(draft):
            return super().python(draft)
        return f"series = isotone.load_spec({draft.name!r}).over_time\nseries.open()\nseries.close('NAME')"

    def entries(self) -> list[Entry]:
        """With the groups, which stand beside the order."""
        own = sorted(super().entries(), key=lambda entry: (*self.first, entry.name).index(entry.name))
        return [*own, form_of(Counts.key)["by"]]

    def is_first(self, entry: Entry) -> bool:
        """Also the column of the stages."""
        return super().is_first(entry) or entry.id == "data.element"

    def read(self, entry: Entry, text: str) -> Any:
        """Periods as they are typed: one that stands twice is refused, and not passed over."""
        if entry.id != "series.periods":
            return super().read(entry, text)
        lines = text.strip().splitlines()
        return [name.strip() for name in (lines if len(lines) > 1 else text.split(",")) if name.strip()]

    def require(self, draft: Draft, root: Root) -> None:
        """Also a folder for the secrets, where periods are shown one by one."""
        if is_live(draft) and not draft.section(self.key).get("secrets"):
            raise FormError(
                "Name the folder for the secrets or, for a series of the past, the column of the day."
            )
        super().require(draft, root)

    def accuracy(self, spec: Spec, form: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What the plan says."""
        shown = Sheet.accuracy(self, spec, form, guesses)
        return {name: held for name, held in shown.items() if name != "records"}

    def budget(self, spec: Spec, form: Mapping[str, str]) -> str:
        """Refused: which mechanism is best depends on the budget."""
        return Sheet.budget(self, spec, form)


class DistributionSheet(Sheet):
    """How a number is distributed."""

    name: str = "A distribution"
    about: str = "How a number is spread over people, such as an income or a waiting time: the median, any other quantile, and the share between two values."
    question: ClassVar[str] = "Which number?"
    usual: ClassVar[int | None] = 10_000
    first: ClassVar[tuple[str, ...]] = ("by",)


class SurvivalSheet(Sheet):
    """A survival curve."""

    name: str = "Survival"
    about: str = "How long it takes until something happens, such as a death or a relapse, when not everybody was followed until it."
    question: ClassVar[str] = "Which time, and which event?"
    usual: ClassVar[int | None] = 10_000
    first: ClassVar[tuple[str, ...]] = ("yes", "no", "by")


_OWN: dict[str, type[Sheet]] = {
    Counts.key: CountsSheet,
    Series.key: SeriesSheet,
    Table.key: TableSheet,
    Curve.key: CurveSheet,
    "distribution": DistributionSheet,
    "survival": SurvivalSheet,
}


def is_live(draft: Draft) -> bool:
    """Whether a series is shown period by period, and is not of the past."""
    section = draft.section(Series.key)
    return bool(section) and not section.get("date")


def all_sheets() -> tuple[Sheet, ...]:
    """A sheet for each kind of release, by its section."""
    return tuple(map(sheet_named, [*_OWN, *(key for key in SECTIONS if key not in _OWN)]))


def sheet_named(key: str) -> Sheet:
    """The sheet of a section."""
    if key not in SECTIONS:
        raise FormError("Choose what to release.")
    return _OWN.get(key, Sheet)(key)


def sheet_of(draft: Draft) -> Sheet:
    """The sheet of a draft."""
    for key in SECTIONS:
        if key in draft.entries:
            return sheet_named(key)
    raise FormError("This spec does not say what is released. Name its section in a text editor.")


def sheet_for(spec: Spec) -> Sheet:
    """The sheet of a spec."""
    return sheet_named(spec.key)
