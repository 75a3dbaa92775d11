"""Published counts with the law of their noise, from which every derived figure is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.inference.estimate import AT_THE_LIMIT, NOT_KNOWN, UNUSUAL, Estimate
from isotone.inference.ratio import ratio
from isotone.inference.region import FeasibleRegion
from isotone.linear.law import Law
from isotone.privacy.checks import confidence_level, did_you_mean, shown

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["Measured", "changes", "clipped", "widened"]

_ROUNDING = 1e-12
"""Of sums in floating point, relative to their terms."""

_LARGEST = 1e100


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
        level, region, found = confidence_level(confidence), self.region(confidence), {}
        for part, of in pairs:
            x, z = self.place(part), self.place(of)
            name, whole = (self.P.elements[i] for i in (x, z))
            if x == z or not self.P.leq(name, whole):
                raise InputError(
                    f"Shares together are of what implies the other: {part!r} does not imply {of!r}."
                )
            found[str(name), str(whole)] = _of_region(
                self.values[x], self.values[z], region.share(x, z), level
            )
        return found

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
        half = half * (1 + 1e-9) + _ROUNDING * (np.abs(values[others]) + abs(values[x]))
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
    return half + _ROUNDING * (half + float(np.sum(np.abs(parts))))


def clipped(value: float, half: float, level: float, positive: bool) -> Estimate:
    """A figure and its interval, which ends at 0 if it cannot be negative."""
    low, high = value - half, value + half
    if not positive or low >= 0:
        return Estimate(value, low, high, level)
    if high < 0:
        return Estimate(0.0, 0.0, 0.0, level, UNUSUAL)
    return Estimate(max(value, 0.0), 0.0, high, level, AT_THE_LIMIT if value < 0 else "")


def _over(found: Estimate, records: int) -> Estimate:
    if records == 0:
        return Estimate(None, 0.0, 1.0, found.confidence, NOT_KNOWN)
    value, low, high = ((x or 0.0) / records for x in (found.value, found.low, found.high))
    if low > 1:
        return Estimate(1.0, 1.0, 1.0, found.confidence, UNUSUAL)
    if min(high, 1.0) - low > 0.999:
        return Estimate(None, low, min(high, 1.0), found.confidence, NOT_KNOWN)
    note = AT_THE_LIMIT if value > 1 else found.note
    return Estimate(min(value, 1.0), low, min(high, 1.0), found.confidence, note)


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
    if isinstance(value, (str, bytes, bool)) or not abs(number) <= _LARGEST:
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
