"""Numbers known between two bounds that are refined when asked, and coins with exact probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from isotone.errors import InputError
from isotone.noise.bits import random_below, random_bits

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_exp_lazily",
    "exp_negative",
    "log_two",
    "powers_of_exp",
]


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
