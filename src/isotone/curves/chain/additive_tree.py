"""The tree of cuts of Ghazi, Kamath, Kumar and Manurangsi 2022 with the additive score, on its own terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from isotone.curves.chain.cut_scores import AdditiveScore
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.chain.tree import Score, grow
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import LEVELS
from isotone.curves.measure import middles
from isotone.curves.records import Records

__all__ = ["TreeMechanism"]

GROWTH = Fraction(23, 20)
"""How much more a level of the additive tree spends than the one before."""


@dataclass(frozen=True)
class TreeMechanism(CurveMechanism):
    """A tree of cuts. Each leaf has the middle of its interval of values.

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
    def of(cls, problem: ChainProblem) -> TreeMechanism:
        """The mechanism with the additive score and a depth for a problem."""
        levels = problem.levels or max(2, round(math.log2(problem.strength) / 2))
        score = AdditiveScore(problem.slopes)
        return cls(
            problem.setting, problem.points, score, min(levels, LEVELS), problem.steepest, growth=GROWTH
        )

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
