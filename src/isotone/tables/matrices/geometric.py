"""The truncated geometric mechanism G as a matrix that is never written down.

``G[i, k] = w[k]·a^|i-k|`` with ``a = exp(-ε)`` is a count plus two-sided geometric noise, clamped to
``0..n-1``: ``w`` is ``(1-a)/(1+a)`` inside and ``1/(1+a)`` at both ends (docs/theory/tables.md, section 3).
Sums over a row or a column of it are first-order recursions of positive terms: O(n), and nothing cancels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["end_weights", "geometric_matrix", "push_through", "reach", "spread"]


def end_weights(n: int, epsilon: float) -> NDArray[np.float64]:
    """The factor ``w[k]`` of each column of G."""
    if n == 1:
        return np.ones(1)
    ratio = np.exp(-epsilon)
    weights = np.full(n, -np.expm1(-epsilon) / (1 + ratio))
    weights[[0, -1]] = 1 / (1 + ratio)
    return weights


def geometric_matrix(n: int, epsilon: float) -> NDArray[np.float64]:
    """G, dense."""
    i = np.arange(n)
    return end_weights(n, epsilon) * np.exp(-epsilon * np.abs(i[:, None] - i[None, :]))


def push_through(z: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """The distribution ``z·G`` of a noisy count.

    The true count is drawn from ``z``.

    >>> push_through(np.array([1.0, 0.0]), np.log(3.0)).round(3)
    array([0.75, 0.25])
    """
    return spread(z, epsilon) * end_weights(len(z), epsilon)


def reach(n: int, epsilon: float) -> int:
    """A distance beyond which ``a^d`` is lost in the rounding of any sum it enters with weight up to n²."""
    return int(min(n, np.ceil((46 + 2 * np.log(n)) / epsilon)))


def spread(z: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """``Σ_i z[i]·a^|i-k|`` for every k.

    ``z`` may be any vector.
    """
    return _decayed_sums(np.ascontiguousarray(z), np.exp(-epsilon))


@kernel(steps=lambda z, ratio: 2 * z.size)
def _decayed_sums(z: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
    n = z.shape[0]
    out = np.empty(n)
    below = 0.0
    for k in range(n):
        below = z[k] + ratio * below
        out[k] = below
    above = 0.0
    for k in range(n - 1, -1, -1):
        out[k] += ratio * above
        above = z[k] + ratio * above
    return out
