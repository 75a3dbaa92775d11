"""Cumulative laws of integer noise, and a chi-square test of draws against one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, ndtr

from tests.support.chisquare import FALSE_ALARM, MARGIN, chi_square_p, margin

__all__ = [
    "assert_tells_integers",
    "discrete_gaussian_cdf",
    "fits",
    "geometric_cdf",
    "rounded_gamma_cdf",
    "rounded_gaussian_cdf",
    "rounded_laplace_cdf",
    "two_sided_geometric_cdf",
]

Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""``cdf(k)`` is the probability of a value at or below the integer ``k``."""


def fits(draws: ArrayLike, cdf: Cdf, cells: int = 50) -> float:
    """The chi-square p-value of integer draws, in cells that are about equally likely under the law."""
    edges = _edges(cdf, cells)
    seen = np.searchsorted(edges, np.asarray(draws, dtype=np.float64), side="left")
    return chi_square_p(np.bincount(seen, minlength=edges.size + 1), _masses(cdf, edges))


def assert_tells_integers(draws: ArrayLike, right: Cdf, *wrong: Cdf, cells: int = 50) -> None:
    """The draws fit the right law and none of the wrong ones, which so many draws tell apart."""
    assert fits(draws, right, cells) > FALSE_ALARM
    for law in wrong:
        edges = _edges(law, cells)
        far = margin(_masses(right, edges), _masses(law, edges), np.size(draws))
        assert far > MARGIN, "too few draws to tell these laws apart"
        assert fits(draws, law, cells) < FALSE_ALARM


def _edges(cdf: Cdf, cells: int) -> NDArray[np.float64]:
    return np.unique(_quantiles(cdf, np.linspace(0, 1, cells + 1)[1:-1]))


def _masses(cdf: Cdf, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))


def _quantiles(cdf: Cdf, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least integers at which the law reaches the levels, by bisection."""
    low, high = np.full(levels.size, -(2.0**52)), np.full(levels.size, 2.0**52)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        reached = cdf(middle) >= levels
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def geometric_cdf(rate: float) -> Cdf:
    """P(k) ∝ exp(-rate·k), k ≥ 0."""
    return lambda k: -np.expm1(-rate * (np.maximum(k, -1.0) + 1))


def two_sided_geometric_cdf(rate: float) -> Cdf:
    """P(k) ∝ exp(-rate·|k|)."""
    a = np.exp(-rate)
    return lambda k: np.where(
        k >= 0, 1 - np.exp(-rate * (np.abs(k) + 1)) / (1 + a), np.exp(-rate * np.abs(k)) / (1 + a)
    )


@lru_cache
def _gaussian_sums(variance: float) -> tuple[int, NDArray[np.float64]]:
    reach = int(40 * np.sqrt(variance)) + 40
    k = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(np.exp(-(k**2) / (2 * variance)))
    return reach, cumulative / cumulative[-1]


def discrete_gaussian_cdf(variance: float) -> Cdf:
    """P(k) ∝ exp(-k²/(2·variance)); above 1e8, where sum and integral agree to 1e-9, by the integral."""
    if variance > 1e8:
        return rounded_gaussian_cdf(variance)
    reach, cumulative = _gaussian_sums(variance)
    return lambda k: cumulative[np.clip(k, -reach, reach).astype(int) + reach]


def rounded_gaussian_cdf(variance: float) -> Cdf:
    """The law of round(N(0, variance))."""
    return lambda k: ndtr((k + 0.5) / np.sqrt(variance))


def rounded_gamma_cdf(rate: float, terms: int) -> Cdf:
    """The law of round(E_1 + … + E_terms), exponentials of the given rate."""
    return lambda k: gammainc(terms, np.maximum(k + 0.5, 0.0) * rate)


def rounded_laplace_cdf(rate: float) -> Cdf:
    """The law of round(E - E'), exponentials of the given rate."""
    return lambda k: np.where(
        k + 0.5 >= 0, 1 - 0.5 * np.exp(-rate * np.abs(k + 0.5)), 0.5 * np.exp(-rate * np.abs(k + 0.5))
    )
