"""Exactly rounded noise with density proportional to ``exp(-rate · max|y|)``: the ℓ∞ mechanism's.

Such a vector of ``d`` numbers is uniform in the cube of half-side ``G``, for a ``G`` that is the sum of
``d + 1`` exponential variables. Given ``G``, the numbers are independent, and each rounds to an integer of
``-N … N``, where ``N = round(G)``: to the inner ones with equal weight 1, to the two ends with weight
``F = G + 1/2 - N``, a real number in [0, 1) whose binary digits are read only as far as they are needed
(docs/theory/baselines.md, section 3).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bits import random_below, random_bits
from isotone.noise.bulk import SMALLEST_RATE, draw_digits
from isotone.noise.digits import BASE_BITS, DigitTable, digits_below, geometric_digits

__all__ = ["rounded_cube"]

FIRST_PLACES = 24  # binary places of G that are read at first
FURTHER_DIGITS = 4  # base-256 digits that are read at once when those do not decide
FURTHER_PLACES = FURTHER_DIGITS * BASE_BITS


def rounded_cube(rate: Fraction, size: int) -> NDArray[np.int64]:
    """``round(y)`` for a vector ``y`` of ``size`` numbers with density ∝ ``exp(-rate · max|y|)``, exactly.

    The rate must be at least ``2**-44``, so that values fit 64 bits.

    >>> rounded_cube(Fraction(10**6), 3)
    array([0, 0, 0])
    """
    if rate < 2 * SMALLEST_RATE:
        raise InputError(
            f"Noise in a cube needs a rate of at least 2**-44, not {rate}: values may not fit 64 bits."
        )
    half_side = _HalfSide(rate, size + 1)
    bound = half_side.rounded()
    values = np.zeros(size, dtype=np.int64)
    for x in range(size if bound else 0):
        value = random_below(2 * bound + 1) - bound
        while abs(value) == bound and not half_side.is_end_kept():
            value = random_below(2 * bound + 1) - bound
        values[x] = value
    return values


class _HalfSide:
    """A sum ``G`` of exponential variables whose binary digits are read on demand.

    ``2**places · G`` lies strictly between ``floor`` and ``floor + terms``.
    """

    def __init__(self, rate: Fraction, terms: int) -> None:
        self.rate, self.terms = rate, terms
        self.places = min(FIRST_PLACES, int(rate / SMALLEST_RATE).bit_length() - 1)
        self.floor = self._digits(geometric_digits(rate / 2**self.places))

    def _digits(self, table: DigitTable) -> int:
        return sum(draw_digits(table, self.terms, two_sided=False).tolist())  # any size: Python adds up

    def read_on(self) -> None:
        """Read further digits of every term."""
        self.places += FURTHER_PLACES
        table = digits_below(self.rate / 2**self.places, FURTHER_DIGITS)
        self.floor = (self.floor << FURTHER_PLACES) + self._digits(table)

    def rounded(self) -> int:
        """``round(G)``."""
        while True:
            low = self.floor + (1 << (self.places - 1))
            if low >> self.places == (low + self.terms - 1) >> self.places:
                return low >> self.places
            self.read_on()

    def is_end_kept(self) -> bool:
        """True with probability ``F``, the fractional part of ``G + 1/2``; call after :meth:`rounded`."""
        uniform, places = random_bits(self.places), self.places
        while True:
            fraction = (self.floor + (1 << (self.places - 1))) & ((1 << self.places) - 1)
            if uniform + 1 <= fraction:
                return True
            if uniform >= fraction + self.terms:
                return False
            self.read_on()
            uniform = uniform << (self.places - places) | random_bits(self.places - places)
            places = self.places
