"""Symmetric banded linear systems.

Solve, log-determinant and inverse take O(n) each.

A matrix with ``b`` diagonals on either side is stored as an array of shape ``(b + 1, n)`` whose entry
``[k, i]`` is the matrix entry ``(i + k, i)``. LAPACK solves. It has no inverse within the band, for which the matrices must be positive definite or
*quasi-definite* (a positive definite block, a negative definite block, anything between them, in any order):
those have a factor ``L·diag(d)·Lᵀ`` without pivoting (Vanderbei 1995), so bands never fill in.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import Floats, Int, can_compile, kernel, most_steps

__all__ = ["Factor", "factor", "many_systems", "multiply"]

Band = NDArray[np.float64]

_many: ContextVar[bool] = ContextVar("many", default=False)


@contextmanager
def many_systems() -> Generator[None]:
    """Invert small matrices by compiled code too within, if there is a compiler: there are enough that loading it pays."""
    token = _many.set(True)
    try:
        yield
    finally:
        _many.reset(token)


@dataclass(frozen=True, eq=False)
class Factor:
    """A symmetric banded matrix with its triangular factors, in the form of LAPACK."""

    band: Band
    triangles: Band
    swaps: NDArray[np.int32]

    @property
    def _width(self) -> int:
        return len(self.triangles) // 3

    @property
    def log_determinant(self) -> float:
        """The logarithm of the absolute determinant."""
        return float(np.sum(np.log(np.abs(self.triangles[2 * self._width]))))

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """The solution of ``matrix @ x = right``."""
        return _lapack()[1](self.triangles, self._width, self._width, right, self.swaps)[0]

    def inverse(self) -> Band:
        """The inverse, within the band of the matrix only (Takahashi, Fagan and Chen 1973)."""
        n = self.band.shape[1]
        few = 2 * n * len(self.band) ** 2 <= most_steps() and not (_many.get() and can_compile())
        lower, pivots, inverse = self.band.ravel(), np.zeros(n), np.zeros(self.band.size)
        if few:  # as lists, whose numbers Python reaches quicker than those of arrays
            lower, pivots, inverse = lower.tolist(), pivots.tolist(), inverse.tolist()
        else:
            lower = lower.copy()
        (_inverse.plain if few else _inverse.compiled)(lower, pivots, len(self.band) - 1, n, inverse)
        return np.array(inverse).reshape(self.band.shape)


def factor(band: Band) -> Factor:
    """Factor a matrix that has an inverse.

    >>> factor(np.array([[2.0, 2.0], [1.0, 0.0]])).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """
    n, width = band.shape[1], min(band.shape) - 1
    both = np.zeros((3 * width + 1, n), order="F")
    for k in range(width + 1):
        both[2 * width - k, k:] = both[2 * width + k, : n - k] = band[k, : n - k]
    triangles, swaps, _ = _lapack()[0](both, width, width, overwrite_ab=True)
    return Factor(band, triangles, swaps)


@cache
def _lapack() -> tuple[Any, Any]:
    """The functions that factor and solve."""
    from scipy.linalg import get_lapack_funcs

    factored, solved = get_lapack_funcs(("gbtrf", "gbtrs"))
    return factored, solved


def multiply(band: Band, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of a symmetric banded matrix with a vector."""
    product = band[0] * x
    for k in range(1, min(len(band), len(x))):
        product[:-k] += band[k, :-k] * x[k:]
        product[k:] += band[k, :-k] * x[:-k]
    return product


@kernel
def _factor(lower: Floats, pivots: Floats, width: Int, n: Int) -> None:
    """Turn a matrix into its factor, in place. Bands lie one after the other in ``lower``."""
    for j in range(n):
        pivot = lower[j]
        pivots[j] = pivot
        end = j + n * min(width, n - 1 - j) + 1
        for a in range(j + n, end, n):  # subtract the outer product of column j from what is left
            share = lower[a] / pivot
            if share == 0.0:  # as most are where unknowns of several kinds take turns
                continue
            place = j + (a - j) // n
            for c in range(a, end, n):
                lower[place] -= share * lower[c]
                place += n
        for a in range(j + n, end, n):
            lower[a] /= pivot
        lower[j] = 1.0


@kernel
def _inverse(lower: Floats, pivots: Floats, width: Int, n: Int, inverse: Floats) -> None:
    """Entries of the inverse inside the band, from the last column back, as each needs only later ones.

    The matrix in ``lower`` is turned into its factor.
    """
    _factor(lower, pivots, width, n)
    for j in range(n - 1, -1, -1):
        reach = min(width, n - 1 - j)
        for a in range(reach, -1, -1):
            total = 1.0 / pivots[j] if a == 0 else 0.0
            for c in range(1, a + 1):  # the inverse is symmetric, and its lower half is kept
                total -= lower[c * n + j] * inverse[(a - c) * n + j + c]
            for c in range(a + 1, reach + 1):
                total -= lower[c * n + j] * inverse[(c - a) * n + j + a]
            inverse[a * n + j] = total
