"""The posterior of a true count given a noisy one.

The noisy count ``k`` is the true count ``i`` plus clamped noise.

For a prior ``z`` the posterior is proportional to ``z[i]·a^|i-k|``. Its cumulative probabilities and means
follow in O(1) each from two recursions kept in logarithms, so that gaps and tails far below the smallest
float are handled like any other (docs/theory/tables.md, section 5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["Posterior", "at_most", "mean_shift", "posterior_of"]


class Posterior(NamedTuple):
    """Sums of ``z`` seen from each noisy count.

    ``below[k]`` is the logarithm of ``Σ_{i<=k} z[i]·a^(k-i)`` and ``above[k]`` that of
    ``Σ_{i>=k} z[i]·a^(i-k)``; ``behind[k]`` and ``ahead[k]`` are the mean distances ``k-i`` and ``i-k`` under
    these weights.
    """

    epsilon: float
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    behind: NDArray[np.float64]
    ahead: NDArray[np.float64]


def posterior_of(z: NDArray[np.float64], epsilon: float) -> Posterior:
    """The posteriors of all noisy counts for the prior ``z``, in O(n)."""
    with np.errstate(divide="ignore"):
        logs = np.log(z)
    below, behind = _sweep(logs, epsilon)
    above, ahead = _sweep(logs[::-1].copy(), epsilon)
    return Posterior(epsilon, below, above[::-1].copy(), behind, ahead[::-1].copy())


@kernel
def at_most(p: Posterior, k: int, j: int) -> float:
    """P(true count <= j) given the noisy count k."""
    n = p.below.shape[0]
    total = _log_total(p, k)
    if j < 0:
        return 0.0
    if j >= n - 1:
        return 1.0
    if j < k:
        return np.exp(p.below[j] - p.epsilon * (k - j) - total)
    return -np.expm1(min(p.above[j + 1] - p.epsilon * (j + 1 - k) - total, 0.0))


@kernel
def mean_shift(p: Posterior, k: int) -> float:
    """The mean of (true count - k) given the noisy count k."""
    n = p.below.shape[0]
    total = _log_total(p, k)
    shift = 0.0
    if p.below[k] > -np.inf:
        shift -= np.exp(p.below[k] - total) * p.behind[k]
    if k < n - 1 and p.above[k + 1] > -np.inf:
        shift += np.exp(p.above[k + 1] - p.epsilon - total) * (1.0 + p.ahead[k + 1])
    return shift


@kernel
def _log_total(p: Posterior, k: int) -> float:
    if k == p.below.shape[0] - 1:
        return p.below[k]
    return np.logaddexp(p.below[k], p.above[k + 1] - p.epsilon)


@kernel(steps=lambda logs, epsilon: 8 * logs.size)
def _sweep(logs: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log of the decayed sum and the mean distance to its terms, from the low end up."""
    n = logs.shape[0]
    sums, distance = np.full(n, -np.inf), np.zeros(n)
    sums[0] = logs[0]
    for k in range(1, n):
        if sums[k - 1] == -np.inf:
            sums[k] = logs[k]
            continue
        decayed = sums[k - 1] - epsilon
        sums[k] = np.logaddexp(logs[k], decayed)
        distance[k] = np.exp(decayed - sums[k]) * (distance[k - 1] + 1.0)
    return sums, distance
