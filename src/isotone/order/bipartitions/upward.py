"""Numbers rounded up, in one 64-bit integer each.

A positive number is kept as ``m · 2^e`` with ``2^30 <= m < 2^31``: at least the true value, and at most
2^-30 above it for each rounding. Products of two mantissas fit 64-bit integers exactly, so that whoever
draws with such numbers as weights knows to the last bit what was rounded away (docs/theory/counts.md,
section 6). The bits are: 31 of mantissa, 5 of *shift*, 28 of exponent. A sum remembers by its shift the unit
``2^(e - shift)`` in which its terms were added.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = [
    "EXACT_BINOMIALS",
    "ONE",
    "Int64",
    "Numbers",
    "binomials",
    "exponent",
    "factorials",
    "inverse_factorials",
    "logarithms",
    "mantissa",
    "pack",
    "product_up",
    "share",
    "shift",
    "sum_up",
    "terms_unit",
    "value",
]

Numbers = NDArray[np.int64]
Int64: TypeAlias = Any
"""An integer in compiled code, where Python's int and numpy's int64 are one type."""

_MANTISSA = 2**31 - 1
_LEAST = 2**30


@kernel(leaf=True)
def pack(m: Int64, e: Int64, shift: Int64) -> Int64:
    """The number ``m · 2^e`` whose terms were added in units of ``2^(e - shift)``."""
    return np.int64(m) | (np.int64(shift) << 31) | (np.int64(e) << 36)


@kernel(leaf=True)
def mantissa(number: Int64) -> Int64:
    """Its mantissa."""
    return np.int64(number) & _MANTISSA


@kernel(leaf=True)
def exponent(number: Int64) -> Int64:
    """Its exponent."""
    return np.int64(number) >> 36


@kernel(leaf=True)
def shift(number: Int64) -> Int64:
    """The shift with which it was packed."""
    return (np.int64(number) >> 31) & 31


def logarithms(numbers: Numbers) -> NDArray[np.float64]:
    """The logarithms of several numbers to base 2."""
    found: NDArray[np.float64] = np.log2((numbers & _MANTISSA).astype(np.float64))
    return found + (numbers >> 36).astype(np.float64)


ONE = (-30 << 36) | _LEAST
"""The number 1."""


@kernel(leaf=True)
def sum_up(total: Int64, unit: Int64) -> Int64:
    """``total · 2^unit`` as a rounded-up number, for a total from 2^30 up to 2^62 - 2^32."""
    shift, rest = 0, total >> 31
    while rest > 0:
        rest >>= 1
        shift += 1
    m = (total + (np.int64(1) << shift) - 1) >> shift
    if m > _MANTISSA:  # the carry went through
        m >>= 1
        shift += 1
    return pack(m, unit + shift, shift)


@kernel(leaf=True)
def product_up(a: Int64, b: Int64) -> Int64:
    """The product of two rounded-up numbers, rounded up."""
    exact = mantissa(a) * mantissa(b)
    gap = 30 if exact < np.int64(1) << 61 else 31
    m = (exact + (np.int64(1) << gap) - 1) >> gap
    if m > _MANTISSA:
        m >>= 1
        gap += 1
    return pack(m, exponent(a) + exponent(b) + gap, 0)


@kernel(leaf=True)
def share(exact: Int64, gap: Int64) -> Int64:
    """How many units of ``2^gap`` cover ``exact``, a positive integer below 2^62."""
    if gap <= 0:
        return np.int64(exact) << -gap
    if gap > 61:
        return np.int64(1)
    return (np.int64(exact) + (np.int64(1) << gap) - 1) >> gap


@kernel(leaf=True)
def terms_unit(highest: Int64, width: Int64, terms: Int64) -> Int64:
    """A unit in which ``terms`` shares of at most ``2^(highest + width)`` add up to between 2^30 and 2^62."""
    unit = np.int64(highest) + width - 61
    while terms > 1:
        unit += 1
        terms = (terms + 1) >> 1
    return unit


def value(number: Int64) -> Fraction:
    """The number, exactly."""
    return Fraction(int(number) & _MANTISSA) * Fraction(2) ** (int(number) >> 36)


def _up(integer: int, unit: int = 0) -> int:
    shift = integer.bit_length() - 31
    m = integer << -shift if shift <= 0 else -(-integer >> shift)
    if m > _MANTISSA:
        m, shift = m >> 1, shift + 1
    return m | (unit + shift) << 36


@lru_cache(maxsize=256)
def binomials(n: int) -> Numbers:
    """``C(n, 0), …, C(n, n)``, rounded up. Exact for n up to :data:`EXACT_BINOMIALS`."""
    binomial, half = 1, [_up(1)]
    for k in range(n // 2):
        binomial = binomial * (n - k) // (k + 1)
        half.append(_up(binomial))
    return np.array(half + half[(n - 1) // 2 :: -1] if n else half, np.int64)


EXACT_BINOMIALS = 33
"""The largest n whose binomials all have at most 31 bits."""


def _factorial_table(n: int, rounded: Callable[[int], int]) -> Numbers:
    factorial, numbers = 1, [rounded(1)]
    for k in range(1, n + 1):
        factorial *= k
        numbers.append(rounded(factorial))
    return np.array(numbers, np.int64)


@lru_cache(maxsize=4)
def factorials(n: int) -> Numbers:
    """``0!, …, n!``, rounded up."""
    return _factorial_table(n, _up)


@lru_cache(maxsize=4)
def inverse_factorials(n: int) -> Numbers:
    """``1/0!, …, 1/n!``, rounded up."""

    def inverse(factorial: int) -> int:
        cut = max(factorial.bit_length() - 64, 0)  # the divisor rounded down, the quotient up
        return _up(-(-(1 << 128) // (factorial >> cut)), -128 - cut)

    return _factorial_table(n, inverse)
