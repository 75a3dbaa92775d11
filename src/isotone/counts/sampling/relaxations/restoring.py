"""Put relations back into a relaxed order that rejection can still afford.

Draws come from the tables of a relaxed order Q. An order R between Q and the order P itself is drawn from them by
rejection; the more relations R has, the closer its noise is to that of P, and the fewer draws are kept. The relations
are put back that save most error for the draws that they cost, a few at a time, as long as the share of draws that is
kept stays above a given one. Errors and shares come from a random walk on the extended bipartitions of the order so far.
All of it looks at the order alone, which is public (docs/theory/counts.md, section 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.sampling.reinsertion import Orders
from isotone.kernels import kernel
from isotone.order.poset import Poset

__all__ = ["Worth", "estimated_share", "missing_pairs", "restore"]

Matrix = NDArray[np.bool_]
Wander = Callable[..., "tuple[Orders, Ints]"]
Given = Callable[[Poset, "Orders", "Ints"], Floats]
"""The expected squares of the noise given the extended bipartition of each row."""

Rank = Callable[[Matrix, "Orders", "Ints", "Ints"], Floats]
"""Numbers for the pairs that are missing in an order, from rows of the walk: the smallest are put back first."""

ROWS = 2_000
"""Rows of the walk for each few relations: half of them to sort the relations, half to measure the share."""

FIRST_ROWS, MORE_ROWS = 12_000, 5_000
"""As many where the error counts, for the first few relations and for all others."""

MEASURED = 1_000
"""Rows that measure the share at least."""

STAGE = 0.5
"""About this share of the draws has the next few relations."""


def missing_pairs(P: Poset, Q: Poset) -> Ints:
    """The pairs (lower, upper) of positions that ``P`` relates and ``Q``, on the same elements, does not."""
    return np.argwhere(P.leq_matrix() & ~Q.leq_matrix())


def restore(wander: Wander, given: Given, P: Poset, Q: Poset, share: float) -> Poset:
    """An order between ``Q`` and ``P`` that the given share of draws for ``Q`` fits at least, as far as estimates go.

    ``wander`` has the law of the draws, ``given`` the errors of their noise.
    """
    rank = Worth(given, P)
    return _climb(wander, rank, P, Q, math.log(share), FIRST_ROWS, MORE_ROWS)[0]


def estimated_share(wander: Wander, P: Poset, Q: Poset) -> float:
    """The logarithm of the share of draws for ``Q`` that fit ``P``."""
    return _climb(wander, _broken, P, Q, -math.inf, ROWS, ROWS)[1]


def _climb(
    wander: Wander, rank: Rank, P: Poset, Q: Poset, log_share: float, first: int, more: int
) -> tuple[Poset, float]:
    """The largest order that is reached, and the logarithm of the share of draws for ``Q`` that fit it."""
    rng, n, total, rows = np.random.default_rng(0), len(P), 0.0, first
    goal, found = (order.leq_matrix() & ~np.eye(n, dtype=np.bool_) for order in (P, Q))
    # an extended bipartition of P, and so of all orders between
    burnt, sizes = wander(Q.leq_matrix(), P.linear_order.astype(np.int32), n, 1, 200, rng)
    row, a = burnt[0], int(sizes[0])
    while np.any(goal & ~found):
        orders, sizes = wander(found, row, a, rows, 1, rng)
        ranked, missing = max(rows * 3 // 4, rows - MEASURED), np.argwhere(goal & ~found)
        missing = missing[np.argsort(rank(found, orders[:ranked], sizes[:ranked], missing), kind="stable")]
        least = math.exp(min(0.0, log_share - total))
        larger, fits = _most(found, missing, orders[ranked:], sizes[ranked:], least)
        if np.array_equal(larger, found):
            break
        found, total, rows = larger, total + math.log(float(np.mean(fits))), more
        last = ranked + int(np.flatnonzero(fits)[-1])
        row, a = orders[last], int(sizes[last])
    return _poset(P, found), total


def _broken(found: Matrix, orders: Orders, sizes: Ints, missing: Ints) -> Floats:
    """How often draws break each pair."""
    return 1 - fitting(orders, sizes, missing).mean(axis=1)


class Worth:
    """How much error each relation saves, for each unit of the logarithm of the share that it costs.

    Both are means over all rows so far, which belong to smaller and larger orders: one stage alone has too few.
    """

    def __init__(self, given: Given, P: Poset) -> None:
        self.given, self.P = given, P
        self.saved, self.spent = np.zeros((len(P), len(P))), np.zeros((len(P), len(P)))

    def __call__(self, found: Matrix, orders: Orders, sizes: Ints, missing: Ints) -> Floats:
        """The negative of it for each pair that is missing in ``found``."""
        squares, rows = self.given(_poset(self.P, found), orders, sizes).sum(axis=1), len(orders)
        kept, total = _kept_sums(_places(orders), sizes, squares / squares.mean() - 1, found, missing)
        kept = np.clip(kept, 0.5, rows - 0.5)  # a pair that is never broken, or always, has some price
        lower, upper = missing[:, 0], missing[:, 1]
        self.saved[lower, upper] -= rows * total / kept
        self.spent[lower, upper] -= rows * np.log(kept / rows)
        return -self.saved[lower, upper] / self.spent[lower, upper]


def _most(
    found: Matrix, missing: Ints, orders: Orders, sizes: Ints, least: float
) -> tuple[Matrix, NDArray[np.bool_]]:
    """As many of the missing relations, in their order, as a good share of the rows has.

    At least the share ``least`` has them, and at least ``STAGE`` unless there is only one relation with its
    consequences. Returns the larger order, and which rows fit it.
    """
    low, high = 0, len(missing)
    best, best_fits = found, np.ones(len(orders), np.bool_)
    each, number = fitting(orders, sizes, missing), np.zeros(found.shape, np.int64)
    number[missing[:, 0], missing[:, 1]] = np.arange(len(missing))
    while low < high:
        middle = (low + high + 1) // 2
        larger = _closed(found, missing[:middle])  # what follows is among the missing relations too
        fits: Matrix = np.asarray(each[number[larger & ~found]].all(axis=0))
        if np.any(fits) and np.mean(fits) >= (least if middle == 1 else max(least, STAGE)):
            low, best, best_fits = middle, larger, fits
        else:
            high = middle - 1
    return best, best_fits


def _places(orders: Orders) -> Orders:
    """The place of each element in each row."""
    place, ranks = np.empty_like(orders), np.arange(orders.shape[1], dtype=np.int32)
    np.put_along_axis(place, orders.astype(np.int64), ranks[None, :], axis=1)
    return place


def fitting(orders: Orders, sizes: Ints, pairs: Ints) -> NDArray[np.bool_]:
    """For each pair (lower, upper) and each row, whether it is on two sides or in order on one."""
    place = np.ascontiguousarray(_places(orders).T)
    first = place < sizes
    lower, upper = pairs[:, 0], pairs[:, 1]
    return (place[lower] < place[upper]) | (first[lower] != first[upper])


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


@kernel
def _kept_sums(
    place: Orders, sizes: Ints, squares: Floats, related: Matrix, pairs: Ints
) -> tuple[Floats, Floats]:
    """For each pair the number of rows that have it and all that follows from it, and the sum of their squares."""
    n, count = place.shape[1], pairs.shape[0]
    kept, total = np.zeros(count), np.zeros(count)
    lower, upper = np.empty(n * n, np.int64), np.empty(n * n, np.int64)
    for i in range(count):
        x, y = pairs[i, 0], pairs[i, 1]
        follow = 0
        for u in range(n):
            if u == x or related[u, x]:
                for v in range(n):
                    if (v == y or related[y, v]) and not related[u, v]:
                        lower[follow], upper[follow] = u, v
                        follow += 1
        for r in range(sizes.size):
            whole, a = True, sizes[r]
            for k in range(follow):
                one, other = place[r, lower[k]], place[r, upper[k]]
                if one > other and (one < a) == (other < a):
                    whole = False
                    break
            if whole:
                kept[i] += 1
                total[i] += squares[r]
    return kept, total


def _poset(P: Poset, matrix: Matrix) -> Poset:
    return Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in np.argwhere(matrix)])
