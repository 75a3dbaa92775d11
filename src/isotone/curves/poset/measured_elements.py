"""Means and probabilities on an order with many records at every element. All elements are measured at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import RiskBound
from isotone.curves.measure import faint, noisy_sums, rescaled
from isotone.curves.poset.arrangement import MOST_PROJECTED
from isotone.curves.poset.problem import PosetProblem
from isotone.curves.poset.tree import OrderMechanism
from isotone.curves.records import Records
from isotone.order.projection.least_squares import project_bottom_up

__all__ = ["MeasuredElements", "many_records"]

RECORDS, STRENGTH = 12, 3
"""So many records an element, and so much of epsilon times records, make measuring all elements pay."""


def many_records(problem: PosetProblem) -> bool:
    """Whether there are enough records to take the mean of every element. Only public numbers decide."""
    if not problem.loss.by_means or problem.levels is not None:
        return False
    size = problem.arrangement.size
    return size <= MOST_PROJECTED and problem.n >= RECORDS * size and problem.strength >= STRENGTH * size


@dataclass(frozen=True)
class MeasuredElements(OrderMechanism):
    """A noisy histogram of elements, with sums of ``y`` and of ``1 − y``, and the nearest monotone values.

    For losses that are fitted by means. ``ends`` are those of the predictions, as shares of ``y_range``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, section 7).
    Error: ``error()`` is an estimate, not a bound.
    """

    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))

    @classmethod
    def of(cls, problem: PosetProblem) -> MeasuredElements:
        """The mechanism for a problem."""
        return cls(problem.setting, problem.arrangement, problem.ends)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Values that respect the whole order."""
        size, line = self.arrangement.size, self.arrangement.bottom_up
        sums = noisy_sums(records, np.arange(size), size, self.setting, Fraction(1), draws)
        ones, zeros = (np.maximum(side, 0.0) for side in sums.in_records)
        total = ones + zeros
        half = min(0.5, faint(self.setting, Fraction(1)))  # a little towards the middle, where noise is alone
        mean, weight = (ones + half) / (total + 2 * half), np.maximum(total, half)
        rank = np.empty(size, np.int64)
        rank[line] = np.arange(size)
        values = np.empty(size)
        values[line] = project_bottom_up(rank[self.arrangement.covers], mean[line], weight[line])
        return rescaled(values, self.ends)

    def error(self) -> RiskBound:
        """An estimate, from the noise of the sums of all elements."""
        rest = float(self.setting.epsilon) / self.setting.factor
        return RiskBound(noise=2.0 * self.arrangement.size / rest, per_record=0.0, proved=False)
