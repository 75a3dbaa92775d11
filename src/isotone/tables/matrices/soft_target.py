"""Soft targets, which trade count error for distribution error.

The trade has a price (docs/theory/tables.md, section 4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.checks import Number, exact
from isotone.tables.matrices.geometric import push_through
from isotone.tables.matrices.losses import Loss
from isotone.tables.matrices.step_costs import crossings

__all__ = ["soft_target"]


def soft_target(
    z: NDArray[np.float64], epsilon: float, target: NDArray[np.float64], price: Number, loss: Loss
) -> NDArray[np.float64]:
    """The distribution of published counts that minimises count error + price · W1(·, target).

    Each cumulative probability of the target is clipped to what the price is worth: noisy counts whose
    posterior gains more than the price by going below a threshold go there, and no others are made to.
    """
    rate = exact(price, "price")
    if rate < 0:
        raise InputError(f"price must be at least 0, not {price!r}.")
    if len(z) == 1:
        return target
    mass = np.concatenate([[0.0], np.cumsum(push_through(z, epsilon))])
    always, perhaps = crossings(z, epsilon, loss, (-float(rate), float(rate)))
    wanted = np.cumsum(target)[:-1]
    cumulative = np.clip(wanted, mass[always], mass[perhaps])
    met = np.concatenate([[True], cumulative == wanted, [True]])
    differences = np.maximum(np.diff(cumulative, prepend=0.0, append=1.0), 0.0)
    return np.where(met[:-1] & met[1:], target, differences)  # no rounding where the target is met
