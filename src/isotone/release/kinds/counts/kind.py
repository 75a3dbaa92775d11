"""What strangers and readers do with published counts: verify, read, derive, attack by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotone.audit.exact import audit_count_mechanism, example_of
from isotone.counts import PosetMechanism
from isotone.counts.count_plan import count_mechanism, count_mechanisms
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.margins import MarginsMechanism
from isotone.errors import InputError
from isotone.mechanism import HasGroups, Progress
from isotone.privacy.checks import truth
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.counts.combining import draws_of, total_guarantee
from isotone.release.kinds.counts.deriving import made_consistent
from isotone.release.kinds.counts.description import CountManifest, Counts
from isotone.release.kinds.counts.margins_deriving import as_drawn
from isotone.release.kinds.counts.margins_deriving import made_consistent as consistent_margins
from isotone.release.kinds.counts.margins_reader import BreakdownReader, margins_of
from isotone.release.kinds.counts.margins_report import BreakdownPage
from isotone.release.kinds.counts.measuring import has_margins
from isotone.release.kinds.counts.report import CountsPage
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.reader import Reader
from isotone.release.manifest import Manifest, guarantee_from, order_from
from isotone.release.recipes import rebuild_count_mechanism
from isotone.release.result import Release

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport

__all__ = ["KIND", "CountsKind"]


class CountsKind(Kind):
    """Counts over a partial order."""

    described = Counts
    manifest = CountManifest
    classes = (*count_mechanisms(), MarginsMechanism.__name__)

    def page(self, release: Release) -> CountsPage:
        """What the report says and draws."""
        return BreakdownPage() if has_margins(release.manifest) else CountsPage()

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """A mechanism on a survey of three questions. Of margins, the noise of one cell."""
        name = PosetMechanism.__name__ if name == MarginsMechanism.__name__ else name
        return audit_count_mechanism(example_of(count_mechanism(name), epsilon), trials, progress)

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """Values that are not negative and follow the order, in each group, or in margins that still add up."""
        if has_margins(release.manifest):
            if weights != "variance":
                raise InputError("The values of a breakdown are moved by their variances: leave out weights.")
            whole = truth(integers, "integers")
            return consistent_margins(release, margins_of(release.manifest), integers=whole)
        return made_consistent(release, integers, weights)

    def reader(self, release: Release) -> Reader:
        """Answers from the law of the noise."""
        from isotone.release.kinds.counts.reader import CountReader

        return BreakdownReader(release) if has_margins(release.manifest) else CountReader(release)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The draws that a derived release came from."""
        if has_margins(manifest):
            assert isinstance(manifest, CountManifest)
            return [as_drawn(manifest, margins_of(manifest))]
        return draws_of(manifest)

    def rebuild(self, manifest: Manifest) -> Any:
        """The mechanism over the order of the manifest."""
        if has_margins(manifest):
            return margins_of(manifest)
        return rebuild_count_mechanism(order_from(manifest["description"]["order"]), manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the noise guarantees for records of the kind that the rules let through."""
        if release.manifest.get("derived") and not has_margins(release.manifest):
            for draw in draws_of(release.manifest):
                self.derived_guarantee(Release({}, draw))  # each keeps its own guarantee
            return total_guarantee(release.manifest)
        manifest, found = release.manifest, self.rebuild(release.manifest)
        described, stated = (
            Counts.from_manifest(manifest, release.columns),
            guarantee_from(manifest.guarantee),
        )
        mechanism = found.base if isinstance(found, MarginsMechanism) else found
        if described.is_breakdown != isinstance(found, MarginsMechanism):
            raise InputError("the mechanism is not one for what is described")
        if release.total is not None and not getattr(mechanism, "has_total", False):
            raise InputError(f"the noise of {type(mechanism).__name__} does not cover the number of records")
        most = mechanism.max_size
        shorter = most is None or (described.max_size is not None and described.max_size <= most)
        if mechanism.contributions < described.whose.most or not shorter:
            raise InputError("the mechanism is for records of another kind than those that were counted")
        if described.whose.neighbours != stated.neighbours:
            raise InputError("the neighbours of the description are not those of the guarantee")
        if isinstance(mechanism, FixedRootMechanism):
            described.require_every_place(mechanism.guarantee.neighbours)
        guarantee = replace(found.guarantee, unit=stated.unit)
        if isinstance(found, MarginsMechanism):
            return guarantee.for_neighbours(stated.neighbours)
        number = len(described.group_names or ())
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
        if has_margins(release.manifest):
            return "all values, errors and intervals follow from the noisy integers and the mechanism"
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
        from isotone.release.kinds.counts.margins_faults import breakdown_faults

        described = Counts.from_manifest(release.manifest, release.columns)
        if described.said() != release.manifest.description:
            return ["the description is not written as a release writes it"]
        if described.is_breakdown != has_margins(release.manifest):
            return ["the columns are not those of what is described"]
        if described.is_breakdown:
            return breakdown_faults(release, margins_of(release.manifest))
        if release.manifest.get("derived"):
            return derived_faults(release)
        return count_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _begins(release: Release) -> bool:
    """Whether the manifest says where the draws of a law begin."""
    relaxation = release.manifest.mechanism.get("relaxation")
    return isinstance(relaxation, dict) and bool(relaxation.get("draws"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


KIND = CountsKind()
