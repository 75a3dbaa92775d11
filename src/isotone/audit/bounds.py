"""From the counts of an event to a lower bound on the privacy loss, with a stated confidence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from isotone.array_types import Floats
from isotone.privacy.guarantee import Guarantee

__all__ = ["clopper_pearson", "epsilon_bound", "rho_bound", "violates"]

_ORDERS = (1.05, 1.2, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def clopper_pearson(hits: ArrayLike, trials: int, failure: float) -> tuple[Floats, Floats]:
    """Bounds on a probability, each of which is wrong with probability at most ``failure``.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.398, 0.602)
    """
    from scipy.special import betaincinv

    seen = np.asarray(hits, dtype=float)
    low = np.where(seen == 0, 0.0, betaincinv(np.maximum(seen, 1), trials - seen + 1, failure))
    high = np.where(seen == trials, 1.0, betaincinv(seen + 1, np.maximum(trials - seen, 1), 1 - failure))
    return low, high


def epsilon_bound(p_low: float, q_high: float, delta: float = 0.0) -> float:
    """A lower bound on ε from an event with probability at least ``p_low`` on one side, at most ``q_high`` on the other.

    (ε, δ)-DP says p ≤ e^ε·q + δ, so ε ≥ ln((p − δ)/q).
    """
    return math.log((p_low - delta) / q_high) if p_low > delta else 0.0


def rho_bound(p_low: float, q_high: float) -> float:
    """A lower bound on ρ from the same event.

    ρ-zCDP says that the Rényi divergence of every order α is at most ρ·α, and that of the event alone is no larger. It
    grows with p and falls with q while p > q, so the two bounds may be put in.
    """
    if not p_low > q_high > 0:
        return 0.0
    p, q = p_low, q_high
    best = 0.0
    for order in _ORDERS:
        terms = [order * math.log(p) + (1 - order) * math.log(q)]
        if p < 1:
            terms.append(order * math.log1p(-p) + (1 - order) * math.log1p(-q))
        top = max(terms)
        divergence = (top + math.log(sum(math.exp(term - top) for term in terms))) / (order - 1)
        best = max(best, divergence / order)
    return best


def violates(guarantee: Guarantee, p_low: float, q_high: float) -> tuple[float, float]:
    """The lower bound on ε or ρ, and the value that was claimed."""
    if guarantee.kind == "zcdp":
        return rho_bound(p_low, q_high), float(guarantee.rho)
    return epsilon_bound(p_low, q_high, float(guarantee.delta)), float(guarantee.epsilon)
