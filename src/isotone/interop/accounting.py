"""Guarantees and mechanisms for Google's dp_accounting.

They become privacy loss distributions and events, to be composed with others.

What dominates what:

* ε-DP and (ε, δ)-DP: randomised response with that ε and δ is the worst that such a guarantee allows
  (Kairouz, Oh and Viswanath 2015), so its privacy loss distribution is right for every mechanism that keeps it.
* Gaussian noise that is *rounded* (``GaussianMechanism``; ``OrderGaussianMechanism`` with epsilon and delta): whole
  numbers plus rounded noise are the rounded sum, so a release is post-processing of a Gaussian release, and the
  Gaussian's own distribution is right.
* *Discrete* Gaussian noise on every count: a record moves each of at most k counts by one, so the pair is dominated
  by k independent discrete Gaussians moved by one; composing k of them is right.
* ρ-zCDP in general (``OrderGaussianMechanism`` with rho): δ(ε) ≤ exp((α-1)(αρ-ε))/α · (1-1/α)^(α-1) for every α > 1
  (Canonne, Kamath and Steinke 2020). True curves δ are convex in e^ε; so the largest convex curve below that bound is
  above every true one, and is the curve of a pair. Add rhos first where you can: that is tighter.

Only compose distributions that are about the same neighbours and the same unit; ``Guarantee`` says which.
Tested with dp_accounting 0.6.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as distributions
from numpy.typing import NDArray

from isotone.counts.independent import DiscreteGaussianMechanism, GaussianMechanism
from isotone.counts.order_gaussian import OrderGaussianMechanism
from isotone.errors import InputError
from isotone.mechanism import HasGuarantee
from isotone.privacy.guarantee import Guarantee

__all__ = ["event", "pld"]

Floats = NDArray[np.float64]

_SMALLEST_DELTA = 1e-20
_SLACK = 1 + 1e-9
"""Far above the rounding errors of the formulas below."""


def pld(mechanism: Any, interval: float = 1e-4) -> distributions.PrivacyLossDistribution:
    """A privacy loss distribution that dominates the guarantee, for dp_accounting.

    ``mechanism`` may allow better than its guarantee by its noise. A :class:`~isotone.Guarantee` alone is taken too.
    ``interval`` is the step in which losses are rounded up.

    >>> from isotone.privacy.guarantee import Guarantee
    >>> two = pld(Guarantee.pure("1/2")).compose(pld(Guarantee.pure("1/4")))
    >>> round(two.get_epsilon_for_delta(0), 6), bool(two.get_epsilon_for_delta(0.05) < 0.75)
    (0.75, True)
    """
    multiplier = _noise_multiplier(mechanism)
    if multiplier is not None:
        return distributions.from_gaussian_mechanism(multiplier, value_discretization_interval=interval)
    if isinstance(mechanism, DiscreteGaussianMechanism) and mechanism.unit.changes == 1:
        one = distributions.from_discrete_gaussian_mechanism(
            math.sqrt(mechanism.parameter) / _SLACK, value_discretization_interval=interval
        )
        return one.self_compose(mechanism.sensitivity.coordinates)
    guarantee = _guarantee(mechanism)
    if guarantee.kind == "zcdp":
        return _concentrated(_up(guarantee.rho), interval)
    parameters = common.DifferentialPrivacyParameters(_up(guarantee.epsilon), _up(guarantee.delta))
    return distributions.from_privacy_parameters(parameters, interval)


def event(mechanism: Any) -> dp_event.DpEvent:
    """A ``DpEvent`` for dp_accounting's accountants, where there is one that is true.

    Rounded Gaussian noise is a ``GaussianDpEvent``. ρ-zCDP is a ``ZCDpEvent``, which ``RdpAccountant`` takes, and so is
    ε-DP, as ε²/2-zCDP (Bun and Steinke 2016): dp_accounting has no event for ε-DP itself, and composing randomised
    responses in ``PLDAccountant`` (0.6) forgets how often. (ε, δ)-DP has no event. :func:`pld` has all, and is tighter.

    Noise multipliers are about one unit and the guarantee's own neighbours, so the accountant's neighbouring relation
    is to be left at its default, also for replaced units.

    >>> from isotone.privacy.guarantee import Guarantee
    >>> event(Guarantee.zcdp("1/8"))
    ZCDpEvent(rho=0.125, xi=0.0)
    """
    multiplier = _noise_multiplier(mechanism)
    if multiplier is not None:
        return dp_event.GaussianDpEvent(multiplier)
    guarantee = _guarantee(mechanism)
    if guarantee.kind == "zcdp":
        return dp_event.ZCDpEvent(_up(guarantee.rho))
    if guarantee.kind == "approximate":
        raise InputError(
            "dp_accounting has no event for (ε, δ)-DP. Use pld(), and compose the distributions it gives."
        )
    return dp_event.ZCDpEvent(_up(guarantee.epsilon**2 / 2))


def _guarantee(mechanism: Any) -> Guarantee:
    if isinstance(mechanism, Guarantee):
        return mechanism
    if isinstance(mechanism, HasGuarantee):
        return mechanism.guarantee
    if isinstance(mechanism, _Fitted):
        return mechanism.guarantee_
    raise InputError(
        f"Pass a Guarantee, a mechanism or a fitted estimator, not a {type(mechanism).__name__}."
    )


@runtime_checkable
class _Fitted(Protocol):
    """A fitted estimator, with scikit-learn's underscore."""

    @property
    def guarantee_(self) -> Guarantee: ...


def _noise_multiplier(mechanism: Any) -> float | None:
    """Standard deviation over ℓ2 sensitivity, rounded down, if a release is post-processing of a Gaussian one."""
    squared: Fraction | None = None
    if isinstance(mechanism, GaussianMechanism):
        squared = mechanism.variance / mechanism.sensitivity.l2_squared
    elif isinstance(mechanism, OrderGaussianMechanism) and mechanism.guarantee.kind == "approximate":
        reach = mechanism.strategy.sensitivity * mechanism.unit.changes**2
        squared = mechanism.variance / reach
    return None if squared is None else math.sqrt(squared) / _SLACK


def _up(value: Fraction) -> float:
    """A float that is not below ``value``."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _concentrated(rho: float, interval: float) -> distributions.PrivacyLossDistribution:
    """A distribution that dominates every ρ-zCDP mechanism."""
    widest = rho + 2 * math.sqrt(rho * -math.log(_SMALLEST_DELTA))
    steps = np.arange(1, math.ceil(widest / interval) + 1)
    losses = np.asarray(steps * interval, dtype=np.float64)
    upper = _delta_bound(losses, rho)
    # below 0: δ(-ε) = 1 - e^-ε + e^-ε·δ'(ε), with δ' of the pair the other way round, bounded alike
    lower = (-np.expm1(-losses) + np.exp(-losses) * upper)[::-1]
    grid = np.concatenate([-steps[::-1], [0], steps])
    bound = np.concatenate([lower, _delta_bound(np.zeros(1), rho), upper])
    places = np.exp(grid * interval)
    deltas = _convex_minorant(np.concatenate([[0.0], places]), np.concatenate([[1.0], bound]))[1:]
    return distributions.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid, np.minimum(deltas * _SLACK, 1.0))
    )


def _delta_bound(epsilon: Floats, rho: float) -> Floats:
    """An upper bound of δ(ε) for ρ-zCDP.

    Any α is valid, and some around the best of the simpler bound are tried.
    """
    best = np.ones_like(epsilon)
    for factor in (0.25, 0.5, 0.7, 0.85, 1.0, 1.15, 1.4, 2.0, 4.0):
        above_one = factor * np.maximum((epsilon - rho) / (2 * rho), 0.05 / math.sqrt(rho))
        alpha = 1 + above_one
        logs = above_one * (alpha * rho - epsilon + np.log(above_one / alpha)) - np.log(alpha)
        best = np.minimum(best, np.exp(np.minimum(logs, 0.0)))
    return best


def _convex_minorant(x: Floats, y: Floats) -> Floats:
    """The largest convex function below the points, at their places."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.interp(x, x[hull], y[hull])
