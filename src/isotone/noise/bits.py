"""Random bits from the operating system's cryptographic source, and unbiased integers made of them.

Nothing is kept between calls: every call asks the kernel for one block of exactly the size it needs. So
there is no state that a fork could duplicate, that threads could share, or that a core dump could reveal
before it is used. Unused bits of a block are dropped; they are independent of everything drawn before and
after, so dropping them changes no distribution (docs/theory/sampling.md, section 1).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Flag, Int, Word, kernel

__all__ = [
    "POWER_ERROR",
    "below",
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_exp_lazily",
    "exp2_negative",
    "exp_negative",
    "log_two",
    "multiply",
    "powers_of_exp",
    "random_below",
    "random_belows",
    "random_bits",
    "random_salt",
    "random_words",
    "shift_left",
    "shift_right",
]


def random_bits(count: int) -> int:
    """A uniform integer in ``[0, 2**count)``.

    >>> random_bits(0)
    0
    >>> 0 <= random_bits(10) < 1024
    True
    """
    if count < 0:
        raise InputError(f"The number of random bits must be at least 0, not {count}.")
    size = (count + 7) // 8
    return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)


def random_below(bound: int) -> int:
    """Draw a uniform integer in ``[0, bound)`` by rejection.

    Fewer than two tries are expected.

    >>> random_below(1)
    0
    """
    if bound < 1:
        raise InputError(f"A uniform integer needs a bound of at least 1, not {bound}.")
    count = (bound - 1).bit_length()
    while True:
        candidate = random_bits(count)
        if candidate < bound:
            return candidate


def random_words(count: int) -> NDArray[np.uint64]:
    """``count`` uniform 64-bit words, drawn in one block."""
    if count < 0:
        raise InputError(f"The number of random words must be at least 0, not {count}.")
    return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


def random_salt() -> bytes:
    """Draw the 16 bytes that decide which rows of a unit count.

    They are drawn for each attempt, used once and stored nowhere.

    >>> len(random_salt())
    16
    """
    return os.urandom(16)


def random_belows(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each bound a uniform integer in ``[0, bound)``, from a word each; words of an incomplete last round are drawn again.

    >>> random_belows(np.ones(2, np.int64))
    array([0, 0])
    """
    if np.any(bounds < 1):
        raise InputError("Uniform integers need bounds of at least 1.")
    sizes = bounds.astype(np.uint64)
    words, least = random_words(sizes.size), (np.uint64(0) - sizes) % sizes  # 2**64 modulo the bound
    open_places = np.flatnonzero(words < least)
    while open_places.size:
        words[open_places] = random_words(open_places.size)
        open_places = open_places[words[open_places] < least[open_places]]
    return (words % sizes).astype(np.int64)


# Numbers known between two bounds that are refined when asked, and coins with exact probabilities.

# Guaranteed integer brackets of exponentials.
#
# They are the only source of real numbers in exact sampling.
#
# A bracket at ``bits`` bits of a real number ``v`` is a pair of integers with ``lo <= 2**bits * v <= hi``.
# Everything here is integer arithmetic with the rounding errors counted (docs/theory/sampling.md, section 2).

REDUCED = 8  # the series is summed for arguments below 2**-REDUCED


def exp_negative(x: Fraction, bits: int) -> tuple[int, int]:
    """A bracket of ``exp(-x)`` for ``x >= 0`` at ``bits`` bits, with ``hi - lo <= 2``.

    >>> exp_negative(Fraction(1), 30)  # 0.36787944117… · 2**30
    (395007542, 395007543)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if 10 * x >= 7 * (bits + 1):  # 7/10 exceeds ln 2, so exp(-x) < 2**-bits
        return 0, 1
    halvings = max(0, (x.numerator << REDUCED).bit_length() - x.denominator.bit_length() + 1)
    guard = halvings + (bits + halvings).bit_length() + 6
    width = bits + guard
    lo, hi = _series(x, halvings, width)
    for _ in range(halvings):
        lo, hi = (lo * lo) >> width, -((-hi * hi) >> width)
    return lo >> guard, -(-hi >> guard)


def _series(x: Fraction, halvings: int, width: int) -> tuple[int, int]:
    """A bracket of ``exp(-x / 2**halvings)`` at ``width`` bits.

    The argument is below ``2**-REDUCED``.
    """
    y = (x.numerator << width) // (x.denominator << halvings)
    term = total = 1 << width
    order = 0
    while term:
        order += 1
        term = (term * y >> width) // order
        total += -term if order & 1 else term
    # each computed term is short by less than 2, the omitted ones add up to less than 2, and y is short
    # by less than 1
    return total - 2 * order - 3, min(total + 2 * order + 3, 1 << width)


def powers_of_exp(x: Fraction, count: int, bits: int) -> list[tuple[int, int]]:
    """Brackets of ``exp(-x·d)`` for ``d = 0, …, count``, with ``hi - lo <= 2``.

    >>> powers_of_exp(Fraction(1, 2), 2, 8)
    [(256, 256), (155, 156), (94, 95)]
    """
    guard = (count + 1).bit_length() + 6
    width = bits + guard
    first_lo, first_hi = exp_negative(x, width)
    lo, hi = 1 << width, 1 << width
    powers = [(1 << bits, 1 << bits)]
    for _ in range(count):
        lo, hi = (lo * first_lo) >> width, -((-hi * first_hi) >> width)
        powers.append((lo >> guard, -(-hi >> guard)))
    return powers


def log_two(bits: int) -> tuple[int, int]:
    """A bracket of ``ln 2`` at ``bits`` bits, from ``ln 2 = 2·artanh(1/3)``."""
    guard = bits.bit_length() + 6
    power = (2 << (bits + guard)) // 3
    total, order = 0, 0
    while power:
        total += power // (2 * order + 1)
        power //= 9
        order += 1
    # every term is short by less than 3, and the omitted ones add up to less than 1
    return total >> guard, -(-(total + 3 * order + 1) >> guard)


# Coins with probability p/q, with probability exp(-p/q), and with probability exp(-x) for a lazily known x.
#
# The first two use integers only: no real number is ever computed (Canonne, Kamath and Steinke 2020;
# docs/theory/sampling.md, section 3). The third compares a uniform with brackets of exp(-x), and reads on.


def bernoulli(p: Fraction) -> bool:
    """True with probability ``p``, a rational in [0, 1].

    >>> bernoulli(Fraction(1)), bernoulli(Fraction(0))
    (True, False)
    """
    if not 0 <= p <= 1:
        raise InputError(f"A probability must be between 0 and 1, not {p}.")
    return random_below(p.denominator) < p.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability ``exp(-x)``, for a rational ``x >= 0``.

    >>> bernoulli_exp(Fraction(0))
    True
    """
    if x < 0:
        raise InputError(f"exp(-x) is a probability only for x at or above 0, not {x}.")
    whole, rest = divmod(x.numerator, x.denominator)
    for _ in range(whole):
        if not _bernoulli_exp_below_one(1, 1):
            return False
    return _bernoulli_exp_below_one(rest, x.denominator)


def _bernoulli_exp_below_one(p: int, q: int) -> bool:
    """True with probability ``exp(-p/q)``, for ``p <= q``.

    The first failure among coins p/(q·k), k = 1, 2, …, comes at an odd k with this probability.
    """
    k = 1
    while random_below(q * k) < p:
        k += 1
    return k % 2 == 1


def bernoulli_exp_lazily(
    bounds: Iterable[tuple[Fraction, Fraction]], uniform: int = 0, bits: int = 0
) -> bool:
    """True with probability ``exp(-x)``, for a real ``x >= 0`` that is known through ever closer bounds.

    ``bounds`` yields pairs ``0 <= low <= x <= high`` whose distance shrinks to nothing; as many are taken as
    needed. If ``x`` is itself random, later bounds may come from further random digits of it. ``uniform``
    holds the first ``bits`` bits of the uniform to compare with, if some were drawn already.

    >>> bernoulli_exp_lazily([(Fraction(0), Fraction(0))])
    True
    """
    for low, high in bounds:
        uniform, bits = uniform << 64 | random_bits(64), bits + 64
        if uniform < exp_negative(high, bits)[0]:
            return True
        if uniform >= exp_negative(low, bits)[1]:
            return False
    raise InputError("The bounds of the exponent ended before they decided; they must come ever closer.")


# Compiled 64- and 128-bit integer arithmetic, and powers of two with fractional exponents.
#
# Only integers: no result depends on the rounding of a floating-point unit or a mathematics library. Error
# bounds are proved in docs/theory/sampling.md, section 2.

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
