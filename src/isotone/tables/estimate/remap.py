"""Noisy counts to published counts, by their ranks in the whole table.

The published table has the estimated histogram, up to rounding, and keeps the order of the noisy counts
(docs/theory/tables-whole.md, section 5).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["assign", "cuts_of"]


def cuts_of(histogram: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """How many of ``size`` categories to publish as at most ``t``, for ``t = 0..n-2``.

    >>> cuts_of(np.array([2.0, 3.0, 1.0]), 6)
    array([2, 5])
    """
    cumulative = np.clip(np.cumsum(histogram)[:-1], 0, size)
    return np.floor(np.maximum.accumulate(cumulative) + 0.5).astype(np.int64)


def assign(noisy: NDArray[np.int64], cuts: NDArray[np.int64], ties: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The published counts, from the ranks of the noisy ones.

    The k-th smallest noisy count gets the k-th value that the ``cuts`` allow. Equal noisy counts are ordered by
    ``ties``, random words: the order of categories must not matter.

    >>> assign(np.array([2, 0, 1, 1]), np.array([1, 3]), np.array([5, 6, 8, 7], np.uint64))
    array([2, 0, 1, 1])
    """
    most = max(len(cuts), int(np.max(noisy, initial=0)))
    free = np.uint64(64 - most.bit_length())  # one key to sort by: the noisy count, then chance
    order = np.argsort((noisy.astype(np.uint64) << free) | (ties >> (np.uint64(64) - free)))
    published = np.empty_like(noisy)
    published[order] = np.searchsorted(cuts, np.arange(len(noisy)), side="right")
    return published
