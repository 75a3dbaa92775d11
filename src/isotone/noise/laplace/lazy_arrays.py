"""Arrays of geometric numbers and of exponential coins at any rate, without tables.

A uniform number U decides: a geometric number is at least k exactly if ``U < exp(-rate·k)``. Its first 64 bits, and
floats with a generous margin for their errors, nearly always tell which k it is; where they do not, further bits of U
are compared with brackets of the exponential until they do (docs/theory/sampling.md, section 4). So the law is exact,
and a rate costs nothing to prepare, which is what noise with hundreds of different rates needs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Ints
from isotone.noise.bits import random_bits, random_words
from isotone.noise.brackets import exp_negative

__all__ = ["LEAST_RATE", "bernoulli_exps", "lazy_geometrics", "lazy_two_sided_geometrics"]


LEAST_RATE = Fraction(1, 1 << 24)
"""At smaller rates neighbouring numbers are too close for the margin."""

_MARGIN = 1e-12
"""Relative. The floats here are right to 1e-14: one product, one logarithm or exponential below exp(-45)."""

_FEW = np.uint64(1 << 24)
"""A word below this leaves too few bits to decide by floats."""


def bernoulli_exps(rate: Fraction, multiples: Ints) -> NDArray[np.bool_]:
    """For each whole number m, at least 0, True with probability ``exp(-rate·m)``.

    >>> bernoulli_exps(Fraction(1), np.zeros(2, np.int64))
    array([ True,  True])
    """
    if rate < 0 or np.any(multiples < 0):
        raise InputError("exp(-x) is a probability only for x at or above 0.")
    words = random_words(multiples.size)
    uniform = words.astype(np.float64) * 2.0**-64
    chance = np.exp(-float(rate) * multiples)
    result = uniform < chance
    close = np.abs(uniform - chance) <= _MARGIN * chance + 2.0**-60
    for i in np.flatnonzero(close & (multiples > 0)).tolist():
        result[i] = _below(int(words[i]), rate * int(multiples[i]))
    result[multiples == 0] = True
    return result


def lazy_geometrics(rate: Fraction, size: int) -> Ints:
    """``size`` independent draws ``k >= 0`` with probability proportional to ``exp(-rate·k)``, exactly."""
    if rate < LEAST_RATE:
        raise InputError(f"The rate must be at least {LEAST_RATE}, not {rate}.")
    words = random_words(size)
    slope = float(rate)
    uniform = np.maximum(words.astype(np.float64), 1.0) * 2.0**-64
    result = np.floor(-np.log(uniform) / slope).astype(np.int64)
    above = np.exp(-slope * result) * (1 - _MARGIN)
    below = np.exp(-slope * (result + 1)) * (1 + _MARGIN)
    unclear = (words < _FEW) | ~((below < uniform) & (uniform < above))
    for i in np.flatnonzero(unclear).tolist():
        result[i] = _geometric(int(words[i]), rate)
    return result


def lazy_two_sided_geometrics(rate: Fraction, size: int) -> Ints:
    """``size`` independent draws with probability proportional to ``exp(-rate·|k|)``, exactly.

    A sign and a magnitude; minus zero is drawn again, so that zero is not counted twice.
    """
    result = np.empty(size, np.int64)
    open_places = np.arange(size)
    while open_places.size:
        magnitude = lazy_geometrics(rate, open_places.size)
        negative = (random_words(open_places.size) & np.uint64(1)).astype(np.bool_)
        settled = ~(negative & (magnitude == 0))
        result[open_places[settled]] = np.where(negative, -magnitude, magnitude)[settled]
        open_places = open_places[~settled]
    return result


def _below(word: int, x: Fraction) -> bool:
    """Whether a uniform number with these first 64 bits is below ``exp(-x)``; more bits are drawn as needed."""
    return _Uniform(word).below(x)


def _geometric(word: int, rate: Fraction) -> int:
    """The geometric number of a uniform number with these first 64 bits."""
    uniform, low, high = _Uniform(word), 0, 1
    while uniform.below(rate * high):
        low, high = high, 2 * high
    while high - low > 1:  # at least low, and below high
        middle = (low + high) // 2
        low, high = (middle, high) if uniform.below(rate * middle) else (low, middle)
    return low


class _Uniform:
    """A uniform number whose bits are drawn when they matter."""

    def __init__(self, word: int) -> None:
        self.bits, self.value = 64, word

    def below(self, x: Fraction) -> bool:
        """Whether it is below ``exp(-x)``. It never equals it, since that is irrational unless x is 0."""
        if x == 0:
            return True
        while True:
            low, high = exp_negative(x, self.bits)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.value, self.bits = self.value << 64 | random_bits(64), self.bits + 64
