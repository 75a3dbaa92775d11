"""Binds query, plan, audit and verification of surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.checking.findings import outside
from isotone.release.kinds.fits import audit_fit, compared, fit_guarantee
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.surface.query import ESTIMATOR, SurfaceManifest, SurfaceQuery, middles
from isotone.release.kinds.surface.release import surface_query
from isotone.release.kinds.surface.report import SurfacePage
from isotone.release.kinds.surface.section import SurfaceSection
from isotone.release.manifest import Manifest, Stated, guarantee_from
from isotone.release.recipes import surface_estimator
from isotone.release.result import Release
from isotone.release.spec_plan import SpecPlan

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.release.spec import Spec

__all__ = ["SurfaceKind"]

_FITS = 3_000  # an audit fits at most so often: a fit takes milliseconds


class SurfaceKind(Kind):
    """A monotone function of two columns."""

    key = "surface"
    section = SurfaceSection
    manifest = SurfaceManifest
    page = SurfacePage()
    classes = (ESTIMATOR,)
    why_no_answers = "The law of the error of a surface depends on the data."
    recomputed = "the surface keeps its cells, its range and its directions; no error is stated"

    def query(self, spec: Spec) -> SurfaceQuery:
        """The query of a spec with ``[surface]``."""
        surface, guarantee, data = spec.said(SurfaceSection), spec.privacy.guarantee(spec.unit), spec.data
        return surface_query(
            spec.source,
            surface.x,
            surface.y,
            guarantee,
            data.unit,
            data.contributions,
            spec.output.stated,
            surface.options(),
        )

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """What would be released; its error depends on the data."""
        query = self.query(spec)
        first, second = query.source.bins
        text = (
            f"A surface of {query.source.y} over {' and '.join(query.source.x)}, {first} × {second} cells, {query.guarantee}. No "
            "data was read and no budget was spent. Its error depends on the data: isotone audits and simulations do not tell it."
        )
        text += compared(spec.privacy.guarantee(spec.unit))
        return SpecPlan(None, {**spec.head(), "text": text}, text)

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The estimator of the spec, by draws."""
        return _audit(self.query(spec), trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The estimator on the unit square in 4 × 4 cells."""
        options: dict[str, Any] = {"bounds": ((0, 1), (0, 1)), "y_range": (0, 1), "bins": 4}
        query = surface_query(None, ("a", "b"), "y", Guarantee.pure(epsilon), None, 1, Stated(), options)
        return _audit(query, trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Values that are missing or no numbers."""
        surface = spec.said(SurfaceSection)
        columns = zip(surface.x, surface.bounds, strict=True)
        return outside(source, [*columns, (surface.y, surface.y_range)])

    def rebuild(self, manifest: Manifest) -> Any:
        """The guarantee of the estimator, which is checked."""
        return surface_estimator(manifest.mechanism, guarantee_from(manifest.guarantee).unit).check()

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the estimator of the manifest guarantees."""
        return fit_guarantee(release, self.rebuild(release.manifest))

    def faults(self, release: Release) -> list[str]:
        """Cells and values that the estimator cannot have given."""
        from isotone.release.kinds.surface.faults import surface_faults

        return surface_faults(release.columns, release.manifest)


def _audit(query: SurfaceQuery, trials: int, progress: Progress) -> AuditReport:
    """A fit to a dozen records, seen at three corners."""
    first, second = middles(query.source.bounds, query.source.bins)
    bottom, top = map(float, query.source.y_range)
    corners = np.array([[first[0], second[0]], [first[-1], second[0]], [first[-1], second[-1]]])
    records = np.repeat(corners, 4, axis=0), np.repeat([bottom, bottom, top], 4)
    return audit_fit(query, records, corners[-1], corners, min(trials, _FITS), progress)
