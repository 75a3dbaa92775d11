"""The query of a breakdown, which says what is read, drawn, published and written in the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.counts.breakdown import Breakdown, Margin, read_breakdown
from isotone.counts.margins import Margins, MarginsMechanism
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import Groups
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.release.kinds.counts.asked import QuestionEntry, definitions, entries_of
from isotone.release.kinds.counts.query import TOO_WIDE, WIDEST, CountRules, rules_entry
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.manifest import Manifest, OrderEntry, Stated, guarantee_to, order_to
from isotone.release.recipes import rebuild_count_mechanism, recipe_of
from isotone.release.result import Release, seal
from isotone.release.waves import WavesEntry, waves_entry
from isotone.release.writing.column_texts import thinned

if TYPE_CHECKING:
    from isotone.reading.sources import Frame

__all__ = [
    "RESERVED",
    "BreakdownManifest",
    "BreakdownQuery",
    "Known",
    "breakdown_columns",
    "known_errors",
    "margins_recipe",
    "rebuild_margins",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESERVED = ("margin", "element", "value", "sd", "low", "high", "raw")
"""Columns of a release, which no attribute may be called."""

DECIMALS = 4
_REHEARSED, _AROUND = (
    100_000,
    8,
)  # numbers that a rehearsal writes, and the characters around one in a manifest
_RECIPE = {"name", "base", "shares", "importance", "rho"}


@dataclass(frozen=True, kw_only=True)
class BreakdownManifest(Manifest):
    """The manifest of a breakdown. The noisy integers stand in it; all values follow from them."""

    name: ClassVar[str] = "breakdown"

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "order": "The elements in the sequence of the release, and the covering pairs [lower, upper].",
        "rules": "How rows became records: unit, contributions, what happens to a record that breaks the order.",
        "breakdown": "The attributes with their public lists, the margins, and what happens to values in no list.",
        "confidence": "The confidence of the intervals.",
        "measured": "For each margin the noisy integers that were drawn, cell after cell; empty if it was not measured.",
        "questions": "By element: its label, its column and what counts as a yes; what is not said is as rules say. Absent without any.",
        "waves": "How many releases like this one are planned, and what all of them guarantee together; absent for one alone.",
        "derived": "How the values were changed after the release; absent for values as drawn.",
    }

    order: OrderEntry
    rules: CountRules
    breakdown: dict[str, Any]
    confidence: float
    measured: list[list[int]]
    questions: dict[str, QuestionEntry] | None = None
    waves: WavesEntry | None = None
    derived: dict[str, Any] | None = None

    @property
    def text_columns(self) -> frozenset[str]:
        """The margin, the attributes and the element."""
        by = self.breakdown.get("by")
        return frozenset({"margin", "element", *map(str, by if isinstance(by, list) else ())})  # pyright: ignore[reportUnknownArgumentType]


@dataclass(frozen=True)
class Known:
    """Standard deviations and half-widths, a table for each margin, known before any data is read."""

    sd: list[Floats]
    half: list[Floats]


@dataclass(frozen=True, kw_only=True)
class BreakdownQuery(Query[Ints, Margins]):
    """A release of a breakdown as asked for, made and checked by :class:`CountRequest`."""

    source: RecordSource
    P: Poset
    rules: RecordRules
    mechanism: MarginsMechanism
    asked: dict[str, Any] | None
    guarantee: Guarantee
    confidence: float
    stated: Stated
    known: Known
    relaxation: Relaxation | None = None
    waves: int = 1

    @property
    def breakdown(self) -> Breakdown:
        """Attributes and margins."""
        return self.mechanism.breakdown

    @property
    def cells(self) -> Groups:
        """The cells of all attributes together, one of which a record is in."""
        lists = tuple((a.column, a.finest) for a in self.breakdown.attributes)
        return Groups(lists, "other" if self.breakdown.unlisted == "other" else "drop")

    @property
    def description(self) -> str:
        """How many elements are counted, in how many margins."""
        return f"counts of {len(self.P)} elements in {len(self.breakdown.margins)} margins"

    def parameters(self) -> dict[str, Any]:
        """Order, rules, breakdown, mechanism as asked for, guarantee and columns."""
        given: dict[str, Any] = {} if self.relaxation is None else {"relaxation": self.relaxation.plain()}
        questions = definitions(self.source.questions)
        if questions:
            given["questions"] = questions
        if self.waves > 1:
            given["waves"] = self.waves
        return {
            "kind": BreakdownManifest.name,
            "order": order_to(self.P),
            **given,
            "guarantee": guarantee_to(self.guarantee),
            "mechanism": self.asked or margins_recipe(self.mechanism),
            "rules": rules_entry(self.rules, self.source, self.P),
            "no": list(self.rules.answers.no),
            "element": self.source.element,
            "columns": {str(key): value for key, value in self.source.columns.items()},
            "breakdown": self.breakdown.plain(),
            "confidence": self.confidence,
        }

    def open(self) -> Frame:
        """The columns of the answers, the unit and the attributes."""
        return self.source.open(self.P, self.rules, self.cells)

    def read(self, frame: Frame) -> Ints:
        """Rows to records by the rules, records to counts of cells, in one grouped query."""
        return count_records(self.source, frame, self.P, self.rules, self.cells)[0]

    def draw(self, statistic: Ints) -> Margins:
        """Noise on every cell of every measured margin, and least squares."""
        try:
            return self.mechanism.margins(self.mechanism.release(statistic))
        except OverflowError:
            raise InputError(TOO_WIDE) from None

    def publish(self, drawn: Margins, stamp: Stamp) -> Release:
        """Values with standard deviations and intervals."""
        columns = breakdown_columns(self.mechanism, drawn.values, self.known)
        return seal(columns, self._manifest(drawn.measured, stamp))

    def rehearsal(self, frame: Frame, stamp: Stamp) -> tuple[Release, dict[str, int]]:
        """All is drawn. Of many numbers every so many are written, and each name at least once."""
        drawn = self.draw(self.read(frame))
        columns = breakdown_columns(self.mechanism, drawn.values, self.known)
        number = len(columns["value"])
        step = -(-number // _REHEARSED)
        if step == 1:
            return self.publish(drawn, stamp), {}
        measured = [None if table is None else table.ravel()[::step] for table in drawn.measured]
        some = seal(thinned(columns, step), self._manifest(measured, stamp))
        numbers = sum(
            len(str(x)) + _AROUND for table in measured if table is not None for x in table.tolist()
        )
        rows = len(some.columns["value"])
        more = {
            "release.csv": len(some.csv().encode()) * (number - rows) // rows,
            "manifest.json": numbers * (step - 1),
        }
        return some, more

    def _manifest(self, measured: Sequence[Ints | None], stamp: Stamp) -> BreakdownManifest:
        return BreakdownManifest(
            kind=BreakdownManifest.name,
            order=order_to(self.P),
            mechanism=margins_recipe(self.mechanism),
            rules=rules_entry(self.rules, self.source, self.P),
            breakdown=self.breakdown.plain(),
            confidence=self.confidence,
            questions=entries_of(self.source.questions),
            waves=waves_entry(self.guarantee, self.waves),
            measured=[[] if table is None else table.ravel().tolist() for table in measured],
            **self.entries(stamp),
        )


def margins_recipe(mechanism: MarginsMechanism) -> dict[str, Any]:
    """The mechanism as plain values, the noise of a cell, and the share of each margin."""
    plain: dict[str, Any] = {"name": type(mechanism).__name__, "base": recipe_of(mechanism.base)}
    plain["shares"] = [str(share) for share in mechanism.shares]
    plain["importance"] = list(mechanism.importance)
    if mechanism.guarantee.kind == "zcdp" and mechanism.base.guarantee.kind == "pure":
        plain["rho"] = str(mechanism.guarantee.rho)
    return plain


def rebuild_margins(P: Poset, manifest: Manifest) -> MarginsMechanism:
    """The mechanism that a manifest describes."""
    recipe, said = manifest.mechanism, manifest["breakdown"]
    if recipe.get("name") != MarginsMechanism.__name__ or not set(recipe) <= _RECIPE:
        raise InputError(f"There is no mechanism {str(recipe.get('name'))[:60]!r} for breakdowns.")
    breakdown = read_breakdown(said["by"], said["groups"], said["margins"], said["unlisted"])
    if breakdown.plain() != said:
        raise InputError("the breakdown is not described as this version does")
    # without shares the best would be searched for, and taken for those used
    if not isinstance(recipe["shares"], list):
        raise InputError("the manifest does not say how the budget was shared")
    base = rebuild_count_mechanism(P, recipe["base"])
    importance = list(zip(said["margins"], recipe["importance"], strict=True))
    return MarginsMechanism(base, breakdown, importance, recipe["shares"], recipe.get("rho"))


def known_errors(mechanism: MarginsMechanism, confidence: float) -> Known:
    """Standard deviations and half-widths of all values."""
    try:
        sd = [np.sqrt(table) for table in mechanism.variances()]
        half = mechanism.tables(mechanism.half_widths(confidence))
    except ArithmeticError:  # beyond the range of floats
        raise InputError(TOO_WIDE) from None
    if not all(np.all(table <= WIDEST) for table in sd):
        raise InputError(TOO_WIDE)
    return Known(sd, half)


def breakdown_columns(
    mechanism: MarginsMechanism, values: Sequence[Floats], known: Known
) -> dict[str, tuple[Any, ...]]:
    """The columns of a release, which all follow from the values and the mechanism."""
    breakdown, elements = mechanism.breakdown, [str(x) for x in mechanism.base.P.elements]
    columns: dict[str, list[Any]] = {name: [] for name in ("margin", *breakdown.columns, "element")}
    for margin in breakdown.margins:
        cells = int(np.prod(breakdown.sizes(margin)))
        columns["margin"] += [breakdown.label(margin)] * (cells * len(elements))
        for name, labels in _labels(breakdown, margin).items():
            columns[name] += np.repeat(labels, len(elements)).tolist()
        columns["element"] += elements * cells
    value = _flat(values)
    half = _flat(known.half)
    numbers = {
        "value": np.round(value, DECIMALS),
        "sd": np.round(_flat(known.sd), DECIMALS),
        "low": np.round(np.maximum(value - half, 0), DECIMALS),
        "high": np.round(np.maximum(value + half, 0), DECIMALS),
    }
    plain = {name: tuple((column + 0.0).tolist()) for name, column in numbers.items()}
    return {**{name: tuple(column) for name, column in columns.items()}, **plain}


def _flat(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([np.ravel(table) for table in tables])


def _labels(breakdown: Breakdown, margin: Margin) -> dict[str, NDArray[Any]]:
    """The value of each attribute in each cell of a margin, empty where it is not broken down by it."""
    sizes = breakdown.sizes(margin)
    found: dict[str, NDArray[Any]] = {}
    for axis, (attribute, level) in enumerate(zip(breakdown.attributes, margin, strict=True)):
        place = np.arange(sizes[axis])
        along = [1] * axis + [-1] + [1] * (len(sizes) - axis - 1)
        for k in range(len(attribute.names), 0, -1):
            if k > level:
                names = np.array([""] * sizes[axis], dtype=object)
            else:
                names = np.array(attribute.values[k - 1], dtype=object)[place]
                place = np.array(attribute.parents[k - 2], np.int64)[place] if k > 1 else place
            found[attribute.names[k - 1]] = np.broadcast_to(names.reshape(along), sizes).ravel()
    return found
