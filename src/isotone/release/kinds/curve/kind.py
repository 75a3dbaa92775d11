"""Binds query, plan, audit and verification of curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import isotone.curves as curves
from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee, Number, budget_of
from isotone.release.checking.findings import outside
from isotone.release.kinds.curve.query import ESTIMATOR, CurveManifest, CurveQuery
from isotone.release.kinds.curve.release import curve_query
from isotone.release.kinds.curve.report import CurvePage
from isotone.release.kinds.curve.section import CurveSection
from isotone.release.kinds.fits import audit_fit, compared, fit_guarantee
from isotone.release.kinds.kind import Kind
from isotone.release.kinds.reader import Reader
from isotone.release.manifest import Manifest, Stated
from isotone.release.recipes import rebuild_curve_mechanism
from isotone.release.result import Release
from isotone.release.spec_plan import SpecPlan

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.release.spec import Spec

__all__ = ["CurveKind"]

_FITS = 6_000  # an audit fits at most so often: a fit takes milliseconds


class CurveKind(Kind):
    """A monotone curve."""

    key = "curve"
    section = CurveSection
    manifest = CurveManifest
    page = CurvePage()
    classes = (ESTIMATOR,)
    why_no_answers = (
        "Answers come from the band of a curve of means (squared or logistic loss, method 'auto', no shape). The law of the "
        "error of other curves depends on the data."
    )

    def query(self, spec: Spec) -> CurveQuery:
        """The query of a spec with ``[curve]``."""
        curve, guarantee, data = spec.said(CurveSection), spec.privacy.guarantee(spec.unit), spec.data
        options, stated = curve.options(), spec.output.stated
        return curve_query(
            spec.source,
            curve.x,
            curve.y,
            guarantee,
            data.unit,
            data.contributions,
            stated,
            options,
            curve.band,
            spec.output.confidence,
        )

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """What the methods are expected to lose on about ``records`` records."""
        curve, guarantee = spec.said(CurveSection), self.query(spec).guarantee
        text = (
            f"A monotone curve of {curve.y} over {curve.x}: {curve.described()}, {guarantee}. No data was read "
            "and no budget was spent."
        )
        text += compared(spec.privacy.guarantee(spec.unit))
        size = records or curve.public_n
        if size is None:
            text += " About how many records are there? With --records the plan tells the expected error."
            return SpecPlan(None, {**spec.head(), "text": text}, text)
        expected = curves.plan(
            n=size,
            **budget_of(guarantee),
            loss=curve.loss,
            y_range=curve.y_ends,
            labels=curve.y_values is not None or None,
            output=curve.output,
            neighbours=guarantee.neighbours,
            contributions=spec.data.contributions,
        )
        if curve.shape is not None:
            text += " What follows is for curves without the shape: those of other methods, to compare with."
        return SpecPlan(expected, {**spec.head(), "text": f"{text}\n{expected}", **expected.plain()}, text)

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The estimator of the spec, by draws."""
        return _audit(self.query(spec), trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The estimator on [0, 100] × [0, 1]."""
        options = {"bounds": (0, 100), "y_range": (0, 1)}
        query = curve_query(None, "x", "y", Guarantee.pure(epsilon), None, 1, Stated(), options)
        return _audit(query, trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Values of x and y that are missing or no numbers."""
        curve = spec.said(CurveSection)
        return outside(source, [(curve.x, curve.bounds), (curve.y, curve.y_ends)])

    def reader(self, release: Release) -> Reader:
        """Values and differences, from the band."""
        from isotone.release.kinds.curve.reader import CurveReader

        return CurveReader(release, self.why_no_answers)

    def rebuild(self, manifest: Manifest) -> Any:
        """The checked parameters of the estimator, with its guarantee."""
        return rebuild_curve_mechanism(manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the estimator of the manifest guarantees."""
        return fit_guarantee(release, self.rebuild(release.manifest).guarantee)

    recomputed = "the curve keeps its bounds and its direction; where there is a band, curve and band are those of the published sums"

    def faults(self, release: Release) -> list[str]:
        """Bounds, ranges, directions and corners that the estimator cannot have given."""
        from isotone.release.kinds.curve.faults import curve_faults

        return curve_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _audit(query: CurveQuery, trials: int, progress: Progress) -> AuditReport:
    """A fit to a dozen records, seen at three points."""
    low, high = map(float, query.source.bounds)
    bottom, top = map(float, query.source.y_range)
    x = np.linspace(low, high, 12)
    records = x, np.where(x < (low + high) / 2, bottom, top)
    seen = np.linspace(low, high, 5)[1:4]
    return audit_fit(query, records, high, seen, min(trials, _FITS), progress)
