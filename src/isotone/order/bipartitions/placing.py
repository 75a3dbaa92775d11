"""Putting elements in their places, and telling whether they break a relation there, in compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.stream import STATUS, Stream, below
from isotone.order.bipartitions.upward import Int64

__all__ = ["arrange", "breaks", "deal", "kept", "partners_of", "scatter"]

Places = NDArray[np.int32]


@kernel
def partners_of(dropped: Ints, n: Int64) -> tuple[Ints, Ints]:
    """For each element the others that it is in a pair with, from ``starts[x]`` on: u above it, -1 - u below it."""
    starts, partners = np.zeros(n + 1, np.int64), np.empty(2 * dropped.shape[0], np.int64)
    for k in range(dropped.shape[0]):
        starts[dropped[k, 0] + 1] += 1
        starts[dropped[k, 1] + 1] += 1
    for x in range(n):
        starts[x + 1] += starts[x]
    free = starts.copy()
    for k in range(dropped.shape[0]):
        lower, upper = dropped[k, 0], dropped[k, 1]
        partners[free[lower]], partners[free[upper]] = upper, -1 - lower
        free[lower] += 1
        free[upper] += 1
    return starts, partners


@kernel(leaf=True)
def breaks(
    elements: Ints, start: Int64, count: Int64, a: Int64, starts: Ints, partners: Ints, put: Places
) -> bool:
    """Whether one of the elements just put in their places breaks a pair with one that was put before."""
    for k in range(start, start + count):
        x = elements[k]
        for j in range(starts[x], starts[x + 1]):
            other = partners[j]
            above = other >= 0
            place = put[other if above else -1 - other]
            if place >= 0 and (place < a) == (put[x] < a) and (place > put[x]) != above:
                return True
    return False


@kernel
def kept(orders: Places, sizes: Ints, dropped: Ints) -> NDArray[np.bool_]:
    """For each row whether it has each pair (lower, upper) of ``dropped`` on two sides, or in order on one."""
    place, result = np.empty(orders.shape[1], np.int32), np.empty(sizes.size, np.bool_)
    for r in range(sizes.size):
        result[r] = _keeps(orders[r], sizes[r], dropped, place)
    return result


@kernel(leaf=True)
def _keeps(order: Places, a: Int64, dropped: Ints, place: Places) -> bool:
    """Whether each pair of ``dropped`` is on two sides, or in the right order on one."""
    if dropped.shape[0] > 0:
        for k in range(order.size):
            place[order[k]] = k
    for k in range(dropped.shape[0]):
        lower, upper = place[dropped[k, 0]], place[dropped[k, 1]]
        if lower > upper and (lower < a) == (upper < a):
            return False
    return True


@kernel(leaf=True)
def scatter(
    words: Stream,
    cursor: Ints,
    elements: Ints,
    start: Int64,
    count: Int64,
    a: Int64,
    places: Places,
    pa: Int64,
    pb: Int64,
    put: Places,
    out: Places,
) -> None:
    """Put a random ``a`` of the elements on side A and the others on side B, each side in their order."""
    for k in range(count):
        if a > 0 and (a == count - k or below(words, cursor, count - k) < a):
            place = places[pa]
            pa += 1
            a -= 1
        else:
            place = places[pb]
            pb += 1
        out[place] = elements[start + k]
        if put.size > 0:
            put[elements[start + k]] = place


@kernel(leaf=True)
def arrange(
    words: Stream,
    cursor: Ints,
    elements: Ints,
    start: Int64,
    count: Int64,
    a: Int64,
    places: Places,
    pa: Int64,
    pb: Int64,
    spare: Places,
    put: Places,
    out: Places,
) -> None:
    """Put the elements in random order. The first ``a`` go to side A, the others to side B."""
    for k in range(count):
        spare[k] = elements[start + k]
    for k in range(count - 1, -1, -1):
        j = below(words, cursor, k + 1) if k > 0 else 0
        place = places[pa + k] if k < a else places[pb + k - a]
        out[place] = spare[j]
        if put.size > 0:
            put[spare[j]] = place
        spare[j] = spare[k]


@kernel(leaf=True)
def deal(
    words: Stream,
    cursor: Ints,
    places: Places,
    start: Int64,
    count: Int64,
    k: Int64,
    spare: Places,
    flags: NDArray[np.int8],
) -> None:
    """Move a random ``k`` of ``count`` places to the front, keeping the order of these and of the others.

    The smaller part is drawn place by place, drawing again where a place is taken; ``flags`` are 0 before
    and after.
    """
    few = min(k, count - k)
    if few == 0:
        return
    for _ in range(few):
        p = below(words, cursor, count)
        while flags[p] == 1 and cursor[STATUS] == 0:
            p = below(words, cursor, count)
        flags[p] = 1
    front = 1 if few == k else 0
    i, j = start, 0
    for p in range(count):
        if flags[p] == front:
            places[i] = places[start + p]
            i += 1
        else:
            spare[j] = places[start + p]
            j += 1
        flags[p] = 0
    for p in range(j):
        places[i + p] = spare[p]
