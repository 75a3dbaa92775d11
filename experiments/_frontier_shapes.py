"""Shapes on which the scale from counts to distribution is judged, written before any of them was released.

The rule that turns an emphasis into thresholds was chosen on others: a geometric law, two bells, a half empty table, and, after
they had been looked at, a u, a triangle, stairs, a power law, a mixture of Poisson laws and a negative binomial law. None of the shapes
here is one of those. A table is drawn afresh for every release, with as many categories as a setting asks for.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from _tables import Table

__all__ = ["FRESH", "LAST", "ROUGH", "SETTINGS", "SMOOTH", "UNSEEN", "drawn", "probabilities"]

SETTINGS = tuple(
    (size, upper, epsilon) for size in (1000, 10_000) for upper in (20, 60) for epsilon in ("0.1", "0.3", "1")
)
"""Categories, the largest count, and ε."""

SMOOTH = ("lognormal", "leaning right", "logistic bell", "ramp and plateau", "stretched tail", "wave")
FRESH = ("gamma", "dip", "late rise", "three bells", "table top", "waiting times")
"""Written later, before anything that follows them was changed: for what was set after the others had been released."""

LAST = ("two slopes", "weibull", "plateau and tail", "leaning left", "sevens", "every fourth, rising")
"""Later still, by somebody who had written none of what is released: four smooth shapes, heaps of seven and a comb."""

UNSEEN = (
    "gompertz",
    "heavy tails",
    "gumbel",
    "half cosine",
    "poisson of lognormal",
    "primes",
    "heaps of six on a bell",
)
"""By another who had written none of it, with real tables that nothing had run on: five smooth shapes, an uneven comb and heaps."""

ROUGH = ("every third count", "heaps of four", "fives and tens", "even numbers, falling")


def probabilities(name: str, upper: int) -> NDArray[np.float64]:
    """The probabilities of the counts from 0 to ``upper`` for one of the shapes."""
    counts = np.arange(upper + 1)
    x = (counts + 0.5) / (upper + 1)
    fall = np.exp(-3 * x)
    prime = np.array([n > 1 and all(n % d for d in range(2, n)) for n in counts.tolist()])
    means = 0.25 * upper * np.exp(0.7 * np.linspace(-2, 2, 41))
    weights = {
        "lognormal": np.exp(-((np.log(6 * x) / 0.8) ** 2) / 2) / x,
        "leaning right": x**2 * (1 - x) ** 0.5,
        "logistic bell": 1 / np.cosh((x - 0.45) / 0.14) ** 2,
        "ramp and plateau": np.minimum(x / 0.4, 1.0) + 0.05,
        "stretched tail": np.exp(-((x / 0.12) ** 0.7)),
        "wave": 1 + 0.8 * np.sin(3 * np.pi * x),
        "gamma": x**0.7 * np.exp(-4 * x),
        "dip": 1 - 0.8 * np.exp(-(((x - 0.5) / 0.15) ** 2)),
        "late rise": 0.2 + x**4,
        "three bells": np.exp(-(((x - 0.15) / 0.07) ** 2))
        + 0.6 * np.exp(-(((x - 0.5) / 0.1) ** 2))
        + 0.3 * np.exp(-(((x - 0.85) / 0.06) ** 2)),
        "table top": 1 / (1 + np.exp((np.abs(x - 0.5) - 0.3) / 0.03)),
        "waiting times": 0.7 * np.exp(-25 * x) + 0.06 * np.exp(-2 * x),
        "two slopes": np.where(x < 0.3, 0.2 + 2.5 * x, 1.1 - 0.9 * x),
        "weibull": x**0.6 * np.exp(-((x / 0.35) ** 1.6)),
        "plateau and tail": np.where(x < 0.5, 1.0, np.exp(-8 * (x - 0.5))),
        "leaning left": x**0.4 * (1 - x) ** 3,
        "sevens": fall * np.where(counts % 7 == 0, 8.0, 1.0),
        "every fourth, rising": (counts % 4 == 2) * (0.3 + x),
        "gompertz": np.exp(5 * x - 0.05 * np.expm1(5 * x)),
        "heavy tails": 1 / (1 + ((x - 0.35) / 0.06) ** 2),
        "gumbel": np.exp(-(x - 0.3) / 0.12 - np.exp(-(x - 0.3) / 0.12)),
        "half cosine": 1 + np.cos(np.pi * x),
        "poisson of lognormal": poisson.pmf(counts[:, None], means)
        @ np.exp(-0.5 * np.linspace(-2, 2, 41) ** 2),
        "primes": prime * (1.1 - x),
        "heaps of six on a bell": np.exp(-(((x - 0.5) / 0.25) ** 2)) * np.where(counts % 6 == 0, 7.0, 1.0),
        "every third count": (counts % 3 == 1) * np.exp(-((x - 0.4) ** 2) / 0.08),
        "heaps of four": fall * np.where(counts % 4 == 0, 6.0, 1.0),
        "fives and tens": fall * np.where(counts % 10 == 0, 12.0, np.where(counts % 5 == 0, 5.0, 0.4)),
        "even numbers, falling": (counts % 2 == 0) * np.exp(-5 * x),
    }[name]
    return np.asarray(weights / weights.sum(), np.float64)


def drawn(name: str, size: int, upper: int, draw: int) -> Table:
    """A table of one of the shapes, the same for the same draw."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), size, upper, draw])
    return Table(name, rng.choice(upper + 1, size, p=probabilities(name, upper)), upper)
