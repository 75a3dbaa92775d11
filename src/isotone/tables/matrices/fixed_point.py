"""Count mechanisms that keep a distribution at the least count error, the least error of all, and a test of optimality.

Soft targets, which trade count error for distribution error.

The trade has a price (docs/theory/tables.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.privacy.checks import Number, exact, one_of, positive, whole_number
from isotone.privacy.guarantee import Neighbours, Unit
from isotone.tables.distribution import DistributionLike, is_simulated, probabilities_of
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.factored import FactoredMechanism, comonotone, deterministic
from isotone.tables.matrices.geometric import (
    Loss,
    crossings,
    is_concentrating,
    is_convex,
    is_monge,
    loss_matrix,
    push_through,
    spread,
)

if TYPE_CHECKING:
    from isotone.published.tables.lp import Solver
    from isotone.published.tables.row_by_row import Selector


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
    expected = np.cumsum(target)[:-1]
    cumulative = np.clip(expected, mass[always], mass[perhaps])
    met = np.concatenate([[True], cumulative == expected, [True]])
    differences = np.maximum(np.diff(cumulative, prepend=0.0, append=1.0), 0.0)
    return np.where(met[:-1] & met[1:], target, differences)  # no rounding where the target is met


# Count mechanisms that keep a distribution at the least count error.
#
# If true counts are drawn from ``z``, so are the published ones.

Constructor = Literal["optimal", "heuristic", "lp"]


def fixed_point(
    z: DistributionLike,
    epsilon: Number,
    *,
    target: DistributionLike | None = None,
    price: Number | None = None,
    loss: Loss = "absolute",
    constructor: Constructor = "optimal",
    selector: Selector = "best",
    solver: Solver = "auto",
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
) -> CountMechanism:
    """A count mechanism that publishes counts with distribution ``z`` when the true ones have it.

    Guarantee: epsilon-DP for adding or removing one person, given ``z``; if ``z`` is private, the two add up
    (docs/theory/tables.md, section 3).

    Parameters
    ----------
    z
        The distribution of true counts, private or public.
    target
        Another distribution for the published counts; by default ``z`` itself.
    price
        A soft target: minimise count error + price · W1(published distribution, target) in place of meeting
        the target (section 4). 0 is the least count error of all; larger prices approach the fixed point.
    loss
        What ``price`` and the constructor ``lp`` minimise, and what chooses the best selector. The closed
        form is the optimum for all Monge losses at once and does not look at it.
    constructor
        ``optimal``: the closed form, O(n). ``heuristic``: Algorithm 1 of Kohli and Laskowski 2026. ``lp``: a
        linear program over scales, for losses that are not Monge (section 8).
    selector
        In which order the heuristic fills columns: ``max``, ``min``, ``sandwich``, or the ``best`` of them.
    solver
        How the linear program is started: ``simplex`` or ``interior-point`` on the full program in n² entries
        (small n), or ``column-generation``.

    >>> t = fixed_point([0.5, 0.3, 0.2], epsilon=1)
    >>> bool(t.fixed_point_error([0.5, 0.3, 0.2]) < 1e-15), round(t.count_error([0.5, 0.3, 0.2]), 6)
    (True, 0.434883)
    """
    p = probabilities_of(z)
    goal = p if target is None else probabilities_of(target, "target")
    if len(goal) != len(p):
        raise InputError(f"target has {len(goal)} probabilities and z has {len(p)}: they must be as many.")
    constructor = one_of(constructor, "constructor", get_args(Constructor))
    if price is not None and constructor != "optimal":
        raise InputError(f"A price goes with the constructor 'optimal' only, not with {constructor!r}.")
    unit, total = Unit(contributions, neighbours), positive(epsilon, "epsilon")
    simulated = is_simulated(z) or (target is not None and is_simulated(target))
    if constructor == "heuristic":
        from isotone.published.tables.row_by_row import heuristic  # here: it brings what only the papers need

        return heuristic(p, goal, total, unit, selector, loss, simulated)
    if constructor == "lp":
        from isotone.published.tables.lp import linear_program

        return linear_program(p, goal, total, unit, loss, solver, simulated)
    step = float(unit.per_step(total))
    if price is not None:
        goal = soft_target(p, step, goal, price, loss)
    remap = comonotone(push_through(p, step), goal)
    return FactoredMechanism(len(p), total, unit, simulated, remap=remap)


def truncated_geometric(
    n: int, epsilon: Number, *, contributions: int = 1, neighbours: Neighbours = "add-remove"
) -> FactoredMechanism:
    """Two-sided geometric noise, clamped to ``0..n-1`` (Ghosh, Roughgarden and Sundararajan 2012).

    Guarantee: epsilon-DP for adding or removing one person (docs/theory/tables.md, section 3, Lemma 0).

    >>> truncated_geometric(3, epsilon=1).matrix().round(3)
    array([[0.731, 0.17 , 0.099],
           [0.269, 0.462, 0.269],
           [0.099, 0.17 , 0.731]])
    """
    size = whole_number(n, "n")
    total, unit = positive(epsilon, "epsilon"), Unit(contributions, neighbours)
    return FactoredMechanism(size, total, unit, remap=deterministic(np.arange(size)))


# The least count error of all, with no distribution to keep.
#
# Algorithm 2 of Kohli and Laskowski, corrected.


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


# Is the closed form optimal for this loss? A test that anyone can run (docs/theory/tables.md, section 3).

_ROUNDING = 1e-11


@dataclass(frozen=True)
class Certificate:
    """What the closed form costs, and what no private mechanism with the same target can go below."""

    cost: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """How much the closed form may lose to the optimum, at most."""
        return self.cost - self.lower_bound

    @property
    def optimal(self) -> bool:
        """Whether the closed form is proved optimal, up to rounding."""
        return self.gap <= _ROUNDING * max(1.0, abs(self.cost))


def certificate(
    z: DistributionLike,
    epsilon: Number,
    loss: Loss = "absolute",
    *,
    target: DistributionLike | None = None,
    weights: DistributionLike | None = None,
) -> Certificate:
    """Bound the expected loss of every ε-DP mechanism that sends ``z`` to ``target`` from below.

    The bound is the cost of ``fixed_point(z, epsilon, target=target)`` minus the violations of a condition
    on each threshold of the published count (Proposition 3): it equals the cost for every Monge loss, and is
    a valid bound for any other. ``weights`` are those of the true counts in the expected loss, by default
    ``z``. O(n²).

    >>> certificate([0.5, 0.3, 0.2], 1, "absolute").optimal
    True
    >>> certificate([0.5, 0.3, 0.2], 1, [[0, 1, 1], [1, 0, 1], [1, 1, 0]]).optimal  # not Monge: no guarantee
    False
    """
    p = probabilities_of(z)
    goal = p if target is None else probabilities_of(target, "target")
    importance = p if weights is None else probabilities_of(weights, "weights")
    if not len(p) == len(goal) == len(importance):
        raise InputError("z, target and weights must have one probability for each count, so equally many.")
    n, step = len(p), float(positive(epsilon, "epsilon"))
    costs = importance[:, None] * loss_matrix(loss, n)
    mechanism = fixed_point(p, epsilon, target=goal)
    cost = float(np.sum(costs * mechanism.matrix()))
    source = np.cumsum(push_through(p, step))
    reached = np.cumsum(goal)
    lost = sum(
        _violation(p, costs[:, j] - costs[:, j + 1], source, float(reached[j]), step)
        for j in range(n - 1)
        if 0 < reached[j] < 1 - 1e-15
    )
    return Certificate(cost, cost - float(lost))


def _violation(
    z: NDArray[np.float64], h: NDArray[np.float64], source: NDArray[np.float64], level: float, epsilon: float
) -> float:
    """How far below the threshold vector of this level a private one could take ``h``, at most."""
    first = int(np.searchsorted(source, level - 1e-15))
    last = int(np.searchsorted(source, level + 1e-15))
    seen, pull = spread(z, epsilon), spread(h, epsilon)
    tried = [
        _slack(h - pull[k] / seen[k] * z, k, np.exp(-epsilon))
        for k in range(first, min(last, len(z) - 1) + 1)
        if seen[k] > 0
    ]
    return -np.expm1(-2 * epsilon) * min(tried)


@kernel(steps=lambda r, *_: 2 * r.size)
def _slack(r: NDArray[np.float64], threshold: int, ratio: float) -> float:
    """The positive sums of r from the low end, seen from below the threshold.

    Likewise from above.
    """
    total = 0.0
    seen = 0.0
    for k in range(threshold):
        seen = r[k] + ratio * seen
        total += max(seen, 0.0)
    seen = 0.0
    for k in range(r.shape[0] - 1, threshold, -1):
        seen = r[k] + ratio * seen
        total += max(-seen, 0.0)
    return total
