"""Put back as many relations as keep an order within reach.

The compiled part of the relaxation search.

Orders are square matrices: entry [x, y] is 1 where x < y, 2 where x > y, 0 where neither. They are kept
transitively closed. ``reach`` bounds the binary logarithm of the states of every prime block
(:mod:`isotone.order.bipartitions.words`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isotone.counts.sampling.relaxation_modules import Int64, Ints, Matrix, component, split_module
from isotone.kernels import kernel

__all__ = ["fits", "put_back", "try_pairs"]


@kernel
def put_back(
    P: Matrix, Q: Matrix, placed: NDArray[np.bool_], order: Ints, reach: float, style: Int64
) -> None:
    """Place the elements of ``order`` one after the other, each with as many of its relations as fit.

    All relations to placed elements are tried together, then those to one side (upward first for an even
    ``style``), then one by one: those that skip few elements first, or last for a style above 1.
    """
    n = P.shape[0]
    new = np.empty((n * n, 2), np.int64)
    for w in order:
        placed[w] = True
        for phase in range(3):
            upward = phase == 0 or (phase == 1) == (style % 2 == 0)
            downward = phase == 0 or not upward
            count = 0
            for z in range(n):
                if placed[z] and ((upward and P[w, z] == 1) or (downward and P[w, z] == 2)):
                    count = _relate(Q, w, z, P[w, z], new, count)
            if not fits(Q, w, placed, reach):
                _forget(Q, new, count)
            elif phase == 0:
                break
        candidates = np.array([z for z in range(n) if placed[z] and P[w, z] != Q[w, z]], np.int64)
        skipped = np.array([_between(P, w, z) for z in candidates], np.float64)
        for k in np.argsort(skipped if style < 2 else -skipped):
            _try(P, Q, w, candidates[k], placed, reach, new)


@kernel
def try_pairs(P: Matrix, Q: Matrix, pairs: Ints, reach: float) -> None:
    """Try to put back each of the pairs, one by one."""
    n = P.shape[0]
    placed, new = np.ones(n, np.bool_), np.empty((n * n, 2), np.int64)
    for k in range(pairs.shape[0]):
        _try(P, Q, pairs[k, 0], pairs[k, 1], placed, reach, new)


@kernel
def _try(
    P: Matrix, Q: Matrix, x: Int64, y: Int64, placed: NDArray[np.bool_], reach: float, new: Ints
) -> None:
    if Q[x, y] == 0 and P[x, y] != 0:
        count = _relate(Q, x, y, P[x, y], new, 0)
        if not fits(Q, x, placed, reach):
            _forget(Q, new, count)


@kernel
def _relate(Q: Matrix, x: Int64, y: Int64, relation: Int64, new: Ints, count: Int64) -> Int64:
    """Add x < y (relation 1) or x > y (relation 2), and what follows by transitivity.

    The pairs that are new are written in ``new`` from place ``count`` on. Returns the next place.
    """
    low, high = (x, y) if relation == 1 else (y, x)
    if Q[low, high] == 1:
        return count
    n = Q.shape[0]
    for u in range(n):
        if u == low or Q[u, low] == 1:
            for v in range(n):
                if (v == high or Q[high, v] == 1) and Q[u, v] == 0:
                    Q[u, v], Q[v, u] = 1, 2
                    new[count, 0], new[count, 1] = u, v
                    count += 1
    return count


@kernel
def _forget(Q: Matrix, new: Ints, count: Int64) -> None:
    """Take the first pairs of ``new`` out again."""
    for k in range(count):
        Q[new[k, 0], new[k, 1]] = Q[new[k, 1], new[k, 0]] = 0


@kernel
def _between(P: Matrix, x: Int64, y: Int64) -> Int64:
    count = 0
    for z in range(P.shape[0]):
        if P[x, z] == P[x, y] and P[z, y] == P[x, y]:
            count += 1
    return count


@kernel
def fits(Q: Matrix, w: Int64, placed: NDArray[np.bool_], reach: float) -> bool:
    """Whether every prime block of the connected component of w is within reach."""
    n = Q.shape[0]
    label = np.full(n, -1, np.int64)
    members = component(Q, w, np.flatnonzero(placed), False, label)
    stack = np.empty((2 * n + 2, 2), np.int64)  # intervals of ``row``, still to be split
    row = np.empty(n, np.int64)
    row[: members.size] = members
    stack[0, 0], stack[0, 1], depth = 0, members.size, 1
    while depth > 0:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        if stop - start < 4:  # the smallest prime order has four elements
            continue
        part = row[start:stop].copy()
        children, prime = split_module(Q, part, label)
        sizes = np.zeros(children, np.int64)
        for x in part:
            sizes[label[x]] += 1
        if prime:
            states = 0.0
            for size in sizes:
                states += math.log2(size + 1.0)
            if states > reach or children > 60:
                return False
        free = np.empty(children, np.int64)
        at = start
        for c in range(children):
            free[c] = at
            stack[depth, 0], stack[depth, 1] = at, at + sizes[c]
            at += sizes[c]
            depth += 1
        for x in part:
            row[free[label[x]]] = x
            free[label[x]] += 1
    return True
