"""Mechanisms that cut the domain with a tree: values from the tree itself, or measured in its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.curves.chain.tree import Parts, Score, grow
from isotone.curves.choices import Choices
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import FINE
from isotone.curves.measure import equal_bins, noisy_means, pooled
from isotone.curves.records import Records

__all__ = ["MeasuredTree", "TreeMechanism"]


@dataclass(frozen=True)
class TreeMechanism(CurveMechanism):
    """A tree of cuts; each leaf has the middle of its interval of values.

    The lowest and the highest leaf have the end of the range instead, where data often are. Each level spends
    ``growth`` times as much as the one before.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 4).
    Error: ``error()`` bounds the excess loss; ``steepest`` is the largest slope of the loss over the range.
    Cost: O(n·levels) after sorting with the additive score; a factor log n more with the threshold score.
    """

    score: Score
    levels: int
    steepest: float = 1.0
    growth: Fraction = Fraction(1)

    @property
    def shares(self) -> list[Fraction]:
        """What each level spends of epsilon."""
        sizes = [self.growth**level for level in range(self.levels)]
        return [size / sum(sizes) for size in sizes]

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A step curve with at most ``2**levels`` steps."""
        parts = grow(records, self.points, self.shares, self.score, self.setting, choices)
        return Curve(parts.low, self._values(parts), self.points)

    @staticmethod
    def _values(parts: Parts) -> np.ndarray:
        middle = (parts.floor + parts.width / 2) / FINE
        middle[parts.floor == 0] = 0.0
        middle[parts.floor + parts.width == FINE] = 1.0
        return middle

    def error(self) -> RiskBound:
        """Section 4: ``L·ln N/(2ε_t)`` for the cuts of level ``t``, and the last width for the values."""
        cuts = (
            float(sum(1 / share for share in self.shares)) * math.log(self.points + 1) * self.setting.factor
        )
        return RiskBound(
            self.steepest * cuts / (2 * float(self.setting.epsilon)), self.steepest * 2.0**-self.levels
        )


@dataclass(frozen=True)
class MeasuredTree(CurveMechanism):
    """A few levels of cuts, then noisy means in bins that divide the parts, then pooling.

    For losses that are fitted by means. The cuts find where the curve rises, whatever the distribution of ``x``; the
    means, which take most of the budget, find the values. Without levels this is plain binning. Parts have equally many
    bins, but for the share ``by_width`` of them. ``lowest`` and ``highest`` are the ends of the predictions, as shares of
    ``y_range``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, sections 4 and 8).
    Error: ``error()`` is proved for the squared loss and an estimate for others.
    """

    score: Score
    levels: int
    share: Fraction
    bins: int
    lowest: Fraction = Fraction(0)
    highest: Fraction = Fraction(1)
    by_width: float = 0.0
    squared: bool = True

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A step curve with at most one step for each bin."""
        shares = [self.share / max(1, self.levels)] * self.levels
        parts = grow(records, self.points, shares, self.score, self.setting, choices)
        starts = equal_bins(parts.low, parts.high, self.bins, self.by_width)
        mean, count = noisy_means(records, starts, self.setting, 1 - sum(shares, Fraction(0)), choices)
        low, high = float(self.lowest), float(self.highest)
        values = (np.clip(pooled(mean, count), low, high) - low) / (high - low)
        return Curve(starts, values, self.points)

    def error(self) -> RiskBound:
        """Section 8, for the squared loss: three times the noise of a sum for each bin, and a quarter a record."""
        rest = float(self.setting.epsilon * (1 - self.share)) / self.setting.factor
        bins = self.bins + 2**self.levels  # rounding can give every part one more
        return RiskBound(3.0 * bins / rest, 0.25, proved=self.squared)
