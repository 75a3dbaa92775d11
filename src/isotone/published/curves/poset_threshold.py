"""The score of Ghazi, Kamath, Kumar and Manurangsi 2022 on an order, by listing its ideals.

The score of an ideal is the loss of the best monotone function with values in the lower half of the interval on the
ideal and in the upper half elsewhere. By the threshold representation it is a sum over values of least sums of
derivatives among the ideals inside, or around, this one; two passes over the pairs of ideals that differ by one
element give it for all of them (docs/theory/curves-posets.md, section 8). A method for reference: the additive score
is as good in theory, better in practice, and needs no list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import RiskBound
from isotone.curves.grids import FINE
from isotone.curves.poset.problem import MOST_THRESHOLD_LEVELS, PosetProblem
from isotone.curves.poset.regions import Cut, ListedRegion, Region
from isotone.curves.poset.tree import CutRule, OrderMechanism, equal_shares, grow_regions
from isotone.curves.records import Records
from isotone.curves.shapes.curve_draws import point_costs
from isotone.kernels import kernel

__all__ = ["PosetThresholdTree", "ideal_losses"]


@dataclass(frozen=True)
class PosetThresholdTree(OrderMechanism):
    """A tree of cuts by optimal isotonic losses (Algorithm 3 of the source, with the right constants).

    ``table`` holds the loss on a grid of values, exactly convex in the value: it is the loss that is minimised.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, sections 1 and 8).
    Cost: O(values · pairs of ideals that differ by one element) a level.
    """

    levels: int
    table: Ints = field(repr=False)
    steepest: float = 1.0

    @classmethod
    def of(cls, problem: PosetProblem) -> PosetThresholdTree:
        """The mechanism with a depth for a problem."""
        levels = problem.levels or min(
            MOST_THRESHOLD_LEVELS, max(1, math.ceil(math.log2(max(2.0, problem.strength))))
        )
        table = problem.table(1 << max(levels, 4))
        return cls(problem.setting, problem.arrangement, levels, table, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Step values, at most ``2**levels`` of them."""
        costs = point_costs(records, self.arrangement.size, self.table)
        step = FINE // (self.table.shape[1] - 1)

        def level(floor: Ints, width: int) -> CutRule:
            def cut(region: Region, low: int, wide: int, share: Fraction) -> Cut:
                if not isinstance(region, ListedRegion):
                    raise TypeError("the arrangement of this mechanism lists its ideals")
                window = slice(low // step, (low + wide) // step + 1)
                scores = ideal_losses(region, costs[:, window])
                rate = self.setting.rate(share, self._range(window))
                return region.choose(scores, rate, draws)

            return cut

        return grow_regions(self.arrangement, equal_shares(self.levels), level).middles()

    def _range(self, window: slice) -> int:
        """The largest range of a row of the table over a half of the interval."""
        values = self.table[:, window]
        half = values.shape[1] // 2
        lower = np.ptp(values[:, : half + 1], axis=1).max()
        upper = np.ptp(values[:, half:], axis=1).max()
        return max(1, int(lower), int(upper))

    def error(self) -> RiskBound:
        """The risk bound of section 1, as for the additive score.

        ``steepest`` is the largest slope of the loss over the range.
        """
        return RiskBound.of_cuts(
            self.setting, equal_shares(self.levels), self.arrangement.log_ideals(), self.steepest
        )


def ideal_losses(region: ListedRegion, costs: Ints) -> Ints:
    """The least loss for every ideal.

    The lower half of the values is inside the ideal and the upper half outside.

    ``costs[x, v]`` is the loss of value ``v`` at element ``x``; an odd number of values, convex in ``v``.
    """
    ideals = region.ideals
    smaller, larger = ideals.extensions()
    slopes = np.diff(costs[region.members], axis=1)
    top = int(costs[region.members, -1].sum())
    return top + _threshold_sums(ideals.parent, ideals.added, smaller, larger, slopes)


@kernel
def _threshold_sums(parent: Ints, added: Ints, smaller: Ints, larger: Ints, slopes: Ints) -> Ints:
    """Over all steps of the values, the least of minus the sum of slopes.

    The minimum is over ideals inside or around each.
    """
    total = np.zeros(parent.size, np.int64)
    least = np.empty(parent.size, np.int64)
    steps = slopes.shape[1]
    for step in range(steps):
        least[0] = 0
        for i in range(1, parent.size):
            least[i] = least[parent[i]] - slopes[added[i], step]
        if step < steps // 2:
            for k in range(smaller.size):
                least[larger[k]] = min(least[larger[k]], least[smaller[k]])
        else:
            for k in range(smaller.size - 1, -1, -1):
                least[smaller[k]] = min(least[smaller[k]], least[larger[k]])
        total += least
    return total
