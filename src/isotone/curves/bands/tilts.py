"""E-values against "the curve is at least v from here on", and the law of noise that they need.

A tilt is a pair ``(theta, eta)`` with ``v·exp(−theta) + (1 − v)·exp(eta) = 1``: then ``exp(−theta·y + eta·(1 − y))`` has mean
at most 1 for every ``y`` in [0, 1] whose mean is at least ``v`` (docs/theory/bands.md, section 1).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from isotone.array_types import Floats
from isotone.curves.measure import NoisySums

__all__ = ["COUNT", "VALUES", "cumulant", "reach", "tilts"]

COUNT = 8
"""Tilts for every value, each half as strong as the one before."""
STRONGEST, MOST = 0.85, 4.0
"""The strongest tilt is this share of the rate of the noise, and of this at most."""
VALUES: Floats = np.sin(np.linspace(0.0, math.pi / 2, 801)) ** 2
"""Values that are tested: finer near 0 and 1, where means are told apart more easily."""
SMALL_NOISE = 64
"""Up to this standard deviation the law of rounded Gaussian noise is summed up, beyond it is bounded."""


def cumulant(sums: NoisySums, t: Floats) -> Floats:
    """``log E exp(t·X)`` of the noise ``X`` of one sum, in records, or a little more."""
    step = np.abs(t) / sums.unit  # for one whole number; noise is symmetric
    if sums.rate is not None:
        rate = float(sums.rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = 2 * math.log(-math.expm1(-rate)) - _log(step - rate) - _log(-step - rate)
        return np.where(step < rate, log, np.inf)
    assert sums.variance is not None, "sums have one of both"
    variance = float(sums.variance)
    if variance > SMALL_NOISE**2:
        return variance * step**2 / 2 + step / 2
    return _rounded(sums.variance, step)


def _log(exponent: Floats) -> Floats:
    """``log(1 − exp(exponent))``."""
    return np.log(-np.expm1(exponent))


def _rounded(variance: Fraction, step: Floats) -> Floats:
    from scipy.special import log_ndtr

    deviation = math.sqrt(variance)
    far = math.ceil(deviation * (12 + deviation * float(np.max(step, initial=0.0)))) + 2
    k = np.arange(-far, far + 1.0)
    # the chance to be rounded to k, by the tail that k lies in: no digits are lost
    near, beyond = log_ndtr((0.5 - np.abs(k)) / deviation), log_ndtr((-0.5 - np.abs(k)) / deviation)
    log_chance = near + np.log1p(-np.exp(beyond - near))
    terms = log_chance + step[..., None] * k
    top = terms.max(axis=-1)
    return top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))


def reach(sums: NoisySums) -> float:
    """How strong a tilt the noise of the sums allows."""
    if sums.rate is not None:
        return float(sums.rate) * sums.unit
    assert sums.variance is not None, "sums have one of both"
    return 4.0 * sums.unit / math.sqrt(sums.variance)


def tilts(sums: NoisySums) -> tuple[Floats, Floats]:
    """``theta`` and ``eta`` for every value but 0 and 1 (rows) and every strength (columns)."""
    return _tilts(min(reach(sums), MOST))


@cache
def _tilts(top: float) -> tuple[Floats, Floats]:
    """The larger of both is the strength. ``theta = log(v/w)`` and ``eta = log((1−w)/(1−v))`` for a ``w`` below ``v``."""
    v = VALUES[1:-1, None]
    strength = STRONGEST * top * 0.5 ** np.arange(COUNT)
    # the w at which theta, or eta, is the strength; the larger of both w has neither above it
    w = np.maximum(v * np.exp(-strength), 1 - (1 - v) * np.exp(strength))
    theta = np.log(v / w)
    # from theta, so that v·exp(−theta) + (1 − v)·exp(eta) is 1 to the last digit
    return theta, np.log1p(v * -np.expm1(-theta) / (1 - v))
