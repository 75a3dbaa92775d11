"""Put relations back into a relaxed order that rejection can still afford.

Draws come from the tables of a relaxed order Q. An order R between Q and the order P itself is drawn from them by
rejection; the more relations R has, the closer its noise is to that of P, and the fewer draws are kept. The relations
are put back that draws break least often, a few at a time, as long as the share of draws that is kept stays above a
given one. The shares come from a random walk on the extended bipartitions of the order so far. All of it looks at
the order alone, which is public (docs/theory/counts.md, section 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel
from isotone.order.poset import Poset

if TYPE_CHECKING:
    from isotone.counts.sampling.reinsertion import Ints, Orders

__all__ = ["missing_pairs", "restore"]

Matrix = NDArray[np.bool_]
Wander = Callable[..., "tuple[Orders, Ints]"]

ROWS = 2_000
"""Rows of the walk for each few relations: half of them to sort the relations, half to measure the share."""

STAGE = 0.5
"""About this share of the draws has the next few relations."""


def missing_pairs(P: Poset, Q: Poset) -> Ints:
    """The pairs (lower, upper) of positions that ``P`` relates and ``Q``, on the same elements, does not."""
    return np.argwhere(P.leq_matrix() & ~Q.leq_matrix())


def restore(wander: Wander, P: Poset, Q: Poset, log_share: float) -> tuple[Poset, float]:
    """An order between ``Q`` and ``P``, and the logarithm of the share of draws for ``Q`` that fit it.

    It is at least ``log_share``, as far as the estimate goes. ``wander`` has the law of the draws.
    """
    rng, n, total = np.random.default_rng(0), len(P), 0.0
    goal, found = (order.leq_matrix() & ~np.eye(n, dtype=np.bool_) for order in (P, Q))
    # an extended bipartition of P, and so of all orders between
    burnt, sizes = wander(Q.leq_matrix(), P.linear_order.astype(np.int32), n, 1, 200, rng)
    row, a = burnt[0], int(sizes[0])
    while np.any(goal & ~found):
        orders, sizes = wander(found, row, a, ROWS, 1, rng)
        larger, fits = _most(goal, found, orders, sizes, math.exp(min(0.0, log_share - total)))
        if np.array_equal(larger, found):
            break
        found, total = larger, total + math.log(float(np.mean(fits)))
        last = len(orders) - len(fits) + int(np.flatnonzero(fits)[-1])
        row, a = orders[last], int(sizes[last])
    return _poset(P, found), total


def _most(goal: Matrix, found: Matrix, orders: Orders, sizes: Ints, least: float) -> tuple[Matrix, Matrix]:
    """The most relations, those broken least often first, that a good share of the rows has.

    At least the share ``least`` has them, and at least ``STAGE`` unless there is only one relation with its
    consequences. Returns the larger order, and which rows of the second half fit it.
    """
    missing, half = np.argwhere(goal & ~found), len(orders) // 2
    broken = 1 - fitting(orders[:half], sizes[:half], missing).mean(axis=0)
    missing = missing[np.argsort(broken, kind="stable")]
    low, high = 0, len(missing)
    best, best_fits = found, np.ones(len(orders) - half, np.bool_)
    while low < high:
        middle = (low + high + 1) // 2
        larger = _closed(found, missing[:middle])
        pairs = np.argwhere(larger & ~found)
        fits: Matrix = np.asarray(fitting(orders[half:], sizes[half:], pairs).all(axis=1))
        if np.any(fits) and np.mean(fits) >= (least if middle == 1 else max(least, STAGE)):
            low, best, best_fits = middle, larger, fits
        else:
            high = middle - 1
    return best, best_fits


def fitting(orders: Orders, sizes: Ints, pairs: Ints) -> NDArray[np.bool_]:
    """For each row and pair (lower, upper), whether it is on two sides or in order on one."""
    place = np.empty_like(orders)
    np.put_along_axis(
        place, orders.astype(np.int64), np.arange(orders.shape[1], dtype=np.int32)[None, :], axis=1
    )
    lower, upper = place[:, pairs[:, 0]], place[:, pairs[:, 1]]
    return (lower < upper) | ((lower < sizes[:, None]) != (upper < sizes[:, None]))


def _closed(found: Matrix, pairs: Ints) -> Matrix:
    """The relations with more pairs, and all that follows by transitivity."""
    result = found.copy()
    _relate(result, pairs)
    return result


@kernel(steps=lambda related, pairs: len(pairs) * len(related))
def _relate(related: Matrix, pairs: Ints) -> None:
    n = related.shape[0]
    for k in range(pairs.shape[0]):
        x, y = pairs[k, 0], pairs[k, 1]
        if related[x, y]:
            continue
        for u in range(n):
            if u == x or related[u, x]:
                for v in range(n):
                    if v == y or related[y, v]:
                        related[u, v] = True


def _poset(P: Poset, matrix: Matrix) -> Poset:
    return Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in np.argwhere(matrix)])
