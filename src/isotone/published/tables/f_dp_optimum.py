"""The row-by-row optimum of a table for every symmetric f-DP guarantee, and the noise behind it.

A trade-off function ``f`` says how well a test may tell neighbours apart: with a level of at most ``a`` it misses with a
probability of at least ``f(a)`` (Dong, Roth and Su 2022). For one step there is noise that uses up ``f`` exactly (canonical noise,
Awan and Vadhan 2023). Adding it to a count and mapping the sum monotonely to a given output distribution is optimal for every
Monge loss (docs/theory/tables.md, section 10). It is kept for comparison: nothing here draws or releases.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp

import numpy as np

from isotone.array_types import Floats
from isotone.privacy.checks import Number, exact, positive
from isotone.tables.distribution.distribution import DistributionLike, probabilities_of

__all__ = ["CanonicalNoise", "approximate_trade_off", "gaussian_trade_off", "row_optimum"]

TradeOff = Callable[[float], float]
"""A symmetric trade-off function: convex, continuous, not rising, its own inverse."""

_STEPS = 200  # of a bisection: more than a float has digits


def approximate_trade_off(epsilon: Number, delta: Number = 0) -> TradeOff:
    """The trade-off function of (ε, δ)-DP.

    >>> round(approximate_trade_off(1, "0.1")(0.2), 4)
    0.3563
    """
    grow, slack = exp(float(positive(epsilon, "epsilon"))), float(exact(delta, "delta"))
    return lambda a: max(0.0, 1 - slack - grow * a, (1 - slack - a) / grow)


def gaussian_trade_off(mu: Number) -> TradeOff:
    """The trade-off function of μ-Gaussian DP.

    >>> round(gaussian_trade_off(1)(0.5), 4)
    0.1587
    """
    from scipy.special import ndtr, ndtri

    shift = float(positive(mu, "mu"))
    return lambda a: float(ndtr(ndtri(1 - a) - shift)) if 0 < a < 1 else float(a <= 0)


class CanonicalNoise:
    """Noise whose distribution function ``F`` has ``F(x − 1) = f(1 − F(x))``, linear between −1/2 and 1/2.

    >>> noise = CanonicalNoise(approximate_trade_off(1))
    >>> round(noise.cdf(0.0), 3), round(noise.cdf(-1.0) / noise.cdf(0.0), 4)
    (0.5, 0.3679)
    """

    def __init__(self, trade_off: TradeOff) -> None:
        self.trade_off = trade_off
        low, high = 0.0, 0.5  # the fixed point of f: f(c) = c
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if trade_off(middle) > middle else (low, middle)
        self.fixed = low

    def cdf(self, x: float) -> float:
        """The probability of at most ``x``."""
        steps = int(np.floor(x + 0.5))
        inner = x - steps
        value = self.fixed * (0.5 - inner) + (1 - self.fixed) * (inner + 0.5)
        for _ in range(abs(steps)):
            value = 1 - self.trade_off(value) if steps > 0 else self.trade_off(1 - value)
        return value


def row_optimum(z: DistributionLike, trade_off: TradeOff, target: DistributionLike | None = None) -> Floats:
    """The f-DP matrix with the output distribution ``target`` (``z`` unless given) that is best for every Monge loss.

    ``z`` are the probabilities of the counts ``0..n−1``. Row ``i`` is the law of what is published for a count ``i``: canonical noise
    is added to it, and the sum goes to the first ``j`` whose threshold is not below it.

    >>> row_optimum([0.5, 0.5], approximate_trade_off(1)).round(3)
    array([[0.731, 0.269],
           [0.269, 0.731]])
    """
    p = probabilities_of(z, "z")
    wanted = p if target is None else probabilities_of(target, "target")
    noise = CanonicalNoise(trade_off)
    reached = np.zeros((len(p), len(wanted) + 1))
    for j, total in enumerate(np.cumsum(wanted)[:-1]):
        reached[:, j + 1] = _threshold_column(p, float(total), noise)
    reached[:, -1] = 1.0
    return np.diff(np.maximum.accumulate(reached, axis=1), axis=1)


def _threshold_column(p: Floats, total: float, noise: CanonicalNoise) -> Floats:
    """``F(t − i)`` for every count ``i``, with the ``t`` at which its mean over the counts is ``total``."""
    counts = range(len(p))

    def column(t: float) -> Floats:
        return np.array([noise.cdf(t - i) for i in counts])

    if total <= 0 or total >= 1:
        return np.full(len(p), float(total >= 1))
    low, high = -1.0, float(len(p))
    while p @ column(low) > total:
        low *= 2
    while p @ column(high) < total:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if p @ column(middle) >= total else (middle, high)
    return column(high)
