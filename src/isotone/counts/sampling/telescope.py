"""How many draws for an order would do for one with more relations, if that is far too few to count.

The relations are put in a few at a time, such that a good part of the draws has them, and the logarithms of these
shares add up. The draws come from a random walk (:func:`isotone.counts.sampling.reinsertion.wander`), so this serves
estimates only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.order.poset import Poset

if TYPE_CHECKING:
    from isotone.counts.sampling.reinsertion import Ints, Orders

__all__ = ["fitting", "log_share"]

Wander = Callable[..., "tuple[Orders, Ints]"]

ROWS = 1_000
"""Draws for each few relations."""

SHARE = 0.3
"""At least this share of the draws has the next few relations, unless the very next one is rarer."""


def fitting(orders: Orders, sizes: Ints, pairs: Ints) -> NDArray[np.bool_]:
    """For each row and pair (lower, upper), whether it is on two sides or in order on one."""
    place = np.empty_like(orders)
    np.put_along_axis(place, orders.astype(np.int64), np.arange(orders.shape[1], dtype=np.int32), axis=1)
    lower, upper = place[:, pairs[:, 0]], place[:, pairs[:, 1]]
    return (lower < upper) | ((lower < sizes[:, None]) != (upper < sizes[:, None]))


def log_share(wander: Wander, P: Poset) -> float:
    """The logarithm of the share of draws for unrelated elements that are draws for ``P``, estimated."""
    rng, n, total = np.random.default_rng(0), len(P), 0.0
    place = {x: i for i, x in enumerate(P.elements)}
    pairs = np.array([(place[x], place[y]) for x, y in P.covers], np.int64).reshape(-1, 2)
    present, row, a = 0, P.linear_order.astype(np.int32), n // 2
    while present < len(pairs):
        Q = Poset(P.elements, P.covers[:present])
        burnt, sizes = wander(Q, row, a, 1, 50, rng)
        orders, sizes = wander(Q, burnt[0], int(sizes[0]), ROWS, 1, rng)
        shares = np.cumprod(fitting(orders, sizes, pairs[present:]), axis=1).mean(axis=0)
        more = max(1, int(np.sum(shares >= SHARE)))
        total += math.log(max(float(shares[more - 1]), 0.5 / ROWS))
        present += more
        fits = np.flatnonzero(fitting(orders, sizes, pairs[:present]).all(axis=1))
        if fits.size:
            row, a = orders[fits[-1]], int(sizes[fits[-1]])
        else:
            row, a = P.linear_order.astype(np.int32), n
    return total
