"""How far a sum of unbiased noisy counts may be from the true sum.

Noise that is the same for every count has a sum of known law, and the answer is exact. Where thresholds are measured, the noise
depends on the true counts, which are private: the answer is the largest over tables whose categories all have one count. Sums of
many categories are close to normal (docs/theory/tables-whole.md, section 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from isotone.tables.measurement import Measurement

__all__ = ["from_noise", "reach"]

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
    found = int(np.searchsorted(np.cumsum(np.maximum(sizes, 0.0)), confidence - 1e-12))
    # a grid that is not that of the noise moves each error by a step at most, some up and some down, which matters where
    # sums have few values; and noise of different counts is not on one grid: one count more makes up for it, and half of
    # one does not
    total = sum(number for _, _, number in laws)
    slack = 0.0 if even else 1.0 + step * (1 + (sqrt(total) / 2 if total <= _FEW else 1))
    return min(found, places // 2) * step + slack


def _normal_reach(variances: list[float], numbers: list[int], confidence: float) -> float:
    """The quantile of a normal law with the excess kurtosis of Laplace noise, and half a step between whole numbers."""
    from scipy.special import ndtri

    z, variance = float(ndtri((1 + confidence) / 2)), sum(variances)
    heavy = 3 * sum(each**2 / number for each, number in zip(variances, numbers, strict=True)) / variance**2
    return sqrt(variance) * (z + max(z**3 - 3 * z, _LEAST_TERM) / 24 * heavy) + 0.5
