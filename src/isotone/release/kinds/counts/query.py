"""The query of counts, which says what is read, drawn, published and written in the manifest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NotRequired

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.mechanism import HasGroups
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import UnitEntry
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records
from isotone.release.kinds.counts.asked import QuestionEntry, definitions, entries_of
from isotone.release.kinds.counts.law_entry import LawEntry, law_entry
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.manifest import Manifest, OrderEntry, Stated, guarantee_to, order_to
from isotone.release.recipes import recipe_of
from isotone.release.result import Release, seal
from isotone.release.waves import WavesEntry, waves_entry

if TYPE_CHECKING:
    from isotone.reading.sources import Frame

__all__ = [
    "TOO_WIDE",
    "WIDEST",
    "CountManifest",
    "CountQuery",
    "CountRules",
    "CountStatistic",
    "count_columns",
    "original_columns",
    "require_every_place",
    "rules_entry",
]

WIDEST = 2.0**40
"""The largest standard deviation: far enough below 2**62 that a count and its noise never leave 64 bits."""
TOO_WIDE = "The noise would be too wide for 64 bits. Take a larger epsilon or rho, or fewer contributions."


class CountRules(UnitEntry):
    """How rows became records."""

    on_violation: str
    on_conflict: NotRequired[str]
    max_size: int | None
    form: str
    yes: list[str]
    missing: str


class GroupEntry(TypedDict):
    """The column of the groups, and the public list of its values."""

    by: str
    values: list[str]


@dataclass(frozen=True, kw_only=True)
class CountManifest(Manifest):
    """The manifest of counts. ``total`` is the noisy number of records, one for each group where there are groups."""

    name: ClassVar[str] = "counts"
    texts: ClassVar[frozenset[str]] = frozenset({"element", "group"})
    of_one_draw: ClassVar[frozenset[str]] = frozenset(
        {"total", "total_sd", "law", "consistent", "derived", "waves"}
    )
    """The entries about one draw, which several that are combined do not have."""

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "order": "The elements in the sequence of the release, and the covering pairs [lower, upper].",
        "rules": "How rows became records: unit, contributions, what happens to a record that breaks the order.",
        "groups": "The column of the groups and the public list of its values, or null.",
        "confidence": "The confidence of the intervals.",
        "total": "The noisy number of records, one for each group where there are groups; absent unless asked for.",
        "total_sd": "The standard deviation of total.",
        "law": "How half-widths were found where they have no closed form: public draws of the noise, and the rank taken.",
        "questions": "By element: its label, its column and what counts as a yes; what is not said is as rules say. Absent without any.",
        "waves": "How many releases like this one are planned, and what all of them guarantee together; absent for one alone.",
        "derived": "How the values were derived from other releases, and those releases; absent for values as drawn.",
    }

    order: OrderEntry
    rules: CountRules
    groups: GroupEntry | None
    confidence: float
    total: int | float | list[int] | list[float] | None = None
    total_sd: float | None = None
    law: LawEntry | None = None
    questions: dict[str, QuestionEntry] | None = None
    waves: WavesEntry | None = None
    derived: dict[str, Any] | None = None


class CountStatistic(NamedTuple):
    """Counts, one row per group, and the number of records of each group."""

    counts: NDArray[np.int64]
    records: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class CountQuery(Query[CountStatistic, CountStatistic]):
    """A release of counts as asked for, made and checked by :class:`CountRequest`."""

    source: RecordSource
    P: Poset
    rules: RecordRules
    groups: Groups | None
    mechanism: Any
    asked: str | dict[str, Any] | None
    guarantee: Guarantee
    total: bool
    confidence: float
    stated: Stated
    known: dict[str, NDArray[Any]]
    relaxation: Relaxation | None = None
    waves: int = 1

    @property
    def description(self) -> str:
        """How many elements are counted."""
        return f"counts of {len(self.P)} elements"

    def parameters(self) -> dict[str, Any]:
        """Order, rules, mechanism as asked for, guarantee and columns."""
        given = {} if self.relaxation is None else {"relaxation": self.relaxation.plain()}
        asked = definitions(self.source.questions)
        return {
            "kind": CountManifest.name,
            "order": order_to(self.P),
            **given,
            "guarantee": guarantee_to(self.guarantee),
            "mechanism": self.asked or recipe_of(self.mechanism),
            "rules": self._rules(),
            "no": list(self.rules.answers.no),
            "element": self.source.element,
            "columns": {str(key): value for key, value in self.source.columns.items()},
            "groups": self._groups(),
            "total": self.total,
            "confidence": self.confidence,
            **({"questions": asked} if asked else {}),
            **({"waves": self.waves} if self.waves > 1 else {}),
        }

    def open(self) -> Frame:
        """The columns of the answers, the unit and the groups."""
        return self.source.open(self.P, self.rules, self.groups)

    def read(self, frame: Frame) -> CountStatistic:
        """Rows to records by the rules, records to counts."""
        return CountStatistic(*count_records(self.source, frame, self.P, self.rules, self.groups))

    def draw(self, statistic: CountStatistic) -> CountStatistic:
        """Noise on the counts of each group, and on its number of records where it was asked for."""
        values, totals = list[NDArray[np.int64]](), list[int]()
        try:
            if isinstance(self.mechanism, HasGroups):  # which gives no total
                return CountStatistic(self.mechanism.release_rows(statistic.counts), np.zeros(0, np.int64))
            for row, size in zip(*statistic, strict=True):
                if self.total:
                    noisy, noisy_size = self.mechanism.release_with_total(row, int(size))
                    totals.append(noisy_size)
                else:
                    noisy = self.mechanism.release(row)
                values.append(np.asarray(noisy))
        except OverflowError:
            raise InputError(TOO_WIDE) from None
        return CountStatistic(np.array(values), np.array(totals, dtype=np.int64))

    def publish(self, drawn: CountStatistic, stamp: Stamp) -> Release:
        """Values with standard deviations and intervals."""
        totals = drawn.records.tolist()
        manifest = CountManifest(
            kind=CountManifest.name,
            order=order_to(self.P),
            mechanism=recipe_of(self.mechanism),
            rules=self._rules(),
            groups=self._groups(),
            confidence=self.confidence,
            total=(totals if self.groups else totals[0]) if self.total else None,
            total_sd=round(math.sqrt(self.mechanism.total_variance()), 4) if self.total else None,
            law=law_entry(self.mechanism, self.confidence),
            questions=entries_of(self.source.questions),
            waves=waves_entry(self.guarantee, self.waves),
            **self.entries(stamp),
        )
        names = None if self.groups is None else self.groups.lists[0][1]
        return seal(original_columns(self.P, names, drawn.counts, self.known), manifest)

    def _rules(self) -> CountRules:
        return rules_entry(self.rules, self.source, self.P)

    def _groups(self) -> GroupEntry | None:
        if self.groups is None:
            return None
        ((column, values),) = self.groups.lists
        return {"by": column, "values": list(values)}


def rules_entry(rules: RecordRules, source: RecordSource, P: Poset) -> CountRules:
    """How rows become records, as plain values."""
    said: CountRules = {
        **rules.unit_entry(),
        "on_violation": rules.on_violation,
        "max_size": rules.max_size,
        "form": "wide" if source.element is None else "long",
        "yes": list(rules.answers.yes),
        "missing": rules.answers.missing,
    }
    return {**said, "on_conflict": rules.on_conflict} if P.choices else said


def require_every_place(guarantee: Guarantee, rules: CountRules, groups: bool, total: bool) -> None:
    """Refuse to fix the root of a hierarchy where some unit might have no place in it, or more than one."""
    reasons = {
        "a unit that is added or removed changes the number of records: say neighbours='replace'": not (
            guarantee.adjacency.exchanges
        ),
        "a unit may have several rows or none, and rows without one are left out: say unit=None, so that every row is "
        "a unit": rules["unit"] is not None,
        "a row of wide data may have no code, or several: name the column of the code, element=": rules[
            "form"
        ]
        != "long",
        "records that break a rule are dropped: leave out on_violation and on_conflict": "drop"
        in (rules["on_violation"], rules.get("on_conflict")),
        "records are cut: leave out max_size": rules["max_size"] is not None,
        "a unit that is replaced may change groups: leave out by": groups,
        "the number of records is public: leave out total": total,
    }
    for reason, applies in reasons.items():
        if applies:
            raise InputError(f"The root cannot be fixed to a public number of records, since {reason}.")


def count_columns(mechanism: Any, confidence: float) -> dict[str, NDArray[Any]]:
    """Standard deviation and half-widths of each value, known before any data is read."""
    law_entry(mechanism, confidence)  # what cannot be known is refused before anything is drawn
    try:
        sd = mechanism.error().sd
    except ArithmeticError:  # beyond the range of floats
        raise InputError(TOO_WIDE) from None
    if not np.all(sd <= WIDEST):
        raise InputError(TOO_WIDE)
    alone = mechanism.half_widths(confidence).astype(np.int64)
    together = int(mechanism.simultaneous_half_width(confidence))
    return {
        "sd": np.round(sd, 4),
        "alone": alone,
        "together": np.where(sd > 0, together, 0),  # a fixed root has no noise
    }


def original_columns(
    P: Poset, groups: Sequence[str] | None, values: NDArray[np.int64], known: dict[str, NDArray[Any]]
) -> dict[str, tuple[Any, ...]]:
    """The columns of a release as drawn, which all follow from the values and the mechanism."""
    repeat, value = len(values), values.reshape(-1)
    alone, together = np.tile(known["alone"], repeat), np.tile(known["together"], repeat)
    columns: dict[str, tuple[Any, ...]] = {}
    if groups is not None:
        columns["group"] = tuple(group for group in groups for _ in P.elements)
    columns["element"] = tuple(str(x) for x in P.elements) * repeat
    numbers: dict[str, NDArray[Any]] = {"value": value, "sd": np.tile(known["sd"], repeat)}
    for half, ends in ((alone, ("low", "high")), (together, ("low_all", "high_all"))):
        numbers |= {ends[0]: np.maximum(value - half, 0), ends[1]: np.maximum(value + half, 0)}
    return {**columns, **{name: tuple(column.tolist()) for name, column in numbers.items()}}
