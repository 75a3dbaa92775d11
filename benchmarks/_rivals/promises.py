"""The promises at which counts are compared."""

from __future__ import annotations

from isotone.counts import CountPlan, Relaxation
from isotone.counts.count_plan import Setting, plan
from isotone.order import Poset
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.guarantee import Guarantee

__all__ = ["APPROXIMATE", "DELTA", "EPSILON", "PURE", "gaussian_variance", "planned"]

EPSILON, DELTA = 1.0, 1e-6
PURE, APPROXIMATE = "ε = 1", "ε = 1, δ = 10⁻⁶"


def gaussian_variance() -> float:
    """The least variance of Gaussian noise at sensitivity 1 (Balle and Wang 2018)."""
    return float(sigma_squared(EPSILON, DELTA))


def planned(P: Poset, guarantee: str, relaxation: Relaxation | None = None) -> CountPlan:
    """What isotone proposes, without data."""
    promise = Guarantee.approximate(1, 0 if guarantee == PURE else "0.000001")
    return plan(Setting(P, relaxation=relaxation), promise)
