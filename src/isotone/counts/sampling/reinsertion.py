"""A random walk on extended bipartitions.

Take an element out and put it back anywhere it fits.

Each move chooses uniformly among all extended bipartitions that agree on the other elements, so the uniform
distribution stays put under it (heat bath). Started at a uniform one, every later one is uniform too, though
not independent; started elsewhere it is nearly so after a while. That is good enough to plan with, where
independent draws would be too slow, and for nothing else: releases never use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["wander"]

Ints = NDArray[np.int64]
Orders = NDArray[np.int32]


def wander(
    P: Poset,
    order: Orders,
    a: int,
    rows: int,
    sweeps: int,
    rng: np.random.Generator,
    balanced: bool = False,
) -> tuple[Orders, Ints]:
    """Simulate ``rows`` extended bipartitions by a random walk.

    Each is ``sweeps`` · n moves after the one before, and the first that many after ``order``.

    An extended bipartition is a row of positions, side A first and ascending, and the size ``a`` of side A. If
    ``balanced``, each has the weight ``1 / (|A|! |B|!)``, and all have the same otherwise.
    """
    n = len(P)
    orders, sizes = np.empty((rows, n), np.int32), np.empty(rows, np.int64)
    less = P.leq_matrix()
    side = np.array([a], np.int64)
    row = order.astype(np.int32)
    for r in range(rows):
        picks = rng.integers(n, size=sweeps * n, dtype=np.int64)
        _move(less, row, side, picks, rng.random(picks.size), balanced)
        orders[r], sizes[r] = row, side[0]
    return orders, sizes


@kernel
def _move(
    less: NDArray[np.bool_],
    row: Orders,
    side: Ints,
    picks: Ints,
    uniforms: NDArray[np.float64],
    balanced: bool,
) -> None:
    """Take each of ``picks`` out and put it back.

    ``side[0]`` is the size of side A.
    """
    n = row.size
    for t in range(picks.size):
        x, k = picks[t], 0
        while row[k] != x:
            k += 1
        row[k : n - 1] = row[k + 1 :].copy()
        a = side[0] - 1 if k < side[0] else side[0]
        low_a, high_a = _gap(less, row, 0, a, x)
        low_b, high_b = _gap(less, row, a, n - 1, x)
        # a place on side A makes it a + 1, one on side B makes that n - a: the weights in the ratio (n - a) : (a + 1)
        on_a, on_b = (n - a, a + 1) if balanced else (1, 1)
        weight_a, weight_b = (high_a - low_a + 1) * on_a, (high_b - low_b + 1) * on_b
        drawn = int(uniforms[t] * (weight_a + weight_b))
        if drawn >= weight_a:
            place = low_b + (drawn - weight_a) // on_b
            side[0] = a
        else:
            place = low_a + drawn // on_a
            side[0] = a + 1
        for j in range(n - 1, place, -1):
            row[j] = row[j - 1]
        row[place] = x


@kernel
def _gap(less: NDArray[np.bool_], row: Orders, start: int, stop: int, x: int) -> tuple[int, int]:
    """The first and the last place at which x fits on a side that takes the places from start to stop."""
    low = start
    for k in range(stop - 1, start - 1, -1):
        if less[row[k], x]:
            low = k + 1
            break
    for k in range(low, stop):
        if less[x, row[k]]:
            return low, k
    return low, stop
