"""The law of released noise, as independent draws of it, ranks that err on the safe side, and bounds for weighted sums.

The law is public, so anyone may draw from it. A quantile is taken at a rank that is below the true quantile with
probability at most ``FALSE_CONFIDENCE`` over the draws (docs/theory/inference.md, section 1). The draws come from a
public stream of constant label: numbers repeat on every machine and in every version.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.privacy.checks import confidence_level

__all__ = [
    "FALSE_CONFIDENCE",
    "LAW_STREAM",
    "Law",
    "gaussian_reach",
    "log_concave_reach",
    "rank",
    "require_known",
    "rounding_reach",
    "scales",
    "upper_draw",
    "whole_width",
]

LAW_STREAM = "isotone law 1"
"""The label of the public stream, with its version."""

FALSE_CONFIDENCE = 1e-6
"""How likely it is at most, over the draws, that a stated half-width is below the true quantile."""


def require_known(draws: int, confidence: float) -> None:
    """Refuse a confidence that so many draws cannot tell, before they are drawn."""
    rank(draws, confidence_level(confidence))


@lru_cache(maxsize=256)
def rank(draws: int, level: float) -> int:
    """The least k such that the k-th smallest of the draws is below the true quantile with probability at most 1e-6.

    If it is, at least k draws fall below the quantile, and each does so with probability at most ``level``.

    >>> rank(100_000, 0.95)
    95325
    """
    from scipy.special import betainc

    low, high = math.ceil(draws * level), draws
    if level**draws > FALSE_CONFIDENCE:
        most = math.floor(1e3 * FALSE_CONFIDENCE ** (1 / draws)) / 1e3
        raise InputError(
            f"A confidence of {level:g} cannot be known from {draws:,} draws of the noise. Ask for {most:g} at most."
        )
    while low < high:
        middle = (low + high) // 2
        if betainc(middle, draws - middle + 1, level) <= FALSE_CONFIDENCE:  # that many or more fall below
            high = middle
        else:
            low = middle + 1
    return low


def upper_draw(drawn: NDArray[np.number], confidence: float) -> Floats:
    """One of the draws of a law that the law is within with the given probability."""
    place = rank(len(drawn), confidence_level(confidence)) - 1
    return np.partition(drawn, place, axis=0)[place].astype(np.float64)


def whole_width(width: ArrayLike) -> Floats:
    """The half-width of released integers.

    Noise within ``width`` is, once rounded, within the rounded width.
    """
    return np.floor(np.asarray(width, dtype=float) + 0.5)


@dataclass(frozen=True, eq=False)
class Law:
    """Independent draws of the noise on some released numbers, one number a column."""

    draws: NDArray[np.number] = field(repr=False)
    other: NDArray[np.number] = field(repr=False)
    """Fewer draws from another stream, for everything that decides which statement is made."""

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.draws)

    def upper(self, noise: NDArray[np.number], confidence: float) -> Floats:
        """A bound that each column of ``noise``, one row a draw, stays below with the given probability."""
        return upper_draw(noise, confidence)

    def half_widths(self, confidence: float) -> Floats:
        """How far each number alone stays from the truth."""
        return self.upper(np.abs(self.draws), confidence)

    def simultaneous_half_width(self, confidence: float) -> float:
        """How far all numbers stay from the truth at once."""
        return float(self.upper(np.max(np.abs(self.draws), axis=1), confidence))

    def half_width(self, contrast: ArrayLike, confidence: float) -> float:
        """How far a linear combination of the numbers stays from the truth."""
        return float(self.upper(np.abs(self.along(contrast)), confidence))

    def along(self, contrast: ArrayLike) -> Floats:
        """The draws of a linear combination."""
        return _along(self.draws, np.asarray(contrast, dtype=float))

    def linear(self, weights: ArrayLike) -> Law:
        """The law of linear combinations, one for each column of ``weights``."""
        matrix = np.asarray(weights, dtype=float)
        return Law(self.draws @ matrix, self.other @ matrix)

    def plus(self, law: Law) -> Law:
        """The law of sums of these numbers and of others whose draws are independent of them."""
        rows, few = min(self.size, law.size), min(len(self.other), len(law.other))
        return Law(self.draws[:rows] + law.draws[:rows], self.other[:few] + law.other[:few])


def scales(draws: NDArray[np.number]) -> Floats:
    """The standard deviation of each column, and no less than a half of a whole number's step."""
    return np.maximum(np.sqrt(np.mean(draws.astype(float) ** 2, axis=0)), 0.5)


def _along(draws: NDArray[np.number], contrast: Floats) -> Floats:
    """A product that looks only at the columns that matter."""
    columns = np.flatnonzero(contrast)
    return draws[:, columns].astype(np.float64) @ contrast[columns]


# How far a weighted sum of many draws of noise stays from 0.
#
# The sum of independent draws whose densities are symmetric and log-concave is of the same kind, and of all such numbers of
# one variance those with a truncated exponential density reach farthest (docs/theory/breakdowns.md, section 5).


@lru_cache(maxsize=64)
def log_concave_reach(outside: float) -> float:
    """The least multiple of the standard deviation that such a number exceeds with probability ``outside`` at most.

    >>> round(log_concave_reach(0.05), 2)  # a Gaussian: 1.96
    2.17
    """
    cut = np.geomspace(0.1, 700.0, 100_001)  # where the density ends; for shorter ones it is nearly uniform
    kept = -np.expm1(-cut)
    square = (2 - np.exp(-cut) * (cut * (cut + 2) + 2)) / kept
    ratio = -np.log1p(-(1 - outside) * kept) / np.sqrt(square)
    return max(float(ratio.max()), (1 - outside) * math.sqrt(3)) * (1 + 1e-6)


def gaussian_reach(outside: float) -> float:
    """The same for Gaussian noise."""
    from scipy.special import ndtri

    return -float(ndtri(outside / 2))


def rounding_reach(outside: float) -> float:
    """How far a sum of independent numbers of mean 0, each between -1 and 1 times its weight, stays from 0 (Hoeffding).

    In multiples of the root of the sum of the squared weights.
    """
    return math.sqrt(2 * math.log(2 / outside))
