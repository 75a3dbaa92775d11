"""Compiled 64- and 128-bit integer arithmetic, and powers of two with fractional exponents.

Only integers: no result depends on the rounding of a floating-point unit or a mathematics library. Error
bounds are proved in docs/theory/sampling.md, section 2.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import Flag, Int, Word, kernel
from isotone.noise.brackets import exp_negative, log_two

__all__ = ["POWER_ERROR", "below", "exp2_negative", "multiply", "shift_left", "shift_right"]

POWER_ERROR = 16
"""``exp2_negative`` is off by less than this, in units of 2**-63."""

_0, _1, _32, _63, _64 = (np.uint64(value) for value in (0, 1, 32, 63, 64))
_LOW = np.uint64(0xFFFFFFFF)


def _powers_of_two(step_bits: int) -> NDArray[np.uint64]:
    """``2**63 · 2**(-i / 2**step_bits)`` for ``i = 0…255``, short by less than 2."""
    low, _ = log_two(128)
    log = Fraction(low, 1 << 128)
    return np.array(
        [exp_negative(log * Fraction(i, 1 << step_bits), 127)[0] >> 64 for i in range(256)], dtype=np.uint64
    )


_FIRST, _SECOND, _THIRD = _powers_of_two(8), _powers_of_two(16), _powers_of_two(24)
_LOG_TWO = np.uint64(log_two(64)[0])


@kernel
def multiply(a: Word, b: Word) -> tuple[Word, Word]:
    """The product of two 64-bit integers as (high, low) words."""
    a_low, a_high = a & _LOW, a >> _32
    b_low, b_high = b & _LOW, b >> _32
    low = a_low * b_low
    middle = a_high * b_low + (low >> _32)
    cross = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _32) + (cross >> _32), (cross << _32) | (low & _LOW)


@kernel
def shift_right(high: Word, low: Word, places: Int) -> tuple[Word, Word]:
    """A 128-bit integer shifted right by ``places >= 0``."""
    if places == 0:
        return high, low
    if places < 64:
        by = np.uint64(places)
        return high >> by, (low >> by) | (high << (_64 - by))
    if places < 128:
        return _0, high >> np.uint64(places - 64)
    return _0, _0


@kernel
def shift_left(high: Word, low: Word, places: Int) -> tuple[Word, Word]:
    """A 128-bit integer shifted left by ``places >= 0``.

    Bits beyond 128 are lost.
    """
    if places == 0:
        return high, low
    if places < 64:
        by = np.uint64(places)
        return (high << by) | (low >> (_64 - by)), low << by
    if places < 128:
        return low << np.uint64(places - 64), _0
    return _0, _0


@kernel
def below(a_high: Word, a_low: Word, b_high: Word, b_low: Word) -> Flag:
    """Whether one 128-bit integer is below another."""
    return a_high < b_high or (a_high == b_high and a_low < b_low)


@kernel
def _scaled_product(a: Word, b: Word) -> Word:
    """``floor(a·b / 2**63)`` for numbers up to 2**63."""
    high, low = multiply(a, b)
    return (high << _1) | (low >> _63)


@kernel
def exp2_negative(fraction: Word) -> Word:
    """``2**63 · 2**(-fraction / 2**64)``, off by less than POWER_ERROR.

    The three high bytes of the exponent are looked up; what is left is below 2**-24 and needs two terms of
    the series.
    """
    first = _FIRST[fraction >> np.uint64(56)]
    second = _SECOND[(fraction >> np.uint64(48)) & np.uint64(255)]
    third = _THIRD[(fraction >> np.uint64(40)) & np.uint64(255)]
    rest = fraction & np.uint64((1 << 40) - 1)
    linear = multiply(rest, _LOG_TWO)[0] >> _1
    quadratic = multiply(linear, linear)[0]
    last = (_1 << _63) - linear + quadratic
    return _scaled_product(_scaled_product(first, second), _scaled_product(third, last))
