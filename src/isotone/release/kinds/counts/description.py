"""Counts of yes answers over a partial order, one number for each element, for each public group, or in margins that add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from isotone.counts.breakdown import Breakdown, read_breakdown
from isotone.counts.count_plan import Setting, choose_mechanism, count_mechanism
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.margins import MarginsMechanism, importance_of, margins_mechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.mechanism import HasGroups
from isotone.order import Poset
from isotone.order.closure import read_children
from isotone.planning import least_budget
from isotone.privacy.checks import did_you_mean, exact, plain_text, positive, shown, whole_number
from isotone.privacy.guarantee import Guarantee, adjacency
from isotone.reading.columns import public_texts
from isotone.reading.contributions import Groups
from isotone.reading.questions import Question, implied
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.release.description import (
    Amount,
    Answers,
    AnswersLike,
    Description,
    FrozenMapping,
    Listed,
    Section,
    Size,
    Text,
    Truth,
    Unit,
    described,
    gathered,
)
from isotone.release.kinds.counts.columns import (
    TOO_WIDE,
    LawEntry,
    WavesEntry,
    breakdown_columns,
    count_columns,
    known_errors,
    law_entry,
    margins_recipe,
    original_columns,
    planned_waves,
    waves_entry,
)
from isotone.release.manifest import (
    Manifest,
    column_name,
    guarantee_from,
    order_from,
    order_to,
    public_names,
    rebuild_count_mechanism,
    recipe_of,
    require_writable,
    thinned,
)
from isotone.release.order_files import read_order, read_relaxation
from isotone.release.result import seal

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.mechanism import Progress
    from isotone.planning import Plan
    from isotone.reading.sources import Frame
    from isotone.release.kinds.kind import Stamp
    from isotone.release.pipeline import Job
    from isotone.release.result import Release

RESERVED = ("margin", "element", "value", "sd", "low", "high", "raw")
"""Columns of a breakdown, which no attribute may be called."""
_REHEARSED, _AROUND = 100_000, 8
"""Numbers that a rehearsal writes, and the characters around one in a manifest."""
_ONE_WAY = "give the order in one way: elements (and relations), or parents, or file"


@dataclass(frozen=True, kw_only=True)
class CountManifest(Manifest):
    """The manifest of counts. ``total`` is the noisy number of records, one for each group where there are groups."""

    name: ClassVar[str] = "counts"
    of_one_draw: ClassVar[frozenset[str]] = frozenset(
        {"total", "total_sd", "law", "consistent", "derived", "waves"}
    )
    """The entries about one draw, which several that are combined do not have."""

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "total": "The noisy number of records, one for each group where there are groups; absent unless asked for.",
        "total_sd": "The standard deviation of total.",
        "law": "How half-widths were found where they have no closed form: public draws of the noise, and the rank taken.",
        "measured": "For margins: the noisy integers that were drawn for each, cell after cell; empty if it was not measured.",
        "waves": "How many releases like this one are planned, and what all of them guarantee together; absent for one alone.",
        "derived": "How the values were derived from other releases, and those releases; absent for values as drawn.",
    }

    total: int | float | list[int] | list[float] | None = None
    total_sd: float | None = None
    law: LawEntry | None = None
    measured: list[list[int]] | None = None
    waves: WavesEntry | None = None
    derived: dict[str, Any] | None = None

    @property
    def text_columns(self) -> frozenset[str]:
        """The element, the group, the margin and its attributes."""
        by = (self.description or {}).get("by")
        named = (
            {str(pair[0]) for pair in cast("list[Any]", by) if pair} if isinstance(by, list) else set[str]()
        )
        return frozenset({"element", *(({"margin"} | named) if self.measured is not None else {"group"})})


class CountStatistic(NamedTuple):
    """Counts, one row per group, and the number of records of each group."""

    counts: NDArray[np.int64]
    records: NDArray[np.int64]


class OrderEntries(Section):
    """``[order]``: counts over a partial order, given here or in a file. Questions are elements of it."""

    elements: list[str] | None = None
    """The names, with relations; their sequence is that of the release."""
    relations: list[Annotated[tuple[str, str], Listed]] | None = None
    """Pairs [lower, upper]: a yes to lower implies a yes to upper."""
    parents: dict[str, str | list[str]] | None = None
    """The same as a table: name = "what it implies", or a list of them. Other names become elements too."""
    file: Text | None = None
    """The same in a file: .csv with a line per relation, or .json or .toml with such a table."""
    lower: Text = "child"
    """In a CSV file: the column of the lower element, the one that implies."""
    upper: Text = "parent"
    """In a CSV file: the column of the upper element, the one that is implied."""
    choice: Text | None = None
    """In a CSV file: the column that says "exclusive" or "partition" for options of one upper element."""
    children: str | dict[str, str | list[Annotated[tuple[str, list[str]], Field(strict=False)]]] | None = None
    """What can occur together among the children of an element: "any", "exclusive" or "partition"; or a table by element."""
    relaxation: Text | None = None
    """A JSON file with what a search found for an order out of reach, or the manifest of a release that has it."""

    @property
    def ways(self) -> int:
        """In how many ways the order is given."""
        return sum([self.file is not None, self.parents is not None, self.elements is not None])

    @model_validator(mode="after")
    def _one_source(self) -> OrderEntries:
        if self.ways > 1:
            raise ValueError(_ONE_WAY)
        if self.choice is not None and (self.file is None or self.children is not None):
            raise ValueError("choice is a column of a CSV file of the order, and stands in place of children")
        return self

    def complete(self, questions: bool) -> None:
        """Refuse a section without an order, unless questions name its elements."""
        if not self.ways and not questions:
            raise ValueError(f"order: {_ONE_WAY}")

    def order(
        self, resolve: Callable[[str], Path], questions: Mapping[str, Question], answers: Answers
    ) -> Poset:
        """The partial order. Questions are elements, too, and come first; what follows from their definitions is in it."""
        P = self._written(resolve, questions)
        more = [pair for pair in implied(questions, answers.words) if {*pair} <= {*P.elements}]
        return Poset(P.elements, [*P.covers, *more], P.choices) if more else P

    def _written(self, resolve: Callable[[str], Path], names: Iterable[str]) -> Poset:
        if self.file is not None:
            P = read_order(resolve(self.file), self.lower, self.upper, self.choice, self._children())
            elements = list(dict.fromkeys([*names, *P.elements]))
            return Poset(elements, P.covers, P.choices) if list(P.elements) != elements else P
        children = self._children() or "any"
        if self.parents is not None:
            parents = {name: above or None for name, above in self.parents.items()}
            return Poset.from_mapping({**dict.fromkeys(names), **parents}, children)
        elements, relations = self.elements or [*names], [*(self.relations or [])]
        return Poset(elements, relations, read_children(children, elements, [(a, b) for a, b in relations]))

    def _children(self) -> Any:
        """``children``, with the entry "" for the elements that have nothing above them."""
        if not isinstance(self.children, dict):
            return self.children
        return {x or None: kind for x, kind in self.children.items()}


@described
class FixedRoot:
    """The public number of records to which the root of a hierarchy is fixed, and the leaf for all that is in no other."""

    records: Annotated[
        int, Field(ge=0), BeforeValidator(lambda given: whole_number(given, "records", least=0))
    ]
    """The public number of records."""
    _: KW_ONLY
    catch_all: Annotated[Text, BeforeValidator(str)]
    """The leaf below the root for every row that is in no other."""

    @classmethod
    def of(cls, value: Any) -> Any:
        """A root from a mapping of both."""
        if isinstance(value, Mapping):
            parts = dict(cast("Mapping[str, Any]", value))
            if set(parts) != {"records", "catch_all"}:
                raise InputError(
                    "records and catch_all go together: the public number of records, and the leaf for all that is in no other."
                )
            return cls(**parts)
        if not isinstance(value, cls):
            raise InputError("root must give records and catch_all: {'records': 1000, 'catch_all': 'other'}.")
        return value


def _order(value: Any) -> Poset:
    if isinstance(value, Mapping) and {"elements", "covers"} <= {*cast("Mapping[str, Any]", value)}:
        value = order_from(cast("Mapping[str, Any]", value))
    if isinstance(value, Mapping):
        raise InputError("The order must be a Poset: Poset.from_mapping({…}) makes one of a mapping.")
    if not isinstance(value, Poset):
        raise InputError(
            f"The order must be a Poset, not a {type(value).__name__}: Poset(elements, relations) makes one."
        )
    names = [str(x) for x in value.elements]
    if not all(map(str.strip, names)):
        raise InputError("The order has an element without a name. Name it, or leave it out.")
    require_writable(names, "the order")
    return value


def _by(value: Any) -> FrozenMapping:
    """For each column its public list, or for a finer level a mapping of its values to those of the coarser one."""
    if isinstance(value, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) for pair in cast("Any", value)
    ):
        value = {
            name: dict(held) if held and not isinstance(held[0], str) else held
            for name, held in cast("Any", value)
        }
    if not isinstance(value, Mapping):
        raise InputError(f"by must map each column to the public list of its values, and is {shown(value)}.")
    result: dict[str, Any] = {}
    for name, held in cast("Mapping[Any, Any]", value).items():
        column = column_name(name, "by")
        require_writable([column], "by")
        if isinstance(held, (list, tuple)) and held and isinstance(held[0], (list, tuple)):
            held = dict(cast("Any", held))  # pairs of a value and its coarser one
        if isinstance(held, Mapping):
            values = public_names(list(cast("Mapping[Any, Any]", held)), f"by[{column!r}]")
            parents = public_names(list(cast("Mapping[Any, Any]", held).values()), f"by[{column!r}]")
            result[column] = FrozenMapping(dict(zip(values, parents, strict=True)))
        else:
            result[column] = values = public_names(() if held is None else held, f"by[{column!r}]")
        if not public_texts(values, f"by[{column!r}]"):
            raise InputError(
                f"by[{column!r}] must be a public list of distinct values with at least one entry."
            )
    if not result:
        raise InputError("by is empty: name a column, with the public list of its values.")
    return FrozenMapping(result)


def _pairs(value: Any) -> Any:
    """Weights of margins as pairs."""
    if isinstance(value, Mapping):
        value = tuple(cast("Mapping[Any, Any]", value).items())
    if not isinstance(value, (list, tuple)):
        return value
    return tuple(
        (tuple(pair[0]) if isinstance(pair[0], (list, tuple)) else pair[0], exact(pair[1], "importance"))
        if isinstance(pair, (list, tuple)) and len(cast("Any", pair)) == 2
        else pair
        for pair in cast("Any", value)
    )


def _mechanism(value: Any) -> Any:
    if value is None:
        return "best"
    return value if isinstance(value, AdditiveMechanism) else plain_text(value, "mechanism")


def _care(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    pairs = cast("Mapping[Any, Any]", value).items()
    return FrozenMapping({str(name): exact(weight, f"the weight of {name!r}") for name, weight in pairs})


def _relaxation(value: Any) -> Any:
    if not isinstance(value, Relaxation):
        raise InputError(f"relaxation must be of the type Relaxation, not {shown(value)}.")
    return value


_A_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_A_TABLE: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_A_WEIGHT = Amount.__metadata__[-1].json_schema  # pyright: ignore


def _margins(value: Any) -> Any:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise InputError(
            f'margins must be a list of margins such as ["", "region", "*"], not {shown(value)}.'
        )
    parts = cast("list[Any]", value)
    return tuple(tuple(part) if isinstance(part, (list, tuple)) else part for part in parts)  # pyright: ignore


@described
class Counts(Description):
    """Counts: how many units say yes to each element of an order.

    A yes to the lower element of a relation implies a yes to the upper one. There are values with standard deviations and
    intervals; with ``by`` one table for each group, or, for several columns or with ``margins``, tables that add up.

    >>> Counts(Poset.chain(["daily", "smokes"]), unit="person")
    Counts(Poset(['daily', 'smokes'], [('daily', 'smokes')]), unit=Unit('person'))
    """

    kind_name: ClassVar[str] = "counts"
    form: ClassVar[type[Manifest]] = CountManifest
    key: ClassVar[str] = "order"
    entries: ClassVar[type[Section]] = OrderEntries
    combines: ClassVar[bool] = True
    elsewhere: ClassVar[Mapping[str, str]] = FrozenMapping({"relaxation": "the entry mechanism"})
    refused: ClassVar[Mapping[str, str]] = FrozenMapping(
        {
            "weights": "Survey weights are refused: a weight multiplies what one person reveals, and weights are computed from the "
            "data. Release unweighted counts, and weight them afterwards with public totals."
        }
    )

    order: Annotated[Any, BeforeValidator(_order)]
    """The order: a yes to the lower element of a relation implies a yes to the upper one."""
    _: KW_ONLY
    answers: AnswersLike = Answers()
    """Where the answers are and what counts as a yes."""
    by: (
        Annotated[
            Any,
            BeforeValidator(_by),
            WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [_A_LIST, _A_TABLE]}}),
        ]
        | None
    ) = None
    """For each column of groups the public list of its values. Rows with other values are left out. One column gives a release for each group, at the price of one; several columns, or margins, give tables that add up. A finer level stands behind the coarser one, and has a table from each of its values to one of those."""
    margins: (
        Annotated[
            Any,
            BeforeValidator(_margins),
            WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": "string"}, _A_LIST]}}),
        ]
        | None
    ) = None
    """Which tables a breakdown has: "" for the total, a name of by, a list of names, or "*" for all together. By default the total, each name alone, and all together."""
    importance: (
        Annotated[
            Any,
            BeforeValidator(_pairs),
            WithJsonSchema(
                {
                    "anyOf": [
                        {"enum": ["margins", "cells"], "type": "string"},
                        {
                            "type": "array",
                            "items": {
                                "type": "array",
                                "minItems": 2,
                                "maxItems": 2,
                                "prefixItems": [{"anyOf": [{"type": "string"}, _A_LIST]}, _A_WEIGHT],
                            },
                        },
                    ]
                }
            ),
        ]
        | None
    ) = None
    """Which error of a breakdown is to be small: that of all "margins" alike (default), of all "cells", or pairs [margin, weight]. Public, so never from these data."""
    unlisted: Literal["drop", "other"] = "drop"
    """Whether a row of a breakdown with a value in no list is left out of all margins, or counted as "other"."""
    method: Annotated[
        Any,
        BeforeValidator(_mechanism),
        WithJsonSchema({"type": "string", "minLength": 1}),
        Field(alias="mechanism"),
    ] = Field(
        default="best",
        alias="mechanism",
        description='The name of a mechanism, or "best": the one that the plan puts first. In Python also a mechanism over the order.',
    )
    care: (
        Annotated[
            Any,
            BeforeValidator(_care),
            WithJsonSchema(
                {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": _A_WEIGHT}]}
            ),
        ]
        | None
    ) = None
    """Which error is to be small: "nodes", "levels" or "worst"; or a table of weights by element. Public, so never from these data; an earlier private release may fill it in."""
    relaxation: Annotated[Any, BeforeValidator(_relaxation)] | None = None
    """What :func:`isotone.counts.relax`, or an earlier release, found for an order out of reach."""
    max_size: Size | None = None
    """Records keep at most so many yeses, those nearest to the top; the noise may then be smaller."""
    root: Annotated[FixedRoot | dict[str, Any], BeforeValidator(FixedRoot.of)] | None = None
    """For a hierarchy under replace: the public number of records, to which its root is fixed, and catch_all, the leaf below the root for every row that is in no other. Every row is then a unit with one code, and nothing is dropped."""
    total: Truth = False
    """Also release the number of records, where the mechanism gives it for free."""
    waves: Annotated[Size, BeforeValidator(planned_waves)] = 1
    """How many releases at this price are planned, such as one a year. Their total stands in the manifest, and the ledger must be able to pay it."""

    def __post_init__(self) -> None:
        answers = self.answer_rules
        questions_for(self.order, answers)
        if isinstance(self.method, str) and self.method != "best":
            count_mechanism(self.method)
        if self.by is None and (
            self.margins is not None or self.importance is not None or self.unlisted != "drop"
        ):
            raise InputError(
                "margins, importance and unlisted need by=: the columns, and the public lists of their values."
            )
        if self.is_breakdown:
            for name in self.by or ():
                if name in RESERVED:
                    raise InputError(
                        f"An attribute may not be called {name!r}, like a column of the release. Rename it."
                    )
            if self.total:
                raise InputError(
                    "A breakdown has no total=True: add an element above all others to the order, and count all records there."
                )
            result = self.breakdown
            importance_of(result, self._weights)
            object.__setattr__(self, "margins", tuple(result.names(margin) for margin in result.margins))
        _ = self.rules, self.setting
        if self.root is not None or isinstance(self.method, FixedRootMechanism):
            self.require_every_place(self.privacy_unit.neighbours)

    # -- parts

    @property
    def P(self) -> Poset:  # noqa: N802 (the letter of the literature)
        """The order."""
        return self.order

    @cached_property
    def answer_rules(self) -> Answers:
        """Where answers are and what counts as a yes."""
        return cast("Answers", self.answers)

    @property
    def reading(self) -> str:
        """What is a yes where the description leaves it as usual."""
        answers = self.answer_rules
        own = any(question.has_own_rule for question in questions_for(self.P, answers).values())
        if answers.element is not None or own or answers.words != Answers().words:
            return ""
        *words, last = answers.yes
        return f"A yes is written {', '.join(words)} or {last}, and anything else is a no (yes = in [data] declares other words)."

    @property
    def fixed_root(self) -> FixedRoot | None:
        """The public number of records, and the leaf for all that is in no other."""
        return cast("FixedRoot | None", self.root)

    @cached_property
    def is_breakdown(self) -> bool:
        """Whether there are margins that add up, and not one table for each group."""
        if self.by is None:
            return False
        one_list = len(self.by) == 1 and not isinstance(next(iter(self.by.values())), Mapping)
        return (
            not one_list or self.margins is not None or self.importance is not None or self.unlisted != "drop"
        )

    @cached_property
    def breakdown(self) -> Breakdown:
        """Attributes and margins."""
        assert self.by is not None
        lists = {
            name: dict(held.items()) if isinstance(held, Mapping) else held for name, held in self.by.items()
        }
        return read_breakdown(list(lists), lists, self.margins, self.unlisted)

    @property
    def _weights(self) -> Any:
        return list(self.importance) if isinstance(self.importance, tuple) else self.importance

    @cached_property
    def importances(self) -> list[float]:
        """The weight of each margin of a breakdown."""
        return importance_of(self.breakdown, self._weights).tolist()

    @cached_property
    def groups(self) -> Groups | None:
        """The lists that say the cell of a row: of the groups, or of all attributes together."""
        if self.by is None:
            return None
        if not self.is_breakdown:
            return Groups(tuple(self.by.items()))
        result = self.breakdown
        lists = tuple((a.column, a.finest) for a in result.attributes)
        return Groups(lists, "other" if result.unlisted == "other" else "drop")

    @property
    def group_names(self) -> tuple[str, ...] | None:
        """The names of the groups, where there is a table for each."""
        return None if self.by is None or self.is_breakdown else next(iter(self.by.values()))

    @cached_property
    def rules(self) -> RecordRules:
        """How rows become records."""
        unit, answers = self.privacy_unit, self.answer_rules
        rules = answers.on_violation, self.max_size, answers.words, answers.on_conflict
        return RecordRules(unit.column, unit.most, *rules)

    @cached_property
    def setting(self) -> Setting:
        """What the mechanism must cover."""
        names = self.group_names
        number = None if names is None else len(names)
        root = self.fixed_root
        fixed = None if root is None else {"records": root.records, "catch_all": root.catch_all}
        care = dict(self.care) if isinstance(self.care, Mapping) else self.care
        return Setting(self.P, self.privacy_unit.most, self.max_size, self.relaxation, care, number, fixed)

    def require_every_place(self, neighbours: str) -> None:
        """Refuse to fix the root of a hierarchy where some unit might have no place in it, or more than one."""
        answers = self.answer_rules
        reasons = {
            "a unit that is added or removed changes the number of records: say neighbours='replace'": not (
                adjacency(cast("Any", neighbours)).exchanges
            ),
            "a unit may have several rows or none, and rows without one are left out: say unit=None, so that every row is "
            "a unit": self.privacy_unit.column is not None,
            "a row of wide data may have no code, or several: name the column of the code, element=": answers.element
            is None,
            "records that break a rule are dropped: leave out on_violation and on_conflict": "drop"
            in (answers.on_violation, answers.on_conflict),
            "records are cut: leave out max_size": self.max_size is not None,
            "a unit that is replaced may change groups: leave out by": self.by is not None,
            "the number of records is public: leave out total": bool(self.total),
        }
        for reason, applies in reasons.items():
            if applies:
                raise InputError(f"The root cannot be fixed to a public number of records, since {reason}.")

    # -- what every kind says

    @property
    def words(self) -> str:
        """How many elements are counted, in how many margins."""
        margins = f" in {len(self.margins or ())} margins" if self.is_breakdown else ""
        return f"counts of {len(self.P)} elements{margins}"

    @property
    def title(self) -> str:
        """What it is."""
        return "Counts"

    @property
    def number_of_waves(self) -> int:
        """How many releases like this one are planned, this one among them."""
        return self.waves

    def mechanism(self, guarantee: Guarantee) -> Any:
        """The mechanism that was asked for, or the best: noise for each group, or for all margins together."""
        if self.is_breakdown:
            return margins_mechanism(self.setting, self.breakdown, guarantee, self.method, self._weights)
        noise = choose_mechanism(self.setting, guarantee, self.method)
        if self.total and not getattr(noise, "has_total", False):
            raise InputError(
                f"{type(noise).__name__} does not give the number of records for free. Leave out total=True."
            )
        return noise

    def least_budget(
        self, guarantee: Guarantee, error: float, guess: int | None, confidence: float
    ) -> tuple[float, dict[str, Any]] | None:
        """For counts in margins: every number by itself stays within ``error``. Plans of other counts tell it themselves."""
        if not self.is_breakdown or guess is not None:
            return None
        name = "rho" if guarantee.kind == "zcdp" else "epsilon"
        expected, now = float(positive(error, "error")), float(getattr(guarantee, name))

        def width(budget: float) -> float:
            smaller = replace(guarantee, **{name: exact(budget, name)})
            return max(float(np.max(half)) for half in known_errors(self.mechanism(smaller), confidence).half)

        ratio = width(now) / expected  # widths are about one over ε, or over the root of ρ
        near = now * (ratio**2 if name == "rho" else ratio)
        budget = least_budget(lambda budget: width(budget) <= expected, near)
        return budget, {"of": "every number by itself", "confidence": confidence}

    def charged(self, mechanism: Any, guarantee: Guarantee) -> Guarantee:
        """The noise may guarantee more than was asked for. Only that is charged."""
        result: Guarantee = mechanism.guarantee
        return (
            replace(result, unit=guarantee.unit) if result.neighbours == guarantee.neighbours else guarantee
        )

    def source(self, data: Any, mechanism: Any) -> CountSource:
        """Where answers are read, and how they become records."""
        answers = self.answer_rules
        questions = questions_for(self.P, answers)
        records = RecordSource(data, answers.element, dict(answers.columns), questions)
        return CountSource(records, self.P, self.rules, self.groups)

    def read(self, source: CountSource, frame: Frame) -> CountStatistic:
        """Rows to records by the rules, records to counts."""
        return CountStatistic(*count_records(source.records, frame, source.P, source.rules, source.groups))

    def known(self, mechanism: Any) -> Any:
        """Standard deviations and half-widths."""
        level = self.confidence
        return known_errors(mechanism, level) if self.is_breakdown else count_columns(mechanism, level)

    def draw(self, mechanism: Any, statistic: CountStatistic) -> Any:
        """Noise on the counts of each group, or on every cell of every measured margin."""
        try:
            if self.is_breakdown:
                return mechanism.margins(mechanism.release(statistic.counts))
            if isinstance(mechanism, HasGroups):  # which gives no total
                return CountStatistic(mechanism.release_rows(statistic.counts), np.zeros(0, np.int64))
            values, totals = list[NDArray[np.int64]](), list[int]()
            for row, size in zip(*statistic, strict=True):
                if self.total:
                    noisy, noisy_size = mechanism.release_with_total(row, int(size))
                    totals.append(noisy_size)
                else:
                    noisy = mechanism.release(row)
                values.append(np.asarray(noisy))
        except OverflowError:
            raise InputError(TOO_WIDE) from None
        return CountStatistic(np.array(values), np.array(totals, dtype=np.int64))

    def columns(self, mechanism: Any, drawn: Any, known: Any) -> dict[str, tuple[Any, ...]]:
        """Values with standard deviations and intervals."""
        if self.is_breakdown:
            return breakdown_columns(mechanism, drawn.values, known)
        return original_columns(self.P, self.group_names, drawn.counts, known)

    def manifest(self, mechanism: Any, drawn: Any, common: Mapping[str, Any]) -> CountManifest:
        """With the noisy number of records, or the noisy integers of margins."""
        shared = dict(common)
        if self.waves > 1:
            shared["waves"] = waves_entry(guarantee_from(common["guarantee"]), self.waves)
        if self.is_breakdown:
            measured = [[] if table is None else table.ravel().tolist() for table in drawn.measured]
            law = law_entry(mechanism, self.confidence)
            return CountManifest(mechanism=margins_recipe(mechanism), measured=measured, law=law, **shared)
        totals = drawn.records.tolist()
        return CountManifest(
            mechanism=recipe_of(mechanism),
            total=(totals if self.by else totals[0]) if self.total else None,
            total_sd=round(math.sqrt(mechanism.total_variance()), 4) if self.total else None,
            law=law_entry(mechanism, self.confidence),
            **shared,
        )

    def rehearsed(self, job: Job, frame: Frame, stamp: Stamp) -> tuple[Release, dict[str, int]]:
        """All is drawn. Of many numbers of a breakdown every so many are written, and each name at least once."""
        drawn = job.draw(job.read(frame))
        if not self.is_breakdown:
            return job.publish(drawn, stamp), {}
        columns = self.columns(job.mechanism, drawn, job.known)
        number = len(columns["value"])
        step = -(-number // _REHEARSED)
        if step == 1:
            return job.publish(drawn, stamp), {}
        measured = [None if table is None else table.ravel()[::step] for table in drawn.measured]
        manifest = job.manifest(replace(drawn, measured=measured), stamp)
        some = seal(thinned(columns, step), manifest)
        numbers = sum(
            len(str(x)) + _AROUND for table in measured if table is not None for x in table.tolist()
        )
        rows = len(some.columns["value"])
        more = {
            "release.csv": len(some.csv().encode()) * (number - rows) // rows,
            "manifest.json": numbers * (step - 1),
        }
        return some, more

    def planned(self, guarantee: Guarantee, guess: Any, progress: Progress) -> Plan[Any]:
        """Every mechanism that keeps the guarantee, or ways to share it between margins. The first is that of a release."""
        mechanism = self.mechanism(guarantee)
        if self.is_breakdown:
            from isotone.counts.margins import plan_margins

            margins = plan_margins(mechanism)
            rows = sorted(margins.rows, key=lambda row: row.mechanism is not mechanism)
            return replace(margins, rows=tuple(rows), guarantee=guarantee)
        from isotone.counts.count_plan import CountRow, plan

        setting = self.setting
        result = plan(setting, guarantee, progress)
        own = CountRow.of(mechanism, lambda g, _: choose_mechanism(setting, g, self.method))
        same = [row for row in result.rows if _same_noise(row.mechanism, mechanism)]
        own = replace(same[0] if same else own, mechanism=mechanism)
        others = tuple(row for row in result.rows if row not in same[:1])
        least = min(row.rmse for row in (own, *others))
        return replace(result, rows=(replace(own, ratio=(own.rmse / least) ** 2 if least else 0.0), *others))

    def attacked(self, mechanism: Any, guarantee: Guarantee, trials: int, progress: Progress) -> AuditReport:
        """By the density of the noise, and by draws. Of margins, the noise of one cell that had the whole budget."""
        from isotone.audit.exact import audit_count_mechanism

        # what the cells of a record have adds up to the whole budget
        noise = mechanism.base if isinstance(mechanism, MarginsMechanism) else mechanism
        return audit_count_mechanism(noise, trials, progress)

    def findings(self, source: Any) -> list[str]:
        """Records that break the order, values in no list, and answers that are neither yes nor no."""
        from isotone.release.kinds.counts.check import check_counts

        return check_counts(self, source)

    def plain(self) -> dict[str, Any]:
        """Every parameter as plain values. The sequence of the columns of groups matters."""
        parameters, method = super().plain(), self.method
        if self.by is not None:
            parameters["by"] = [[name, _listed(held)] for name, held in self.by.items()]
        parameters["mechanism"] = method if isinstance(method, str) else recipe_of(method)
        return {
            **parameters,
            "order": order_to(self.P),
            "relaxation": self.relaxation and self.relaxation.plain(),
        }

    def identity(self) -> dict[str, Any]:
        """Every parameter but the labels of questions."""
        parameters = self.plain()
        questions = {
            q.name: q.definition()
            for q in questions_for(self.P, self.answer_rules).values()
            if q.has_own_rule
        }
        if self.is_breakdown:
            parameters["importance"] = self.importances
        return {**parameters, "answers": {**parameters["answers"], "questions": questions}}

    @classmethod
    def from_manifest(cls, manifest: Manifest, columns: Mapping[str, tuple[Any, ...]]) -> Counts:
        """The description of a release. A mechanism that was given itself is named."""
        parameters = dict(manifest.description or {})
        if isinstance(parameters.get("mechanism"), Mapping):
            parameters["mechanism"] = rebuild_count_mechanism(
                order_from(parameters["order"]), parameters["mechanism"]
            )
        return cls(parameters.pop("order"), **parameters)

    @classmethod
    def from_sections(
        cls,
        sections: Mapping[str, Section],
        questions: Mapping[str, Question],
        resolve: Callable[[str], Path],
    ) -> Counts:
        """The description that a spec gives."""
        section = cast("OrderEntries", sections[cls.key])
        answers = Answers(**gathered(Answers, sections), questions=tuple(questions.values()))
        parameters = gathered(cls, sections, cls.key)
        if section.relaxation is not None:
            parameters["relaxation"] = read_relaxation(resolve(section.relaxation))
        parameters |= {"answers": answers, "unit": Unit(**gathered(Unit, sections))}
        return cls(section.order(resolve, questions, answers), **parameters)

    @classmethod
    def leaves(cls) -> frozenset[str]:
        """What stands elsewhere in a spec."""
        return frozenset({"unit", "order", "answers"})


def _listed(held: Any) -> Any:
    return [list(pair) for pair in held.items()] if isinstance(held, Mapping) else list(held)


def _same_noise(one: AdditiveMechanism, other: AdditiveMechanism) -> bool:
    return type(one) is type(other) and np.array_equal(one.error().sd, other.error().sd)


@dataclass(frozen=True)
class CountSource:
    """Where answers are read, and how they become records of groups."""

    records: RecordSource
    P: Poset
    rules: RecordRules
    groups: Groups | None

    def open(self) -> Frame:
        """The columns of the answers, the unit and the groups."""
        return self.records.open(self.P, self.rules, self.groups)


def questions_for(P: Poset, answers: Answers) -> dict[str, Question]:
    """Questions by name, each of an element of ``P``, with the columns that are given beside them."""
    names = {str(x): x for x in P.elements}
    book = answers.book
    for name, question in book.items():
        if name not in names:
            near = did_you_mean(name, names) or "."
            raise InputError(f"The question {name!r} is no element of the order{near}")
        if answers.element is not None and question.has_own_rule:
            raise InputError(
                f"In long data a row is one yes, so that the question {name!r} can have a label and nothing else."
            )
        column = answers.columns.get(names[name])
        if column is not None and not question.any_of:
            if question.column not in (None, column):
                raise InputError(
                    f"The column of {name!r} is given twice, as {column!r} and {question.column!r}."
                )
            book[name] = replace(question, column=column)
        require_writable(question_texts(book[name]), f"the question {name!r}")
    return book


def question_texts(question: Question) -> list[str]:
    """Every text of a question that is published."""
    texts = [*question.plain().values(), column_name(question.column or question.name, "column")]
    return [str(x) for part in texts for x in (part if isinstance(part, list) else [part])]
