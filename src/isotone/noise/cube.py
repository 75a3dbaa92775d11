"""Exactly rounded noise of the ℓ∞ mechanism.

Its density is proportional to ``exp(-rate · max|y|)``.

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
from isotone.noise.exponential import LazyExponentials, first_places

__all__ = ["rounded_cube"]


def rounded_cube(rate: Fraction, size: int) -> NDArray[np.int64]:
    """``round(y)`` for a vector ``y`` of ``size`` numbers with density ∝ ``exp(-rate · max|y|)``, exactly.

    The rate must be at least ``2**-44``, and ``(size + 1) / rate`` at most ``2**56``, so that values fit 64 bits
    (docs/theory/sampling.md, section 5).

    >>> rounded_cube(Fraction(10**6), 3)
    array([0, 0, 0])
    """
    if size < 0:
        raise InputError(f"Noise in a cube needs a size of 0 or above, not {size}.")
    half_side = _HalfSide(rate, size)
    bound = half_side.rounded()
    values = np.zeros(size, dtype=np.int64)
    for x in range(size if bound else 0):
        value = random_below(2 * bound + 1) - bound
        while abs(value) == bound and not half_side.is_end_kept():
            value = random_below(2 * bound + 1) - bound
        values[x] = value
    return values


class _HalfSide:
    """The half-side ``G`` of a cube, read on demand.

    For ``size`` dimensions it is a sum of ``size + 1`` exponentials.

    ``2**places · G`` is at or above ``floor`` and below ``floor + terms``.
    """

    def __init__(self, rate: Fraction, size: int) -> None:
        self.terms = size + 1
        self.digits = LazyExponentials(rate, self.terms, first_places(rate, self.terms, size))

    @property
    def places(self) -> int:
        """How many binary places are known."""
        return self.digits.places

    def shifted(self) -> int:
        """The known digits of ``G + 1/2``.

        They are ``floor + 2**(places - 1)``.
        """
        return self.digits.partial_sum(self.terms) + (1 << (self.places - 1))

    def rounded(self) -> int:
        """``round(G)``."""
        while True:
            low = self.shifted()
            if low >> self.places == (low + self.terms - 1) >> self.places:
                return low >> self.places
            self.digits.read_on()

    def is_end_kept(self) -> bool:
        """True with probability ``F``, the fractional part of ``G + 1/2``.

        Call it after :meth:`rounded`.
        """
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
