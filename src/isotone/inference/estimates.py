"""Estimates with intervals, ratios and regions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.linear.law import Law, rank, scales

__all__ = [
    "AT_THE_LIMIT",
    "NOT_KNOWN",
    "UNUSUAL",
    "Estimate",
    "FeasibleRegion",
    "ratio",
    "shown_ratio",
]


# A figure with its interval, as it is shown.

NOT_KNOWN = "not known"
AT_THE_LIMIT = "at the limit"
UNUSUAL = "at the limit; the noise was unusually large"


@dataclass(frozen=True)
class Estimate:
    """A figure, the interval that contains the truth with probability ``confidence``, and a word about it.

    ``value`` is None where nothing is known. ``about`` says of what the figure is: of the records that were counted,
    where noise is all that is uncertain, or of the population that they are a sample of.
    """

    value: float | None
    low: float
    high: float
    confidence: float
    note: str = ""
    about: Literal["records", "population"] = "records"

    def plain(self) -> dict[str, Any]:
        """The same as plain values. An end without limit is None."""
        ends = {"low": self.low, "high": self.high}
        return {
            "value": self.value,
            **{key: end if math.isfinite(end) else None for key, end in ends.items()},
            "confidence": self.confidence,
            "note": self.note,
            "about": self.about,
        }

    def percent(self) -> str:
        """A share in words, with as many digits as the interval is worth, and none that was clipped.

        >>> Estimate(0.756, 0.742, 0.771, 0.95).percent()
        '76 % (74 to 77)'
        >>> Estimate(1.0, 0.67, 1.0, 0.95, AT_THE_LIMIT).percent()
        'at the limit (67 to 100)'
        """
        if self.note == UNUSUAL:
            return AT_THE_LIMIT
        if self.value is None or self.note.startswith(NOT_KNOWN):
            return NOT_KNOWN
        digits = 0 if self.high - self.low >= 0.02 else 1 if self.high - self.low >= 0.002 else 2
        value, low, high = (f"{100 * x:.{digits}f}" for x in (self.value, self.low, self.high))
        return f"{AT_THE_LIMIT if self.note else f'{value} %'} ({low} to {high})"

    def __str__(self) -> str:
        if self.value is None:
            return f"{NOT_KNOWN} ({self.low:,.6g} to {self.high:,.6g})"
        words = f"{self.value:,.6g} ({self.low:,.6g} to {self.high:,.6g})"
        return f"{words}, {self.note}" if self.note else words


# The set of all ratios of two counts that are compatible with their released values.
#
# A ratio r is compatible if ``|a - r·b|`` is within the quantile of ``|R_a - r·R_b|``, the noise that this difference has
# when r is the true ratio (Fieller 1954, with the true law). So the true ratio is in the set with the stated probability,
# whatever the noise. In the coordinates ``(1 - s)·a - s·b``, with r = s/(1 - s), the quantile is convex up to the rounding
# of the noise, and the difference is linear: beyond the ratio of the released values each end is crossed once
# (docs/theory/inference.md, section 2).

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


# All counts, differences and shares at once, by shortest paths.
#
# One quantile of the largest noise, each in its own scale, bounds all counts and all differences along the covers.
# These bounds, the order and the fact that counts are not negative are a system of difference constraints. Its closure
# by shortest paths is the tightest interval of each count and difference; a pair of counts lies in a hexagon, and a
# share is extreme at a corner of it. If all members of the family hold, nothing derived from them excludes the truth
# (docs/theory/inference.md, section 4).

_CHUNK = 1 << 21
_LARGEST = 1_500
_ROUNDING = 1e-9


class FeasibleRegion:
    """The counts that are compatible with released values. The last may be the number of records.

    ``pairs`` are positions (lower, upper) of counts of which the first is never above the second. ``most`` is a public
    bound on every count. ``whole`` says that values and noise are whole numbers.
    """

    def __init__(
        self, values: Floats, law: Law, pairs: Ints, confidence: float, *, whole: bool, most: float | None
    ) -> None:
        self.values, self.pairs, self.most = values, pairs, most
        self.half_widths = _family(law, pairs, confidence, whole)
        if not whole:  # room for the rounding of values
            size = np.abs(values)
            self.half_widths += 1e-12 * np.concatenate((size, size[pairs].sum(axis=1)))

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Floats]:
        """Bounds ``θ_to - θ_from <= length``. Node 0 is the number zero, and count x is node x + 1."""
        n, values = len(self.values), self.values
        alone, along = self.half_widths[:n], self.half_widths[n:]
        lower, upper = self.pairs.T + 1
        counts, zero = np.arange(1, n + 1), np.zeros(n, np.int64)
        step = values[upper - 1] - values[lower - 1]
        parts = [
            (zero, counts, values + alone),
            (counts, zero, alone - values),
            (counts, zero, np.zeros(n)),
            (lower, upper, step + along),
            (upper, lower, along - step),
            (upper, lower, np.zeros(len(step))),
        ]
        if self.most is not None:
            parts.append((zero, counts, np.full(n, float(self.most))))
        start, stop, length = (np.concatenate(column) for column in zip(*parts, strict=True))
        return start, stop, length

    @cached_property
    def counts(self) -> tuple[Floats, Floats]:
        """The interval of each count, or that of its own noise where no counts are compatible with all."""
        start, stop, length = self._edges
        high, low = _distances(start, stop, length, len(self.values)), None
        if high is not None:
            low = _distances(stop, start, length, len(self.values))
        if high is None or low is None:
            alone = self.half_widths[: len(self.values)]
            return np.maximum(self.values - alone, 0), np.maximum(self.values + alone, 0)
        return -low[1:] + 0.0, high[1:]

    @cached_property
    def _closure(self) -> Floats | None:
        """The largest difference ``θ_j - θ_i`` for all nodes, or None if nothing is compatible."""
        size = len(self.values) + 1
        if size > _LARGEST + 1:
            raise InputError(f"Differences of all pairs are bounded together for up to {_LARGEST:,} counts.")
        start, stop, length = self._edges
        matrix = np.full((size, size), np.inf)
        np.fill_diagonal(matrix, 0.0)
        np.minimum.at(matrix, (start, stop), length)
        for k in range(size):
            np.minimum(matrix, matrix[:, k, None] + matrix[None, k, :], out=matrix)
        return None if np.min(np.diag(matrix)) < -_ROUNDING else matrix

    def difference(self, x: int, z: int) -> tuple[float, float] | None:
        """The interval of count z minus count x, or None if nothing is compatible."""
        closed = self._closure
        return None if closed is None else (-float(closed[z + 1, x + 1]), float(closed[x + 1, z + 1]))

    def share(self, x: int, z: int) -> tuple[float, float] | None:
        """The interval of count x over count z, where x implies z, or None if nothing is compatible."""
        between = self.difference(x, z)
        if between is None:
            return None
        closed = self._closure
        assert closed is not None
        a = -closed[x + 1, 0], closed[0, x + 1]
        b = -closed[z + 1, 0], closed[0, z + 1]
        d = max(between[0], 0.0), between[1]
        if b[0] <= 0:
            return 0.0, 1.0
        corners = [(p, q) for p in a for q in b] + [(p, p + step) for p in a for step in d]
        corners += [(q - step, q) for q in b for step in d]
        near = _ROUNDING * (1 + abs(b[1]))
        shares = [
            p / q
            for p, q in corners
            if q > 0
            and a[0] - near <= p <= a[1] + near
            and b[0] - near <= q <= b[1] + near
            and d[0] - near <= q - p <= d[1] + near
        ]
        return max(0.0, float(min(shares))), min(1.0, float(max(shares)))


def _family(law: Law, pairs: Ints, confidence: float, whole: bool) -> Floats:
    """Half-widths of all counts and of all differences along the pairs, all at once with the given probability."""
    scale = scales(np.concatenate((law.other, _steps(law.other, pairs)), axis=1))
    step = max(1, _CHUNK // max(scale.size, 1))
    largest = np.empty(law.size)
    for start in range(0, law.size, step):
        drawn = law.draws[start : start + step].astype(np.float64)
        family = np.abs(np.concatenate((drawn, _steps(drawn, pairs)), axis=1))
        largest[start : start + step] = np.max(family / scale, axis=1)
    half = float(law.upper(largest, confidence)) * scale
    return np.floor(half + _ROUNDING) if whole else half * (1 + _ROUNDING)


def _steps(draws: NDArray[np.number], pairs: Ints) -> NDArray[np.number]:
    return draws[:, pairs[:, 1]] - draws[:, pairs[:, 0]]


def _distances(start: Ints, stop: Ints, length: Floats, size: int) -> Floats | None:
    """Shortest distances from node 0 (Bellman 1958), or None if there is a cycle below zero."""
    found = np.full(size + 1, np.inf)
    found[0] = 0.0
    for _ in range(size + 2):
        before = found.copy()
        np.minimum.at(found, stop, before[start] + length)
        if found[0] < -_ROUNDING:
            return None
        if np.all(found >= before - _ROUNDING):
            return found
    return None
