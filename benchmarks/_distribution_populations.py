"""Populations for the benchmark of distributions, on a line from 0 to 1.

The constants of the mechanism are those that a laboratory chose on other populations. The second half here was written down before
anything was run on it, and nothing was changed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FIRST", "UNSEEN"]

Sample = Callable[[np.random.Generator, int], Any]

FIRST: dict[str, Sample] = {
    "log-normal": lambda rng, n: rng.lognormal(0, 1, n) / 20,
    "normal": lambda rng, n: 0.5 + 0.1 * rng.normal(size=n),
    "four values": lambda rng, n: rng.choice([0.1, 0.11, 0.3, 0.7], n),
    "gamma": lambda rng, n: rng.gamma(2, 1 / 30, n),
    "even": lambda rng, n: rng.random(n),
    "half zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0, rng.exponential(0.1, n)),
}

UNSEEN: dict[str, Sample] = {
    "Pareto": lambda rng, n: 0.002 * (1 + rng.pareto(1.3, n)),
    "two camps": lambda rng, n: np.where(
        rng.random(n) < 0.3, rng.normal(0.2, 0.02, n), rng.normal(0.75, 0.08, n)
    ),
    "round numbers": lambda rng, n: (
        np.round(rng.gamma(3, 0.08, n) * np.where(rng.random(n) < 0.6, 20, 400))
        / np.where(rng.random(n) < 0.6, 20, 400)
    ),
    "waiting times": lambda rng, n: rng.weibull(0.7, n) * 0.05,
    "beta at both ends": lambda rng, n: rng.beta(0.4, 0.6, n),
    "whole years": lambda rng, n: np.floor(rng.triangular(0, 40, 100, n)) / 100,
}
