"""Attributes and margins of a breakdown, as one types them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from isotone.counts.fixed_root import FixedRootMechanism
from isotone.curves.grids import FINE
from isotone.desk.drafts import Draft
from isotone.desk.figures import Goal, budget_for, count_accuracy, order_picture
from isotone.desk.folder import Root
from isotone.desk.outline import Outline, Problem, can_be_written, read_outline, write_outline
from isotone.desk.words import FormError, number
from isotone.errors import IsotoneError
from isotone.order import Poset
from isotone.reading.grids import Cells, Points
from isotone.release.kinds.counts.description import Counts, CountStatistic
from isotone.release.kinds.kind import Stamp
from isotone.release.kinds.table.description import Table, TableEntries
from isotone.release.pipeline import Job
from isotone.release.result import Release
from isotone.release.spec import Spec
from isotone.tables.plan import expected_errors

__all__ = [
    "SHEETS",
    "SIMULATED",
    "USUAL",
    "BreakdownSheet",
    "CountsSheet",
    "CurveSheet",
    "Sheet",
    "SurfaceSheet",
    "TableSheet",
    "default_margins",
    "least_budget",
    "read_attributes",
    "read_margins",
    "sheet_for",
    "sheet_named",
    "sheet_of",
    "write_attributes",
    "write_margins",
]


_TOTAL, _ALL = "total", "all"


def read_attributes(text: str) -> dict[str, Any]:
    """The names and lists of attributes, one on each line.

    >>> read_attributes("state: north, south\\ncounty: n1 = north, s1 = south")
    {'state': ['north', 'south'], 'county': {'n1': 'north', 's1': 'south'}}
    """
    groups: dict[str, Any] = {}
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, listed = (part.strip() for part in line.partition(":"))
        values = [value.strip() for value in listed.split(",") if value.strip()]
        if not name or not colon or not values or name in groups:
            raise FormError(f"Line {place} of the attributes is not a new name, ':' and a list of values.")
        finer = [value.partition("=") for value in values]
        if any(sign for _, sign, _ in finer) and not all(a.strip() and b.strip() for a, _, b in finer):
            raise FormError(f"Line {place} of the attributes says of some values only where they belong.")
        groups[name] = {a.strip(): b.strip() for a, _, b in finer} if finer[0][1] else values
    if not groups:
        raise FormError("Name at least one attribute, with its public list of values.")
    return groups


def write_attributes(by: Mapping[str, Any]) -> str:
    """The lines of attributes."""
    lines: list[str] = []
    for name, held in by.items():
        pairs = isinstance(held, list) and bool(held) and isinstance(held[0], list)
        values: Any = dict(held) if pairs else held
        listed = (
            [f"{a} = {b}" for a, b in values.items()] if isinstance(values, Mapping) else map(str, values)
        )
        lines.append(f"{name}: {', '.join(listed)}")
    return "\n".join(lines)


def read_margins(text: str) -> list[Any] | None:
    """The tables to release, one on each line. Names with commas between them, ``total`` or ``all``."""
    found: list[Any] = []
    for line in text.splitlines():
        names = [name.strip() for name in line.split(",") if name.strip()]
        if names:
            found.append({_TOTAL: "", _ALL: "*"}.get(names[0], names[0]) if len(names) == 1 else names)
    return found or None


def default_margins(names: Sequence[str]) -> list[Any]:
    """The total, each attribute alone, and all together."""
    return ["", *names, *(["*"] if len(names) > 1 else [])]


def write_margins(margins: Sequence[Any]) -> str:
    """The lines of margins."""
    words = {"": _TOTAL, "*": _ALL}
    return "\n".join(words.get(m, m) if isinstance(m, str) else ", ".join(m) for m in margins)


# What the screens ask of a kind of release.

SIMULATED = Stamp(0, "2000-01-01T00:00:00+00:00", "simulated")
"""What stands in the place of a charge."""


class Sheet(ABC):
    """The second screen, the accuracy and the preview of one kind of release."""

    id: ClassVar[str]
    """What people choose."""
    key: ClassVar[str]
    """The section of the spec."""
    first: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """What that section holds in a new draft."""
    name: ClassVar[str]
    about: ClassVar[str]
    """What it is, in a sentence for people who choose."""
    template: ClassVar[str]
    """The template of the second screen."""

    def holds(self, section: Mapping[str, Any]) -> bool:
        """Whether it is the sheet for what the section asks for."""
        del section
        return True

    @abstractmethod
    def change(self, draft: Draft, form: Mapping[str, str]) -> None:
        """Put what was typed into the draft, or refuse all of it."""

    @abstractmethod
    def shown(self, draft: Draft, root: Root, typed: Mapping[str, str] | None) -> dict[str, Any]:
        """What the template of the second screen shows. ``typed`` is a form that was refused."""

    def require(self, spec: Spec) -> None:
        """Refuse what the spec allows and a release of this kind would not."""
        spec.job  # noqa: B018 (it is made, and what is wrong refused)

    def look(self, draft: Draft, form: Mapping[str, str]) -> str:
        """A piece of a page about what was typed so far."""
        del draft, form
        return ""

    @abstractmethod
    def accuracy(self, spec: Spec, asked: Mapping[str, str], guesses: Mapping[str, int]) -> dict[str, Any]:
        """What the accuracy screen shows of what it can. Nothing is read and nothing is spent."""

    def budget(self, spec: Spec, asked: Mapping[str, str]) -> str:
        """The least budget for an error that is asked for, as text for the spec."""
        raise FormError("For this kind of release a budget gives an error, and not the other way round.")

    @abstractmethod
    def preview(self, spec: Spec, guesses: Mapping[str, int]) -> Release:
        """A release as it might be, from guesses and simulated noise."""


# Counts over a partial order.

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


# The least budget for an error, where no formula gives it.

_LEAST, _MOST = 1e-3, 20.0


def least_budget(spec: Spec, is_enough: Callable[[Spec], bool]) -> str:
    """The least ε or ρ between 0.001 and 20 that is enough, to three digits and within 2 %, as text for the spec."""
    low, high = _LEAST, _MOST
    # another kind of noise, with wider intervals, may be the best at a larger budget: then a smaller one is tried
    while not is_enough(_with(spec, high)):
        high /= 2
        if high < low:
            raise FormError(f"Not even a budget of {_MOST:g} keeps within this error.")
    while high > low * 1.02:
        middle = float(f"{math.sqrt(low * high):.2e}")
        low, high = (low, middle) if is_enough(_with(spec, middle)) else (middle, high)
    return f"{high:g}"


def _with(spec: Spec, budget: float) -> Spec:
    name = "epsilon" if spec.privacy.rho is None else "rho"
    return spec.model_copy(update={"privacy": spec.privacy.model_copy(update={name: f"{budget:g}"})})


# Counts over a partial order, by region, sex and the like.


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
        query, half, found = _query(spec), _widest(spec), _broken_down(spec).breakdown
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
        query, described = _query(spec), _broken_down(spec)
        groups = described.groups
        assert groups is not None
        cells = int(np.prod([len(values) for _, values in groups.lists]))
        counts = np.array([guesses.get(str(x), USUAL) for x in described.P.elements], dtype=np.int64)
        each = np.tile(-(-counts // cells), (groups.size, 1))
        return query.publish(query.draw(CountStatistic(each, counts[:0])), SIMULATED)


def _query(spec: Spec) -> Job:
    if not _broken_down(spec).is_breakdown:
        raise FormError("Name the attributes, with their public lists of values.")
    return spec.job


def _broken_down(spec: Spec) -> Counts:
    described = spec.description
    assert isinstance(described, Counts)
    return described


def _widest(spec: Spec) -> float:
    """The half-width of the number that is known worst."""
    return max(float(np.max(width)) for width in _query(spec).known.half)


# A monotone curve.

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


# A surface that is monotone in two columns.

_FIELDS = ("x", "low", "high", "x2", "low2", "high2", "y", "least", "most")
_USUAL_CELLS = 1000
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
        count = np.full(len(bins), max(1, _USUAL_CELLS // len(bins)), dtype=np.int64)
        return query.publish(query.draw(Cells(bins, y, count)), SIMULATED)


# A table of counts.


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


# What the desk knows about each kind of release, a file for each.

SHEETS: tuple[Sheet, ...] = (CountsSheet(), BreakdownSheet(), TableSheet(), CurveSheet(), SurfaceSheet())


def sheet_named(id: str) -> Sheet:
    """The sheet that people choose by ``id``."""
    for sheet in SHEETS:
        if sheet.id == id:
            return sheet
    raise FormError("Choose what to release.")


def sheet_of(draft: Draft) -> Sheet:
    """The sheet of a draft."""
    return _sheet({key: draft.section(key) for key in draft.entries})


def sheet_for(spec: Spec) -> Sheet:
    """The sheet of a spec."""
    return _sheet({spec.key: spec.section.given()})


def _sheet(sections: Mapping[str, Mapping[str, Any]]) -> Sheet:
    for sheet in SHEETS:
        if sheet.key in sections and sheet.holds(sections[sheet.key]):
            return sheet
    raise FormError("The desk has no screen for this kind of release yet. Use the command line.")
