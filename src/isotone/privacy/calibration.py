"""Scales of noise for a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING

from isotone.errors import InputError
from isotone.noise.bits import exp_negative, log_two
from isotone.privacy.checks import Number, exact, positive, shown, whole_number

if TYPE_CHECKING:
    from isotone.privacy.guarantee import Guarantee

# Guaranteed integer brackets of the normal law and of logarithms, for calibration.
#
# A bracket at ``bits`` bits of a real number ``v`` is a pair of integers with ``lo ≤ 2**bits · v ≤ hi``. All of it
# is integer arithmetic with every rounding counted, on top of the brackets of exponentials in ``noise``.


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


# Calibration of Gaussian noise to a guarantee.
#
# Exact for zCDP. For (ε, δ) the noise is proved to be enough and nearly the least.
#
# Adding N(0, σ²) to a statistic that one unit moves by at most Δ in Euclidean norm is ρ-zCDP for ρ = Δ²/(2σ²),
# and (ε, δ)-DP exactly when ``δ ≥ Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ)`` (Balle and Wang 2018;
# docs/theory/gaussian.md, section 7). Every condition is decided in integers with all roundings counted.

_SEARCH_BITS = 42
_SPARE_BITS = 80
_LEAST_EPSILON = Fraction(1, 10**50)
_FAR = 4  # Mills' ratio is quick from here on, and below it e^ε is small


def sigma_squared_zcdp(rho: Number, sensitivity_squared: Number = 1) -> Fraction:
    """The variance Δ²/(2ρ) that makes Gaussian noise ρ-zCDP.

    >>> sigma_squared_zcdp("1/2", 7)
    Fraction(7, 1)
    """
    return positive(sensitivity_squared, "sensitivity_squared") / (2 * positive(rho, "rho"))


def sigma_squared(epsilon: Number, delta: Number, sensitivity_squared: Number = 1) -> Fraction:
    """A variance, proved sufficient and nearly smallest, that makes Gaussian noise (ε, δ)-DP.

    ``sensitivity_squared`` is Δ², the largest squared Euclidean change that one unit makes. Rounding the noisy
    statistic to integers is post-processing.

    >>> round(float(sigma_squared(1, "1e-6")), 4)
    17.8479
    """
    e, d = positive(epsilon, "epsilon"), _small(delta)
    return _smallest_ratio(e, d) ** 2 * positive(sensitivity_squared, "sensitivity_squared")


def delta_bracket(epsilon: Number, ratio: Number, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds on the smallest δ for which noise with σ = ``ratio``·Δ is (ε, δ)-DP.

    They are some ``2**-bits`` apart.

    The lower one may be negative.
    """
    e, s = positive(epsilon, "epsilon"), positive(ratio, "ratio")
    near, far = 1 / (2 * s) - e * s, 1 / (2 * s) + e * s
    near_low, near_high = normal_cdf_bracket(near, bits)
    far_low, far_high = _far_bracket(e, near, far, bits)
    unit = Fraction(1, 1 << bits)
    return (near_low - far_high) * unit, (near_high - far_low) * unit


def _far_bracket(epsilon: Fraction, near: Fraction, far: Fraction, bits: int) -> tuple[int, int]:
    """A bracket of ``e^ε Φ(−far)``.

    Since far² − near² = 2ε it is φ(near) times Mills' ratio of ``far``.
    """
    if far > _FAR:
        ratio_low, ratio_high = mills_bracket(far, bits)
        density_low, density_high = normal_density_bracket(near, bits)
        return ratio_low * density_low >> bits, -(-ratio_high * density_high >> bits)
    width = bits + 2 * ceiling(epsilon) + 1  # 2ε ≤ far² is at most 16
    shrink_low, shrink_high = exp_negative(epsilon, width)
    low, high = normal_cdf_bracket(-far, width)
    return (low << bits) // shrink_high, -((-high << bits) // shrink_low)


@lru_cache(maxsize=256)
def _smallest_ratio(epsilon: Fraction, delta: Fraction) -> Fraction:
    """σ/Δ, rounded up to about 2**-42 of itself, by bisection between proved bounds."""
    bits = _SPARE_BITS + bits_above_one(1 / delta)
    return _least(lambda ratio: delta_bracket(epsilon, ratio, bits)[1] <= delta)


def _least(enough: Callable[[Fraction], bool]) -> Fraction:
    """A number that is ``enough``, above the least by at most about 2**-42 of itself."""
    high = Fraction(1)
    while not enough(high):
        high *= 2
    while enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(_SEARCH_BITS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@lru_cache(maxsize=256)
def discrete_sigma_squared(epsilon: Fraction, delta: Fraction, sensitivity: int) -> Fraction:
    """A parameter σ² for which discrete Gaussian noise on integers is (ε, δ)-DP.

    For sensitivity 1, where one count changes by one, the condition is the exact one of Canonne, Kamath and
    Steinke 2020, Theorem 7. For larger ones, where several counts may change, it is their conversion from
    ρ-zCDP, see :func:`largest_rho`.

    >>> round(float(discrete_sigma_squared(Fraction(1), Fraction(1, 10**6), 1)), 4)
    17.8995
    """
    e, d, reach = positive(epsilon, "epsilon"), _small(delta), whole_number(sensitivity, "sensitivity")
    if reach > 1:
        return Fraction(reach**2) / (2 * largest_rho(e, d))
    bits = _SPARE_BITS + bits_above_one(1 / d) + 2 * ceiling(e)
    return _least(lambda variance: _discrete_delta(e, variance, bits) <= d)


def _discrete_delta(epsilon: Fraction, variance: Fraction, bits: int) -> Fraction:
    """An upper bound on ``P(X > εσ² − ½) − e^ε P(X > εσ² + ½)`` for a discrete Gaussian X."""
    first = math.floor(epsilon * variance - Fraction(1, 2)) + 1  # at least 0
    width = bits + 64
    all_low, tail_high, beyond_low = 0, 0, 0
    # w[k] = e^(−k²/2σ²) from w[k+1] = w[k]·r[k] and r[k+1] = r[k]·e^(−1/σ²), rounded down and up
    low = high = 1 << width
    ratio_low, ratio_high = exp_negative(1 / (2 * variance), width)
    step_low, step_high = exp_negative(1 / variance, width)
    k = 0
    while high > 1 or k <= first:
        all_low += low if k == 0 else 2 * low
        tail_high += high if k >= first else 0
        beyond_low += low if k > first else 0
        low, high = low * ratio_low >> width, -(-high * ratio_high >> width)
        ratio_low, ratio_high = ratio_low * step_low >> width, -(-ratio_high * step_high >> width)
        k += 1
        if ratio_high <= 1 << (width - 1) and high <= 1:
            break
    # ratios fall, so what is left out is at most a geometric series from the last ratio
    left_out = -((-high << width) // max((1 << width) - ratio_high, 1))
    _, shrink = exp_negative(epsilon, width + 2 * ceiling(epsilon))
    grown_low = (beyond_low << (width + 2 * ceiling(epsilon))) // shrink
    return Fraction(tail_high + left_out - grown_low, all_low)


@lru_cache(maxsize=256)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, the largest to about nine digits, such that ρ-zCDP implies (ε, δ)-DP.

    A ρ-zCDP mechanism is (ε, δ)-DP with ``δ = exp((α − 1)(αρ − ε))/α · (1 − 1/α)^(α − 1)`` for every α > 1
    (Canonne, Kamath and Steinke 2020, Corollary 13; docs/theory/baselines.md, section 5). Any α is valid, so α
    is found in floating point, and the last comparison is made in integers.

    >>> float(largest_rho(Fraction(1), Fraction(1, 10**6)))
    0.02435...
    """
    e, d = positive(epsilon, "epsilon"), _small(delta)
    if e < _LEAST_EPSILON:
        raise InputError(f"epsilon must be at least 1e-50 for a conversion from zCDP, not {shown(epsilon)}.")
    log_delta = math.log(d.numerator) - math.log(d.denominator)
    # ρ + 2√(ρ ln 1/δ) = ε is valid (Bun and Steinke 2016): the best is above, and is bracketed from there
    low = 2 * (math.log(e) - math.log(math.sqrt(float(e) - log_delta) + math.sqrt(-log_delta))) - 1e-6
    high = low + 1
    while _log_delta(math.exp(high), float(e)) < log_delta:
        high += 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_delta(math.exp(middle), float(e)) <= log_delta else (low, middle)
    slack = Fraction(1, 10**12)
    while True:
        candidate = (Fraction(math.exp(low)) * (1 - slack)).limit_denominator(10**240)
        order = Fraction(1 + _best_order_above_one(float(candidate), float(e))).limit_denominator(10**12)
        if _implies(candidate, order, e, d):
            return candidate
        slack *= 4


@lru_cache(maxsize=256)
def largest_pure(guarantee: Guarantee) -> Fraction:
    """The largest epsilon (to about 15 digits, rounded down) whose pure guarantee implies ``guarantee``.

    >>> from isotone.privacy.guarantee import Guarantee
    >>> largest_pure(Guarantee.zcdp("1/2"))
    Fraction(1, 1)
    """
    if guarantee.kind != "zcdp":
        return guarantee.epsilon
    scale = 10**30
    return Fraction(math.isqrt(math.floor(2 * guarantee.rho * scale)), 10**15)  # isqrt rounds down


def smallest_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon, the smallest to about nine digits, such that ρ-zCDP implies (ε, δ)-DP.

    By the formula of :func:`largest_rho`, solved for ε. The last comparison is made in integers.

    >>> round(float(smallest_epsilon(Fraction(1, 2), Fraction(1, 10**6))), 4)
    5.2215
    """
    r, d = positive(rho, "rho"), _small(delta)
    log_delta = math.log(d.numerator) - math.log(d.denominator)
    high = float(r) + 2 * math.sqrt(float(r) * -log_delta) + 1e-9  # valid (Bun and Steinke 2016)
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _log_delta(float(r), middle) <= log_delta else (middle, high)
    slack = Fraction(1, 10**12)
    while True:
        candidate = (Fraction(high) * (1 + slack)).limit_denominator(10**15) + slack
        order = Fraction(1 + _best_order_above_one(float(r), float(candidate))).limit_denominator(10**12)
        if _implies(r, order, candidate, d):
            return candidate
        slack *= 4


def _log_delta(rho: float, epsilon: float) -> float:
    """The smallest log δ that the formula gives, over α."""
    above = _best_order_above_one(rho, epsilon)
    return above * ((1 + above) * rho - epsilon - math.log1p(1 / above)) - math.log1p(above)


def _best_order_above_one(rho: float, epsilon: float) -> float:
    """The best Rényi order α, minus one.

    It is the root of ``(2α − 1)ρ − ε + ln(1 − 1/α)``, which grows with α.
    """
    low, high = -700.0, 700.0  # logarithms of α − 1
    for _ in range(80):
        middle = (low + high) / 2
        above = math.exp(middle)
        low, high = (
            (middle, high) if (2 * above + 1) * rho - epsilon < math.log1p(1 / above) else (low, middle)
        )
    return math.exp(high)


def _implies(rho: Fraction, order: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the formula at α = ``order`` gives at most ``delta``, decided with outward rounding."""
    if order <= 1:
        return False
    bits = _SPARE_BITS + bits_above_one(order)
    share = log_bracket((order - 1) / order, bits)[1]
    total = (order - 1) * (order * rho - epsilon + Fraction(share, 1 << bits))
    return total <= Fraction(log_bracket(delta, bits)[0] + log_bracket(order, bits)[0], 1 << bits)


def _small(delta: Number) -> Fraction:
    d = exact(delta, "delta")
    if not 0 < d < 1:
        raise InputError(
            f"delta must be strictly between 0 and 1, not {shown(delta)}: Gaussian noise never gives pure ε-DP. "
            "For δ = 0 take a mechanism with Laplace or K-norm noise."
        )
    return d
