"""A published table: what its noisy parts say of each true count, and sums with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite, sqrt
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.privacy.checks import confidence_level
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Guarantee
from isotone.tables.estimate import Beliefs


class Measurement(Protocol):
    """Noise on cumulative numbers at ``places``, and on counts up to ``upper``, and what both tell."""

    @property
    def upper(self) -> int:
        """The largest count."""
        ...

    @property
    def largest(self) -> float:
        """The largest true count that there may be, infinite where counts have no bound."""
        ...

    @property
    def places(self) -> tuple[int, ...]:
        """The thresholds that are measured."""
        ...

    @property
    def finer(self) -> tuple[int, ...]:
        """The thresholds between them that were measured after a look at the first, which is a private output."""
        ...

    def with_finer(self, finer: tuple[int, ...]) -> Measurement:
        """The same measurement with these thresholds between the first, refused if it cannot have them."""
        ...

    def measure(self, table: Ints, draws: Draws) -> tuple[Measurement, Ints, Ints]:
        """The measurement as it was made, noisy cumulative numbers and noisy counts. Nothing else reads the table."""
        ...

    def histogram(self, cumulative: Ints, noisy: Ints) -> tuple[NDArray[np.float64], str]:
        """The histogram that both tell, and the model it comes from."""
        ...

    def seen(self, noisy: Ints) -> Ints:
        """What a posterior is computed from."""
        ...

    def beliefs(self, probabilities: NDArray[np.float64], size: int) -> Beliefs:
        """The posteriors of the true counts."""
        ...

    def channel(self) -> NDArray[np.float64]:
        """The probability of every noisy count within 0..upper (clamped), given every true count."""
        ...

    def readings(self, unbiased: float) -> list[int]:
        """What a posterior may have been computed from, given a published unbiased count, rounded to four digits."""
        ...

    def unbiased(self, noisy: Ints) -> NDArray[np.float64]:
        """For each noisy count an estimate whose mean is the true count."""
        ...

    def errors(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far :meth:`unbiased` is from a true count, and with which probabilities.

        Where no thresholds are measured it is the same for every count.
        """
        ...

    def widest(self, many: bool) -> list[int]:
        """True counts among which the widest :meth:`errors` are.

        The sum of many is widest for the largest variances, that of a few need not be.
        """
        ...

    @property
    def deviation(self) -> float:
        """The largest standard deviation of :meth:`unbiased` over all true counts, a public number."""
        ...


# How far a sum of unbiased noisy counts may be from the true sum.
#
# Noise that is the same for every count has a sum of known law, and the answer is exact. Where thresholds are measured, the noise
# depends on the true counts, which are private: the answer is the largest over tables whose categories all have one count. Sums of
# many categories are close to normal (docs/theory/tables-whole.md, section 9).

_MANY = 10_000
"""Categories from which on a sum with measured thresholds is taken as normal."""
_WIDEST = {
    True: 2e4,
    False: 1e6,
}  # standard deviations up to which even, and uneven, noise is summed up term by term
_LEAST_TERM = 0.61  # with less, one noise alone is too often beyond at confidences from 0.9 to 0.932
_FEW = 64  # categories up to which sums may have few values
_FINE = 400  # places of a grid for a standard deviation of the sum


def reach(parts: Sequence[tuple[Measurement, int]], confidence: float) -> float:
    """A distance that the noise of a sum keeps with this probability.

    ``parts`` are measurements, each with the number of its categories in the sum.

    >>> from fractions import Fraction
    >>> from isotone.tables.thresholds import Thresholds
    >>> reach([(Thresholds(9, Fraction(4), (), Fraction(0)), 5)], 0.95)
    1.0
    """
    return _reach(tuple((measured, number) for measured, number in parts if number), confidence)


def from_noise(
    unbiased: NDArray[np.float64], measured: Measurement, level: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each unbiased noisy count, the counts that its noise alone leaves possible.

    They hold with this probability for every true count, whatever the others are: a count is left out only where its noise is
    beyond its quantile.
    """
    far = reach([(measured, 1)], level)
    ends = np.ceil(unbiased - far - 1e-6), np.floor(unbiased + far + 1e-6)
    low, high = (np.clip(end, 0, measured.upper).astype(np.int64) for end in ends)
    return low, high


@lru_cache(maxsize=1024)
def _reach(parts: tuple[tuple[Measurement, int], ...], confidence: float) -> float:
    variances = [number * measured.deviation**2 for measured, number in parts]
    total = sum(number for _, number in parts)
    even = not any(measured.places for measured, _ in parts)
    if not parts or sum(variances) == 0:
        return 0.0
    if (total > _MANY and not even) or sum(variances) > _WIDEST[even] ** 2:
        return _normal_reach(variances, [number for _, number in parts], confidence)
    tried = {count for measured, _ in parts for count in measured.widest(many=total > _FEW)}
    return max(
        _quantile([(*measured.errors(min(c, measured.upper)), n) for measured, n in parts], even, confidence)
        for c in tried
    )


def _quantile(
    laws: list[tuple[NDArray[np.float64], NDArray[np.float64], int]], even: bool, confidence: float
) -> float:
    """The quantile of the size of a sum of independent errors, each law taken so many times."""
    spread = sqrt(sum(number * float(law @ errors**2) for errors, law, number in laws))
    step = 1.0 if even else spread / _FINE
    places = 1 << int(max(60 * spread / step, 64.0)).bit_length()
    transform = np.ones(places // 2 + 1, np.complex128)
    for errors, law, number in laws:
        below = np.floor(errors / step)
        above = law * (errors / step - below)  # shared between two places so that the mean stays
        at = below.astype(np.int64)
        binned = np.bincount(at % places, law - above, places) + np.bincount((at + 1) % places, above, places)
        transform *= np.fft.rfft(binned) ** number
    sizes = np.fft.irfft(transform, places)
    sizes = np.append(sizes[0], sizes[1 : places // 2] + sizes[: places // 2 : -1])
    result = int(np.searchsorted(np.cumsum(np.maximum(sizes, 0.0)), confidence - 1e-12))
    # a grid that is not that of the noise moves each error by a step at most, some up and some down, which matters where
    # sums have few values; and noise of different counts is not on one grid: one count more makes up for it, and half of
    # one does not
    total = sum(number for _, _, number in laws)
    slack = 0.0 if even else 1.0 + step * (1 + (sqrt(total) / 2 if total <= _FEW else 1))
    return min(result, places // 2) * step + slack


def _normal_reach(variances: list[float], numbers: list[int], confidence: float) -> float:
    """The quantile of a normal law with the excess kurtosis of Laplace noise, and half a step between whole numbers."""
    from scipy.special import ndtri

    z, variance = float(ndtri((1 + confidence) / 2)), sum(variances)
    heavy = 3 * sum(each**2 / number for each, number in zip(variances, numbers, strict=True)) / variance**2
    return sqrt(variance) * (z + max(z**3 - 3 * z, _LEAST_TERM) / 24 * heavy) + 0.5


# A published table, with what its noisy parts say about each true count.

Method = Literal["table", "noise"]


@dataclass(frozen=True, eq=False)
class Stratum:
    """One public class of categories and what was measured of it.

    ``members`` are the positions of its categories. ``noisy_counts`` may be any whole numbers, and
    ``noisy_cumulative`` has an entry for each place of ``thresholds``, and one more for the cases beyond them where counts have no bound. ``probabilities`` is the distribution of true
    counts believed in, from ``model``. ``method`` is ``table``, or ``noise`` where there are too few categories to make
    anything of their distribution.
    """

    members: NDArray[np.int64]
    noisy_counts: NDArray[np.int64]
    noisy_cumulative: NDArray[np.int64]
    thresholds: Measurement
    probabilities: NDArray[np.float64]
    model: str
    method: Method

    @property
    def clamped(self) -> NDArray[np.int64]:
        """The noisy counts within 0..upper."""
        return np.clip(self.noisy_counts, 0, self.thresholds.upper)

    @property
    def beliefs(self) -> Beliefs:
        """The posteriors of its true counts."""
        return self.thresholds.beliefs(self.probabilities, len(self.members))

    def estimates(self) -> NDArray[np.float64]:
        """The posterior mean of each count, or the clamped noisy count itself where there are too few categories."""
        if self.method == "noise":
            return self.clamped.astype(np.float64)
        return self.beliefs.means(self.thresholds.seen(self.noisy_counts))

    def intervals(self, level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ends of the interval of each count, from its posterior, or from its noise alone where there are too few categories."""
        if self.method == "noise":
            return from_noise(self.thresholds.unbiased(self.noisy_counts), self.thresholds, level)
        low, high = self.beliefs.intervals(self.thresholds.seen(self.noisy_counts), level)
        return low, high


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """The result of a two-stage release.

    Every part is private, so all of it may be published. ``values`` has one count for each category: integers whose
    distribution is right. Everything else is computed from what was measured of each stratum and from public numbers.
    """

    values: NDArray[np.int64]
    upper: int
    strata: tuple[Stratum, ...]
    guarantee: Guarantee

    @property
    def method(self) -> Method:
        """``noise`` if no stratum has enough categories to estimate a distribution, otherwise ``table``."""
        return "table" if any(stratum.method == "table" for stratum in self.strata) else "noise"

    @property
    def beyond(self) -> int | None:
        """The noisy number of cases beyond ``upper``, None where counts were top-coded before the noise."""
        if all(isfinite(stratum.thresholds.largest) for stratum in self.strata):
            return None
        return int(self.strata[0].noisy_cumulative[-1])

    @property
    def model(self) -> str:
        """Where the distributions come from, in words."""
        return "; ".join(stratum.model for stratum in self.strata)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution of the true counts of the whole table."""
        sizes = [len(stratum.members) for stratum in self.strata]
        weights = np.array(sizes) / sum(sizes) if sum(sizes) else np.full(len(sizes), 1 / len(sizes))
        return weights @ np.array([stratum.probabilities for stratum in self.strata])

    @property
    def noisy_counts(self) -> NDArray[np.int64]:
        """The noisy counts as they were drawn. They may be negative, or above ``upper``."""
        return self._gathered([stratum.noisy_counts for stratum in self.strata], np.int64)

    @property
    def noisy_cumulative(self) -> NDArray[np.int64]:
        """The noisy cumulative numbers, stratum after stratum."""
        return np.concatenate([stratum.noisy_cumulative for stratum in self.strata])

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """For each category the posterior mean of its count.

        It has the smallest expected squared error, but its distribution is too narrow.
        """
        return self._gathered([stratum.estimates() for stratum in self.strata], np.float64)

    @cached_property
    def noisy(self) -> NDArray[np.float64]:
        """For each category an unbiased estimate of its count, from its own noise alone, for adding up."""
        parts = [stratum.thresholds.unbiased(stratum.noisy_counts) for stratum in self.strata]
        return self._gathered(parts, np.float64)

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """The standard deviation of ``noisy``, its maximum over all true counts, which is a public number."""
        parts = [np.full(len(stratum.members), stratum.thresholds.deviation) for stratum in self.strata]
        return self._gathered(parts, np.float64)

    def interval(self, confidence: float = 0.95) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each category, bounds between which its top-coded true count lies with this probability.

        The probability is that of a count drawn from ``probabilities`` (doubted where categories are few) and seen as
        its noisy count: right on average over the categories, if the distribution believed in is. In a stratum of fewer than
        fifty categories it is that of the noise, and right for every count.
        """
        level = confidence_level(confidence)
        ends = [stratum.intervals(level) for stratum in self.strata]
        low, high = (self._gathered([each[side] for each in ends], np.int64) for side in (0, 1))
        return low, high

    def _gathered(self, parts: list[NDArray[Any]], kind: type[Any]) -> NDArray[Any]:
        """What each stratum says of its categories, in the order of the categories."""
        out = np.empty(len(self.values), kind)
        for stratum, part in zip(self.strata, parts, strict=True):
            out[stratum.members] = part
        return out
