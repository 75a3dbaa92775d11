"""Values and differences of a published curve, with intervals from its band. Post-processing of what is published."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from isotone.errors import InputError
from isotone.inference.estimates import Estimate
from isotone.privacy.checks import confidence_level, exact, shown
from isotone.reading.values import real_of
from isotone.release.kinds.curve.bands import measured_from, usual_kind
from isotone.release.kinds.reader import Reader
from isotone.release.recipes import rebuild_curve_mechanism

__all__ = ["CREDIBLE", "CurveReader"]

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
        level = confidence_level(manifest.get("confidence", 0.95) if confidence is None else confidence)
        kind = manifest.get("band") or usual_kind(problem)
        assert kind is not None, "there are sums"
        measured, places = measured_from(manifest, problem), np.array([_number(x) for x in xs])
        if np.any(places < float(problem.grid.low)) or np.any(places > float(problem.grid.high)):
            raise InputError(
                f"x must lie in the bounds of the curve, from {problem.grid.low} to {problem.grid.high}."
            )
        bottom, top = (float(exact(end, "y_range")) for end in manifest["y_range"])
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
