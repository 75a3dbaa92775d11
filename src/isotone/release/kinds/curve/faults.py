"""What a published curve must keep, by the estimator of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.curves.bands import MeasuredSums
from isotone.privacy.guarantee import exact
from isotone.release.kinds.curve.bands import measured_from
from isotone.release.writing.column_texts import Columns

if TYPE_CHECKING:
    from isotone.curves.cuts import ChainProblem

__all__ = ["curve_faults"]

CLOSE = 2e-3
"""Versions of the library and of what it computes with differ less than this in the posterior, as a share of the range."""


def curve_faults(columns: Columns, manifest: Mapping[str, Any], problem: ChainProblem) -> list[str]:
    """Faults in the corners of a curve, given the checked public parameters of its estimator."""
    kind = manifest.get("band")
    if set(columns) != {"x", "value"} | ({"low", "high"} if kind else set()):
        return ["the columns are not those of a curve"]
    faults: list[str] = []
    rules = manifest["rules"]
    if [exact(end, "bounds") for end in rules["bounds"]] != [problem.grid.low, problem.grid.high]:
        faults.append("the bounds of x are not the mechanism's")
    y_range = [exact(end, "y_range") for end in manifest["y_range"]]
    if y_range != [Fraction(end) for end in problem.y_range]:
        faults.append("the range of y is not the mechanism's")
        return faults
    asked = manifest["mechanism"].get("increasing", True)
    if asked != "auto" and asked is not manifest["increasing"]:
        faults.append("the direction is not the one asked for")
    x, value = np.array(columns["x"], dtype=float), np.array(columns["value"], dtype=float)
    low, high = float(problem.grid.low), float(problem.grid.high)
    edge = 1e-9 * max(abs(low), abs(high), 1.0)
    if not x.size or np.any(np.diff(x) < 0) or x[0] < low - edge or x[-1] > high + edge:
        faults.append("x leaves its bounds or is not ascending")
    elif np.any(np.abs(x - problem.grid.positions(problem.grid.snap(x))) > edge):
        faults.append("an x is no point of the grid")
    bottom, top = map(float, y_range)
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
    band = measured.band(manifest["confidence"], kind)
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
