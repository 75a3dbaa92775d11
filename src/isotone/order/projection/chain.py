"""Isotonic regression on a chain by pooling adjacent violators.

Definition: given values ``y`` and weights ``w > 0`` along a chain, the nondecreasing ``f`` that minimises
``Σ w (f − y)²``. Complexity: O(n). Reference: Barlow, Bartholomew, Bremner and Brunk 1972, chapter 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["pool_adjacent_violators"]


@kernel(steps=lambda values, weights: 2 * values.size)
def pool_adjacent_violators(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nondecreasing vector closest to ``values``, listed from the bottom of the chain to its top.

    Block means are kept as a mean and a total weight, and a merge moves the mean by a convex combination:
    so values with a large common offset lose no digits.
    """
    n = values.size
    mean = np.empty(n)
    weight = np.empty(n)
    first = np.empty(n + 1, np.int64)
    blocks = 0
    for i in range(n):
        mean[blocks], weight[blocks], first[blocks] = values[i], weights[i], i
        while blocks > 0 and mean[blocks - 1] >= mean[blocks]:
            total = weight[blocks - 1] + weight[blocks]
            mean[blocks - 1] += (mean[blocks] - mean[blocks - 1]) * (weight[blocks] / total)
            weight[blocks - 1] = total
            blocks -= 1
        blocks += 1
    first[blocks] = n
    fitted = np.empty(n)
    for b in range(blocks):
        fitted[first[b] : first[b + 1]] = mean[b]
    return fitted
