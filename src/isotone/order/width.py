"""The width of an order: the size of its largest antichain.

By Dilworth's theorem (1950) it is the least number of chains that cover the order, and by Fulkerson (1956)
that number is n minus the size of a largest matching between elements and elements above them.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from isotone.order.closure import Bits, Ints, popcounts

__all__ = ["width"]


def width(closure: Bits) -> int:
    """Width from the closure. Hopcroft and Karp's matching: O(r √n) for r comparable pairs."""
    n = closure.shape[0]
    above, _ = popcounts(closure)
    starts = np.concatenate(([0], np.cumsum(above - 1)))
    uppers = _strictly_above(closure, starts)
    pairs = csr_array((np.ones(uppers.size, np.int8), uppers, starts.astype(np.int32)), shape=(n, n))
    matched = maximum_bipartite_matching(pairs, perm_type="column")
    return n - int(np.count_nonzero(matched >= 0))


@njit(cache=True)
def _strictly_above(closure: Bits, starts: Ints) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    uppers = np.empty(starts[-1], np.int32)
    for x in range(closure.shape[0]):
        k = starts[x]
        for y in range(closure.shape[0]):
            if y != x and closure[x, y >> 6] >> np.uint64(y & 63) & np.uint64(1):
                uppers[k] = y
                k += 1
    return uppers
