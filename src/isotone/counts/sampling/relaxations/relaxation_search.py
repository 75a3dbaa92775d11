"""Put back as many relations as keep an order within reach.

The compiled part of the relaxation search.

Orders are square matrices: entry [x, y] is 1 where x < y, 2 where x > y, 0 where neither. They are kept
transitively closed. ``reach`` bounds the binary logarithm of the states of every prime block
(:mod:`isotone.order.bipartitions.steps`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.counts.sampling.relaxations.relaxation_modules import (
    BITS,
    Int64,
    Ints,
    Matrix,
    copied,
    members,
    rows_of,
)
from isotone.counts.sampling.relaxations.relaxation_tree import fits, fits_with, grow, new_tree
from isotone.kernels import kernel

__all__ = ["put_back", "try_pairs"]


@kernel
def put_back(
    P: Matrix, Q: Matrix, placed: NDArray[np.bool_], order: Ints, reach: float, style: Int64
) -> None:
    """Place the elements of ``order`` one after the other, each with as many of its relations as fit.

    All relations to placed elements are tried together, then those to one side (upward first for an even
    ``style``), then one by one: those that skip few elements first, or last for a style above 1.
    """
    n = P.shape[0]
    up, down = rows_of(Q)
    up_before, down_before, tree = np.empty_like(up), np.empty_like(down), new_tree(n)
    for w in order:
        placed[w] = True
        for phase in range(3):
            upward = phase == 0 or (phase == 1) == (style % 2 == 0)
            downward = phase == 0 or not upward
            _keep(up, down, up_before, down_before)
            for z in range(n):
                if placed[z] and upward and P[w, z] == 1:
                    _relate(up, down, w, z)
                if placed[z] and downward and P[w, z] == 2:
                    _relate(up, down, z, w)
            if not fits(up, down, w, reach):
                _keep(up_before, down_before, up, down)
            elif phase == 0:
                break
        missing = [z for z in range(n) if placed[z] and P[w, z] != 0 and not _related(up, down, w, z)]
        candidates = np.array(missing, np.int64)
        skipped = np.array([_between(P, w, z) for z in candidates], np.float64)
        pairs = np.empty((candidates.size, 2), np.int64)
        for i, k in enumerate(np.argsort(skipped if style < 2 else -skipped)):
            z = candidates[k]
            pairs[i, 0], pairs[i, 1] = (w, z) if P[w, z] == 1 else (z, w)
        _try_each(up, down, tree, pairs, reach)
    _write(up, Q)


@kernel
def try_pairs(Q: Matrix, pairs: Ints, reach: float) -> None:
    """Try to put back each of the pairs (lower, upper), one by one."""
    up, down = rows_of(Q)
    _try_each(up, down, new_tree(Q.shape[0]), pairs, reach)
    _write(up, Q)


@kernel
def _try_each(up: Ints, down: Ints, tree: Ints, pairs: Ints, reach: float) -> None:
    """Add each of the pairs that fits. The tree is written anew when the order has changed."""
    changed = True
    for k in range(pairs.shape[0]):
        low, high = pairs[k, 0], pairs[k, 1]
        if _related(up, down, low, high):
            continue
        if changed:
            grow(up, down, tree)
        changed = fits_with(up, down, tree, low, high, reach)
        if changed:
            _relate(up, down, low, high)


@kernel
def _keep(up: Ints, down: Ints, to_up: Ints, to_down: Ints) -> None:
    """Write an order over another."""
    for x in range(up.shape[0]):
        copied(up[x], to_up[x])
        copied(down[x], to_down[x])


@kernel(leaf=True)
def _related(up: Ints, down: Ints, x: Int64, y: Int64) -> bool:
    return (up[x, y // BITS] | down[x, y // BITS]) >> (y % BITS) & 1 == 1


@kernel
def _relate(up: Ints, down: Ints, low: Int64, high: Int64) -> None:
    """Add low < high, and what follows by transitivity."""
    if up[low, high // BITS] >> (high % BITS) & 1:
        return
    n, width = up.shape
    below, above, listed = down[low].copy(), up[high].copy(), np.empty(n, np.int64)
    below[low // BITS] |= np.int64(1) << (low % BITS)
    above[high // BITS] |= np.int64(1) << (high % BITS)
    for j in range(members(below, listed)):
        for k in range(width):
            up[listed[j], k] |= above[k]
    for j in range(members(above, listed)):
        for k in range(width):
            down[listed[j], k] |= below[k]


@kernel
def _write(up: Ints, Q: Matrix) -> None:
    """Write the order in a matrix."""
    n = Q.shape[0]
    listed = np.empty(n, np.int64)
    Q[:, :] = 0
    for x in range(n):
        for j in range(members(up[x], listed)):
            Q[x, listed[j]], Q[listed[j], x] = 1, 2


@kernel
def _between(P: Matrix, x: Int64, y: Int64) -> Int64:
    count = 0
    for z in range(P.shape[0]):
        if P[x, z] == P[x, y] and P[z, y] == P[x, y]:
            count += 1
    return count
