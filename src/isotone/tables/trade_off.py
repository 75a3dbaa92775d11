"""Count error against distribution error, if the distribution is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.tables.matrices.fixed_point import fixed_point

__all__ = ["TradeOff", "trade_off"]

_PRICES = (0.0, *(float(price) for price in np.geomspace(0.01, 2.0, 24)))


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Count error against distribution error along the price of the second.

    In closed form, row by row.

    Entry ``i`` belongs to the mechanism with the least ``count error + price[i]·W1`` among all ε-DP matrices
    (docs/theory/tables.md, section 4): price 0 is the least count error, a large price the fixed point.
    """

    price: NDArray[np.float64]
    count_error: NDArray[np.float64]
    wasserstein: NDArray[np.float64]


def trade_off(z: NDArray[np.float64], step: Fraction) -> TradeOff:
    """The curve for one ε per step, when the distribution is ``z`` and known."""
    points: list[tuple[float, float]] = []
    for price in _PRICES:
        t = fixed_point(z, step, price=price)
        points.append((t.count_error(z), float(np.abs(np.cumsum(t.output(z) - z)).sum())))
    count_error, wasserstein = np.array(points).T
    return TradeOff(np.array(_PRICES), count_error, wasserstein)
