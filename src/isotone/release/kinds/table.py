"""A table: one count for each category of a public list, so that the distribution of counts survives."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from typing_extensions import TypedDict

from isotone import tables
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import confidence_level, truth
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.categories import CategorySource, count_categories
from isotone.release import pipeline
from isotone.release.kinds.kind import Kind, Query, Stamp, require_pure
from isotone.release.kinds.parameters import (
    column_name,
    contribution_bound,
    public_names,
    request_name,
    title_text,
    unit_in_words,
)
from isotone.release.manifest import Manifest, guarantee_from, guarantee_to
from isotone.release.order_files import read_categories
from isotone.release.planning import SpecPlan
from isotone.release.recipes import rebuild_table_mechanism, recipe_of
from isotone.release.result import Release, seal
from isotone.release.sections import Real, Section, Size, Text
from isotone.tables.published_table import PublishedTable
from isotone.tables.shapes import Shape
from isotone.tables.two_stage import TwoStageMechanism

if TYPE_CHECKING:
    from isotone.audit.report import AuditReport
    from isotone.reading.sources import Frame
    from isotone.release.spec import Spec

__all__ = ["Table", "TableKind", "TableManifest", "TableQuery", "release_table", "table_query"]


class Table(Section):
    """``[table]``: one count per category."""

    category: Text
    """The column of the categories."""
    categories: list[str] | None = None
    """The public list of the categories: others are ignored, absent ones count 0."""
    categories_file: Text | None = None
    """A public CSV file that has the list, in a column called like category."""
    count: Text | None = None
    """For rows that are already counts: the column of the count. Without it a row counts as one."""
    upper: Size
    """The largest count that is told apart; larger ones are published as this at most. Not chosen by the data."""
    remap: Literal["auto", "rows", "table"] = "auto"
    """Whether counts are published row by row or from an estimate for the whole table; "auto" decides by public numbers and by what is already private."""
    split: Real | None = None
    """The share of ε that goes to the distribution. By default a rule of thumb."""
    shape: Shape = "skewed"
    """Your guess at the distribution, for the plan alone: a release does not use it."""

    @model_validator(mode="after")
    def _one_list(self) -> Table:
        if (self.categories is None) == (self.categories_file is None):
            raise ValueError("give categories (the public list) or categories_file, and not both")
        return self

    def names(self, resolve: Callable[[str], Path]) -> tuple[str, ...]:
        """The public list of categories."""
        if self.categories is not None:
            return tuple(self.categories)
        assert self.categories_file is not None
        return read_categories(resolve(self.categories_file), self.category)

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the list of a file in place of its name."""
        said = super().content(resolve)
        return (
            said if self.categories_file is None else {**said, "categories_file": list(self.names(resolve))}
        )


TableRules = TypedDict("TableRules", {"unit": str | None, "contributions": int, "form": str, "top code": int})


@dataclass(frozen=True, kw_only=True)
class TableManifest(Manifest):
    """The manifest of a table; ``distribution`` is the private share of categories with each count."""

    name: ClassVar[str] = "table"
    texts: ClassVar[frozenset[str]] = frozenset({"category"})

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "category": "The column of the categories.",
        "upper": "The largest count that was told apart.",
        "method": "How the table was estimated from the noisy measurements.",
        "distribution": "The private share of categories with each count from 0 to upper.",
        "rules": "How rows became counts: unit, contributions, the form of the rows and the top code.",
        "confidence": "The confidence of the intervals.",
    }

    category: str
    upper: int
    method: str
    distribution: list[float]
    rules: TableRules
    confidence: float


@dataclass(frozen=True)
class TableQuery(Query[NDArray[np.int64], PublishedTable]):
    """A release of a table as asked for; :func:`table_query` makes and checks one."""

    source: CategorySource
    mechanism: TwoStageMechanism
    guarantee: Guarantee
    confidence: float
    title: str

    @property
    def description(self) -> str:
        """How many categories there are."""
        return f"table of {len(self.source.categories)} categories"

    @property
    def mechanism_name(self) -> str:
        """The class of the mechanism."""
        return type(self.mechanism).__name__

    def parameters(self) -> dict[str, Any]:
        """Columns, categories, mechanism, guarantee and rules."""
        return {
            "kind": TableManifest.name,
            "category": self.source.category,
            "categories": list(self.source.categories),
            "count": self.source.count,
            "mechanism": recipe_of(self.mechanism),
            "guarantee": guarantee_to(self.guarantee),
            "rules": self._rules(),
            "confidence": self.confidence,
        }

    def open(self) -> Frame:
        """The columns of category, count and unit."""
        return self.source.open()

    def read(self, frame: Frame) -> NDArray[np.int64]:
        """One count per category."""
        return count_categories(self.source, frame)

    def draw(self, statistic: NDArray[np.int64]) -> PublishedTable:
        """Both noisy measurements, and the table that is estimated from them."""
        return self.mechanism.release_in_full(statistic)

    def publish(self, drawn: PublishedTable, stamp: Stamp) -> Release:
        """Values with typical errors and intervals, and the private distribution."""
        low, high = drawn.interval(self.confidence)
        columns: dict[str, tuple[Any, ...]] = {
            "category": self.source.categories,
            "value": tuple(drawn.values.tolist()),
            "sd": tuple(np.round(drawn.deviation(), 4).tolist()),
            "low": tuple(low.tolist()),
            "high": tuple(high.tolist()),
        }
        manifest = TableManifest(
            kind=TableManifest.name,
            title=self.title,
            category=self.source.category,
            upper=int(drawn.upper),
            mechanism=recipe_of(self.mechanism),
            method=drawn.method,
            distribution=np.round(drawn.probabilities, 8).tolist(),
            guarantee=guarantee_to(self.guarantee),
            rules=self._rules(),
            confidence=self.confidence,
            **stamp.entries(),
        )
        return seal(columns, manifest)

    def _rules(self) -> TableRules:
        return {
            "unit": self.source.unit,
            "contributions": self.source.contributions,
            "form": "one row for each unit" if self.source.count is None else "rows that are already counts",
            "top code": self.source.upper,
        }


def release_table(
    data: Any,
    *,
    category: str,
    categories: Sequence[str | int | bool],
    upper: int,
    epsilon: Number,
    ledger: Ledger,
    count: str | None = None,
    unit: str | None = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
    split: Number | None = None,
    remap: Literal["auto", "rows", "table"] = "auto",
    confidence: float = 0.95,
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Release:
    """Release how many units fall in each category.

    Parameters
    ----------
    data
        A path or a table, as for :func:`release_counts`: a row for each unit and category, or, with ``count``,
        a row for each category and how many units it has.
    category, categories
        The column, and the public list of its values. Others are ignored; absent ones count 0. The list must not
        come from the data.
    upper
        The largest count that is told apart; larger ones are top-coded. Public, and not chosen by the data.
    count
        The column of counts, for rows that are already aggregated.
    unit, contributions
        The column of the privacy unit, and in how many categories one unit may count.
    split, remap
        As for :class:`~isotone.tables.TwoStageMechanism`.
    title, request, again, folder
        As for :func:`release_counts`.

    Returns
    -------
    Release
        One value per category with a typical error and an interval, and the private distribution.
    """
    require_ledger(ledger)
    promise = Guarantee.pure(epsilon, neighbours=neighbours, unit=unit_in_words(unit, unit_name))
    options: dict[str, Any] = {"split": split, "remap": remap, "confidence": confidence, "title": title}
    query = table_query(data, category, categories, upper, promise, count, unit, contributions, **options)
    shown = pipeline.Presentation(folder)
    done = pipeline.run(
        query,
        ledger=ledger,
        identity=request_name(request),
        again=truth(again, "again"),
        presentation=shown,
        progress=progress,
    )
    return done.release


def table_query(
    data: Any,
    category: str,
    categories: Sequence[str | int | bool],
    upper: int,
    promise: Guarantee,
    count: str | None,
    unit: str | None,
    contributions: int,
    *,
    split: Number | None,
    remap: Literal["auto", "rows", "table"],
    confidence: float,
    title: str | None,
) -> TableQuery:
    """The query that :func:`release_table` runs, with every public parameter checked."""
    named = {"category": category, "count": count, "unit": unit}
    category, count, unit = (None if c is None else column_name(c, n) for n, c in named.items())  # type: ignore
    units = (
        contribution_bound(contributions, unit) if count is None else contribution_bound(contributions, "")
    )
    mechanism = TwoStageMechanism(
        upper, promise.epsilon, split, remap, contributions=units, neighbours=promise.neighbours
    )
    names = public_names(categories, "categories")
    if not names:
        raise InputError("categories is empty: give the public list of categories.")
    source = CategorySource(data, category, names, mechanism.upper, count, unit, units)
    return TableQuery(
        source, mechanism, promise, confidence_level(confidence), title_text(title, "Table of counts")
    )


class TableKind(Kind):
    """A table of counts."""

    name: ClassVar[str] = TableManifest.name
    key: ClassVar[str] = "table"
    section: ClassVar[type[Section]] = Table
    manifest: ClassVar[type[Manifest]] = TableManifest
    classes: ClassVar[tuple[str, ...]] = (TwoStageMechanism.__name__,)

    def query(self, spec: Spec) -> TableQuery:
        """The query of a spec with ``[table]``."""
        table, promise = spec.said(Table), require_pure(spec)
        return table_query(
            spec.source,
            table.category,
            table.names(spec.resolve),
            table.upper,
            promise,
            table.count,
            spec.data.unit,
            spec.data.contributions,
            split=table.split,
            remap=table.remap,
            confidence=spec.output.confidence,
            title=spec.output.title,
        )

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """Mechanisms compared on a table of the guessed shape."""
        table, promise = spec.said(Table), require_pure(spec)
        made = tables.plan(
            table.shape,
            upper=table.upper,
            size=len(table.names(spec.resolve)),
            epsilon=promise.epsilon,
            contributions=spec.data.contributions,
            neighbours=promise.neighbours,
            progress=progress,
        )
        return SpecPlan(made, {**spec.head(), "text": str(made)})

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The mechanism of the spec, by draws."""
        return _audited(self.query(spec).mechanism, trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The mechanism for counts up to 20."""
        return _audited(TwoStageMechanism(20, epsilon), trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Categories outside the list, and counts that are no numbers."""
        from isotone.release.check import check_table

        return check_table(spec, source)

    def rebuild(self, manifest: Manifest) -> TwoStageMechanism:
        """The mechanism of the manifest."""
        return rebuild_table_mechanism(manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the mechanism of the manifest promises."""
        stated, mechanism = guarantee_from(release.manifest.guarantee), self.rebuild(release.manifest)
        if mechanism.unit.contributions < release.manifest["rules"]["contributions"]:
            raise InputError("the noise is for fewer categories a unit than the rules let through")
        return replace(mechanism.guarantee, unit=stated.unit)

    recomputed: ClassVar[str] = (
        "categories, largest count and distribution are possible, and each error and interval follows from some noisy "
        "count; which one it was is not published"
    )
    errors_are_known: ClassVar[bool] = False

    def faults(self, release: Release) -> list[str]:
        """Categories, bounds, errors and intervals that the mechanism cannot have given."""
        from isotone.release.recomputed import table_faults

        return table_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _audited(mechanism: TwoStageMechanism, trials: int, progress: Progress) -> AuditReport:
    """One unit more in the first of three categories, or (replace) moved from the first to the second.

    Looked at are the published value of that category and the noisy numbers that it was made of.
    """
    from isotone.audit import audit
    from isotone.audit.report import AuditReport

    units, replaced = mechanism.unit.contributions, mechanism.guarantee.neighbours == "replace"
    low = min(2, max(mechanism.upper - units, 0))
    other = min(3, mechanism.upper)
    first = np.array([min(low + units, mechanism.upper), 0, other])
    second = np.array([low, units if replaced else 0, other])

    def release(table: Any) -> Any:
        made = mechanism.release_in_full(table)
        return made.values[0], made.noisy_counts[0], made.noisy_cumulative[low]

    found = audit(release, first, second, trials, claimed=mechanism.guarantee, progress=progress)
    return AuditReport((found,))
