"""Binds query, plan, audit and verification of tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone import tables
from isotone.audit import audit
from isotone.audit.exact import AuditReport
from isotone.errors import InputError
from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee, Number, budget_of
from isotone.release.checking.findings import numbers, unlisted
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.table.query import AGGREGATED, MICRODATA, TableManifest, TableQuery
from isotone.release.kinds.table.reader import TableReader
from isotone.release.kinds.table.release import table_query
from isotone.release.kinds.table.report import TablePage
from isotone.release.kinds.table.section import TableSection
from isotone.release.manifest import Manifest, guarantee_from
from isotone.release.recipes import FORMER_TABLE_ARGUMENTS, rebuild_table_mechanism
from isotone.release.result import Release
from isotone.release.spec_plan import SpecPlan
from isotone.tables.choosing import TableMechanism
from isotone.tables.gaussian_table import GaussianTableMechanism
from isotone.tables.thresholds import SMALL
from isotone.tables.two_stage import TwoStageMechanism

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["TableKind"]


class TableKind(Kind):
    """A table of counts."""

    key = "table"
    section = TableSection
    manifest = TableManifest
    page = TablePage()
    classes = (TwoStageMechanism.__name__, GaussianTableMechanism.__name__)
    why_no_answers = (
        "Published counts are estimates, and the law of their error depends on the data; that of sums of the noisy counts is "
        "known: ask sum()."
    )

    def query(self, spec: Spec) -> TableQuery:
        """The query of a spec with ``[table]``."""
        table, guarantee = spec.said(TableSection), spec.privacy.guarantee(spec.unit)
        declared = "contributions" in spec.data.model_fields_set
        return table_query(
            spec.source,
            table.category,
            table.names(spec.resolve),
            table.upper,
            guarantee,
            count=table.count,
            counts=table.counts,
            kind=table.kind,
            unit=spec.data.unit,
            contributions=spec.data.contributions if declared else None,
            emphasis=table.emphasis,
            strata=table.column(table.strata, spec.resolve),
            population=table.column(table.population, spec.resolve),
            confidence=spec.output.confidence,
            stated=spec.output.stated,
        )

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """Mechanisms compared on a table of the guessed shape."""
        table, guarantee = spec.said(TableSection), spec.privacy.guarantee(spec.unit)
        made = tables.plan(
            table.shape,
            upper=table.upper,
            size=len(table.names(spec.resolve)),
            **budget_of(guarantee),
            once=table.count is None and (table.counts is None or table.kind is not None),
            contributions=spec.data.contributions,
            neighbours=guarantee.neighbours,
            progress=progress,
        )
        return SpecPlan(made, {**spec.head(), "text": str(made), **made.plain()})

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The mechanism of the spec, by draws."""
        return _audit(self.query(spec).mechanism, trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The mechanism for counts up to 20."""
        if name == GaussianTableMechanism.__name__:
            return _audit(GaussianTableMechanism(20, epsilon=epsilon, delta="1e-3"), trials, progress)
        return _audit(TwoStageMechanism(20, epsilon), trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Categories outside the list, and counts that are no numbers."""
        table = spec.said(TableSection)
        lines = unlisted(source, table.category, table.names(spec.resolve), "a category")
        columns = [table.count] if table.count else table.counts if table.counts and not table.kind else []
        return lines + [
            line for column in columns for line in numbers(source, column, 0, table.upper, whole=True)
        ]

    def rebuild(self, manifest: Manifest) -> TableMechanism:
        """The mechanism of the manifest."""
        return rebuild_table_mechanism(manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the mechanism of the manifest guarantees."""
        stated, mechanism = guarantee_from(release.manifest.guarantee), self.rebuild(release.manifest)
        if mechanism.unit.contributions < release.manifest["rules"]["contributions"]:
            raise InputError("the noise is for fewer categories a unit than the rules let through")
        form = release.manifest["rules"]["form"]
        if form not in (MICRODATA, AGGREGATED):
            raise InputError("the rules do not say whether rows were counted or are counts")
        aggregated = form == AGGREGATED
        if isinstance(mechanism, GaussianTableMechanism) and mechanism.once and aggregated:
            raise InputError(
                "the noise is for units that count once in a category, and the rules do not see to it"
            )
        return replace(mechanism.guarantee, unit=stated.unit)

    recomputed = (
        "categories, largest count and distribution are possible, values have the distribution and the order of the noise, the error is that of the "
        "noise, and each estimate and interval follows from its noisy count"
    )
    errors_are_known = False

    def looked_at(self, release: Release) -> str:
        """Errors of the version before followed from counts that were not published. Posteriors over very many counts are left out."""
        from isotone.release.kinds.table.faults import LARGEST_TABLE

        if FORMER_TABLE_ARGUMENTS & set(release.manifest.mechanism):
            return "categories, largest count and distribution are possible; errors and intervals were not computed again"
        if release.manifest["upper"] > LARGEST_TABLE:
            return (
                "categories, largest count and distribution are possible, values have the distribution, and the error is that of the noise; "
                f"estimates and intervals were not computed again, as counts go beyond {LARGEST_TABLE:,}"
            )
        return self.recomputed

    def reader(self, release: Release) -> TableReader:
        """Sums of categories, from the noise alone."""
        return TableReader(release, self.why_no_answers)

    def faults(self, release: Release) -> list[str]:
        """Categories, bounds, errors and intervals that the mechanism cannot have given."""
        from isotone.release.kinds.table.faults import table_faults

        return table_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _audit(mechanism: TableMechanism, trials: int, progress: Progress) -> AuditReport:
    """One unit more in the first of some categories, or (replace) moved from the first to the second.

    Looked at are the published value of that category and the noisy numbers that it was made of.
    """
    units, replaced = mechanism.unit.changes, mechanism.guarantee.adjacency.exchanges
    low = min(2, max(mechanism.upper - units, 0))
    other = min(3, mechanism.upper)
    rest = np.full(max(SMALL - 2, 1), other)  # enough categories for thresholds to be measured
    first = np.append([min(low + units, mechanism.upper), 0], rest)
    second = np.append([low, units if replaced else 0], rest)
    place = {at: k for k, at in enumerate(mechanism.measurement(len(first)).places)}.get(low)

    def release(table: Any) -> Any:
        made = mechanism.release_in_full(table)
        crossed = 0 if place is None else made.noisy_cumulative[place]
        return made.values[0], made.noisy_counts[0], crossed

    found = audit(release, first, second, trials, claimed=mechanism.guarantee, progress=progress)
    return AuditReport((found,))
