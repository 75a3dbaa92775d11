"""What a reader may conclude from published counts: figures with intervals that hold, from public things alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.linear.mechanism import FALSE_CONFIDENCE, Law, rank, scales
from isotone.privacy.checks import confidence_level, did_you_mean, shown

if TYPE_CHECKING:
    from isotone.order import Poset

# Estimates with intervals, ratios and regions.

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
        '67 to 100 %'
        """
        if self.note == UNUSUAL or self.value is None or self.note.startswith(NOT_KNOWN):
            return NOT_KNOWN
        digits = 0 if self.high - self.low >= 0.02 else 1 if self.high - self.low >= 0.002 else 2
        value, low, high = (f"{100 * x:.{digits}f}" for x in (self.value, self.low, self.high))
        return f"{low} to {high} %" if self.note else f"{value} % ({low} to {high})"

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
            result = self.excess(middle)
            if result <= 0:
                inside, at_inside = middle, result
                at_outside, last = (at_outside / 2, -1) if last == -1 else (at_outside, -1)
            else:
                outside, at_outside = middle, result
                at_inside, last = (at_inside / 2, 1) if last == 1 else (at_inside, 1)
        return outside


def ratio(
    a: float, b: float, noise_a: NDArray[np.number], noise_b: NDArray[np.number], level: float, most: float
) -> Estimate:
    """The ratio of the counts released as ``a`` and ``b``, from 0 to ``most`` (1 for a share, or infinity)."""
    a, b, last = float(a), float(b), 0.5 if most == 1 else 1.0
    values, weight = _grouped(noise_a, noise_b)
    result = _Set(a, b, values, weight, rank(len(noise_a), level))
    best = a / (a + b) if a * b > 0 or (a == 0) != (b == 0) else math.nan
    best = best if 0 <= best <= last else math.nan  # else the ratio of the released values is impossible
    ends = [at <= 0 for at in (result.excess(0.0), result.excess(last))]
    value = None if b <= 0 else min(max(a / b, 0.0), most)
    if math.isnan(best) and not any(ends):
        limit = most if b > 0 and a > b and most == 1 else 0.0
        return Estimate(limit, limit, limit, level, UNUSUAL)
    start = best if not math.isnan(best) else 0.0 if ends[0] else last
    low = 0.0 if ends[0] else result.end(start, 0.0)
    high = last if ends[1] else result.end(start, last)
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
    result = np.full(size + 1, np.inf)
    result[0] = 0.0
    for _ in range(size + 2):
        before = result.copy()
        np.minimum.at(result, stop, before[start] + length)
        if result[0] < -_ROUNDING:
            return None
        if np.all(result >= before - _ROUNDING):
            return result
    return None


# Figures that readers derive from published counts, and what they say about a population.

# Published counts with the law of their noise, from which every derived figure is computed.

_FINE_ROUNDING = 1e-12
"""Of sums in floating point, relative to their terms."""

_LARGEST_FACTOR = 1e100


def no_slope() -> Floats:
    """Raise an error, since nothing is known about the number of records."""
    raise InputError("This release has no number of records to compare with: release with total=True.")


@dataclass(frozen=True, eq=False)
class Measured:
    """Counts over ``P`` as they were released, without any repair.

    ``values`` and the columns of ``law`` are those of ``P.elements``, and of the number of records in the end if
    ``has_total``. ``records`` is the number of records where it is public. ``whole`` says that values and noise are
    whole numbers. ``variance`` and ``covariance`` are those of the noise before rounding, for weights; ``slope`` is that
    of each count's noise on that of the number of records. Noise of one ``shape`` differs in its size only.
    """

    P: Poset
    values: Floats
    law: Law = field(repr=False)
    variance: Floats = field(repr=False)
    covariance: Callable[[], Floats] = field(repr=False)
    slope: Callable[[], Floats] = field(repr=False, default=no_slope)
    has_total: bool = False
    records: int | None = None
    whole: bool = True
    shape: str = ""

    def contrast(self, coefficients: Mapping[Any, float], confidence: float) -> Estimate:
        """A linear combination of counts, such as one minus another."""
        level, weights = confidence_level(confidence), self.weights(coefficients)
        value = math.fsum(weights * self.values)
        half = widened(self.law.half_width(weights, level), weights * self.values)
        return clipped(value, half, level, self._is_not_negative(weights))

    def weights(self, coefficients: Mapping[Any, float]) -> Floats:
        """The coefficients as a vector, checked."""
        if not isinstance(coefficients, Mapping) or not coefficients:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                "A contrast is a mapping from elements to numbers, such as {'hyp': 1, 'meds': -1}."
            )
        weights = np.zeros(len(self.values))
        for name, factor in coefficients.items():
            weights[self.place(name)] = _number(factor, name)
        return weights

    def place(self, name: Any) -> int:
        """The position of an element, by its name or the name as text."""
        return self._places[_known(name, self._places)]

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        places: dict[Hashable, int] = {str(x): i for i, x in enumerate(self.P.elements)}
        return {**places, **{x: i for i, x in enumerate(self.P.elements)}}

    def share(self, part: Any, of: Any, confidence: float) -> Estimate:
        """The share of ``part`` in ``of``, or in all records where ``of`` is None."""
        level, x = confidence_level(confidence), self.place(part)
        if of is None:
            return self._share_of_all(x, level)
        z = self.place(of)
        if x == z:
            raise InputError(f"The share of {part!r} in itself is 1. Name two different elements.")
        most = 1.0 if self.P.leq(self.P.elements[x], self.P.elements[z]) else math.inf
        return ratio(*self._pair(x, z), level, most)

    def _share_of_all(self, x: int, level: float) -> Estimate:
        if self.records is not None:
            half = widened(self.law.half_width(np.eye(1, len(self.values), x)[0], level), self.values[x])
            return _over(clipped(float(self.values[x]), half, level, True), self.records)
        if not self.has_total:
            raise InputError(
                "This release has no number of records. If that number is public, state it with records=; otherwise "
                "release with total=True."
            )
        return ratio(*self._pair(x, -1), level, 1.0)

    def _pair(self, x: int, z: int) -> tuple[float, float, NDArray[np.number], NDArray[np.number]]:
        draws = self.law.draws
        return float(self.values[x]), float(self.values[z]), draws[:, x], draws[:, z]

    def shares(self, pairs: Sequence[tuple[Any, Any]], confidence: float) -> dict[tuple[str, str], Estimate]:
        """Shares that all hold at once with the given probability. Each first element implies its second."""
        level, region, result = confidence_level(confidence), self.region(confidence), {}
        for part, of in pairs:
            x, z = self.place(part), self.place(of)
            name, whole = (self.P.elements[i] for i in (x, z))
            if x == z or not self.P.leq(name, whole):
                raise InputError(
                    f"Shares together are of what implies the other: {part!r} does not imply {of!r}."
                )
            result[str(name), str(whole)] = _of_region(
                self.values[x], self.values[z], region.share(x, z), level
            )
        return result

    def region(self, confidence: float) -> FeasibleRegion:
        """All counts and differences at once."""
        pairs = self.P.cover_pairs
        if self.has_total:
            top = len(self.P)
            above = np.array([(self.P.index(x), top) for x in self.P.maximal], np.int64)
            pairs = np.concatenate((pairs, above))
        return FeasibleRegion(
            self.values, self.law, pairs, confidence_level(confidence), whole=self.whole, most=self.records
        )

    def rank(self, name: Any, confidence: float) -> Estimate:
        """The rank of a count, 1 for the largest, from its differences to all others at once."""
        level, x, n = confidence_level(confidence), self.place(name), len(self.P)
        others = np.delete(np.arange(n), x)
        values, draws, other = self.values[:n], self.law.draws, self.law.other
        noise = draws[:, others].astype(np.float64) - draws[:, x, None]
        scale = np.maximum(
            np.sqrt(np.mean((other[:, others].astype(float) - other[:, x, None]) ** 2, axis=0)), 0.5
        )
        half = float(self.law.upper(np.max(np.abs(noise) / scale, axis=1, initial=0.0), level)) * scale
        step = values[others] - values[x]
        leq = self.P.leq_matrix()
        half = half * (1 + 1e-9) + _FINE_ROUNDING * (np.abs(values[others]) + abs(values[x]))
        above = (step > half) & ~leq[others, x]
        below = (step < -half) & ~leq[x, others]
        low, high = 1 + int(above.sum()), n - int(below.sum())
        value = 1 + int(np.sum(values[others] > values[x]))
        note = NOT_KNOWN if (low, high) == (1, n) and n > 1 else ""
        return Estimate(
            None if note else float(min(max(value, low), high)), float(low), float(high), level, note
        )

    def _is_not_negative(self, weights: Floats) -> bool:
        """Whether a combination cannot be negative for counts that follow the order."""
        if np.all(weights >= 0):
            return True
        places = np.flatnonzero(weights)
        if places.size != 2 or weights.sum() < 0:
            return False
        upper, lower = (places if weights[places[0]] > 0 else places[::-1]).tolist()
        return self.P.leq(self.P.elements[lower], self.P.elements[upper])


def changes(
    before: Measured,
    after: Measured,
    what: Any,
    level: float,
    noise: Callable[[int, int], Floats] | None = None,
) -> Any:
    """Counts after minus counts before, of one element or of each that both have.

    ``noise`` gives draws of the noise on the difference of two counts by their positions; without it the two releases
    are independent of each other.
    """
    rows = min(before.law.size, after.law.size)

    def independent(x: int, z: int) -> Floats:
        return after.law.draws[:rows, z].astype(np.float64) - before.law.draws[:rows, x].astype(np.float64)

    def one(name: Any) -> Estimate:
        x, z = before.place(name), after.place(name)
        half = float(before.law.upper(np.abs((noise or independent)(x, z)), level))
        first, second = float(before.values[x]), float(after.values[z])
        return clipped(second - first, widened(half, (first, second)), level, False)

    if what is not None:
        return one(what)
    later = {str(x) for x in after.P.elements}
    names = [str(x) for x in before.P.elements if str(x) in later]
    if not names:
        raise InputError("The two releases have no element in common.")
    return {name: one(name) for name in names}


def widened(half: float, terms: ArrayLike) -> float:
    """A half-width with room for the rounding of the ``terms`` of a figure.

    The noise has atoms also where it is not whole, and a figure that just meets its bound counts.
    """
    parts = np.asarray(terms, dtype=np.float64)
    if half == round(half) and np.all(parts == np.rint(parts)):
        return half
    return half + _FINE_ROUNDING * (half + float(np.sum(np.abs(parts))))


def clipped(value: float, half: float, level: float, positive: bool) -> Estimate:
    """A figure and its interval, which ends at 0 if it cannot be negative."""
    low, high = value - half, value + half
    if not positive or low >= 0:
        return Estimate(value, low, high, level)
    if high < 0:
        return Estimate(0.0, 0.0, 0.0, level, UNUSUAL)
    return Estimate(max(value, 0.0), 0.0, high, level, AT_THE_LIMIT if value < 0 else "")


def _over(estimate: Estimate, records: int) -> Estimate:
    if records == 0:
        return Estimate(None, 0.0, 1.0, estimate.confidence, NOT_KNOWN)
    value, low, high = ((x or 0.0) / records for x in (estimate.value, estimate.low, estimate.high))
    if low > 1:
        return Estimate(1.0, 1.0, 1.0, estimate.confidence, UNUSUAL)
    if min(high, 1.0) - low > 0.999:
        return Estimate(None, low, min(high, 1.0), estimate.confidence, NOT_KNOWN)
    note = AT_THE_LIMIT if value > 1 else estimate.note
    return Estimate(min(value, 1.0), low, min(high, 1.0), estimate.confidence, note)


def _of_region(a: float, b: float, ends: tuple[float, float] | None, level: float) -> Estimate:
    if ends is None:
        return Estimate(None, 0.0, 1.0, level, f"{NOT_KNOWN}; the noise was unusually large")
    low, high = ends
    if b <= 0 or high - low > 0.999:
        return Estimate(None, low, high, level, NOT_KNOWN)
    value = min(max(a / b, low), high)
    return Estimate(float(value), low, high, level, "" if 0 <= a <= b else AT_THE_LIMIT)


def _number(value: Any, name: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, (str, bytes, bool)) or not abs(number) <= _LARGEST_FACTOR:
        raise InputError(
            f"The coefficient of {name!r} must be a number of at most {_LARGEST:g}, not {shown(value)}."
        )
    return number


def _known(name: Any, places: Mapping[Hashable, int]) -> Hashable:
    try:
        if name in places:
            return name
    except TypeError:
        pass
    names = [x for x in places if isinstance(x, str)]
    raise InputError(f"{shown(name)} is not an element of the release{did_you_mean(str(name), names) or '.'}")


# Figures of the population that the records are a sample of, with noise and sampling together.
#
# The records are taken as independent draws from the population, or as worth ``records / deff`` such draws where the
# steward states a design effect. A value of the share is kept if the released counts are not too unlikely under it;
# tail probabilities are means over draws of the noise of exact binomial ones, with a bound on their own error (Chernoff;
# docs/theory/inference.md, section 7).

_NUISANCE = 0.002
"""The chance that the size of the whole is outside of the set over which the worst case is taken (Berger and Boos 1994)."""

_LEAST_EVENTS = 15

_SIZES = 6
"""So many sizes of the whole are looked at, the largest among them."""

_PRECISION = 1e-5


def population_proportion(published: Measured, part: Any, level: float, deff: Any = 1) -> Estimate:
    """The share of ``part`` in the population, where the number of records is public, by inverting both tails."""
    effect, x, n = _effect(deff), published.place(part), published.records
    if not n:
        return Estimate(None, 0.0, 1.0, level, NOT_KNOWN, "population")
    noise, y = published.law.draws[:, x].astype(np.float64), float(published.values[x])
    ranked = {1: np.sort(noise), -1: np.sort(-noise)}
    least, worth = _threshold((1 - level) / 2, noise.size), max(round(n / effect), 1)

    def tail(p: float, sign: int) -> float:
        """The probability of the value released or one further out, upward or downward."""
        counts, chance = _binomial(worth, p)
        reach = sign * (y - counts * (n / worth))  # the noise is that or further out
        place = np.searchsorted(ranked[sign], reach - 1e-9)
        return float(chance @ (noise.size - place)) / noise.size

    value = min(max(y / n, 0.0), 1.0)
    low = _edge(lambda p: tail(p, 1) > least, 1.0, 0.0)
    high = _edge(lambda p: tail(p, -1) > least, 0.0, 1.0)
    return shown_ratio(value, low, high, level, about="population")


def population_share(counts: Measured, part: Any, of: Any, level: float, deff: Any = 1) -> Estimate:
    """The share of ``part`` in ``of`` in the population. The unknown size of the whole is taken at its worst."""
    effect, x = _effect(deff), counts.place(part)
    if of is None and not counts.has_total:
        raise InputError(
            "The share of all needs the number of records: state it with records=, if it is public."
        )
    z = len(counts.P) if of is None else counts.place(of)
    if of is not None and not counts.P.leq(counts.P.elements[x], counts.P.elements[z]):
        raise InputError(f"{part!r} does not imply {of!r}, so it is no part of it.")
    a, b = float(counts.values[x]), float(counts.values[z])
    noise_a, noise_b = (counts.law.draws[:, i].astype(np.float64) for i in (x, z))
    outside = max(_NUISANCE, _LEAST_EVENTS / noise_a.size)  # which few draws could not show
    half = float(counts.law.upper(np.abs(noise_b), 1 - outside))
    if b + half < 1:
        return Estimate(None, 0.0, 1.0, level, NOT_KNOWN, "population")
    sizes = np.unique(np.rint(np.linspace(max(b - half, 1), b + half, _SIZES)).astype(np.int64))[::-1]
    least = _threshold(1 - level - outside, noise_a.size)

    def kept(r: float) -> bool:
        noise = np.sort(noise_a - r * noise_b)
        off = abs(a - r * b) - 1e-12 * (abs(a) + abs(r * b))
        return any(_two_tails(noise, off, int(size), r, effect) > least for size in sizes)

    best = min(max(a / b, 0.0), 1.0) if b > 0 else math.nan
    inside = next((r for r in (best, 0.0, 1.0) if not math.isnan(r) and kept(r)), None)
    if inside is None:
        return Estimate(best, best, best, level, UNUSUAL, "population")
    low, high = (_edge(kept, inside, end) for end in (0.0, 1.0))
    return shown_ratio(None if b <= 0 else best, low, high, level, about="population")


def _two_tails(noise: Floats, off: float, size: int, r: float, effect: float) -> float:
    """How likely it is that sampling and noise are off by so much or more, in either direction."""
    worth = max(round(size / effect), 1)
    counts, chance = _binomial(worth, r)
    error = (counts - r * worth) * (size / worth)
    above = noise.size - np.searchsorted(noise, off - error)
    below = np.searchsorted(noise, -off - error, side="right")
    return float(chance @ np.minimum(above + below, noise.size)) / noise.size


def _binomial(size: int, p: float) -> tuple[Floats, Floats]:
    """The counts that matter and their probabilities. What is left out, below 1e-12, counts as likely."""
    from scipy.special import gammaln

    spread = 8 * math.sqrt(size * p * (1 - p)) + 40
    counts = np.arange(max(0, math.floor(size * p - spread)), min(size, math.ceil(size * p + spread)) + 1.0)
    if p <= 0 or p >= 1:
        return np.array([size * round(p)], dtype=np.float64), np.ones(1)
    ways = gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)
    return counts, np.exp(ways + counts * math.log(p) + (size - counts) * math.log1p(-p))


@lru_cache(maxsize=64)
def _threshold(tail: float, draws: int) -> float:
    """The least mean over the draws that a tail probability of ``tail`` or more has, but for one time in a million."""
    if tail <= 0:
        raise InputError("This confidence is too close to 1 for a figure of the population.")
    room, low, high = -math.log(FALSE_CONFIDENCE) / draws, 0.0, tail
    for _ in range(60):
        middle = (low + high) / 2
        gap = (1 - middle) * math.log((1 - middle) / (1 - tail))
        gap += middle * math.log(middle / tail) if middle > 0 else 0.0
        low, high = (middle, high) if gap > room else (low, middle)
    return low


def _edge(kept: Callable[[float], bool], inside: float, end: float) -> float:
    """The point between ``inside`` and ``end`` where values cease to be kept, on the far side."""
    if kept(end):
        return end
    outside = end
    while abs(outside - inside) > _PRECISION:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if kept(middle) else (inside, middle)
    return outside


def _effect(deff: Any) -> float:
    try:
        number = float(deff)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(deff, (str, bytes, bool)) or not (1 <= number <= 1e6):
        raise InputError(f"deff, the design effect, must be a number from 1, not {shown(deff)}.")
    return number


# Linear estimates from published counts, with a public number of records as a control variate, and from several releases.
#
# The noise of the result is a linear combination of that of the releases, so its law is known. Weights steer how short
# intervals are, never whether they hold (docs/theory/inference.md, sections 5 and 6).


def given_records(counts: Measured, records: int) -> Measured:
    """The counts adjusted by the error of the noisy number of records, ``y - β·(T - records)``.

    β is the slope of the noise on each count on that of the number of records, so the variance falls by the share
    that the two have in common. Unbiased if ``records`` is right.
    """
    if not counts.has_total:
        raise InputError("This release has no number of records to compare with: release with total=True.")
    slope, n = counts.slope(), len(counts.P)
    weights = np.concatenate((np.eye(n), -slope[None, :]))
    law = counts.law.linear(weights)
    values = counts.values[:n] - slope * (counts.values[n] - records)
    variance = np.maximum(counts.variance[:n] - slope**2 * counts.variance[n], 0.0)

    def covariance() -> Floats:
        return counts.covariance()[:n, :n] - counts.variance[n] * np.outer(slope, slope)

    return replace(
        counts,
        values=values,
        law=law,
        variance=variance,
        covariance=covariance,
        has_total=False,
        records=records,
        whole=False,
        shape=f"given {counts.shape}" if counts.shape else "",
    )


def combined(parts: Sequence[Measured], P: Poset) -> Measured:
    """One best estimate of the counts over ``P`` from independent releases, each over a part of its elements."""
    total = all(part.has_total for part in parts)
    places = [_places(part, P, total) for part in parts]
    scale, size = common_scale(parts), len(P) + total
    if scale is None:
        weights = _weights(parts, places, size)
    else:  # whatever the correlations
        weights = [share * np.eye(size)[own] for share, own in zip(scale, places, strict=True)]
    values, law = np.zeros(size), None
    for part, own, weight in zip(parts, places, weights, strict=True):
        values += part.values[: own.size] @ weight
        rows = np.zeros((len(part.values), size))
        rows[: own.size] = weight
        one = part.law.linear(rows)
        law = one if law is None else law.plus(one)

    def covariance() -> Floats:
        cut = zip(parts, places, weights, strict=True)
        return np.sum([w.T @ part.covariance()[: own.size, : own.size] @ w for part, own, w in cut], axis=0)

    if scale is None:
        variance = np.diag(covariance()).copy()
    else:
        variance = np.sum([s**2 * part.variance[:size] for s, part in zip(scale, parts, strict=True)], axis=0)
    known = {part.records for part in parts if part.records is not None}
    assert law is not None
    return Measured(
        P,
        values,
        law,
        variance=variance,
        covariance=covariance,
        has_total=total,
        records=known.pop() if len(known) == 1 else None,
        whole=False,
    )


def _places(part: Measured, P: Poset, total: bool) -> NDArray[np.int64]:
    own = [P.index(x) for x in part.P.elements]
    return np.array([*own, len(P)] if total else own, np.int64)


def _weights(parts: Sequence[Measured], places: Sequence[NDArray[np.int64]], size: int) -> list[Floats]:
    """Generalised least squares. Whatever the covariances, each true count is kept (weights of it add up to 1)."""
    precision, inverses = np.zeros((size, size)), list[Floats]()
    for part, own in zip(parts, places, strict=True):
        matrix = part.covariance()[: own.size, : own.size]
        ridge = 1e-9 * float(np.mean(np.diag(matrix))) + 1e-12
        inverses.append(np.linalg.inv(matrix + ridge * np.eye(own.size)).astype(np.float64))
        precision[np.ix_(own, own)] += inverses[-1]
    solve = np.linalg.inv(precision)
    raw = [inverse @ solve[own] for inverse, own in zip(inverses, places, strict=True)]
    kept = sum(np.eye(size)[own].T @ weight for weight, own in zip(raw, places, strict=True))
    return [weight @ np.linalg.inv(kept) for weight in raw]  # unbiased to the last digit


def common_scale(parts: Sequence[Measured]) -> list[float] | None:
    """The share of each part by the inverse of its variance, or None unless their noise differs in its size only."""
    first = parts[0]
    if not first.shape or any(
        part.shape != first.shape or part.P.elements != first.P.elements for part in parts
    ):
        return None
    sizes = [float(np.sum(part.variance[: len(first.P)])) for part in parts]
    if min(sizes) <= 0:
        return None
    inverse = np.array([1 / size for size in sizes])
    return (inverse / inverse.sum()).tolist()


def summed(groups: Sequence[Measured], weights: Floats, level: float) -> tuple[float, float]:
    """A combination of counts summed over groups, and its half-width.

    All groups have one law, and each its own draw: rows of the law are dealt out to the groups.
    """
    law, count = groups[0].law, len(groups)
    noise = law.along(weights)
    rows = noise.size // count
    dealt = noise[: rows * count].reshape(rows, count).sum(axis=1)
    value = float(sum(group.values @ weights for group in groups))
    return value, float(law.upper(np.abs(dealt), level))
