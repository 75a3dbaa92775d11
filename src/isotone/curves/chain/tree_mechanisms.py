"""Mechanisms that cut the domain with a tree: values from the tree itself, or measured in its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from isotone.curves.chain.additive import AdditiveScore
from isotone.curves.chain.case import ChainCase
from isotone.curves.chain.tree import Score, grow
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import LEVELS
from isotone.curves.losses import Squared
from isotone.curves.measure import equal_bins, middles, noisy_means, pooled, rescaled
from isotone.curves.records import Records

__all__ = ["MANY", "MeasuredTree", "TreeMechanism"]

CUTTING = Fraction(1, 10)
"""The share of epsilon for cuts, when the values are measured as means."""
GROWTH = Fraction(23, 20)
"""How much more a level of the additive tree spends than the one before."""
MOST_BINS = 1 << 20
"""A limit of memory, which only an epsilon without meaning can reach."""
MANY = 5_000
"""From this product of epsilon and records on, a tree of cuts finds less than other mechanisms do."""


@dataclass(frozen=True)
class TreeMechanism(CurveMechanism):
    """A tree of cuts; each leaf has the middle of its interval of values.

    Each level spends ``growth`` times as much as the one before.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 4).
    Error: ``error()`` bounds the excess loss; ``steepest`` is the largest slope of the loss over the range.
    Cost: O(n·levels) after sorting with the additive score; a factor log n more with the threshold score.
    """

    score: Score
    levels: int
    steepest: float = 1.0
    growth: Fraction = Fraction(1)

    @classmethod
    def of(cls, case: ChainCase) -> TreeMechanism:
        """The mechanism with the additive score and a depth for a case."""
        levels = case.levels or max(2, round(math.log2(case.strength) / 2))
        score = AdditiveScore(case.slopes)
        return cls(case.setting, case.points, score, min(levels, LEVELS), case.steepest, growth=GROWTH)

    @property
    def shares(self) -> list[Fraction]:
        """What each level spends of epsilon."""
        sizes = [self.growth**level for level in range(self.levels)]
        return [size / sum(sizes) for size in sizes]

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most ``2**levels`` steps."""
        parts = grow(records, self.points, self.shares, self.score, self.setting, draws)
        return Curve(parts.low, middles(parts.floor, parts.width), self.points)

    def error(self) -> RiskBound:
        """Section 4, with as many cuts as there are places for one."""
        return RiskBound.of_cuts(self.setting, self.shares, math.log(self.points + 1), self.steepest)


@dataclass(frozen=True)
class MeasuredTree(CurveMechanism):
    """A few levels of cuts, then noisy means in bins that divide the parts, then pooling.

    For losses that are fitted by means. The cuts find where the curve rises, whatever the distribution of ``x``; the
    means, which take most of the budget, find the values. Without levels this is plain binning. Parts have equally many
    bins, but for the share ``by_width`` of them. ``ends`` are those of the predictions, as shares of ``y_range``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, sections 4 and 8).
    Error: ``error()`` is proved for the squared loss and an estimate for others.
    """

    score: Score
    levels: int
    share: Fraction
    bins: int
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    by_width: float = 0.0
    squared: bool = True

    @classmethod
    def of(cls, case: ChainCase) -> MeasuredTree:
        """The mechanism with sizes for a case."""
        strength = case.strength
        levels = case.levels or (1 if strength < 2_000 else 2 if strength < 50_000 else 3)
        return cls._with(case, levels, CUTTING)

    @classmethod
    def without_cuts(cls, case: ChainCase) -> MeasuredTree:
        """Equal bins alone, with sizes for a case."""
        return cls._with(case, 0, Fraction(0))

    @classmethod
    def _with(cls, case: ChainCase, levels: int, share: Fraction) -> MeasuredTree:
        return cls(
            case.setting,
            case.points,
            AdditiveScore(case.slopes),
            levels,
            share,
            case.bins(1.4 * math.sqrt(float(1 - share) * case.strength), MOST_BINS),
            case.ends,
            by_width=0.5 if case.strength < MANY else 0.0,
            squared=isinstance(case.loss, Squared),
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        shares = [self.share / max(1, self.levels)] * self.levels
        parts = grow(records, self.points, shares, self.score, self.setting, draws)
        starts = equal_bins(parts.low, parts.high, self.bins, self.by_width)
        mean, count = noisy_means(records, starts, self.setting, 1 - sum(shares, Fraction(0)), draws)
        return Curve(starts, rescaled(pooled(mean, count), self.ends), self.points)

    def error(self) -> RiskBound:
        """Section 8, for the squared loss: three times the noise of a sum for each bin, and a quarter a record."""
        rest = float(self.setting.epsilon * (1 - self.share)) / self.setting.factor
        bins = self.bins + 2**self.levels  # rounding can give every part one more
        return RiskBound(3.0 * bins / rest, 0.25, proved=self.squared)
