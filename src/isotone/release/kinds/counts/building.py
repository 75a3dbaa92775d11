"""From public parameters of any type, or from a spec, to the query of a release of counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from isotone.counts.caring import Care, care_of
from isotone.counts.choosing import choose_mechanism
from isotone.counts.hierarchies.fixed_root import FixedRootMechanism, fixed_root
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.sampling.relaxation import Relaxation
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.checks import confidence_level, plain_text, truth, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.reading.columns.answers import Answers
from isotone.reading.columns.question import Question
from isotone.reading.contributions import UnitKey
from isotone.reading.records import Groups, RecordRules, RecordSource
from isotone.release.kinds.breakdown.query import BreakdownQuery
from isotone.release.kinds.breakdown.release import breakdown_query, public_breakdown
from isotone.release.kinds.counts.asked import questions_for
from isotone.release.kinds.counts.query import CountQuery, count_columns, require_every_place, rules_entry
from isotone.release.kinds.counts.section import OrderSection, spec_order
from isotone.release.kinds.parameters import (
    column_name,
    public_names,
    require_type,
    require_writable,
    title_text,
    unit_key,
)
from isotone.release.waves import planned_waves

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["count_query", "spec_query"]


def count_query(
    data: Any,
    P: Poset,
    guarantee: Guarantee,
    *,
    unit: UnitKey = None,
    element: str | None = None,
    columns: Mapping[Any, str] | None = None,
    answers: Answers | None = None,
    on_violation: Literal["close", "drop"] = "close",
    on_conflict: Literal["first", "drop"] = "first",
    contributions: int = 1,
    max_size: int | None = None,
    by: str | Sequence[str] | None = None,
    groups: Sequence[str | int | bool] | Mapping[str, Any] | None = None,
    margins: Sequence[Any] | None = None,
    importance: Any = None,
    unlisted: Literal["drop", "other"] | None = None,
    mechanism: str | AdditiveMechanism | None = None,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
    total: bool = False,
    confidence: float = 0.95,
    title: str | None = None,
    questions: Iterable[Question] | None = None,
    waves: int = 1,
    records: int | None = None,
    catch_all: Any = None,
) -> CountQuery | BreakdownQuery:
    """The query that :func:`release_counts` runs, with every public parameter checked."""
    _require_order(P)
    require_type(relaxation, "relaxation", Relaxation)
    if not isinstance(mechanism, AdditiveMechanism | None):
        mechanism = plain_text(mechanism, "mechanism")
    if by is None and groups is not None:
        raise InputError("groups needs by=: the column whose public values these are.")
    rules = _rules(unit, contributions, on_violation, max_size, answers, on_conflict)
    source = _source(data, P, element, columns, questions)
    noise: dict[str, Any] = {"mechanism": mechanism, "care": care, "relaxation": relaxation}
    fixed = fixed_root(records, catch_all)
    if fixed is not None or isinstance(mechanism, FixedRootMechanism):
        require_every_place(guarantee, rules_entry(rules, source, P), bool(by), truth(total, "total"))
    page: dict[str, Any] = {
        "total": truth(total, "total"),
        "confidence": confidence_level(confidence),
        "title": title_text(title, "Counts"),
        "waves": planned_waves(waves),
    }
    if isinstance(by, str | None) and all(said is None for said in (margins, importance, unlisted)):
        public = None
        if by is not None:
            column = column_name(by, "by")
            public = Groups(((column, public_names(() if groups is None else groups, "groups")),))
        return _grouped_query(source, P, rules, guarantee, public, **noise, **page, fixed=fixed)
    cells = public_breakdown(by, groups, margins, "drop" if unlisted is None else unlisted)
    return breakdown_query(source, P, rules, guarantee, cells, importance=importance, **noise, **page)


def _grouped_query(
    source: RecordSource,
    P: Poset,
    rules: RecordRules,
    guarantee: Guarantee,
    groups: Groups | None,
    *,
    mechanism: str | AdditiveMechanism | None,
    care: Care | None,
    relaxation: Relaxation | None,
    total: bool,
    confidence: float,
    title: str,
    waves: int,
    fixed: dict[str, Any] | None,
) -> CountQuery:
    """One table of counts, or one for each public group."""
    several = None if groups is None else groups.size
    units, size = rules.contributions, rules.max_size
    noise = choose_mechanism(
        P, guarantee, units, size, mechanism, groups=several, care=care, relaxation=relaxation, fixed=fixed
    )
    if noise.neighbours == guarantee.neighbours:  # the mechanism may guarantee more: only that is charged
        guarantee = replace(noise.guarantee, unit=guarantee.unit)
    if total and not getattr(noise, "has_total", False):
        raise InputError(
            f"{type(noise).__name__} does not give the number of records for free. Leave out total=True."
        )
    asked = None if isinstance(mechanism, AdditiveMechanism) else _asked(P, mechanism, care, fixed)
    known = count_columns(noise, confidence)
    return CountQuery(
        source, P, rules, groups, noise, asked, guarantee, total, confidence, title, known, relaxation, waves
    )


def _require_order(P: Any) -> None:
    if not isinstance(P, Poset):
        raise InputError(
            f"P must be a Poset, not a {type(P).__name__}: Poset(elements, relations) makes one."
        )
    for x in P.elements:
        require_writable(str(x), "the order")


def _rules(
    unit: Any, contributions: Any, on_violation: Any, max_size: Any, answers: Any, on_conflict: Any
) -> RecordRules:
    """How rows become records, from public parameters of any type."""
    require_type(answers, "answers", Answers)
    size = None if max_size is None else whole_number(max_size, "max_size")
    return RecordRules(unit_key(unit), contributions, on_violation, size, answers or Answers(), on_conflict)


def _source(data: Any, P: Poset, element: Any, columns: Any, questions: Any) -> RecordSource:
    """Where answers are read, from public parameters of any type."""
    require_type(columns, "columns", Mapping)
    long = None if element is None else column_name(element, "element")
    given = {x: column_name(c, "columns") for x, c in (columns or {}).items()}
    return RecordSource(data, long, given, questions_for(P, questions, given, long))


def spec_query(spec: Spec, asked: OrderSection, **cells: Any) -> CountQuery | BreakdownQuery:
    """The query of a spec by its section; ``cells`` are its public groups, or its margins."""
    data = spec.data
    return count_query(
        spec.source,
        spec_order(spec),
        spec.privacy.guarantee(spec.unit),
        unit=data.unit,
        element=data.element,
        columns={**data.columns},
        answers=data.answers,
        on_violation=data.on_violation,
        on_conflict=data.on_conflict or "first",
        contributions=data.contributions,
        max_size=asked.max_size,
        mechanism=asked.mechanism,
        care=asked.care,
        relaxation=asked.found(spec.resolve),
        total=asked.total,
        confidence=spec.output.confidence,
        title=spec.output.title,
        questions=spec.asked.values(),
        waves=spec.privacy.waves or 1,
        records=asked.records,
        catch_all=asked.catch_all,
        **cells,
    )


def _asked(
    P: Poset, mechanism: str | None, care: Care | None, fixed: dict[str, Any] | None
) -> str | dict[str, Any]:
    """The mechanism as asked for: its name, and what is cared for and what is fixed if that was said."""
    name = mechanism or "best"
    said = {} if care is None else {"care": care_of(P, care)}
    if fixed is not None:
        said |= {"records": int(fixed["records"]), "catch_all": str(fixed["catch_all"])}
    return {"name": name, **said} if said else name
