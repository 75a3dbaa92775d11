"""The truncated geometric mechanism G as a matrix that is never written down.

``G[i, k] = w[k]·a^|i-k|`` with ``a = exp(-ε)`` is a count plus two-sided geometric noise, clamped to
``0..n-1``: ``w`` is ``(1-a)/(1+a)`` inside and ``1/(1+a)`` at both ends (docs/theory/tables.md, section 3).
Every function takes one ε for all steps, or an ε for each of the ``n - 1`` steps.
Sums over a row or a column of it are first-order recursions of positive terms: O(n), and nothing cancels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["Rates", "end_weights", "geometric_matrix", "push_through", "reach", "spread", "step_rates"]


Rates = float | NDArray[np.float64]


def step_rates(n: int, epsilon: Rates) -> NDArray[np.float64]:
    """The ε of each of the ``n - 1`` steps."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(epsilon, np.float64), (n - 1,)))


def end_weights(n: int, epsilon: Rates) -> NDArray[np.float64]:
    """The factor ``w[k]`` of each column of G."""
    rates = step_rates(n, epsilon)
    left, right = np.concatenate([[np.inf], rates]), np.concatenate([rates, [np.inf]])
    return -np.expm1(-left - right) / ((1 + np.exp(-left)) * (1 + np.exp(-right)))


def geometric_matrix(n: int, epsilon: Rates) -> NDArray[np.float64]:
    """G, dense."""
    place = np.concatenate([[0.0], np.cumsum(step_rates(n, epsilon))])
    return end_weights(n, epsilon) * np.exp(-np.abs(place[:, None] - place[None, :]))


def push_through(z: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """The distribution ``z·G`` of a noisy count.

    The true count is drawn from ``z``.

    >>> push_through(np.array([1.0, 0.0]), np.log(3.0)).round(3)
    array([0.75, 0.25])
    """
    return spread(z, epsilon) * end_weights(len(z), epsilon)


def reach(n: int, epsilon: float) -> int:
    """A distance beyond which ``a^d`` is lost in the rounding of any sum it enters with weight up to n²."""
    return int(min(n, np.ceil((46 + 2 * np.log(n)) / epsilon)))


def spread(z: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """``Σ_i z[i]·a^|i-k|`` for every k. ``z`` may be any vector."""
    return _decayed_sums(np.ascontiguousarray(z), np.exp(-step_rates(len(z), epsilon)))


@kernel(steps=lambda z, ratio: 2 * z.size)
def _decayed_sums(z: NDArray[np.float64], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    n = z.shape[0]
    out = z.copy()
    for k in range(1, n):
        out[k] += ratio[k - 1] * out[k - 1]
    above = 0.0
    for k in range(n - 2, -1, -1):
        above = ratio[k] * (z[k + 1] + above)
        out[k] += above
    return out
