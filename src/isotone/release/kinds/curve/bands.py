"""Bands of a published curve, which one and from which published sums, and the answers that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired

import numpy as np
from typing_extensions import TypedDict

from isotone.curves.bands import KINDS, MeasuredSums, no_band, why_no_population
from isotone.curves.grids import FINE
from isotone.curves.measure import NoisySums
from isotone.errors import InputError
from isotone.inference.estimates import Estimate
from isotone.privacy.checks import confidence_level, exact, one_of, shown
from isotone.reading.values import real_of
from isotone.release.kinds.reader import Reader
from isotone.release.recipes import rebuild_curve_mechanism

if TYPE_CHECKING:
    from isotone.curves.cuts import ChainProblem
    from isotone.curves.posterior_fit import Law, PossibleSums

__all__ = ["CREDIBLE", "CurveReader", "SumsEntry", "band_kind", "measured_from", "sums_to", "usual_kind"]

MOST_BINS = 1024


class SumsEntry(TypedDict):
    """The noisy sums of y and 1 − y in bins of the grid of x, in whole numbers, and the rate or the variance of their noise."""

    starts: list[int]
    ones: list[int]
    zeros: list[int]
    values: int
    rate: NotRequired[str]
    variance: NotRequired[str]


def _possible(problem: ChainProblem) -> dict[Law, PossibleSums]:
    from isotone.curves.regression import sums_for  # here: it brings all mechanisms

    return sums_for(problem)


def _no_population(problem: ChainProblem) -> str:
    return why_no_population(problem.budget.whole.unit.contributions, problem.direction_given)


def usual_kind(problem: ChainProblem) -> str | None:
    """The band that fits what the curve estimates, and holds, or None where no band is known."""
    if not _possible(problem):
        return None
    return "population" if problem.output == "population" and not _no_population(problem) else "records"


def band_kind(asked: Any, problem: ChainProblem) -> str | None:
    """The kind of band as asked for, refused where it does not hold, or the usual one."""
    if asked is None:
        return usual_kind(problem)
    kind = one_of(asked, "band (or None)", (*KINDS, "none"))
    if kind == "none":
        return None
    if not _possible(problem):
        raise no_band(problem.method)
    if kind == "population" and (reason := _no_population(problem)):
        raise InputError(reason)
    return kind


def sums_to(measured: MeasuredSums) -> SumsEntry:
    """The sums as plain values."""
    sums = measured.sums
    entry: SumsEntry = {
        "starts": sums.starts.tolist(),
        "ones": sums.ones.tolist(),
        "zeros": sums.zeros.tolist(),
        "values": measured.levels,
    }
    if sums.rate is not None:
        return {**entry, "rate": str(sums.rate)}
    return {**entry, "variance": str(sums.variance)}


def measured_from(manifest: Mapping[str, Any], problem: ChainProblem) -> MeasuredSums:
    """The sums that a manifest publishes, as the estimator that it describes could have measured them."""
    entry = manifest.get("sums")
    possible = _possible(problem)
    if entry is None or not possible:
        raise InputError("The release has no noisy sums, which a band is made of.")
    starts, ones, zeros = (np.array(entry[key], dtype=np.int64) for key in ("starts", "ones", "zeros"))
    points = problem.grid.points
    whole = starts.ndim == 1 and 0 < starts.size == ones.size == zeros.size <= MOST_BINS
    if not whole or starts[0] != 0 or starts[-1] >= points or np.any(np.diff(starts) <= 0):
        raise InputError("the bins of the published sums are not bins of the grid")
    rate, variance = (exact(entry[key], key) if key in entry else None for key in ("rate", "variance"))
    known = possible.get((rate, variance))
    if known is None:
        raise InputError("the rate or the variance of the noise of the sums is not the mechanism's")
    if entry["values"] not in known.values:
        raise InputError("the number of values of the posterior is none that the mechanism has")
    sums = NoisySums(starts, ones, zeros, 1 if problem.labels else FINE, rate, points, variance)
    rising = sums if manifest["increasing"] else sums.mirrored()
    if known.starts is not None and known.starts != tuple(rising.starts.tolist()):
        raise InputError("the bins of the published sums are not those of noise without a coarse look")
    found = manifest["mechanism"].get("increasing", True) != "auto"
    return MeasuredSums(
        sums,
        manifest["increasing"],
        problem.labels,
        entry["values"],
        int(manifest["description"]["unit"]["contributions"] or 1),
        found,
    )


CREDIBLE = "credible: what a model believes, not a guarantee"


class CurveReader(Reader):
    """Answers from the band of a curve of means.

    The band holds at all points at once, so any number of answers holds with its confidence. A credible band
    holds point by point, as far as its model is right: no difference follows from it.
    """

    def at(self, x: Any, confidence: float | None) -> Estimate:
        """The value at ``x``, with the band there."""
        kind, level, low, high = self._band("value with an interval", confidence, [x])
        value, note = self._value(x), CREDIBLE if kind == "credible" else ""
        return Estimate(value, float(low[0]), float(high[0]), level, note, _about(kind))

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Estimate:
        """The value at ``second`` minus that at ``first``. What the band leaves possible for a monotone curve."""
        if what is not None:
            raise InputError("A curve has no elements: leave out what.")
        kind, level, low, high = self._band("differences with an interval", confidence, [first, second])
        if kind == "credible":
            raise InputError(
                "The band of this release is credible, point by point: no interval of a difference follows from it."
            )
        least, most = float(low[1] - high[0]), float(high[1] - low[0])
        forward = _number(second) >= _number(first)
        rises = forward == self.release.manifest["increasing"]
        least, most = (max(least, 0.0), max(most, 0.0)) if rises else (min(least, 0.0), min(most, 0.0))
        value = self._value(second) - self._value(first)
        return Estimate(value, least, most, level, about=_about(kind))

    def _band(self, what: str, confidence: float | None, xs: list[Any]) -> tuple[str, float, Any, Any]:
        """The kind of the band, its confidence, and its ends at some points."""
        manifest = self.release.manifest
        if manifest.get("sums") is None:
            self.refuse(what)
        problem = rebuild_curve_mechanism(manifest["mechanism"])
        level = confidence_level(manifest["description"]["confidence"] if confidence is None else confidence)
        kind = manifest.get("band") or usual_kind(problem)
        assert kind is not None, "there are sums"
        measured, places = measured_from(manifest, problem), np.array([_number(x) for x in xs])
        if np.any(places < float(problem.grid.low)) or np.any(places > float(problem.grid.high)):
            raise InputError(
                f"x must lie in the bounds of the curve, from {problem.grid.low} to {problem.grid.high}."
            )
        bottom, top = map(float, problem.y_range)
        low, high = measured.band(level, kind).at(problem.grid.snap(places))
        return kind, level, bottom + (top - bottom) * low, bottom + (top - bottom) * high

    def _value(self, x: Any) -> float:
        columns = self.release.columns
        return float(np.interp(_number(x), columns["x"], columns["value"]))


def _number(x: Any) -> float:
    number = real_of(x)
    if math.isnan(number):
        raise InputError(f"x must be a number, not {shown(x)}.")
    return number


def _about(kind: str) -> Literal["records", "population"]:
    return "records" if kind == "records" else "population"
