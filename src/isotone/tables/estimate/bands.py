"""Symmetric banded linear systems, factored without pivoting.

Solve, log-determinant and inverse take O(n) each.

A matrix with ``b`` diagonals on either side is stored as an array of shape ``(b + 1, n)`` whose entry
``[k, i]`` is the matrix entry ``(i + k, i)``. The matrices of this package are positive definite or
*quasi-definite* (a positive definite block, a negative definite block, anything between them, in any order),
and those have a factor ``L·diag(d)·Lᵀ`` without pivoting (Vanderbei 1995), so bands never fill in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["Factor", "factor", "multiply"]

Band = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factor:
    """The factors ``L·diag(pivots)·Lᵀ`` of a symmetric banded matrix.

    ``lower`` holds the bands of unit ``L``.
    """

    lower: Band
    pivots: NDArray[np.float64]

    @property
    def log_determinant(self) -> float:
        """The logarithm of the absolute determinant."""
        return float(np.sum(np.log(np.abs(self.pivots))))

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """The solution of ``matrix @ x = right``."""
        return _solve(self.lower, self.pivots, right)

    def inverse(self) -> Band:
        """The inverse, within the band of the matrix only (Takahashi, Fagan and Chen 1973)."""
        return _inverse(self.lower, self.pivots)


def factor(band: Band) -> Factor:
    """Factor a positive definite or quasi-definite matrix.

    >>> factor(np.array([[2.0, 2.0], [1.0, 0.0]])).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """
    return Factor(*_factor(band))


def multiply(band: Band, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of a symmetric banded matrix with a vector."""
    product = band[0] * x
    for k in range(1, min(len(band), len(x))):
        product[:-k] += band[k, :-k] * x[k:]
        product[k:] += band[k, :-k] * x[:-k]
    return product


@kernel
def _factor(band: Band) -> tuple[Band, NDArray[np.float64]]:
    width, n = band.shape[0] - 1, band.shape[1]
    lower = band.copy()
    pivots = np.empty(n)
    for j in range(n):
        pivot = lower[0, j]
        pivots[j] = pivot
        reach = min(width, n - 1 - j)
        for a in range(1, reach + 1):  # subtract the outer product of column j from what is left
            share = lower[a, j] / pivot
            for c in range(a, reach + 1):
                lower[c - a, j + a] -= share * lower[c, j]
        for a in range(1, reach + 1):
            lower[a, j] /= pivot
        lower[0, j] = 1.0
    return lower, pivots


@kernel
def _solve(lower: Band, pivots: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    width, n = lower.shape[0] - 1, lower.shape[1]
    x = right.copy()
    for j in range(n):
        for a in range(1, min(width, n - 1 - j) + 1):
            x[j + a] -= lower[a, j] * x[j]
    for j in range(n - 1, -1, -1):
        x[j] /= pivots[j]
        for a in range(1, min(width, n - 1 - j) + 1):
            x[j] -= lower[a, j] * x[j + a]
    return x


@kernel
def _inverse(lower: Band, pivots: NDArray[np.float64]) -> Band:
    """Entries of the inverse inside the band, from the last column back.

    Each needs only later ones.
    """
    width, n = lower.shape[0] - 1, lower.shape[1]
    inverse = np.zeros((width + 1, n))
    for j in range(n - 1, -1, -1):
        reach = min(width, n - 1 - j)
        for a in range(reach, -1, -1):
            total = 1.0 / pivots[j] if a == 0 else 0.0
            for c in range(1, reach + 1):
                low, high = min(a, c), max(a, c)
                total -= lower[c, j] * inverse[high - low, j + low]
            inverse[a, j] = total
    return inverse
