"""From an (epsilon, delta) promise to the zCDP parameter that gives it.

A ρ-zCDP mechanism is (ε, δ)-DP with

    δ = exp((α - 1)(αρ - ε)) / α · (1 - 1/α)^(α - 1)     for every α > 1

(Canonne, Kamath and Steinke 2020, Corollary 13). Any α is valid, so α is found in floating point and only
the final comparison is made with interval arithmetic (docs/theory/baselines.md, section 5).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mpmath import iv

__all__ = ["largest_rho"]


def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, the largest to about nine digits, such that rho-zCDP implies (epsilon, delta)-DP.

    >>> float(largest_rho(Fraction(1), Fraction(1, 10**6)))
    0.02435...
    """
    from scipy.optimize import root_scalar

    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def excess(log_rho: float) -> float:
        return _best(math.exp(log_rho), float(epsilon))[0] - log_delta

    # ρ + 2√(ρ ln 1/δ) = ε is valid (Bun and Steinke 2016): the best is above, and is bracketed from there
    root = float(epsilon) / (math.sqrt(float(epsilon) - log_delta) + math.sqrt(-log_delta))
    low = 2 * math.log(root) - 1e-6
    high = low + 1
    while excess(high) < 0:
        high += 1
    rho = math.exp(float(root_scalar(excess, bracket=(low, high), xtol=1e-13).root))
    slack = 1e-12
    while True:
        candidate = Fraction(rho * (1 - slack)).limit_denominator(10**30)
        alpha = Fraction(_best(float(candidate), float(epsilon))[1]).limit_denominator(10**12)
        if _implies(candidate, alpha, epsilon, delta):
            return candidate
        slack *= 4


def _best(rho: float, epsilon: float) -> tuple[float, float]:
    """The smallest log δ that the formula gives, and its α; the search is over log(α - 1)."""
    from scipy.optimize import minimize_scalar

    middle = math.log(max((epsilon - rho) / (2 * rho), 1e-3))
    found = minimize_scalar(
        lambda t: _log_delta(math.exp(t), rho, epsilon),
        bounds=(middle - 12, middle + 12),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.fun), 1 + math.exp(float(found.x))


def _log_delta(above_one: float, rho: float, epsilon: float) -> float:
    """The logarithm of the formula at α = 1 + ``above_one``."""
    alpha = 1 + above_one
    return above_one * (alpha * rho - epsilon + math.log(above_one / alpha)) - math.log(alpha)


def _implies(rho: Fraction, alpha: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the formula at ``alpha`` gives at most ``delta``, decided with outward rounding."""
    intervals: Any = iv  # mpmath's interval arithmetic has no types
    a, r, e, d = (intervals.mpf(x.numerator) / x.denominator for x in (alpha, rho, epsilon, delta))
    log_delta = (a - 1) * (a * r - e) + (a - 1) * intervals.log((a - 1) / a) - intervals.log(a)
    return bool((log_delta - intervals.log(d)).b <= 0)
