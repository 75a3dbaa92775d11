"""What strangers and readers do with a published curve or surface: verify, read, attack by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.curve.bands import CurveReader, measured_from
from isotone.release.kinds.curve.description import ChainFit, Curve, CurveManifest, SurfaceFit, middles
from isotone.release.kinds.curve.report import CurvePage, SurfacePage
from isotone.release.kinds.kind import Kind
from isotone.release.manifest import Manifest, guarantee_from
from isotone.release.writing.column_texts import Columns

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport
    from isotone.curves.bands import MeasuredSums
    from isotone.curves.cuts import ChainProblem
    from isotone.mechanism import Progress
    from isotone.release.kinds.page import Page
    from isotone.release.kinds.reader import Reader
    from isotone.release.result import Release

__all__ = ["KIND", "CurveKind"]

EDGE = 1e-9
"""How far computers may be apart that compute the same from the same numbers."""
CLOSE = 2e-3
"""Versions of the library and of what it computes with differ less than this in the posterior, as a share of the range."""


class CurveKind(Kind):
    """A monotone curve, or a surface."""

    described = Curve
    manifest = CurveManifest
    classes = (ChainFit.name, SurfaceFit.name)
    why_no_answers = (
        "Answers come from the band of a curve of means (squared or logistic loss, method 'auto', no shape). The law of the "
        "error of other curves, and of surfaces, depends on the data."
    )
    recomputed = "the curve keeps its bounds and its direction; where there is a band, curve and band are those of the published sums"

    def page(self, release: Release) -> Page:
        """A curve, or a heat map."""
        return SurfacePage() if _is_surface(release.manifest) else CurvePage()

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The estimator on [0, 100] × [0, 1], or on the unit square in 4 × 4 cells."""
        example = Curve("x", y="y", bounds=(0, 100), y_range=(0, 1))
        if name == SurfaceFit.name:
            example = Curve(("a", "b"), y="y", bounds=((0, 1), (0, 1)), y_range=(0, 1), x_grid=4)
        return example.audit(epsilon=epsilon, trials=trials, progress=progress)

    def reader(self, release: Release) -> Reader:
        """Values and differences, from the band."""
        return CurveReader(release, self.why_no_answers)

    def rebuild(self, manifest: Manifest) -> ChainFit | SurfaceFit:
        """The estimator of the description that a manifest holds, which must be the one that it names."""
        description = Curve.from_manifest(manifest, {})
        if description.said() != manifest.description:
            raise InputError("the description is not written as a release writes it")
        stated = guarantee_from(manifest.guarantee)
        if description.whose.neighbours != stated.neighbours:
            raise InputError("the neighbours of the description are not those of the guarantee")
        found = description.mechanism(stated)
        if found.recipe() != manifest.mechanism:
            raise InputError("the mechanism is not the one that the description has under this guarantee")
        return found

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the estimator of the manifest guarantees for the rows that are let through."""
        checked: Any = self.rebuild(release.manifest).estimator().check()
        found = checked if isinstance(checked, Guarantee) else checked.guarantee
        return replace(found, unit=guarantee_from(release.manifest.guarantee).unit)

    def looked_at(self, release: Release) -> str:
        """What was compared."""
        if _is_surface(release.manifest):
            return "the surface keeps its cells, its range and its directions; no error is stated"
        return self.recomputed

    def faults(self, release: Release) -> list[str]:
        """Cells, bounds, ranges, directions and corners that the estimator cannot have given."""
        fit = self.rebuild(release.manifest)
        if isinstance(fit, SurfaceFit):
            return surface_faults(release.columns, fit)
        if (release.manifest["increasing"], release.manifest.get("band")) != (
            fit.settings["increasing"]
            if fit.settings["increasing"] != "auto"
            else release.manifest["increasing"],
            fit.band,
        ):
            return ["the direction or the band is not the one asked for"]
        return curve_faults(release.columns, release.manifest, fit.problem)


def _is_surface(manifest: Manifest) -> bool:
    return manifest.mechanism.get("name") == SurfaceFit.name


def curve_faults(columns: Columns, manifest: Mapping[str, Any], problem: ChainProblem) -> list[str]:
    """Faults in the corners of a curve, given the checked public parameters of its estimator."""
    kind = manifest.get("band")
    if set(columns) != {"x", "value"} | ({"low", "high"} if kind else set()):
        return ["the columns are not those of a curve"]
    faults: list[str] = []
    x, value = np.array(columns["x"], dtype=float), np.array(columns["value"], dtype=float)
    low, high = float(problem.grid.low), float(problem.grid.high)
    edge = 1e-9 * max(abs(low), abs(high), 1.0)
    if not x.size or np.any(np.diff(x) < 0) or x[0] < low - edge or x[-1] > high + edge:
        faults.append("x leaves its bounds or is not ascending")
    elif np.any(np.abs(x - problem.grid.positions(problem.grid.snap(x))) > edge):
        faults.append("an x is no point of the grid")
    bottom, top = map(float, problem.y_range)
    edge = 1e-9 * max(abs(bottom), abs(top), 1.0)
    if np.any(value < bottom - edge) or np.any(value > top + edge):
        faults.append("a value leaves the range of y")
    steps = np.diff(value) if manifest["increasing"] else -np.diff(value)
    if np.any(steps < -edge):
        faults.append("the curve is not monotone in the direction stated")
    if kind and not faults:
        faults += _band_faults(columns, manifest, problem, kind)
    return faults


def _band_faults(
    columns: Columns, manifest: Mapping[str, Any], problem: ChainProblem, kind: str
) -> list[str]:
    """Faults in the band, which follows from the published sums."""
    measured = measured_from(manifest, problem)
    band = measured.band(manifest["description"]["confidence"], kind)
    x = np.array(columns["x"], dtype=float)
    missing = set(band.corners.tolist()) - set(problem.grid.snap(x).tolist())
    if missing:
        return ["a corner of the band is missing"]
    bottom, top = (float(end) for end in problem.y_range)
    edge = 1e-9 * max(abs(bottom), abs(top), 1.0)
    for name, share in band.at(problem.grid.snap(x))._asdict().items():
        stated = np.array(columns[name], dtype=float)
        if not np.all(np.abs(stated - (bottom + (top - bottom) * share)) <= edge):
            return [f"{name} is not what the published sums give"]
    return _value_faults(columns, measured, problem)


def _value_faults(columns: Columns, measured: MeasuredSums, problem: ChainProblem) -> list[str]:
    """Faults in the curve itself, which is the posterior given the published sums.

    Lines join the rows, so they are compared at the corners of the curve as well: one that is left out bends it.
    """
    rows = problem.grid.snap(np.array(columns["x"], dtype=float))
    curve = measured.curve(problem.output, problem.ends, problem.grid.even)
    at = np.r_[rows, curve.corners()[0]]
    share = curve.at(at)
    low, high = (float(end) for end in problem.ends)
    bottom, top = (float(end) for end in problem.y_range)
    wanted = bottom + (top - bottom) * (low + (high - low) * share)
    place = problem.grid.positions
    value = np.array(columns["value"], dtype=float)
    stated = np.r_[value, np.interp(place(at[rows.size :]), place(rows), value)]
    if not np.all(np.abs(stated - wanted) <= CLOSE * (top - bottom)):
        return ["value is not what the published sums give"]
    return []


def surface_faults(columns: Columns, fit: SurfaceFit) -> list[str]:
    """Faults in the cells of a surface."""
    if set(columns) != {"x1", "x2", "value"}:
        return ["the columns are not those of a surface"]
    bounds, bins = fit.settings["bounds"], fit.settings["bins"]
    cells = np.array(list(product(*middles(bounds, bins))))
    stated = np.array([columns["x1"], columns["x2"]], dtype=float).T
    scale = EDGE * max(1.0, float(np.abs(cells).max()))
    if stated.shape != cells.shape or not np.all(np.abs(stated - cells) <= scale):
        return ["the cells are not those of the mechanism"]
    value = np.array(columns["value"], dtype=float).reshape(bins)
    low, high = map(float, fit.settings["y_range"])
    edge = EDGE * max(abs(low), abs(high), 1.0)
    if not np.all((value >= low - edge) & (value <= high + edge)):
        return ["a value leaves the range of y"]
    for axis, rises in enumerate(fit.settings["directions"]):
        steps = np.diff(value, axis=axis)
        if np.any((steps if rises else -steps) < -edge):
            return ["the surface is not monotone in the directions stated"]
    return []


KIND = CurveKind()
