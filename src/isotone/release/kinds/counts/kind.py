"""Binds query, plan, audit and verification of counts over a partial order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotone.audit.exact import audit_count_mechanism, example_of
from isotone.counts.count_plan import count_mechanism, count_mechanisms, plan_setting
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.errors import InputError
from isotone.mechanism import HasGroups, Progress
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.counts.combining import draws_of, total_guarantee
from isotone.release.kinds.counts.deriving import made_consistent
from isotone.release.kinds.counts.measuring import groups_of
from isotone.release.kinds.counts.query import CountManifest, CountQuery, require_every_place
from isotone.release.kinds.counts.record_check import check_counts
from isotone.release.kinds.counts.report import CountsPage
from isotone.release.kinds.counts.request import CountRequest, spec_request
from isotone.release.kinds.counts.section import OrderSection
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.reader import Reader
from isotone.release.manifest import Manifest, guarantee_from, order_from
from isotone.release.recipes import rebuild_count_mechanism
from isotone.release.result import Release
from isotone.release.spec_plan import SpecPlan

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.order import Poset
    from isotone.release.spec import Spec

__all__ = ["CountsKind", "require_repaired"]


class CountsKind(Kind):
    """Counts over a partial order."""

    key = "order"
    section = OrderSection
    manifest = CountManifest
    page = CountsPage()
    combines = True
    classes = count_mechanisms()
    has_waves = True

    def query(self, spec: Spec) -> CountQuery:
        """The query of a spec with ``[order]``."""
        query = _request(spec).query()
        assert isinstance(query, CountQuery)
        return query

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """Every mechanism that keeps the guarantee, best first."""
        request = _request(spec)
        if request.records is not None:
            request.query()  # what a release would refuse
        made = plan_setting(request.setting, request.guarantee, progress)
        return SpecPlan(made, {**spec.head(), **made.plain()})

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The mechanism of the spec, by its density and by draws."""
        return audit_count_mechanism(self.query(spec).mechanism, trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """A mechanism on a survey of three questions."""
        return audit_count_mechanism(example_of(count_mechanism(name), epsilon), trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Records that break the order, and answers that are neither yes nor no."""
        return check_counts(spec, source)

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """Values that are not negative and follow the order, in each group."""
        return made_consistent(release, integers, weights)

    def reader(self, release: Release) -> Reader:
        """Answers from the law of the noise."""
        from isotone.release.kinds.counts.reader import CountReader

        return CountReader(release)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The draws that a derived release came from."""
        return draws_of(manifest)

    def rebuild(self, manifest: Manifest) -> Any:
        """The mechanism over the order of the manifest."""
        return rebuild_count_mechanism(order_from(manifest["order"]), manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the noise guarantees for records of the kind that the rules let through."""
        if release.manifest.get("derived"):
            for draw in draws_of(release.manifest):
                self.derived_guarantee(Release({}, draw))  # each keeps its own guarantee
            return total_guarantee(release.manifest)
        manifest, mechanism = release.manifest, self.rebuild(release.manifest)
        stated = guarantee_from(manifest.guarantee)
        if release.total is not None and not getattr(mechanism, "has_total", False):
            raise InputError(f"the noise of {type(mechanism).__name__} does not cover the number of records")
        rules, most = manifest["rules"], mechanism.max_size
        shorter = most is None or (rules["max_size"] is not None and rules["max_size"] <= most)
        require_repaired(rules, mechanism.P)
        if mechanism.contributions < rules["contributions"] or not shorter:
            raise InputError("the mechanism is for records of another kind than those that were counted")
        if isinstance(mechanism, FixedRootMechanism):
            total = release.total is not None
            require_every_place(mechanism.guarantee, rules, bool(manifest["groups"]), total)
        guarantee = replace(mechanism.guarantee, unit=stated.unit)
        number = len(groups_of(manifest) or ())
        if isinstance(mechanism, HasGroups):
            if mechanism.groups != number:
                raise InputError(
                    f"the noise is for {mechanism.groups} groups, and {number or 'none'} are released"
                )
            return guarantee
        if number and guarantee.adjacency.units > 1:
            # one unit may leave a group and another enter a second one, which noise for replacing does not cover
            raise InputError("the noise is for replacing within a group, and a unit may change groups")
        return guarantee.for_neighbours(stated.neighbours) if number else guarantee

    recomputed = "elements, standard deviations and intervals are the mechanism's own"

    def looked_at(self, release: Release) -> str:
        """What was recomputed, and that slow draws were found again, not searched for."""
        if not _begins(release):
            return self.recomputed
        return (
            f"{self.recomputed}, by draws that begin where the manifest says; a random walk keeps within the "
            "intervals as often as stated, and --full searches for the draws again"
        )

    def without_shortcuts(self, release: Release) -> Release:
        """The same release, whose law is drawn without being told where its draws begin."""
        if not _begins(release):
            return release
        mechanism = dict(release.manifest.mechanism)
        told = {key: value for key, value in mechanism["relaxation"].items() if key != "draws"}
        return replace(
            release, manifest=replace(release.manifest, mechanism={**mechanism, "relaxation": told})
        )

    def faults(self, release: Release) -> list[str]:
        """Labels, errors and intervals that are not those of the mechanism."""
        from isotone.release.kinds.counts.faults import count_faults, derived_faults

        if release.manifest.get("derived"):
            return derived_faults(release)
        return count_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _request(spec: Spec) -> CountRequest:
    """What a spec with ``[order]`` asks for."""
    return spec_request(spec, spec.said(OrderSection), by=spec.data.by, groups=spec.data.groups)


def _begins(release: Release) -> bool:
    """Whether the manifest says where the draws of a law begin."""
    relaxation = release.manifest.mechanism.get("relaxation")
    return isinstance(relaxation, dict) and bool(relaxation.get("draws"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def require_repaired(rules: Any, P: Poset) -> None:
    """Refuse rules after which a record may break the order, or a choice of it."""
    if rules["on_violation"] not in ("close", "drop"):
        raise InputError("the rules do not say how records that break the order were repaired")
    if rules["form"] not in ("wide", "long") or rules["missing"] not in ("no", "yes") or not rules["yes"]:
        raise InputError("the rules do not say what was read as a yes")
    if P.choices and rules.get("on_conflict") not in ("first", "drop"):
        raise InputError("the rules do not give every record one option of each choice")
