"""How much Gaussian noise an (ε, δ) promise needs: exact characterisations, solved and rounded upwards.

Numbers are computed with 60 digits, and the variance returned is a rational for which the condition was
checked at that precision after a relative margin far above its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath

from isotone.errors import InputError

__all__ = ["analytic_variance", "discrete_variance"]

_DIGITS = 60
_MARGIN = Fraction(1, 10**12)


@lru_cache(maxsize=256)
def analytic_variance(epsilon: Fraction, delta: Fraction, sensitivity: int) -> Fraction:
    """The least variance of Gaussian noise that is (ε, δ)-DP for an ℓ2 sensitivity (Balle and Wang 2018).

    Rounding the sum of an integer vector and Gaussian noise to integers is post-processing, so the exactly
    rounded Gaussian keeps the promise.

    >>> round(float(analytic_variance(Fraction(1), Fraction(1, 10**6), 1)) ** 0.5, 4)
    4.2247
    """
    _require_small(delta)

    def loss(variance: Any) -> Any:
        sigma = mpmath.sqrt(variance)
        half, slope = sensitivity / (2 * sigma), _mpf(epsilon) * sigma / sensitivity
        return mpmath.ncdf(half - slope) - mpmath.exp(_mpf(epsilon)) * mpmath.ncdf(-half - slope)

    return _least(loss, delta)


@lru_cache(maxsize=256)
def discrete_variance(epsilon: Fraction, delta: Fraction, sensitivity: int) -> Fraction:
    """A parameter σ² for which discrete Gaussian noise on integers is (ε, δ)-DP.

    For sensitivity 1 (one count changes by one) the condition is the exact one of Canonne, Kamath and Steinke
    2020, Theorem 7. For larger ones, where several counts may change, it is their conversion from the ρ-zCDP
    that the noise has, ``ρ = sensitivity²/(2σ²)`` (their Theorem 4 and Proposition 12).
    """
    _require_small(delta)

    def exact_loss(variance: Any) -> Any:
        cut = _mpf(epsilon) * variance
        return _tail(variance, cut - 0.5) - mpmath.exp(_mpf(epsilon)) * _tail(variance, cut + 0.5)

    def converted_loss(variance: Any) -> Any:
        rho = mpmath.mpf(sensitivity) ** 2 / (2 * variance)
        if rho >= _mpf(epsilon):
            return mpmath.mpf(1)
        order = (_mpf(epsilon) + rho) / (2 * rho)  # the minimiser of the exponent; any order above 1 is valid
        return (
            mpmath.exp((order - 1) * (order * rho - _mpf(epsilon))) / (order - 1) * (1 - 1 / order) ** order
        )

    return _least(exact_loss if sensitivity == 1 else converted_loss, delta)


def _least(loss: Callable[[Any], Any], delta: Fraction) -> Fraction:
    """Near the least variance with ``loss(variance) <= delta``, checked at the value returned."""
    with mpmath.workdps(_DIGITS):
        bound = _mpf(delta)
        low, high = mpmath.mpf(2) ** -20, mpmath.mpf(1)
        while loss(high) > bound:
            low, high = high, high * 4
        while high / low > 1 + mpmath.mpf(10) ** -9:
            middle = mpmath.sqrt(low * high)
            low, high = (low, middle) if loss(middle) <= bound else (middle, high)
        variance = Fraction(str(mpmath.nstr(high, 20))) * (1 + _MARGIN)
        while loss(_mpf(variance)) > bound * (1 - _mpf(_MARGIN)):
            variance *= 1 + 1000 * _MARGIN
        return variance


def _tail(variance: Any, cut: Any) -> Any:
    """P(X > cut) of the discrete Gaussian with parameter ``variance``."""
    first = math.floor(cut) + 1
    total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * variance)))
    term, k, s = mpmath.mpf(1), first, mpmath.mpf(0)
    while k <= 0 or term > s * mpmath.mpf(10) ** -_DIGITS:
        term = mpmath.exp(-(k**2) / (2 * variance))
        s += term
        k += 1
    return s / total


def _require_small(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta must be strictly between 0 and 1, not {delta}.")


def _mpf(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator
