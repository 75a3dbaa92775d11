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
from isotone.noise.bulk import SMALLEST_RATE
from isotone.noise.exponential import LazyExponentials

__all__ = ["rounded_cube"]

FIRST_PLACES = 24  # binary places of G that are read at first


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

    ``2**places · G`` is at or above ``floor`` and below ``floor + terms``.
    """

    def __init__(self, rate: Fraction, terms: int) -> None:
        self.terms = terms
        places = min(FIRST_PLACES, int(rate / SMALLEST_RATE).bit_length() - 1)
        self.digits = LazyExponentials(rate, terms, places)

    @property
    def places(self) -> int:
        """How many binary places are known."""
        return self.digits.places

    def shifted(self) -> int:
        """``floor + 2**(places - 1)``: the digits of ``G + 1/2`` that are known."""
        return self.digits.partial_sum(self.terms) + (1 << (self.places - 1))

    def rounded(self) -> int:
        """``round(G)``."""
        while True:
            low = self.shifted()
            if low >> self.places == (low + self.terms - 1) >> self.places:
                return low >> self.places
            self.digits.read_on()

    def is_end_kept(self) -> bool:
        """True with probability ``F``, the fractional part of ``G + 1/2``; call after :meth:`rounded`."""
        uniform, known = random_bits(self.places), self.places
        while True:
            fraction = self.shifted() & ((1 << self.places) - 1)
            if uniform < fraction:
                return True
            if uniform >= fraction + self.terms:
                return False
            self.digits.read_on()
            uniform = uniform << (self.places - known) | random_bits(self.places - known)
            known = self.places
