"""The staircase mechanism (Geng, Kairouz, Oh and Viswanath 2015), rounded to integers and clamped."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, positive, whole_number
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Unit
from isotone.tables.matrices.clamped_noise import AdditiveCountMechanism

__all__ = ["StaircaseMechanism", "staircase"]


@dataclass(frozen=True, eq=False, repr=False)
class StaircaseMechanism(AdditiveCountMechanism):
    """Staircase noise with the step ``1/(1 + exp(ε/2))`` that minimises its mean absolute value.

    Rounded to the nearest integer, the noise is a random sign times ``G + move``, where G is geometric with
    ``P(G = g)`` proportional to ``exp(-ε·g)`` and ``move`` is 1 with probability ``exp(-ε/2)/2``
    (docs/theory/tables.md, section 9). Guarantee: ε-DP, as post-processing of the real-valued noise.
    """

    @property
    def _log_move(self) -> float:
        return -self.step / 2 - math.log(2)

    def _log_mass(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        stays = math.log1p(-math.exp(self._log_move))
        others = np.logaddexp(stays - self.step, self._log_move) - math.log(2) - self.step * (distance - 1.0)
        return math.log(-math.expm1(-self.step)) + np.where(distance == 0, stays, others)

    def _log_tail(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        just = math.log(-math.expm1(-self.step)) + self._log_move
        first = np.logaddexp(-self.step, just) - math.log(2)
        beyond = first - self.step * (np.maximum(distance, 1) - 1.0)
        return np.where(distance > 0, beyond, np.log1p(-np.exp(beyond)))

    def _noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        rate = self.unit.per_step(self.epsilon)
        size_of = draws.one_sided_geometrics(rate, size)
        kept = draws.one_sided_geometrics(rate / 2, size) > 0
        coins = draws.words(size)
        moved = size_of + (kept & ((coins & 1) == 1))
        return np.where((coins & 2) == 2, moved, -moved)


def staircase(
    n: int, epsilon: Number, *, contributions: int = 1, neighbours: Neighbours = "add-remove"
) -> StaircaseMechanism:
    """The staircase mechanism on counts ``0..n-1``.

    Guarantee: epsilon-DP for adding or removing one person (docs/theory/tables.md, section 9).

    >>> t = staircase(5, epsilon=1)
    >>> bool(abs(t.matrix().sum(axis=1) - 1).max() < 1e-12), t.privacy_loss() <= 1
    (True, True)
    """
    return StaircaseMechanism(
        whole_number(n, "n"), positive(epsilon, "epsilon"), Unit(contributions, neighbours)
    )
