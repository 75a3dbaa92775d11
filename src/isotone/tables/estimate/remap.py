"""Noisy counts to published counts, by thresholds on the whole table.

``η`` categories on each count are estimated, with an error. Each noisy count has a posterior besides. For
every threshold ``t`` one number decides: how many categories, the smallest noisy counts first, are published
as at most ``t``. It minimises expected count error plus ``price`` times expected distribution error
(docs/theory/tables-whole.md, section 5). A price of infinity is rank matching: the published table then has
the estimated histogram exactly, up to rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel
from isotone.tables.estimate.posterior import Posterior, at_most, posterior_of

__all__ = ["assign", "thresholds"]


def thresholds(
    observed: NDArray[np.int64],
    histogram: NDArray[np.float64],
    deviation: NDArray[np.float64],
    epsilon: float,
    price: float,
) -> NDArray[np.int64]:
    """How many categories to publish as at most ``t``, for ``t = 0..n-2``.

    ``observed`` is the histogram of the noisy counts, ``histogram`` the estimated one. The standard error
    of its cumulative sums is ``deviation``, and counts carry clamped geometric noise of ``epsilon`` per step.

    >>> thresholds(np.array([3, 1, 2]), np.array([2.0, 3.0, 1.0]), np.zeros(2), 1.0, math.inf)
    array([2, 5])
    """
    size = int(np.sum(observed))
    cumulative = np.clip(np.cumsum(histogram)[:-1], 0, size)
    if math.isfinite(price):
        cumulative = _balanced(observed, cumulative, deviation, posterior_of(histogram, epsilon), price)
    rising = np.maximum.accumulate(np.clip(cumulative, 0, size))
    return np.floor(rising + 0.5).astype(np.int64)


def _balanced(
    observed: NDArray[np.int64],
    cumulative: NDArray[np.float64],
    deviation: NDArray[np.float64],
    posterior: Posterior,
    price: float,
) -> NDArray[np.float64]:
    """Where one more category below the threshold no longer pays, for every threshold."""
    from scipy.special import ndtri

    ends = np.cumsum(observed)
    deviation = np.maximum(deviation, 1e-9)
    group, vote = _groups(ends, cumulative, deviation, posterior, price)
    level = np.clip(0.5 + (vote - 0.5) / price, 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        stop = cumulative + deviation * ndtri(level)
    return np.clip(stop, ends[group] - observed[group], ends[group])


@kernel(steps=lambda ends, *_: 16 * ends.size * ends.size.bit_length())
def _groups(
    ends: NDArray[np.int64],
    cumulative: NDArray[np.float64],
    deviation: NDArray[np.float64],
    posterior: Posterior,
    price: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each threshold the group of equal noisy counts in which to stop, and its vote P(count <= t).

    One more of those that read ``k`` changes the count error by ``1 - 2·P(count <= t | k)`` and the
    distribution error by ``2·Φ((m - cumulative)/deviation) - 1``. The first rises from group to group, the
    second with m: the first group at whose end their weighted sum is not negative is found by bisection.
    """
    size = cumulative.shape[0]
    group, vote = np.empty(size, np.int64), np.empty(size)
    for t in range(size):
        low, high = 0, ends.shape[0] - 1
        while low < high:
            middle = (low + high) // 2
            excess = (ends[middle] - cumulative[t]) / (math.sqrt(2.0) * deviation[t])
            if 1 - 2 * at_most(posterior, middle, t) + price * math.erf(excess) >= 0:
                high = middle
            else:
                low = middle + 1
        group[t], vote[t] = low, at_most(posterior, low, t)
    return group, vote


def assign(noisy: NDArray[np.int64], cuts: NDArray[np.int64], ties: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The published counts, from the ranks of the noisy ones.

    The k-th smallest noisy count gets the k-th value that the ``cuts`` allow.

    Equal noisy counts are ordered by ``ties``, random words: the order of categories must not matter.

    >>> assign(np.array([2, 0, 1, 1]), np.array([1, 3]), np.array([5, 6, 8, 7], np.uint64))
    array([2, 0, 1, 1])
    """
    free = np.uint64(64 - len(cuts).bit_length())  # one key to sort by: the noisy count, then chance
    order = np.argsort((noisy.astype(np.uint64) << free) | (ties >> (np.uint64(64) - free)))
    published = np.empty_like(noisy)
    published[order] = np.searchsorted(cuts, np.arange(len(noisy)), side="right")
    return published
