"""How much Gaussian noise a promise needs: exact for zCDP, and for (ε, δ) never too little.

Adding N(0, σ²) to a statistic that one record moves by at most Δ in Euclidean norm is ρ-zCDP for
ρ = Δ²/(2σ²), and (ε, δ)-DP exactly when ``δ ≥ Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ)`` (Balle and Wang 2018;
docs/theory/gaussian.md, section 7). The right-hand side is evaluated in integers with every rounding counted,
so the σ² returned is proved large enough, and it is within one part in 10¹² of the smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from isotone.errors import InputError
from isotone.noise.brackets import exp_negative
from isotone.privacy.guarantee import Number, exact, positive

__all__ = ["delta_bracket", "normal_cdf_bracket", "sigma_squared", "sigma_squared_zcdp"]

_SEARCH_BITS = 42
_SPARE_BITS = 80


def sigma_squared_zcdp(rho: Number, sensitivity_squared: Number = 1) -> Fraction:
    """The variance that makes Gaussian noise ρ-zCDP: Δ²/(2ρ), exactly.

    >>> sigma_squared_zcdp("1/2", 7)
    Fraction(7, 1)
    """
    return positive(sensitivity_squared, "sensitivity_squared") / (2 * positive(rho, "rho"))


def sigma_squared(epsilon: Number, delta: Number, sensitivity_squared: Number = 1) -> Fraction:
    """A variance, proved sufficient and nearly smallest, that makes Gaussian noise (ε, δ)-DP.

    ``sensitivity_squared`` is Δ², the largest squared Euclidean change that one record makes.

    >>> round(float(sigma_squared(1, "1e-6")), 4)
    17.8479
    """
    e, d = positive(epsilon, "epsilon"), exact(delta, "delta")
    if not 0 < d < 1:
        raise InputError(
            f"delta must be strictly between 0 and 1, not {delta!r}: Gaussian noise never gives pure ε-DP. "
            "For δ = 0 take a mechanism with Laplace or K-norm noise."
        )
    return _smallest_ratio(e, d) ** 2 * positive(sensitivity_squared, "sensitivity_squared")


def delta_bracket(epsilon: Number, ratio: Number, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds on the smallest δ for which noise with σ = ``ratio``·Δ is (ε, δ)-DP.

    They differ by at most about ``2**-bits · e^ε``; the lower one may be negative.
    """
    e, s = positive(epsilon, "epsilon"), positive(ratio, "ratio")
    near, far = 1 / (2 * s) - e * s, -1 / (2 * s) - e * s
    near_low, near_high = normal_cdf_bracket(near, bits)
    far_low, far_high = normal_cdf_bracket(far, bits)
    shrink_low, shrink_high = exp_negative(e, bits + 2 * _ceil(e) + 1)
    one = Fraction(1 << (bits + 2 * _ceil(e) + 1))
    low = Fraction(near_low, 1 << bits) - Fraction(far_high, 1 << bits) * one / shrink_low
    high = Fraction(near_high, 1 << bits) - Fraction(far_low, 1 << bits) * one / shrink_high
    return low, high


@lru_cache(maxsize=256)
def _smallest_ratio(epsilon: Fraction, delta: Fraction) -> Fraction:
    """σ/Δ, rounded up to about 2**-42 of itself, by bisection between proved bounds."""
    bits = _SPARE_BITS + _bits_above_one(1 / delta) + 2 * _ceil(epsilon)

    def enough(ratio: Fraction) -> bool:
        return delta_bracket(epsilon, ratio, bits)[1] <= delta

    low, high = _enclose(enough)
    for _ in range(_SEARCH_BITS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _enclose(enough: Callable[[Fraction], bool]) -> tuple[Fraction, Fraction]:
    """Consecutive powers of two, the first not ``enough`` and the second ``enough``."""
    high = Fraction(1)
    while not enough(high):
        high *= 2
    while enough(high / 2):
        high /= 2
    return high / 2, high


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
    width = bits + _ceil(square * 3 / 4) + 16
    series_low, series_high = _odd_series(abs(x), width)
    density_low, density_high = exp_negative(square / 2, width)
    root_low, root_high = _root_of_two_pi(width)
    low = (series_low * density_low // root_high) >> (width - bits)
    high = -((-series_high * density_high // root_low) >> (width - bits))
    return (half + low, half + high) if x > 0 else (half - high, half - low)


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
    pi_low, pi_high = _pi(2 * width)
    return isqrt(2 * pi_low), isqrt(2 * pi_high) + 1


@lru_cache(maxsize=8)
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


def _ceil(x: Fraction) -> int:
    return -(-x.numerator // x.denominator)


def _bits_above_one(x: Fraction) -> int:
    return max(0, x.numerator.bit_length() - x.denominator.bit_length() + 1)
