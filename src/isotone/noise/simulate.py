"""Seeded float twins of the exact samplers, for planning and experiments.

Same names, same distributions up to floating-point error, a numpy Generator first. Every result is
:class:`Simulated`, which no release accepts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.noise.laplace.uneven import UnevenLine
from isotone.noise.simulated import Simulated
from isotone.privacy.checks import Number, positive

__all__ = [
    "choose_exponential",
    "discrete_gaussians",
    "exponential_sums",
    "exponentials",
    "gaussians",
    "geometrics",
    "rounded_exponential_sums",
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


def exponential_sums(rng: np.random.Generator, rate: Number, plus: ArrayLike, minus: ArrayLike) -> Simulated:
    """Simulate signed sums of shared exponentials.

    ``E_1 + … + E_plus[x] - E'_1 - … - E'_minus[x]`` for every ``x``.
    """
    up, down = (np.asarray(lengths, dtype=np.int64) for lengths in (plus, minus))
    if up.shape != down.shape or up.ndim != 1 or np.any(up < 0) or np.any(down < 0):
        raise InputError("plus and minus must be lists of term counts, 0 or above, of the same length.")
    partial = [
        np.concatenate([[0.0], np.cumsum(exponentials(rng, rate, int(lengths.max(initial=0))))])
        for lengths in (up, down)
    ]
    return Simulated.wrap(partial[0][up] - partial[1][down])


def rounded_exponential_sums(
    rng: np.random.Generator, rate: Number, plus: ArrayLike, minus: ArrayLike
) -> Simulated:
    """Simulate signed sums of shared exponentials, rounded to integers."""
    return Simulated.wrap(np.floor(exponential_sums(rng, rate, plus, minus) + 0.5).astype(np.int64))


def choose_exponential(
    rng: np.random.Generator,
    scores: ArrayLike,
    rate: Number,
    multiplicity: ArrayLike | None = None,
    size: Size = (),
) -> Simulated:
    """Indices drawn with probability proportional to ``multiplicity[i]·exp(-rate·scores[i])``."""
    values = np.asarray(scores, dtype=np.float64)
    counts = np.ones(values.size) if multiplicity is None else np.asarray(multiplicity, dtype=np.float64)
    if values.ndim != 1 or counts.shape != values.shape or np.any(counts < 0) or not np.any(counts > 0):
        raise InputError("A choice needs one multiplicity, 0 or above, for each score, and one above 0.")
    best = values[counts > 0].min()
    cumulative = np.cumsum(counts * np.exp(-float(positive(rate, "rate")) * np.maximum(values - best, 0.0)))
    last = int(np.flatnonzero(counts)[-1])
    uniform = rng.random(size) * cumulative[-1]
    return Simulated.wrap(np.minimum(np.searchsorted(cumulative, uniform, side="right"), last))
