"""Noise from extended bipartitions, row by row, in NumPy for small orders and compiled for others.

Given an extended bipartition ``a_1, …, a_p; b_1, …, b_q`` and a sum ``E_1 + … + E_i`` for each place on side A,
``E'_1 + … + E'_j`` on side B, coordinate x of the noise is the sum at the last ``a_i <= x`` minus the sum at
the last ``b_j <= x`` (docs/theory/counts.md, section 4). One pass over the order, bottom up, finds the places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.norm import bottom_up
from isotone.kernels import kernel
from isotone.order import Poset
from isotone.order.bipartitions.small import ELEMENTS

__all__ = ["noise_rows", "places"]

Orders = NDArray[np.int32]


def places(P: Poset, orders: Orders, sizes: Ints) -> tuple[Ints, Ints]:
    """The places of the last ``a_i <= x`` and ``b_j <= x``.

    For each row and element x, counted from 1, and 0 if there is none.
    """
    if len(P) <= ELEMENTS:
        step = np.arange(1, len(P) + 1)
        on_a = step <= sizes[:, None]
        return _last_below(P, orders, np.where(on_a, step, 0), np.where(on_a, 0, step - sizes[:, None]))
    plus, minus = np.empty(orders.shape, np.int64), np.empty(orders.shape, np.int64)
    _places(orders, sizes, *bottom_up(P), plus, minus)
    return plus, minus


def noise_rows(P: Poset, orders: Orders, sizes: Ints, steps: Floats) -> Floats:
    """The noise of each row.

    ``steps`` has one exponential for each place, those of side A first.
    """
    if len(P) <= ELEMENTS:
        sums = np.cumsum(steps, axis=1)
        on_a = np.arange(1, len(P) + 1) <= sizes[:, None]
        of_a = np.take_along_axis(sums, np.maximum(sizes[:, None] - 1, 0), axis=1) * (sizes[:, None] > 0)
        p, q = _last_below(P, orders, np.where(on_a, sums, 0.0), np.where(on_a, 0.0, sums - of_a))
        return p - q
    noise = np.empty(steps.shape)
    _noise_rows(orders, sizes, *bottom_up(P), steps, noise)
    return noise


def _last_below(
    P: Poset, orders: Orders, on_a: NDArray[Any], on_b: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values of places, growing along each side, as those of the last place at or below each element."""
    found: list[NDArray[Any]] = []
    order, starts, lowers = (part.tolist() for part in bottom_up(P))
    for values in (on_a, on_b):
        last = np.empty_like(values)
        np.put_along_axis(last, orders.astype(np.int64), values, axis=1)
        columns = np.ascontiguousarray(last.T)
        for x in order:
            for y in lowers[starts[x] : starts[x + 1]]:
                np.maximum(columns[x], columns[y], out=columns[x])
        found.append(np.ascontiguousarray(columns.T))
    return found[0], found[1]


@kernel
def _places(
    orders: Orders, sizes: Ints, order: Ints, starts: Ints, lowers: Ints, plus: Ints, minus: Ints
) -> None:
    for r in range(sizes.size):
        for k in range(order.size):
            x = orders[r, k]
            plus[r, x] = k + 1 if k < sizes[r] else 0
            minus[r, x] = 0 if k < sizes[r] else k + 1 - sizes[r]
        for x in order:
            for w in range(starts[x], starts[x + 1]):
                plus[r, x] = max(plus[r, x], plus[r, lowers[w]])
                minus[r, x] = max(minus[r, x], minus[r, lowers[w]])


@kernel
def _noise_rows(
    orders: Orders, sizes: Ints, order: Ints, starts: Ints, lowers: Ints, steps: Floats, noise: Floats
) -> None:
    p, q = np.empty(order.size), np.empty(order.size)
    for r in range(sizes.size):
        total = 0.0
        for k in range(order.size):
            x = orders[r, k]
            total = steps[r, k] + (0.0 if k == sizes[r] else total)
            p[x] = total if k < sizes[r] else 0.0
            q[x] = 0.0 if k < sizes[r] else total
        for x in order:
            for w in range(starts[x], starts[x + 1]):
                p[x] = max(p[x], p[lowers[w]])
                q[x] = max(q[x], q[lowers[w]])
            noise[r, x] = p[x] - q[x]
