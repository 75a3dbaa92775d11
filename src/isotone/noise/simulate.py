"""Seeded float twins of the exact samplers, for planning and experiments.

Same names, same distributions up to floating-point error, a numpy Generator first. Every result is
:class:`Simulated`, which no release accepts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.noise.laplace.uneven import UnevenLine
from isotone.noise.simulated_array import Simulated
from isotone.privacy.checks import Number, positive

__all__ = [
    "discrete_gaussians",
    "exponentials",
    "gaussians",
    "geometrics",
    "rounded_gaussians",
    "two_sided_geometrics",
    "uneven_geometrics",
]

Size = int | tuple[int, ...]


def exponentials(rng: np.random.Generator, rate: Number, size: Size) -> Simulated:
    """Exponential variables of the given rate."""
    return Simulated.wrap(rng.standard_exponential(size) / float(positive(rate, "rate")))


def geometrics(rng: np.random.Generator, rate: Number, size: Size) -> Simulated:
    """Simulate geometric variables.

    The probability of ``k >= 0`` is proportional to ``exp(-rate·k)``. They are exponentials, rounded down.
    """
    return Simulated.wrap(np.floor(exponentials(rng, rate, size)).astype(np.int64))


def two_sided_geometrics(rng: np.random.Generator, epsilon: Number, size: Size) -> Simulated:
    """Simulate two-sided geometric noise.

    The probability of ``k`` is proportional to ``exp(-epsilon·|k|)``. Each is the difference of two
    geometrics.

    >>> two_sided_geometrics(np.random.default_rng(0), 1, 3)
    Simulated([...])
    """
    return Simulated.wrap(geometrics(rng, epsilon, size) - geometrics(rng, epsilon, size))


def uneven_geometrics(rng: np.random.Generator, values: NDArray[np.int64], line: UnevenLine) -> Simulated:
    """Simulate geometric noise on a line of uneven steps."""
    drawn = rng.standard_exponential(values.size) / float(line.unit)
    far = np.floor(drawn)
    rests = np.array([crossing.rest for crossing in line.crossings])
    passed = (drawn - far)[:, None] >= rests
    return Simulated.wrap(line.moved(values, far.astype(np.int64), rng.random(values.size) < 0.5, passed))


def gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Gaussian variables of variance ``sigma2``."""
    return Simulated.wrap(rng.standard_normal(size) * np.sqrt(float(positive(sigma2, "sigma2"))))


def rounded_gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Gaussian variables of variance ``sigma2``, rounded to integers."""
    return Simulated.wrap(np.floor(gaussians(rng, sigma2, size) + 0.5).astype(np.int64))


def discrete_gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Integers with probability ∝ ``exp(-k²/(2·sigma2))``, accepted from two-sided geometrics."""
    variance = float(positive(sigma2, "sigma2"))
    scale = np.floor(np.sqrt(variance)) + 1.0
    wanted = int(np.prod(size))
    kept: list[NDArray[np.int64]] = []
    while wanted > 0:
        tried = np.asarray(two_sided_geometrics(rng, float(1.0 / scale), 2 * wanted + 16))
        exponent = (np.abs(tried) - variance / scale) ** 2 / (2 * variance)
        kept.append(tried[rng.standard_exponential(tried.size) >= exponent][:wanted])
        wanted -= kept[-1].size
    return Simulated.wrap(np.concatenate([np.zeros(0, dtype=np.int64), *kept]).reshape(size))
