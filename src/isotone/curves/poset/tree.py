"""Mechanisms that cut an order with a tree. Values come from the tree itself, or are measured in its parts.

At every level the order is partitioned into convex parts, and each part has an interval of values. In each part an
ideal is drawn by the exponential mechanism: it gets the lower half of the interval, the rest the upper half. Parts
without records are cut like any other; parts without elements are dropped, which only outputs decide
(docs/theory/curves-posets.md, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import RegressionMechanism, RiskBound
from isotone.curves.grids import FINE, LEVELS
from isotone.curves.losses.slopes import Slopes
from isotone.curves.measure import middles, noisy_means, rescaled
from isotone.curves.poset.arrangement import Arrangement
from isotone.curves.poset.problem import PosetProblem
from isotone.curves.poset.regions import Cut, Region
from isotone.curves.records import Records
from isotone.order.projection.least_squares import project_bottom_up

__all__ = ["Leaves", "MeasuredPosetTree", "OrderMechanism", "PosetTree", "grow_regions"]

CUTTING_SHARE = Fraction(1, 2)
"""Of epsilon, when means are measured. Depth and share were set by simulations on grids of 10 × 10 and 30 × 30."""


def equal_shares(levels: int, whole: Fraction = Fraction(1)) -> list[Fraction]:
    """The same share of epsilon for every level."""
    return [whole / levels] * levels


@dataclass(frozen=True)
class OrderMechanism(RegressionMechanism[Floats]):
    """A mechanism on an order. Outputs are values between 0 and 1, one for each element.

    The setting says what is guaranteed, ε-DP or ρ-zCDP (docs/theory/curves-posets.md, section 1).
    """

    arrangement: Arrangement


@dataclass(frozen=True)
class Leaves:
    """The output of a tree of cuts, which is the parts, and for each element the lower end of its interval and its part."""

    regions: list[Region]
    floor: Ints
    part: Ints
    width: int

    def middles(self) -> Floats:
        """The value of each element, from its interval."""
        return middles(self.floor, self.width)


CutRule = Callable[[Region, int, int, Fraction], Cut]
"""``cut(region, floor, width, share)``."""


def grow_regions(
    arrangement: Arrangement, shares: Sequence[Fraction], level: Callable[[Ints, int], CutRule]
) -> Leaves:
    """The partition after ``len(shares)`` levels, of which level ``t`` spends ``shares[t]`` of epsilon.

    ``level(floor, width)`` prepares the rule by which all parts of one level are cut.
    """
    regions, width = list(arrangement.regions), FINE
    floor = np.zeros(arrangement.size, np.int64)
    for share in shares:
        rule, half = level(floor, width), width // 2
        children: list[Region] = []
        raised = floor.copy()
        for region in regions:
            cut = rule(region, int(floor[region.members[0]]), width, share)
            if cut.above is not None:
                raised[cut.above.members] += half
            children += [side for side in (cut.below, cut.above) if side is not None]
        regions, floor, width = children, raised, half
    part = np.empty(arrangement.size, np.int64)
    for number, region in enumerate(regions):
        part[region.members] = number
    return Leaves(regions, floor, part, width)


@dataclass(frozen=True)
class PosetTree(OrderMechanism):
    """A tree of cuts by the additive score. Each leaf has the middle of its interval of values.

    An element's weight is minus the sum of its records' derivatives at the middle of the interval, so the score of an
    ideal is the sum of its weights, up to a constant.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, section 1).
    Error: ``error()`` bounds the excess loss over the functions monotone on the arrangement's order, before a
    projection; ``steepest`` is the largest slope of the loss over the range.
    Cost: O(n + elements) a level on forests, series-parallel orders and grids; O(ideals) where they are listed.
    """

    slopes: Slopes
    levels: int
    steepest: float = 1.0

    @classmethod
    def of(cls, problem: PosetProblem) -> PosetTree:
        """The mechanism with a depth for a problem."""
        levels = problem.levels or min(LEVELS, max(2, round(math.log2(problem.strength) / 2)))
        return cls(problem.setting, problem.arrangement, problem.slopes, levels, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Step values, at most ``2**levels`` of them in each region of the arrangement."""
        shares = equal_shares(self.levels)
        return self.arrangement.monotone(self.leaves(records, shares, draws).middles())

    def leaves(self, records: Records, shares: Sequence[Fraction], draws: CurveDraws) -> Leaves:
        """The tree of cuts."""

        def level(floor: Ints, width: int) -> CutRule:
            weights = self._weights(records, floor + width // 2)

            def cut(region: Region, low: int, _: int, share: Fraction) -> Cut:
                rate = self.setting.rate(share, self.slopes.bound(low + width // 2, FINE))
                return region.cut(weights, rate, draws)

            return cut

        return grow_regions(self.arrangement, shares, level)

    def _weights(self, records: Records, middle: Ints) -> Ints:
        """For every element, minus the sum of its records' derivatives."""
        sums = np.zeros(middle.size, dtype=np.int64)
        slopes = self.slopes.at(middle[records.cells], records.levels)
        np.subtract.at(sums, records.cells, records.weights * slopes)
        return sums

    def error(self) -> RiskBound:
        """Section 1, with as many cuts as there are ideals."""
        return RiskBound.of_cuts(
            self.setting, equal_shares(self.levels), self.arrangement.log_ideals(), self.steepest
        )


@dataclass(frozen=True)
class MeasuredPosetTree(OrderMechanism):
    """A few levels of cuts, then the noisy mean of each part, made monotone.

    For losses that are fitted by means. ``ends`` are those of the predictions, as shares of ``y_range``; the cuts take
    ``share`` of epsilon.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, sections 1 and 7).
    """

    slopes: Slopes
    levels: int
    share: Fraction
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))

    @classmethod
    def of(cls, problem: PosetProblem) -> MeasuredPosetTree:
        """The mechanism with sizes for a problem."""
        levels = problem.levels or (4 if problem.strength < 3000 else 5)
        return cls(problem.setting, problem.arrangement, problem.slopes, levels, CUTTING_SHARE, problem.ends)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Values that are constant on each part."""
        shares = equal_shares(self.levels, self.share)
        tree = PosetTree(self.setting, self.arrangement, self.slopes, self.levels)
        leaves = tree.leaves(records, shares, draws)
        counted = Records(leaves.part[records.cells], records.levels, records.weights)
        starts = np.arange(len(leaves.regions))
        mean, count = noisy_means(counted, starts, self.setting, 1 - sum(shares, Fraction(0)), draws)
        values = rescaled(self._ordered(leaves, mean, count), self.ends)
        return self.arrangement.monotone(values[leaves.part])

    def _ordered(self, leaves: Leaves, mean: Floats, count: Floats) -> Floats:
        """The means, projected onto what the order between parts asks for."""
        by_floor = np.argsort([leaves.floor[region.members[0]] for region in leaves.regions], kind="stable")
        rank = np.empty(by_floor.size, np.int64)
        rank[by_floor] = np.arange(by_floor.size)
        pairs = rank[leaves.part[self.arrangement.covers]]
        # in a relaxed order parts may be related the wrong way round: the last projection takes care of them
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0).reshape(-1, 2)
        values = np.empty(by_floor.size)
        values[by_floor] = project_bottom_up(pairs, mean[by_floor], count[by_floor])
        return values

    def error(self) -> RiskBound:
        """``17/(4ε')`` a part and a quarter a record for the squared loss (section 7).

        An estimate for other losses, and where parts are put in order after the means were taken.
        """
        rest = float(self.setting.epsilon * (1 - self.share)) / self.setting.factor
        parts = 2**self.levels * len(self.arrangement.regions)
        return RiskBound(noise=4.25 * parts / rest, per_record=0.25, proved=False)
