"""The set of all ratios of two counts that are compatible with their released values.

A ratio r is compatible if ``|a - r·b|`` is within the quantile of ``|R_a - r·R_b|``, the noise that this difference has
when r is the true ratio (Fieller 1954, with the true law). So the true ratio is in the set with the stated probability,
whatever the noise. In the coordinates ``(1 - s)·a - s·b``, with r = s/(1 - s), the quantile is convex up to the rounding
of the noise, and the difference is linear: beyond the ratio of the released values each end is crossed once
(docs/theory/inference.md, section 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.inference.estimate import AT_THE_LIMIT, NOT_KNOWN, UNUSUAL, Estimate
from isotone.linear.law import rank

__all__ = ["ratio", "shown_ratio"]

_VACUOUS = 0.999
"""A share whose interval is longer is not known."""

_TOLERANCE = 1e-12
"""Rounding of products in floating point, relative to the counts: noise is whole, and just meeting a bound counts."""

_STEPS = 80


@dataclass(frozen=True, eq=False)
class _Set:
    """Membership in the set, in the coordinate s."""

    a: float
    b: float
    noise: tuple[Floats, Floats]
    weight: NDArray[np.int64] = field(repr=False)
    place: int

    def excess(self, s: float) -> float:
        """How far the difference is beyond its quantile. s is in the set if this is not above 0."""
        noise_a, noise_b = self.noise
        drawn = np.abs((1 - s) * noise_a - s * noise_b)
        order = np.argsort(drawn)
        bound = drawn[order[np.searchsorted(np.cumsum(self.weight[order]), self.place)]]
        first, second = (1 - s) * self.a, s * self.b
        return abs(first - second) - float(bound) - _TOLERANCE * (abs(first) + abs(second))

    def end(self, inside: float, outside: float) -> float:
        """A point between the two just outside of the set, by false position (Illinois)."""
        start, at_inside, at_outside, last = inside, self.excess(inside), self.excess(outside), 0
        for _ in range(_STEPS):
            if abs(outside - inside) <= 1e-3 * abs(outside - start):
                break
            share = at_inside / (at_inside - at_outside) if at_inside < at_outside else 0.5
            middle = inside + min(max(share, 0.01), 0.99) * (outside - inside)
            found = self.excess(middle)
            if found <= 0:
                inside, at_inside = middle, found
                at_outside, last = (at_outside / 2, -1) if last == -1 else (at_outside, -1)
            else:
                outside, at_outside = middle, found
                at_inside, last = (at_inside / 2, 1) if last == 1 else (at_inside, 1)
        return outside


def ratio(
    a: float, b: float, noise_a: NDArray[np.number], noise_b: NDArray[np.number], level: float, most: float
) -> Estimate:
    """The ratio of the counts released as ``a`` and ``b``, from 0 to ``most`` (1 for a share, or infinity)."""
    a, b, last = float(a), float(b), 0.5 if most == 1 else 1.0
    values, weight = _grouped(noise_a, noise_b)
    found = _Set(a, b, values, weight, rank(len(noise_a), level))
    best = a / (a + b) if a * b > 0 or (a == 0) != (b == 0) else math.nan
    best = best if 0 <= best <= last else math.nan  # else the ratio of the released values is impossible
    ends = [at <= 0 for at in (found.excess(0.0), found.excess(last))]
    value = None if b <= 0 else min(max(a / b, 0.0), most)
    if math.isnan(best) and not any(ends):
        limit = most if b > 0 and a > b and most == 1 else 0.0
        return Estimate(limit, limit, limit, level, UNUSUAL)
    start = best if not math.isnan(best) else 0.0 if ends[0] else last
    low = 0.0 if ends[0] else found.end(start, 0.0)
    high = last if ends[1] else found.end(start, last)
    return shown_ratio(value, _ratio_of(low), min(_ratio_of(high), most), level, most, math.isnan(best))


def shown_ratio(
    value: float | None,
    low: float,
    high: float,
    level: float,
    most: float = 1.0,
    clipped: bool = False,
    about: Literal["records", "population"] = "records",
) -> Estimate:
    """A ratio with its interval, or none if that says nothing."""
    if value is None or high - low > _VACUOUS * most or (low == 0 and math.isinf(high)):
        return Estimate(None, low, high, level, NOT_KNOWN, about)
    return Estimate(value, min(low, value), max(high, value), level, AT_THE_LIMIT if clipped else "", about)


def _ratio_of(s: float) -> float:
    return s / (1 - s) if s < 1 else math.inf


def _grouped(
    first: NDArray[np.number], second: NDArray[np.number]
) -> tuple[tuple[Floats, Floats], NDArray[np.int64]]:
    """The pairs of draws, each pair of whole numbers once, and how often it occurs."""
    if first.dtype.kind == "i" and second.dtype.kind == "i":
        both = (first.astype(np.int64) << 32) + second.astype(np.int64)
        pairs, often = np.unique(both, return_counts=True)
        right = ((pairs + 2**31) & (2**32 - 1)) - 2**31
        return (((pairs - right) >> 32).astype(np.float64), right.astype(np.float64)), often
    ones = np.ones(len(first), np.int64)
    return (first.astype(np.float64), second.astype(np.float64)), ones
