"""Is the closed form optimal for this loss? A test that anyone can run (docs/theory/tables.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.privacy.checks import Number, positive
from isotone.tables.distribution.distribution import DistributionLike, probabilities_of
from isotone.tables.matrices.fixed_point import fixed_point
from isotone.tables.matrices.geometric import push_through, spread
from isotone.tables.matrices.losses import Loss, loss_matrix

__all__ = ["Certificate", "certificate"]

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
