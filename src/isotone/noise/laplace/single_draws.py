"""The geometric and the two-sided geometric distribution, one exact draw at a time.

For any positive rational rate, without limit in either direction. Arrays are drawn by ``bulk.py``, by
another method; each is a check of the other (docs/theory/sampling.md, section 3).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bits import random_below, random_bits
from isotone.noise.coins import bernoulli_exp

__all__ = ["geometric", "rounded_laplaces", "two_sided_geometric"]


def geometric(x: Fraction) -> int:
    """A draw ``k >= 0`` with probability proportional to ``exp(-x·k)``, for a rational ``x > 0``.

    With ``x = p/q``, a geometric ``u + q·v`` of rate ``1/q`` is built from its remainder and its quotient,
    which are independent, and divided by ``p``.
    """
    if x <= 0:
        raise InputError(f"The rate of a geometric distribution must be above 0, not {x}.")
    p, q = x.numerator, x.denominator
    remainder = random_below(q)
    while not bernoulli_exp(Fraction(remainder, q)):
        remainder = random_below(q)
    quotient = 0
    while bernoulli_exp(Fraction(1)):
        quotient += 1
    return (remainder + q * quotient) // p


def two_sided_geometric(epsilon: Fraction) -> int:
    """Draw from the discrete Laplace distribution.

    The probability of ``k`` is proportional to ``exp(-epsilon·|k|)``.

    A sign and a magnitude; minus zero is drawn again, so that zero is not counted twice.
    """
    while True:
        negative, magnitude = random_bits(1), geometric(epsilon)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def rounded_laplaces(rate: Fraction, size: int) -> NDArray[np.int64]:
    """Laplace noise with density proportional to ``exp(-rate·|y|)``, exactly rounded to integers."""
    return np.array([_rounded_laplace(rate) for _ in range(size)], dtype=np.int64)


def _rounded_laplace(rate: Fraction) -> int:
    """Laplace noise rounded to the nearest integer (docs/theory/baselines.md, section 2).

    Its magnitude is exponential: below 1/2 it rounds to 0, and otherwise, having no memory, it exceeds 1/2 by
    another exponential, of which the rounding keeps the integer part plus one.
    """
    if not bernoulli_exp(rate / 2):
        return 0
    magnitude = 1 + geometric(rate)
    return -magnitude if random_bits(1) else magnitude
