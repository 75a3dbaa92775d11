"""Binds query, plan, audit and verification of breakdowns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotone.audit.exact import audit_count_mechanism, example_of
from isotone.counts.margins import MarginsMechanism
from isotone.counts.margins_plan import plan_margins
from isotone.errors import InputError, SpecError
from isotone.mechanism import Progress
from isotone.privacy.checks import truth
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.checking.findings import unlisted
from isotone.release.kinds.breakdown.deriving import as_drawn, made_consistent
from isotone.release.kinds.breakdown.query import BreakdownManifest, BreakdownQuery, rebuild_margins
from isotone.release.kinds.breakdown.report import BreakdownPage
from isotone.release.kinds.breakdown.section import BreakdownSection, public_breakdown
from isotone.release.kinds.counts.kind import require_repaired
from isotone.release.kinds.counts.record_check import check_counts
from isotone.release.kinds.counts.request import spec_request
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.reader import Reader
from isotone.release.manifest import Manifest, guarantee_from, order_from
from isotone.release.result import Release
from isotone.release.spec_plan import SpecPlan

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.release.spec import Spec

__all__ = ["BreakdownKind"]


class BreakdownKind(Kind):
    """Counts over a partial order in the cells of several margins."""

    key = "breakdown"
    section = BreakdownSection
    manifest = BreakdownManifest
    page = BreakdownPage()
    combines = True
    classes = (MarginsMechanism.__name__,)
    has_waves = True

    def query(self, spec: Spec) -> BreakdownQuery:
        """The query of a spec with ``[breakdown]``."""
        asked = spec.said(BreakdownSection)
        if spec.data.by is not None:
            raise SpecError("by and groups of a breakdown stand in [breakdown], not in [data].")
        cells = asked.model_dump(include={"by", "groups", "margins", "importance", "unlisted"})
        query = spec_request(spec, asked, **cells).query()
        assert isinstance(query, BreakdownQuery)
        return query

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """The margins with their shares and errors, and other ways to share the budget."""
        made = plan_margins(self.query(spec).mechanism)
        made = replace(made, guarantee=spec.privacy.guarantee(spec.unit))
        return SpecPlan(made, {**spec.head(), **made.plain()})

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The noise of one cell that had the whole budget. What the cells of a record have adds up to it."""
        return audit_count_mechanism(self.query(spec).mechanism.base, trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The noise of one cell on a survey of three questions."""
        from isotone.counts import PosetMechanism

        return audit_count_mechanism(example_of(PosetMechanism, epsilon), trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Records that break the order, and values in no list."""
        asked = spec.said(BreakdownSection)
        lines = check_counts(spec, source)
        fate = "counted as other" if asked.unlisted == "other" else "left out of all margins"
        for attribute in public_breakdown(asked.by, asked.groups, asked.margins).attributes:
            lines += unlisted(source, attribute.column, attribute.finest, "a value", fate)
        return lines

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """Values that are not negative and follow the order, and still add up."""
        if weights != "variance":
            raise InputError("The values of a breakdown are moved by their variances: leave out weights.")
        return made_consistent(release, self.rebuild(release.manifest), integers=truth(integers, "integers"))

    def reader(self, release: Release) -> Reader:
        """Answers from the law of the noise of all margins."""
        from isotone.release.kinds.breakdown.reader import BreakdownReader

        return BreakdownReader(release)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The release as drawn."""
        assert isinstance(manifest, BreakdownManifest)
        return [as_drawn(manifest, self.rebuild(manifest))]

    def rebuild(self, manifest: Manifest) -> MarginsMechanism:
        """The mechanism over the order of the manifest."""
        return rebuild_margins(order_from(manifest["order"]), manifest)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the noise of all cells of a record guarantees together, for records that the rules let through."""
        manifest, mechanism = release.manifest, self.rebuild(release.manifest)
        stated, rules, base = guarantee_from(manifest.guarantee), manifest["rules"], mechanism.base
        shorter = base.max_size is None or (
            rules["max_size"] is not None and rules["max_size"] <= base.max_size
        )
        require_repaired(rules, base.P)
        if base.contributions < rules["contributions"] or not shorter:
            raise InputError("the mechanism is for records of another kind than those that were counted")
        guarantee = replace(mechanism.guarantee, unit=stated.unit)
        return guarantee.for_neighbours(stated.neighbours)

    recomputed = "all values, errors and intervals follow from the noisy integers and the mechanism"

    def faults(self, release: Release) -> list[str]:
        """Labels, values, errors and intervals that do not follow from the noisy integers."""
        from isotone.release.kinds.breakdown.faults import breakdown_faults

        return breakdown_faults(release, self.rebuild(release.manifest))
