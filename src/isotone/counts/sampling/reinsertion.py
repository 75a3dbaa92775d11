"""A random walk on extended bipartitions.

Take an element out and put it back anywhere it fits.

Each move chooses uniformly among all extended bipartitions that agree on the other elements, so the uniform
distribution stays put under it (heat bath). Started at a uniform one, every later one is uniform too, though
not independent; started elsewhere it is nearly so after a while. That is good enough to plan with, where
independent draws would be too slow, and for nothing else: releases never use it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel

__all__ = ["wander"]

CHUNK = 1 << 18
"""Moves that are drawn at a time."""

Orders = NDArray[np.int32]
Matrix = NDArray[np.bool_]


def wander(
    leq: Matrix,
    order: Orders,
    a: int,
    rows: int,
    sweeps: int,
    rng: np.random.Generator,
    balanced: bool = False,
) -> tuple[Orders, Ints]:
    """Simulate ``rows`` extended bipartitions by a random walk.

    Each is ``sweeps`` · n moves after the one before, and the first that many after ``order``.

    ``leq[x, y]`` says whether x lies below y. An extended bipartition is a row of positions, side A first and ascending, and the size ``a`` of side A. If
    ``balanced``, each has the weight ``1 / (|A|! |B|!)``, and all have the same otherwise.
    """
    n = len(leq)
    orders, sizes = np.empty((rows, n), np.int32), np.empty(rows, np.int64)
    related = leq & ~np.eye(n, dtype=np.bool_)
    below, above = _lists(related.T), _lists(related)
    row, side = order.astype(np.int32), np.array([a], np.int64)
    moves = sweeps * n
    chunk = max(1, CHUNK // max(moves, 1))
    for start in range(0, rows, chunk):
        here = slice(start, start + chunk)
        picks = rng.integers(n, size=(len(sizes[here]), moves), dtype=np.int64)
        _rows(*below, *above, row, side, picks, rng.random(picks.shape), balanced, orders[here], sizes[here])
    return orders, sizes


def _lists(related: Matrix) -> tuple[Ints, Ints]:
    """The related elements of each one, from ``starts[x]`` on."""
    starts = np.concatenate(([0], np.cumsum(related.sum(axis=1)))).astype(np.int64)
    return starts, np.nonzero(related)[1].astype(np.int64)


@kernel
def _rows(
    below_starts: Ints,
    below: Ints,
    above_starts: Ints,
    above: Ints,
    row: Orders,
    side: Ints,
    picks: Ints,
    uniforms: NDArray[np.float64],
    balanced: bool,
    orders: Orders,
    sizes: Ints,
) -> None:
    """Keep what each row of ``picks`` and ``uniforms`` makes of the one before."""
    for r in range(sizes.size):
        _move(below_starts, below, above_starts, above, row, side, picks[r], uniforms[r], balanced)
        sizes[r] = side[0]
        for k in range(row.size):
            orders[r, k] = row[k]


@kernel
def _move(
    below_starts: Ints,
    below: Ints,
    above_starts: Ints,
    above: Ints,
    row: Orders,
    side: Ints,
    picks: Ints,
    uniforms: NDArray[np.float64],
    balanced: bool,
) -> None:
    """Take each of ``picks`` out and put it back. ``side[0]`` is the size of side A."""
    n = row.size
    place = np.empty(n, np.int64)
    for k in range(n):
        place[row[k]] = k
    for t in range(picks.size):
        x = picks[t]
        out, before = place[x], side[0]
        a = before - 1 if out < before else before
        # the first and the last place at which x fits on each side, when it is out
        low_a, high_a, low_b, high_b = 0, a, a, n - 1
        for j in range(below_starts[x], below_starts[x + 1]):
            k = place[below[j]]
            after = k if k > out else k + 1
            if k < before:
                low_a = max(low_a, after)
            else:
                low_b = max(low_b, after)
        for j in range(above_starts[x], above_starts[x + 1]):
            k = place[above[j]]
            here = k - 1 if k > out else k
            if k < before:
                high_a = min(high_a, here)
            else:
                high_b = min(high_b, here)
        # a place on side A makes it a + 1, one on side B makes that n - a: the weights in the ratio (n - a) : (a + 1)
        on_a, on_b = (n - a, a + 1) if balanced else (1, 1)
        weight_a, weight_b = (high_a - low_a + 1) * on_a, (high_b - low_b + 1) * on_b
        drawn = int(uniforms[t] * (weight_a + weight_b))
        if drawn >= weight_a:
            new = low_b + (drawn - weight_a) // on_b
            side[0] = a
        else:
            new = low_a + drawn // on_a
            side[0] = a + 1
        step = 1 if new > out else -1
        for k in range(out, new, step):
            row[k] = row[k + step]
            place[row[k]] = k
        row[new], place[x] = x, new
