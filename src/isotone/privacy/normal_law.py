"""Guaranteed integer brackets of the normal law and of logarithms, for calibration.

A bracket at ``bits`` bits of a real number ``v`` is a pair of integers with ``lo ≤ 2**bits · v ≤ hi``. All of it
is integer arithmetic with every rounding counted, on top of the brackets of exponentials in ``noise``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from isotone.noise.brackets import exp_negative, log_two

__all__ = [
    "bits_above_one",
    "ceiling",
    "log_bracket",
    "mills_bracket",
    "normal_cdf_bracket",
    "normal_density_bracket",
]


def normal_cdf_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with ``lo ≤ 2**bits · Φ(x) ≤ hi`` and ``hi − lo`` of a few units.

    Φ(x) = ½ + φ(x)·(x + x³/3 + x⁵/(3·5) + …): all terms have one sign, so nothing cancels.

    >>> normal_cdf_bracket(Fraction(0), 10)
    (512, 512)
    """
    half = 1 << (bits - 1)
    if x == 0:
        return half, half
    square = x * x
    if 5 * square >= 7 * (bits + 1):  # 7/10 exceeds ln 2, so Φ(−|x|) ≤ e^(−x²/2) < 2**-bits
        return (0, 1) if x < 0 else ((1 << bits) - 1, 1 << bits)
    # the series is at most e^(x²/2) √(π/2), and 3/4 exceeds log₂(e)/2
    width = bits + ceiling(square * 3 / 4) + 16
    series_low, series_high = _odd_series(abs(x), width)
    density_low, density_high = exp_negative(square / 2, width)
    root_low, root_high = _root_of_two_pi(width)
    low = (series_low * density_low // root_high) >> (width - bits)
    high = -((-series_high * density_high // root_low) >> (width - bits))
    return (half + low, half + high) if x > 0 else (half - high, half - low)


def normal_density_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    """A bracket of the density φ(x) = e^(−x²/2)/√(2π).

    >>> normal_density_bracket(Fraction(0), 10)  # 0.39894… · 2**10
    (408, 409)
    """
    low, high = exp_negative(x * x / 2, bits + 4)
    root_low, root_high = _root_of_two_pi(bits + 4)
    return (low << bits) // root_high, -((-high << bits) // root_low)


def mills_bracket(t: Fraction, bits: int) -> tuple[int, int]:
    """A bracket of Mills' ratio Φ(−t)/φ(t), at most two units wide.

    For t of at least about 1.

    Laplace's continued fraction ``1/(t + 1/(t + 2/(t + 3/(t + …))))``. The part left out lies between 0 and
    n/t, and each step back falls in the other bound, so intervals stay guaranteed; they shrink because each
    step multiplies their length by less than 1.

    >>> mills_bracket(Fraction(10), 20)  # 0.0990286… · 2**20
    (103839, 103840)
    """
    width, depth = bits + 32, 16
    at = (t.numerator << width) // t.denominator, -((-t.numerator << width) // t.denominator)
    while True:
        low, high = at[0], at[1] - ((-depth << 2 * width) // at[0])
        for n in range(depth - 1, 0, -1):
            low, high = at[0] + (n << 2 * width) // high, at[1] - ((-n << 2 * width) // low)
        first, last = (1 << 2 * width) // high, -((-1 << 2 * width) // low)
        if last - first <= 1 << 32:
            return first >> 32, -(-last >> 32)
        depth *= 2


def log_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    """A bracket of ``ln x`` for x > 0.

    From ``ln x = k·ln 2 + 2·artanh((m − 1)/(m + 1))`` with x = 2ᵏ·m.

    >>> log_bracket(Fraction(10), 20)  # 2.302585… · 2**20
    (2414435, 2414436)
    """
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    mantissa = x / Fraction(2) ** exponent  # between 1/2 and 2, so the quotient is at most 1/3
    quotient = (mantissa - 1) / (mantissa + 1)
    width = bits + 16 + bits.bit_length() + abs(exponent).bit_length()
    square = quotient * quotient
    ratio = (square.numerator << width) // square.denominator
    power = (abs(quotient.numerator) << width) // quotient.denominator
    total, order = 0, 0
    while power:
        total += power // (2 * order + 1)
        power = power * ratio >> width
        order += 1
    # powers are short by less than 2 each, terms by less than 3, and those left out add up to less than 2
    low, high = (2 * total, 2 * (total + 3 * order + 2))
    if quotient < 0:
        low, high = -high, -low
    two_low, two_high = log_two(width)
    low += exponent * (two_low if exponent >= 0 else two_high)
    high += exponent * (two_high if exponent >= 0 else two_low)
    return low >> (width - bits), -(-high >> (width - bits))


def _odd_series(x: Fraction, width: int) -> tuple[int, int]:
    """A bracket of ``Σ x^(2k+1)/(2k+1)!!`` for x > 0 at ``width`` bits."""
    p, q = x.numerator**2, x.denominator**2
    low = (x.numerator << width) // x.denominator
    high = low + 1
    sum_low, sum_high, k = low, high, 0
    # once the terms halve at least, those left out add up to at most the last one
    while high > 1 or 2 * p > q * (2 * k + 3):
        k += 1
        low, high = low * p // (q * (2 * k + 1)), -(-high * p // (q * (2 * k + 1)))
        sum_low, sum_high = sum_low + low, sum_high + high
    return sum_low, sum_high + high


def _root_of_two_pi(width: int) -> tuple[int, int]:
    """A bracket of √(2π) at ``width`` bits."""
    steps = -(-width // 256)  # widths vary with the argument: a few multiples are kept
    low, high = _root_at(256 * steps)
    surplus = 256 * steps - width
    return low >> surplus, -(-high >> surplus)


@lru_cache(maxsize=32)
def _root_at(width: int) -> tuple[int, int]:
    pi_low, pi_high = _pi(2 * width)
    return isqrt(2 * pi_low), isqrt(2 * pi_high) + 1


def _pi(width: int) -> tuple[int, int]:
    """A bracket of π at ``width`` bits, by Machin's formula π = 16·arctan(1/5) − 4·arctan(1/239)."""
    guard = 16
    fifth_low, fifth_high = _arctan_of_inverse(5, width + guard)
    small_low, small_high = _arctan_of_inverse(239, width + guard)
    low, high = 16 * fifth_low - 4 * small_high, 16 * fifth_high - 4 * small_low
    return low >> guard, -(-high >> guard)


def _arctan_of_inverse(m: int, width: int) -> tuple[int, int]:
    """A bracket of arctan(1/m) at ``width`` bits, from its alternating series."""
    power, total, k = (1 << width) // m, 0, 0
    while power:
        total += -(power // (2 * k + 1)) if k & 1 else power // (2 * k + 1)
        power //= m * m
        k += 1
    # the power is short by less than 2, so each term by less than 3; the terms left out are below 1
    return total - 3 * k - 1, total + 3 * k + 1


def ceiling(x: Fraction) -> int:
    """The least integer that is at least ``x``."""
    return -(-x.numerator // x.denominator)


def bits_above_one(x: Fraction) -> int:
    """At least the binary logarithm of ``x``, and at least 0."""
    return max(0, x.numerator.bit_length() - x.denominator.bit_length() + 1)
