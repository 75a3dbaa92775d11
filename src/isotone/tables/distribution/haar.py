"""The Haar wavelet strategy in integers. Privelet (Xiao, Wang and Gehrke 2010)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Haar"]


class Haar:
    """Differences between the halves at each node of a binary tree.

    The left half of the bins minus the right half.

    Privelet scales its wavelet coefficients so that all the weights ``1/2^h`` in its noise cancel: up to that
    scaling it adds the same noise to every one of these differences. The tree has ``depth`` levels over
    ``2^depth >= n`` bins (the missing ones are empty). The base coefficient is N, which is public and costs
    nothing. A step between two bins that part at height ``h`` changes the difference there by 2 and those of
    the ``h-1`` nodes below, on each side, by 1: ``2h`` in all, so ``l1`` is ``2·depth``.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.depth = max(n - 1, 0).bit_length()

    @property
    def l1(self) -> int:
        """Twice the depth of the tree."""
        return 2 * self.depth

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The differences, from the root down, each level from left to right."""
        sums = np.zeros(1 << self.depth, np.int64)
        sums[: self.n] = histogram
        levels: list[NDArray[np.int64]] = []
        while sums.size > 1:
            levels.append(sums[0::2] - sums[1::2])
            sums = sums[0::2] + sums[1::2]
        return np.concatenate(levels[::-1]) if levels else np.zeros(0, np.int64)

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The inverse transform, from the public total down to the bins."""
        sums = np.array([float(size)])
        start = 0
        for _ in range(self.depth):
            differences = noisy[start : start + sums.size]
            start += sums.size
            sums = np.column_stack([(sums + differences) / 2, (sums - differences) / 2]).ravel()
        return sums[: self.n]
