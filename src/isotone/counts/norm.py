"""The norm whose unit ball is the hull of all records.

It comes from one pass over the order, from the bottom up (docs/theory/counts.md, sections 2 and 3). Every
vector y is a difference ``p - q`` of nonnegative functions that grow along the order, and has a smallest such
pair; the norm is ``max p + max q``.
"""

from __future__ import annotations

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
    "norms",
    "running_totals",
]

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
