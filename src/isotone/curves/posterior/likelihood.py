"""The law of a Poisson count with two-sided geometric noise, in closed form.

With ``α = exp(−rate)`` the noise has the weight ``(1−α)/(1+α)·α^|a−k|``. The counts up to ``a`` and those above it are
two tilted Poisson laws, so each side is a factor times an incomplete gamma function (docs/theory/curves.md, section 8.1).
"""

from __future__ import annotations

import math

import numpy as np

from isotone.array_types import Floats

__all__ = ["noisy_count", "noisy_total"]

TINY = 1e-280
"""Below this an incomplete gamma function is replaced by the leading terms of its tail."""
CLEAR = 20.0
"""Larger rates count as this: the noise is 0 but for two in a billion draws, and differences would be lost in rounding."""


def noisy_count(seen: Floats, mean: Floats, rate: float) -> tuple[Floats, Floats]:
    """The log probability of ``seen``, a Poisson count of a ``mean`` plus noise, and the expected count given it.

    ``seen`` holds whole numbers. Exact but for rounding; where a side has a factor below ``TINY``, off by less than
    1e-6 in the logarithm. ``E[k | a] = mean·P(a − 1)/P(a)``, and ``P(a − 1)`` follows from both sides of ``P(a)``.

    >>> log_p, expected = noisy_count(np.array([4.0]), np.array([3.0]), 50.0)
    >>> round(float(np.exp(log_p[0])), 4), round(float(expected[0]), 4)  # hardly any noise
    (0.168, 4.0)
    """
    rate = min(rate, CLEAR)
    below, above, exactly = _sides(seen, mean, rate)
    total = np.logaddexp(below, above)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the sides of P(a − 1): less the count a itself below, and with it above
        less = np.where(below > exactly, below + np.log1p(-np.exp(np.minimum(exactly - below, 0.0))), -np.inf)
    before = np.logaddexp(less + rate, np.logaddexp(above, exactly) - rate)
    expected = mean * np.exp(np.minimum(before - total, 700.0))
    return total + _log_peak(rate), expected


def noisy_total(seen: Floats, mean: Floats, rate: float) -> Floats:
    """The log probability of ``seen``, a Poisson count of a ``mean`` plus two independent noise terms.

    The sum of two has the weight ``((1−α)/(1+α))²·α^|d|·(|d| + (1+α²)/(1−α²))``; the sums of distances on either side
    follow from the sides themselves, as ``k·Poisson(k; m) = m·Poisson(k−1; m)``.
    """
    rate = min(rate, CLEAR)
    below, above, exactly = _sides(seen, mean, rate)
    constant = 1.0 / math.tanh(rate)
    top = np.maximum(below, above)
    with np.errstate(invalid="ignore"):
        low, high, here = np.exp(below - top), np.exp(above - top), np.exp(exactly - top)
    shrink = math.exp(-rate)
    # Σ (a−k) over counts up to a, and Σ (k−a) over those above, each with its weight
    up_to = seen * low - mean * (low - here) / shrink
    beyond = mean * shrink * (high + here) - seen * high
    weight = np.maximum(up_to, 0.0) + np.maximum(beyond, 0.0) + constant * (low + high)
    return top + np.log(weight) + 2 * _log_peak(rate)


def _log_peak(rate: float) -> float:
    """The log probability of no noise."""
    return math.log(math.tanh(rate / 2))


def _sides(seen: Floats, mean: Floats, rate: float) -> tuple[Floats, Floats, Floats]:
    """Logarithms of ``Σ_{k≤a} Poisson(k)·α^{a−k}``, of ``Σ_{k>a} Poisson(k)·α^{k−a}``, and of ``Poisson(a)``."""
    from scipy.special import gammainc, gammaincc, gammaln, xlogy

    seen, mean = np.broadcast_arrays(seen, mean)
    a = np.maximum(seen, 0.0)
    wide, narrow = mean * math.exp(rate), mean * math.exp(-rate)
    exactly = np.where(seen >= 0, xlogy(a, mean) - mean - gammaln(a + 1.0), -np.inf)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        tail = gammaincc(a + 1.0, wide)
        below = wide - mean - rate * a + np.log(tail)
        far = tail <= TINY
        below[far] = exactly[far] + np.log(_falling(a[far], wide[far]))
        tail = gammainc(a + 1.0, narrow)
        above = np.log(tail)
        far = tail <= TINY
        n, w = a[far], narrow[far]
        above[far] = xlogy(n + 1.0, w) - w - gammaln(n + 2.0) + np.log(_rising(n, w))
        above += rate * a - (mean - narrow)
    nothing = mean == 0
    below = np.where(seen >= 0, np.where(nothing, -rate * a, below), -np.inf)
    above = np.where(seen >= 0, np.where(nothing, -np.inf, above), rate * seen - (mean - narrow))
    return below, above, exactly


def _falling(a: Floats, w: Floats) -> Floats:
    """``1 + a/w + a(a−1)/w² + …`` for ``a`` far below ``w``, by a continued fraction."""
    d = np.maximum(w - a, 1.0)
    return w / (d + a / (d + 2 + 2 * (a - 1) / (d + 4 + 3 * (a - 2) / (d + 6))))


def _rising(a: Floats, w: Floats) -> Floats:
    """``1 + w/(a+2) + w²/((a+2)(a+3)) + …`` for ``w`` far below ``a``, by a continued fraction."""
    s = a + 1.0
    inner = s + 3 + 2 * w / (s + 4)
    return s / (s - s * w / (s + 1 + w / (s + 2 - (s + 1) * w / inner)))
