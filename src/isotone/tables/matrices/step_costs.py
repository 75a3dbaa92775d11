"""The cost of one step of the published count, for each noisy count.

Where that cost crosses a price is found here too.

``slope(k, j) = E[loss(i, j) - loss(i, j+1)]``, the expectation over the posterior of the true count ``i``
given the noisy count ``k``: what is gained by publishing ``j+1`` in place of ``j``. For a Monge loss it
never falls with ``k``; for a loss that is convex in ``j`` it never rises with ``j``. So the number of noisy
counts whose slope is below a price rises with ``j``, and one walk finds it for all ``j``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.tables.matrices.count_posterior import Posterior, at_most, mean_shift, posterior_of
from isotone.tables.matrices.geometric import spread
from isotone.tables.matrices.losses import Loss, is_convex, is_monge, loss_matrix

__all__ = ["crossings"]


def crossings(
    z: NDArray[np.float64], epsilon: float, loss: Loss, prices: tuple[float, ...]
) -> list[NDArray[np.int64]]:
    """For each price, how many noisy counts ``k`` have ``slope(k, j) < price``, for ``j = 0..n-2``.

    O(n) for the absolute and the squared loss, O(n²) for a matrix.
    """
    n = len(z)
    if isinstance(loss, str) and loss in ("absolute", "squared"):
        posterior = posterior_of(z, epsilon)
        walk = _walk_absolute if loss == "absolute" else _walk_squared
        return [walk(posterior, price) for price in prices]
    matrix = loss_matrix(loss, n)
    if not (is_monge(matrix) and is_convex(matrix)):
        raise InputError(
            "This needs a loss that is convex in the published count and has the Monge property, such as "
            "'absolute', 'squared' or any convex function of the difference."
        )
    mass = spread(z, epsilon)
    found = [np.zeros(n - 1, np.int64) for _ in prices]
    for j in range(n - 1):
        gained = spread(z * (matrix[:, j] - matrix[:, j + 1]), epsilon)
        for price, out in zip(prices, found, strict=True):
            out[j] = _first(gained, mass, price, int(out[j - 1]) if j else 0)
    return found


@kernel(steps=lambda gained, *_: gained.size)
def _first(gained: NDArray[np.float64], mass: NDArray[np.float64], price: float, start: int) -> int:
    """The first k from ``start`` with mass whose slope is not below the price."""
    k = start
    while k < mass.shape[0] and (mass[k] <= 0.0 or gained[k] < price * mass[k]):
        k += 1
    return k


@kernel(steps=lambda p, price: 16 * p.below.size)
def _walk_absolute(p: Posterior, price: float) -> NDArray[np.int64]:
    n = p.below.shape[0]
    out = np.empty(n - 1, np.int64)
    k = 0
    for j in range(n - 1):
        while k < n and 1.0 - 2.0 * at_most(p, k, j) < price:
            k += 1
        out[j] = k
    return out


@kernel(steps=lambda p, price: 16 * p.below.size)
def _walk_squared(p: Posterior, price: float) -> NDArray[np.int64]:
    n = p.below.shape[0]
    out = np.empty(n - 1, np.int64)
    k = 0
    for j in range(n - 1):
        while k < n and 2.0 * (k - j + mean_shift(p, k)) - 1.0 < price:
            k += 1
        out[j] = k
    return out
