"""The filter of largest total weight.

Definition: given a weight for each element, a set that holds with an element everything above it and has the
largest sum (the closure problem). Arcs of unlimited capacity along the covers, from a source to the positive
weights and from the negative ones to a sink: a minimum cut is such a set (Picard 1976). Complexity: Dinic's
maximum flow, in exact integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["heaviest_filter"]

_UNLIMITED = np.int64(2**62)


@kernel
def _distances(
    source: int,
    first: NDArray[np.int64],
    after: NDArray[np.int64],
    to: NDArray[np.int64],
    room: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The number of arcs from the source to every node.

    Only arcs with residual capacity count. -1 where there is no path.
    """
    distance = np.full(first.size, -1, np.int64)
    queue = np.empty(first.size, np.int64)
    distance[source] = 0
    queue[0] = source
    read, write = 0, 1
    while read < write:
        u = queue[read]
        read += 1
        arc = first[u]
        while arc >= 0:
            if room[arc] > 0 and distance[to[arc]] < 0:
                distance[to[arc]] = distance[u] + 1
                queue[write] = to[arc]
                write += 1
            arc = after[arc]
    return distance


@kernel
def _blocking_flow(
    source: int,
    sink: int,
    distance: NDArray[np.int64],
    first: NDArray[np.int64],
    after: NDArray[np.int64],
    to: NDArray[np.int64],
    room: NDArray[np.int64],
) -> int:
    """Push flow along shortest ways until each is blocked (a phase of Dinic's algorithm)."""
    current = first.copy()
    way = np.empty(first.size, np.int64)
    pushed = 0
    length, u = 0, source
    while True:
        if u == sink:
            amount = _UNLIMITED
            for k in range(length):
                amount = min(amount, room[way[k]])
            pushed += amount
            keep = length
            for k in range(length - 1, -1, -1):
                room[way[k]] -= amount
                room[way[k] ^ 1] += amount
                if room[way[k]] == 0:
                    keep = k
            u, length = to[way[keep] ^ 1], keep
        arc = current[u]
        while arc >= 0 and not (room[arc] > 0 and distance[to[arc]] == distance[u] + 1):
            arc = after[arc]
        current[u] = arc
        if arc >= 0:
            way[length] = arc
            length += 1
            u = to[arc]
        elif length == 0:
            return int(pushed)
        else:
            length -= 1
            u = to[way[length] ^ 1]
            current[u] = after[current[u]]


@kernel(steps=lambda weights, covers: 32 * (weights.size + covers.shape[0]))
def heaviest_filter(weights: NDArray[np.int64], covers: NDArray[np.int64]) -> tuple[int, NDArray[np.bool_]]:
    """The largest total weight of a filter, and the smallest filter that has it.

    ``covers`` holds rows (lower, upper). The positive weights must add up to less than 2**62; the empty filter
    counts, so the largest total is never negative.

    >>> total, kept = heaviest_filter(np.array([3, -1, -1]), np.array([[0, 1], [0, 2]]))
    >>> int(total), kept.tolist()
    (1, [True, True, True])
    """
    n = weights.size
    source, sink = n, n + 1
    arcs = 2 * (n + covers.shape[0])
    first = np.full(n + 2, -1, np.int64)
    after = np.empty(arcs, np.int64)
    to = np.empty(arcs, np.int64)
    room = np.zeros(arcs, np.int64)
    gain = 0
    arc = 0
    for k in range(n + covers.shape[0]):
        if k >= n:
            tail, head, capacity = covers[k - n, 0], covers[k - n, 1], _UNLIMITED
        elif weights[k] > 0:
            tail, head, capacity = source, k, weights[k]
            gain += weights[k]
        else:
            tail, head, capacity = k, sink, -weights[k]
        to[arc], room[arc], after[arc], first[tail] = head, capacity, first[tail], arc
        to[arc + 1], after[arc + 1], first[head] = tail, first[head], arc + 1
        arc += 2
    distance = _distances(source, first, after, to, room)
    while distance[sink] >= 0:
        gain -= _blocking_flow(source, sink, distance, first, after, to, room)
        distance = _distances(source, first, after, to, room)
    return gain, distance[:n] >= 0
