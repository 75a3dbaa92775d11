"""The norm of an order, and noise rows from bipartitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.order import Poset
from isotone.order.bipartitions.small import ELEMENTS
from isotone.order.closure import ends_by_start

__all__ = [
    "as_rows",
    "bottom_up",
    "difference_norms",
    "largest_parts",
    "noise_rows",
    "norms",
    "places",
    "running_totals",
]


# The norm whose unit ball is the hull of all records.
#
# It comes from one pass over the order, from the bottom up (docs/theory/counts.md, sections 2 and 3). Every
# vector y is a difference ``p - q`` of nonnegative functions that grow along the order, and has a smallest such
# pair; the norm is ``max p + max q``.

MANY = 64
"""From so many rows on, those of a small order are taken together."""


def norms(P: Poset, y: ArrayLike) -> Floats:
    """The norm of each row of ``y`` (of ``y`` itself if it is one vector), in O(n + covers) each.

    Infinite for a vector that breaks a partition, whose counts add up in every record.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice"], [("twice", "hyp")])
    >>> norms(P, [[1, 0], [1, 1], [0, 1], [3, -4]])
    array([ 1.,  1.,  2., 11.])
    """
    totals, possible = running_totals(P, y)
    return np.where(possible, largest_parts(P.coding.order if P.choices else P, totals).sum(axis=-1), np.inf)


def difference_norms(P: Poset, y: ArrayLike) -> Floats:
    """The norm of each row whose unit ball is the hull of all differences of two records, in O(n + covers) each.

    It is ``max(max p, max q)`` (docs/theory/difference.md, section 1).

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice"], [("twice", "hyp")])
    >>> difference_norms(P, [[1, 0], [1, 1], [0, 1], [3, -4]])
    array([1., 1., 1., 7.])
    """
    totals, possible = running_totals(P, y)
    return np.where(possible, largest_parts(P.coding.order if P.choices else P, totals).max(axis=-1), np.inf)


def running_totals(P: Poset, y: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Each row in the coordinates of ``P.coding``, and whether its partitions add up.

    Without choices the row itself.
    """
    rows = as_rows(P, y)
    if not P.choices:
        return rows, np.ones(rows.shape[:-1], np.bool_)
    totals = P.coding.encode(rows)
    off = np.abs(P.coding.decode(totals) - rows)
    scale = 1 + np.max(np.abs(rows), axis=-1, keepdims=True)
    return totals, np.all(off <= 1e-9 * scale, axis=-1)


def largest_parts(P: Poset, y: ArrayLike) -> Floats:
    """``max p`` and ``max q`` of each row, for an order without choices."""
    rows = as_rows(P, y)
    own = np.ascontiguousarray(rows.reshape(-1, len(P)))
    many = len(P) <= ELEMENTS and len(own) >= MANY
    values = (_maxima_by_columns if many else _maxima)(own, *bottom_up(P))
    return values.reshape(*rows.shape[:-1], 2)


def bottom_up(P: Poset) -> tuple[Ints, Ints, Ints]:
    """A linear extension, and the lower covers of each x.

    Those of x are ``lowers[starts[x]:starts[x + 1]]``.
    """
    lower, upper = np.ascontiguousarray(P.cover_pairs.T)
    return P.linear_order.copy(), *ends_by_start(len(P), upper, lower)


def as_rows(P: Poset, y: ArrayLike) -> Floats:
    """``y`` as floats with one entry per element in the last axis."""
    rows = np.asarray(y, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] != len(P):
        raise InputError(f"The last axis must have one entry for each of the {len(P)} elements.")
    return rows


@kernel
def _climb(y: Floats, order: Ints, starts: Ints, lowers: Ints, p: Floats, q: Floats) -> None:
    """The smallest p and q of one vector, bottom up."""
    for z in order:
        a = b = 0.0
        for w in lowers[starts[z] : starts[z + 1]]:
            a, b = max(a, p[w]), max(b, q[w])
        if y[z] > a - b:
            p[z], q[z] = y[z] + b, b
        else:
            p[z], q[z] = a, a - y[z]


def _maxima_by_columns(rows: Floats, order: Ints, starts: Ints, lowers: Ints) -> Floats:
    """:func:`_maxima` for small orders, all rows at once."""
    columns = np.ascontiguousarray(rows.T)
    p, q = np.empty_like(columns), np.empty_like(columns)
    none = np.zeros(len(rows))
    for z in order.tolist():
        below = lowers[starts[z] : starts[z + 1]]
        a, b = (part[below].max(axis=0) if below.size else none for part in (p, q))
        climbs = columns[z] > a - b
        p[z] = np.where(climbs, columns[z] + b, a)
        q[z] = np.where(climbs, b, a - columns[z])
    return np.stack((p.max(axis=0), q.max(axis=0)), axis=1)


@kernel(steps=lambda rows, order, starts, lowers: len(rows) * (order.size + lowers.size))
def _maxima(rows: Floats, order: Ints, starts: Ints, lowers: Ints) -> Floats:
    p, q = np.empty(order.size), np.empty(order.size)
    result = np.empty((rows.shape[0], 2))
    for r in range(rows.shape[0]):
        _climb(rows[r], order, starts, lowers, p, q)
        result[r, 0], result[r, 1] = p.max(), q.max()
    return result


# Noise from extended bipartitions, row by row, in NumPy for small orders and compiled for others.
#
# Given an extended bipartition ``a_1, …, a_p; b_1, …, b_q`` and a sum ``E_1 + … + E_i`` for each place on side A,
# ``E'_1 + … + E'_j`` on side B, coordinate x of the noise is the sum at the last ``a_i <= x`` minus the sum at
# the last ``b_j <= x`` (docs/theory/counts.md, section 4). One pass over the order, bottom up, finds the places.

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
    result: list[NDArray[Any]] = []
    order, starts, lowers = (part.tolist() for part in bottom_up(P))
    for values in (on_a, on_b):
        last = np.empty_like(values)
        np.put_along_axis(last, orders.astype(np.int64), values, axis=1)
        columns = np.ascontiguousarray(last.T)
        for x in order:
            for y in lowers[starts[x] : starts[x + 1]]:
                np.maximum(columns[x], columns[y], out=columns[x])
        result.append(np.ascontiguousarray(columns.T))
    return result[0], result[1]


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
