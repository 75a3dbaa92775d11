"""From public parameters of any type, or from a spec, to the query of a release of counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from isotone.counts.count_plan import Setting, choose_mechanism
from isotone.counts.fixed_root import FixedRootMechanism, fixed_root
from isotone.counts.margins import importance_of
from isotone.counts.margins_plan import margins_mechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.objective import Care
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.checks import confidence_level, plain_text, truth, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import UnitKey
from isotone.reading.questions import Answers, Question
from isotone.reading.records import Groups, RecordRules, RecordSource
from isotone.release.kinds.breakdown.query import BreakdownQuery, known_errors
from isotone.release.kinds.breakdown.section import public_breakdown
from isotone.release.kinds.counts.asked import questions_for
from isotone.release.kinds.counts.query import CountQuery, count_columns, require_every_place, rules_entry
from isotone.release.kinds.counts.section import OrderSection, spec_order
from isotone.release.kinds.parameters import (
    column_name,
    public_names,
    require_type,
    require_writable,
    stated_texts,
    unit_key,
)
from isotone.release.manifest import Stated
from isotone.release.waves import planned_waves

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["CountRequest", "spec_request"]


@dataclass(frozen=True)
class CountRequest:
    """What :func:`release_counts` is asked for. ``query`` checks every public parameter."""

    data: Any
    P: Poset
    guarantee: Guarantee
    _: KW_ONLY
    unit: UnitKey = None
    element: str | None = None
    columns: Mapping[Any, str] | None = None
    answers: Answers | None = None
    on_violation: Literal["close", "drop"] = "close"
    on_conflict: Literal["first", "drop"] = "first"
    contributions: int = 1
    max_size: int | None = None
    by: str | Sequence[str] | None = None
    groups: Sequence[str | int | bool] | Mapping[str, Any] | None = None
    margins: Sequence[Any] | None = None
    importance: Any = None
    unlisted: Literal["drop", "other"] | None = None
    mechanism: str | AdditiveMechanism | None = None
    care: Care | None = None
    relaxation: Relaxation | None = None
    total: bool = False
    confidence: float = 0.95
    stated: Stated = field(default_factory=Stated)
    questions: Iterable[Question] | None = None
    waves: int = 1
    records: int | None = None
    catch_all: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, AdditiveMechanism | None):
            object.__setattr__(self, "mechanism", plain_text(self.mechanism, "mechanism"))

    def query(self) -> CountQuery | BreakdownQuery:
        """The query, of counts in public groups or of a breakdown."""
        _require_order(self.P)
        require_type(self.relaxation, "relaxation", Relaxation)
        if self.by is None and self.groups is not None:
            raise InputError("groups needs by=: the column whose public values these are.")
        shared: dict[str, Any] = {
            "source": self._source(),
            "P": self.P,
            "rules": self._rules(),
            "confidence": confidence_level(self.confidence),
            "stated": stated_texts(self.stated, "Counts"),
            "relaxation": self.relaxation,
            "waves": planned_waves(self.waves),
        }
        total = truth(self.total, "total")
        fixed = fixed_root(self.records, self.catch_all) is not None
        if fixed or isinstance(self.mechanism, FixedRootMechanism):
            rules = rules_entry(shared["rules"], shared["source"], self.P)
            require_every_place(self.guarantee, rules, self.by is not None, total)
        if not self._is_breakdown():
            return self._grouped(total, shared)
        if total:
            raise InputError(
                "A breakdown has no total=True: add an element above all others to the order, and count all records there."
            )
        return self._breakdown(shared)

    @cached_property
    def setting(self) -> Setting:
        """What the mechanism must cover."""
        number = None if self._listed_groups is None else self._listed_groups.size
        fixed = fixed_root(self.records, self.catch_all)
        return Setting(self.P, self.contributions, self.max_size, self.relaxation, self.care, number, fixed)

    def _is_breakdown(self) -> bool:
        """Whether several columns are given, or what only a breakdown has."""
        apart = (self.margins, self.importance, self.unlisted)
        return not isinstance(self.by, str | None) or any(said is not None for said in apart)

    @cached_property
    def _listed_groups(self) -> Groups | None:
        """The column of the public groups with their names, unless there are none or it is a breakdown."""
        if self.by is None or self._is_breakdown():
            return None
        listed = () if self.groups is None else self.groups
        return Groups(((column_name(self.by, "by"), public_names(listed, "groups")),))

    def _grouped(self, total: bool, shared: dict[str, Any]) -> CountQuery:
        """One table of counts, or one for each public group."""
        noise = choose_mechanism(self.setting, self.guarantee, self.mechanism)
        if total and not getattr(noise, "has_total", False):
            raise InputError(
                f"{type(noise).__name__} does not give the number of records for free. Leave out total=True."
            )
        known, asked = count_columns(noise, shared["confidence"]), self._asked()
        return CountQuery(
            groups=self._listed_groups,
            mechanism=noise,
            asked=asked["name"] if asked is not None and len(asked) == 1 else asked,
            guarantee=self._charged(noise.guarantee),
            total=total,
            known=known,
            **shared,
        )

    def _breakdown(self, shared: dict[str, Any]) -> BreakdownQuery:
        """Counts in the cells of several margins."""
        unlisted = "drop" if self.unlisted is None else self.unlisted
        breakdown = public_breakdown(self.by, self.groups, self.margins, unlisted)
        noise = margins_mechanism(self.setting, breakdown, self.guarantee, self.mechanism, self.importance)
        asked, known = self._asked(), known_errors(noise, shared["confidence"])
        if asked is not None:
            asked["importance"] = importance_of(breakdown, self.importance).tolist()
        guarantee = self._charged(noise.guarantee)
        return BreakdownQuery(mechanism=noise, asked=asked, guarantee=guarantee, known=known, **shared)

    def _asked(self) -> dict[str, Any] | None:
        """The mechanism as asked for, by its name, what is cared for and what is fixed. None if it was given itself."""
        if isinstance(self.mechanism, AdditiveMechanism):
            return None
        setting = self.setting
        said: dict[str, Any] = {} if setting.care is None else {"care": setting.care}
        if setting.fixed is not None:
            said |= {"records": int(setting.fixed["records"]), "catch_all": str(setting.fixed["catch_all"])}
        return {"name": self.mechanism or "best", **said}

    def _charged(self, found: Guarantee) -> Guarantee:
        """The noise may guarantee more than was asked for. Only that is charged."""
        same = found.neighbours == self.guarantee.neighbours
        return replace(found, unit=self.guarantee.unit) if same else self.guarantee

    def _rules(self) -> RecordRules:
        """How rows become records."""
        require_type(self.answers, "answers", Answers)
        size = None if self.max_size is None else whole_number(self.max_size, "max_size")
        unit, answers = unit_key(self.unit), self.answers or Answers()
        return RecordRules(unit, self.contributions, self.on_violation, size, answers, self.on_conflict)

    def _source(self) -> RecordSource:
        """Where answers are read."""
        require_type(self.columns, "columns", Mapping)
        long = None if self.element is None else column_name(self.element, "element")
        given = {x: column_name(c, "columns") for x, c in (self.columns or {}).items()}
        questions = questions_for(self.P, self.questions, given, long)
        return RecordSource(self.data, long, given, questions)


def _require_order(P: Any) -> None:
    if not isinstance(P, Poset):
        raise InputError(
            f"P must be a Poset, not a {type(P).__name__}: Poset(elements, relations) makes one."
        )
    for x in P.elements:
        require_writable(str(x), "the order")


def spec_request(spec: Spec, asked: OrderSection, **cells: Any) -> CountRequest:
    """What a spec asks for in its section. ``cells`` are its public groups, or its margins."""
    data = spec.data
    return CountRequest(
        spec.source,
        spec_order(spec),
        spec.privacy.guarantee(spec.unit),
        unit=data.unit,
        element=data.element,
        columns={**data.element_columns},
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
        stated=spec.output.stated,
        questions=spec.asked.values(),
        waves=spec.privacy.waves or 1,
        records=asked.records,
        catch_all=asked.catch_all,
        **cells,
    )
