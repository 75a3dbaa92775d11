"""Populations for the benchmark of distributions, on a line from 0 to 1, and of survival, with times up to 1.

The constants of the mechanism are those that a laboratory chose on other populations. The second half here was written down before
anything was run on it, and nothing was changed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FIRST", "FIRST_TIMES", "LAST", "LAST_TIMES", "UNSEEN", "UNSEEN_TIMES"]

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

LAST: dict[str, Sample] = {
    "loans": lambda rng, n: np.where(
        rng.random(n) < 0.4, rng.choice([0.05, 0.1, 0.2, 0.5], n), rng.lognormal(-2.5, 1, n)
    ),
    "scales": lambda rng, n: 10 ** (-3 * rng.random(n)),
    "comb": lambda rng, n: (rng.integers(0, 40, n) + 0.01 * rng.random(n)) / 40,
    "far away": lambda rng, n: np.where(rng.random(n) < 0.95, rng.normal(0.03, 0.001, n), rng.random(n)),
    "one value": lambda rng, n: np.full(n, 0.3),
    "both limits": lambda rng, n: rng.choice([0.0, 0.5, 1.0], n, p=[0.49, 0.02, 0.49]),
}
"""Written by somebody who knew neither half, to see how often bands hold."""

FIRST_TIMES: dict[str, tuple[Sample, Sample]] = {
    "constant risk": (
        lambda rng, n: rng.exponential(0.25, n),
        lambda rng, n: np.minimum(rng.uniform(0, 1, n), 0.5),
    ),
    "growing risk": (lambda rng, n: rng.weibull(1.8, n) / 6, lambda rng, n: rng.exponential(0.5, n)),
    "cured or early": (
        lambda rng, n: np.where(
            rng.random(n) < 0.55,
            9.0,
            np.where(rng.random(n) < 0.4, rng.exponential(0.017, n), rng.exponential(0.33, n)),
        ),
        lambda rng, n: rng.uniform(0.2, 0.83, n),
    ),
}
"""Times of events and of censoring. The constants of the mechanism were looked at on these."""

UNSEEN_TIMES: dict[str, tuple[Sample, Sample]] = {
    "two risks": (
        lambda rng, n: np.minimum(rng.gamma(6, 0.05, n), rng.exponential(1.5, n)),
        lambda rng, n: 0.3 + 0.7 * rng.beta(2, 1, n),
    ),
    "yearly visits": (
        lambda rng, n: np.ceil(12 * rng.lognormal(-1, 0.9, n)) / 12,
        lambda rng, n: np.ceil(4 * rng.uniform(0.1, 1.2, n)) / 4,
    ),
    "rare and late": (lambda rng, n: 0.4 + rng.exponential(2.0, n), lambda rng, n: rng.weibull(2, n)),
}
"""Written down before anything was run on them."""

LAST_TIMES: dict[str, tuple[Sample, Sample]] = {
    "at once": (lambda rng, n: rng.gamma(0.3, 1, n), lambda rng, n: rng.exponential(1, n)),
    "quarters": (
        lambda rng, n: np.ceil(4 * rng.weibull(3, n) * 0.7) / 4,
        lambda rng, n: rng.choice([0.5, 0.75, 9.0], n),
    ),
}
"""Written as those of ``LAST``."""
