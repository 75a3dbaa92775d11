"""Symmetric banded linear systems, factored without pivoting.

Solve, log-determinant and inverse take O(n) each.

A matrix with ``b`` diagonals on either side is stored as an array of shape ``(b + 1, n)`` whose entry
``[k, i]`` is the matrix entry ``(i + k, i)``. The matrices of this package are positive definite or
*quasi-definite* (a positive definite block, a negative definite block, anything between them, in any order),
and those have a factor ``L·diag(d)·Lᵀ`` without pivoting (Vanderbei 1995), so bands never fill in.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import Floats, Int, Kernel, can_compile, kernel, most_steps

__all__ = ["Factor", "factor", "many_systems", "multiply"]

Band = NDArray[np.float64]

_many: ContextVar[bool] = ContextVar("many", default=False)


@contextmanager
def many_systems() -> Generator[None]:
    """Solve small systems by compiled code too within, if there is a compiler: enough are solved that loading it pays."""
    token = _many.set(True)
    try:
        yield
    finally:
        _many.reset(token)


@dataclass(frozen=True, eq=False)
class Factor:
    """The factors ``L·diag(pivots)·Lᵀ`` of a symmetric banded matrix.

    ``lower`` holds the bands of unit ``L``, one after the other.
    """

    lower: Floats
    pivots: Floats
    width: int

    @property
    def log_determinant(self) -> float:
        """The logarithm of the absolute determinant."""
        return float(np.sum(np.log(np.abs(self.pivots))))

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """The solution of ``matrix @ x = right``."""
        return self._run(_solve, right)

    def inverse(self) -> Band:
        """The inverse, within the band of the matrix only (Takahashi, Fagan and Chen 1973)."""
        n = len(self.pivots)
        return self._run(_inverse, np.zeros((self.width + 1) * n)).reshape(self.width + 1, n)

    def _run(self, code: Kernel[..., None], start: NDArray[np.float64]) -> NDArray[np.float64]:
        n = len(self.pivots)
        if _few(self.width, n):
            work = start.tolist()
            code.plain(self.lower, self.pivots, self.width, n, work)
            return np.array(work)
        work = start.astype(np.float64)
        code.compiled(self.lower, self.pivots, self.width, n, work)
        return work


def factor(band: Band) -> Factor:
    """Factor a positive definite or quasi-definite matrix.

    >>> factor(np.array([[2.0, 2.0], [1.0, 0.0]])).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """
    width, n = band.shape[0] - 1, band.shape[1]
    if _few(width, n):
        lower, pivots = band.ravel().tolist(), [0.0] * n
        _factor.plain(lower, pivots, width, n)
    else:
        lower, pivots = band.astype(np.float64).ravel(), np.empty(n)
        _factor.compiled(lower, pivots, width, n)
    return Factor(lower, pivots, width)


def _few(width: int, n: int) -> bool:
    """Whether lists in plain Python are used, whose numbers are quicker to reach than those of arrays."""
    return 2 * n * (width + 1) ** 2 <= most_steps() and not (_many.get() and can_compile())


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
def _solve(lower: Floats, pivots: Floats, width: Int, n: Int, x: Floats) -> None:
    """Turn the right side ``x`` into the solution, in place."""
    for j in range(n):
        known, place = x[j], j
        for a in range(j + n, j + n * min(width, n - 1 - j) + 1, n):
            place += 1
            x[place] -= lower[a] * known
    for j in range(n - 1, -1, -1):
        known, place = x[j] / pivots[j], j
        for a in range(j + n, j + n * min(width, n - 1 - j) + 1, n):
            place += 1
            known -= lower[a] * x[place]
        x[j] = known


@kernel
def _inverse(lower: Floats, pivots: Floats, width: Int, n: Int, inverse: Floats) -> None:
    """Entries of the inverse inside the band, from the last column back.

    Each needs only later ones.
    """
    for j in range(n - 1, -1, -1):
        reach = min(width, n - 1 - j)
        for a in range(reach, -1, -1):
            total = 1.0 / pivots[j] if a == 0 else 0.0
            for c in range(1, a + 1):  # the inverse is symmetric, and its lower half is kept
                total -= lower[c * n + j] * inverse[(a - c) * n + j + c]
            for c in range(a + 1, reach + 1):
                total -= lower[c * n + j] * inverse[(c - a) * n + j + a]
            inverse[a * n + j] = total
