"""Mechanisms on orders that cut the domain with a tree: values from the tree itself, or measured in its parts.

At every level the order is partitioned into convex parts, and each part has an interval of values. In each part an
ideal is drawn by the exponential mechanism: it gets the lower half of the interval, the rest the upper half. Parts
without records are cut like any other; parts without elements are dropped, which only outputs decide
(docs/theory/curves-posets.md, section 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.curves.choices import Choices, ExactChoices, SimulatedChoices
from isotone.curves.curve import RiskBound
from isotone.curves.grids import FINE
from isotone.curves.losses import Slopes
from isotone.curves.measure import noisy_means
from isotone.curves.poset.arrangement import Arrangement
from isotone.curves.poset.regions import Cut, Region
from isotone.curves.privacy import Setting
from isotone.curves.records import Records
from isotone.kernels import kernel
from isotone.noise import Simulated
from isotone.order.projection.least_squares import project_bottom_up
from isotone.privacy.guarantee import Guarantee

__all__ = ["Leaves", "MeasuredPosetTree", "OrderMechanism", "PosetTree", "grow"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OrderMechanism:
    """What the mechanisms on an order share. Outputs are values between 0 and 1, one for each element."""

    setting: Setting
    arrangement: Arrangement

    @property
    def guarantee(self) -> Guarantee:
        """What a release promises."""
        return self.setting.guarantee

    def draw(self, records: Records, choices: Choices) -> Floats:
        """Monotone values, with the choices given."""
        raise NotImplementedError

    def error(self) -> RiskBound:
        """A bound on the excess loss, without data."""
        raise NotImplementedError

    def release(self, statistic: Records) -> Floats:
        """An exact private draw, from cryptographic bits."""
        return self.draw(statistic, ExactChoices())

    def simulate(self, statistic: Records, rng: np.random.Generator) -> Floats:
        """A float draw from a seeded generator, for planning only; its values are simulated."""
        return Simulated.wrap(self.draw(statistic, SimulatedChoices(rng)))


@dataclass(frozen=True)
class Leaves:
    """The output of a tree of cuts: the parts, and for each element the lower end of its interval and its part."""

    regions: list[Region]
    floor: Ints
    part: Ints
    width: int

    def middles(self) -> Floats:
        """The middle of each element's interval; in the lowest and the highest interval the end of the range."""
        middle = (self.floor + self.width / 2) / FINE
        middle[self.floor == 0] = 0.0
        middle[self.floor + self.width == FINE] = 1.0
        return middle


CutRule = Callable[[Region, int, int, Fraction], Cut]
"""``cut(region, floor, width, share)``."""


def grow(
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
    """A tree of cuts by the additive score; each leaf has the middle of its interval of values.

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

    def draw(self, records: Records, choices: Choices) -> Floats:
        """Step values, at most ``2**levels`` of them in each region of the arrangement."""
        shares = [Fraction(1, self.levels)] * self.levels
        return self.arrangement.monotone(self.leaves(records, shares, choices).middles())

    def leaves(self, records: Records, shares: Sequence[Fraction], choices: Choices) -> Leaves:
        """The tree of cuts."""

        def level(floor: Ints, width: int) -> CutRule:
            weights = self._weights(records, floor + width // 2)

            def cut(region: Region, low: int, _: int, share: Fraction) -> Cut:
                rate = self.setting.rate(share, self.slopes.bound(low + width // 2, FINE))
                return region.cut(weights, rate, choices)

            return cut

        return grow(self.arrangement, shares, level)

    def _weights(self, records: Records, middle: Ints) -> Ints:
        rule = self.slopes
        return _element_weights(
            records.cells,
            records.levels,
            records.weights,
            rule.offset + rule.scale * middle,
            np.array([rule.step, rule.cap, rule.above, rule.below]),
        )

    def error(self) -> RiskBound:
        """``L·T²·ln N/(2ε)`` for the cuts, and half the last width (or all of it at the ends) for values."""
        ideals = sum(region.log_ideals() for region in self.arrangement.regions)
        cuts = self.levels**2 * ideals * self.setting.factor
        return RiskBound(
            self.steepest * cuts / (2 * float(self.setting.epsilon)), self.steepest * 2.0**-self.levels
        )


@kernel
def _element_weights(cells: Ints, levels: Ints, weights: Ints, at: Ints, rule: Ints) -> Ints:
    """For every element, minus the sum of its records' derivatives."""
    step, cap, above, below = rule
    sums = np.zeros(at.size, np.int64)
    for record in range(cells.size):
        slope = min(max(at[cells[record]] - step * levels[record], -cap), cap)
        sums[cells[record]] -= weights[record] * slope * (above if slope > 0 else below)
    return sums


@dataclass(frozen=True)
class MeasuredPosetTree(OrderMechanism):
    """A few levels of cuts, then the noisy mean of each part, made monotone.

    For losses that are fitted by means. ``lowest`` and ``highest`` are the ends of the predictions, as shares of
    ``y_range``; the cuts take ``share`` of epsilon.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, sections 1 and 7).
    """

    slopes: Slopes
    levels: int
    share: Fraction
    lowest: Fraction = Fraction(0)
    highest: Fraction = Fraction(1)

    def draw(self, records: Records, choices: Choices) -> Floats:
        """Values that are constant on each part."""
        shares = [self.share / self.levels] * self.levels
        tree = PosetTree(self.setting, self.arrangement, self.slopes, self.levels)
        leaves = tree.leaves(records, shares, choices)
        counted = Records(leaves.part[records.cells], records.levels, records.weights)
        starts = np.arange(len(leaves.regions))
        mean, count = noisy_means(counted, starts, self.setting, 1 - sum(shares, Fraction(0)), choices)
        low, high = float(self.lowest), float(self.highest)
        values = (np.clip(self._ordered(leaves, mean, count), low, high) - low) / (high - low)
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
        """Section 7: for the squared loss ``17/(4ε')`` a part and a quarter a record.

        An estimate for other losses, and where parts are put in order after the means were taken.
        """
        rest = float(self.setting.epsilon * (1 - self.share)) / self.setting.factor
        parts = 2**self.levels * len(self.arrangement.regions)
        return RiskBound(noise=4.25 * parts / rest, per_record=0.25, proved=False)
