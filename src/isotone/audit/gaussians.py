"""Exact audits of Gaussian noise.

The privacy of two normal laws with one covariance is known in closed form.

Between two such laws at distance μ (in the norm of the inverse covariance) the log ratio of the densities is itself
normal, with mean μ²/2 and variance μ². So ρ = μ²/2 (Bun and Steinke 2016), and (ε, δ) hold together exactly if
δ ≥ Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018). The distance is read off the density given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from isotone.array_types import Floats
from isotone.errors import InputError

__all__ = ["gaussian_distance", "gaussian_epsilon"]


def gaussian_distance(
    log_density: Callable[..., Any], statistic: Any, neighbour: Any, rng: np.random.Generator
) -> float:
    """The distance μ between the laws of the output for two inputs. Raises an error if they are not normal."""
    here, there = np.asarray(statistic, dtype=float), np.asarray(neighbour, dtype=float)

    def density(points: Floats, given: Any) -> Floats:
        return np.asarray(log_density(points, given), dtype=float).reshape(len(points))

    # The logarithm of a normal density is quadratic: along any line its third differences are nil.
    start, step = here + rng.standard_normal((40, len(here))), 3 * rng.standard_normal((40, len(here)))
    lines = np.stack([density(start + k * step, statistic) for k in range(4)])
    size = np.abs(lines - lines.mean()).max() + 1.0
    bent = np.abs(lines[3] - 3 * lines[2] + 3 * lines[1] - lines[0]).max()
    if not np.isfinite(lines).all() or bent > 1e-6 * size:
        raise InputError(
            "An exact audit of δ or ρ needs Gaussian noise; for other densities use audit(), which draws."
        )
    middle = density(here[None, :], statistic)[0]
    return math.sqrt(max(0.0, 2 * (middle - density(there[None, :], statistic)[0])))


def gaussian_epsilon(distance: float, delta: float) -> float:
    """The least ε that two normal laws at this distance satisfy with this δ.

    >>> round(gaussian_epsilon(1.0, 1e-6), 4)
    4.8866
    """
    from scipy.special import log_ndtr

    def excess(epsilon: float) -> float:
        near, far = distance / 2 - epsilon / distance, -distance / 2 - epsilon / distance
        return math.exp(log_ndtr(near)) - math.exp(epsilon + log_ndtr(far)) - delta

    if distance == 0 or excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low
