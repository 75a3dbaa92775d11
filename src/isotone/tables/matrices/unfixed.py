"""The least count error of all, with no distribution to keep.

Algorithm 2 of Kohli and Laskowski, corrected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, positive
from isotone.privacy.guarantee import Unit
from isotone.tables.distribution.distribution import DistributionLike, is_simulated, probabilities_of
from isotone.tables.matrices.coupling import deterministic
from isotone.tables.matrices.factored import FactoredMechanism
from isotone.tables.matrices.geometric import spread
from isotone.tables.matrices.losses import Loss, is_concentrating, is_convex, is_monge, loss_matrix
from isotone.tables.matrices.step_costs import crossings

__all__ = ["unfixed_optimum"]


def unfixed_optimum(
    z: DistributionLike,
    epsilon: Number,
    *,
    loss: Loss = "absolute",
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
) -> FactoredMechanism:
    """Geometric noise, then for each noisy count the published count that is best given ``z``.

    Guarantee: epsilon-DP for adding or removing one person, given ``z`` (docs/theory/tables.md, section 5).
    Optimal among all private mechanisms for losses that are Monge and convex in the published count (section
    4 at price 0), and for losses that grow with the distance ``|i - j|`` (Ghosh, Roughgarden and Sundararajan
    2012). O(n) for the absolute and the squared loss, O(n²) for a matrix.

    >>> t = unfixed_optimum([0.2, 0.6, 0.2], epsilon=1)
    >>> t.remap.columns  # the two ends are too rare to be believed
    array([1, 1, 1])
    """
    p = probabilities_of(z)
    unit, total = Unit(contributions, neighbours), positive(epsilon, "epsilon")
    columns = _best_columns(p, float(unit.per_step(total)), loss)
    return FactoredMechanism(len(p), total, unit, is_simulated(z), remap=deterministic(columns))


def _best_columns(z: NDArray[np.float64], epsilon: float, loss: Loss) -> NDArray[np.int64]:
    n = len(z)
    if isinstance(loss, str) and loss in ("absolute", "squared"):
        return _by_walking(z, epsilon, loss)
    matrix = loss_matrix(loss, n)
    if is_monge(matrix) and is_convex(matrix):
        return _by_walking(z, epsilon, matrix)
    if is_concentrating(matrix):
        return _by_trying_all(z, epsilon, matrix)
    raise InputError(
        "For this loss geometric noise need not be optimal: a loss must grow with the distance |i - j|, or be "
        "convex in the published count with the Monge property. fixed_point(..., constructor='lp') takes any."
    )


def _by_walking(z: NDArray[np.float64], epsilon: float, loss: Loss) -> NDArray[np.int64]:
    """The rightmost optimal column of each row.

    Row k goes up to column j+1 as long as that is no worse than column j.
    """
    n = len(z)
    first = crossings(z, epsilon, loss, (0.0,))[0]
    return np.searchsorted(first, np.arange(n), side="right").astype(np.int64)


def _by_trying_all(z: NDArray[np.float64], epsilon: float, matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best of all columns for each row.

    A row whose posterior has underflowed does as the nearest other.
    """
    n = len(z)
    least, column = np.full(n, np.inf), np.zeros(n, np.int64)
    for j in range(n):
        cost = spread(z * matrix[:, j], epsilon)
        column[cost <= least] = j
        least = np.minimum(cost, least)
    seen = np.flatnonzero(spread(z, epsilon) > 0)
    after = np.minimum(np.searchsorted(seen, np.arange(n)), len(seen) - 1)
    before = np.maximum(after - 1, 0)
    k = np.arange(n)
    nearest = np.where(np.abs(seen[after] - k) <= np.abs(seen[before] - k), seen[after], seen[before])
    return column[nearest]
