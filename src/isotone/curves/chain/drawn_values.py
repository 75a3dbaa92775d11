"""One draw of the increasing values of all bins, which lines and steps have in common.

Values are drawn by how unbalanced the derivatives in a bin are around them, which is zero at the best value and steep
beside it. The loss of a value near the best one grows with the square of the distance; the sum of the derivatives grows
with the distance itself, so a choice that goes by it finds the best value far more closely (docs/theory/curves.md,
section 12).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from isotone.array_types import Ints
from isotone.curves.chain.boundaries import move_boundaries
from isotone.curves.chain.cut_scores import HalvingScore
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.chain.tree import Parts, Score, grow
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import FINE
from isotone.curves.losses.slopes import Slopes
from isotone.curves.measure import equal_bins
from isotone.curves.records import Records
from isotone.curves.shapes.monotone import monotone_graph

__all__ = ["DrawShares", "DrawnValues", "Imbalance", "StepFit"]


@dataclass(frozen=True)
class Imbalance:
    """By how much the derivatives miss 0, for every bin and every one of ``values + 1`` evenly spaced values.

    They are summed half a step below the value and half a step above it: a sum above 0 below the value, or below 0 above
    it, is by how much. So a value that many records share is found, though no derivatives cancel *at* any value then.
    """

    slopes: Slopes
    values: int = 256

    @property
    def _between(self) -> Ints:
        """Half a step below every value, and above the last, which are ``values + 2`` places."""
        step = FINE // self.values
        return np.arange(self.values + 2, dtype=np.int64) * step - step // 2

    @cached_property
    def range(self) -> int:
        """How far apart one record of weight 1 can move the scores of two values, up or down by its derivative."""
        return 2 * max(self.slopes.bound(place, FINE) for place in self._between.tolist())

    def of(self, records: Records, starts: Ints) -> Ints:
        """The scores by bin and value. Bins begin at ``starts``."""
        sums = self._sums(records.bins(starts), records.levels, records.weights, starts.size)
        return np.maximum(0, np.maximum(sums[:, :-1], -sums[:, 1:]))

    def _sums(self, which: Ints, levels: Ints, weights: Ints, bins: int) -> Ints:
        """Sums of derivatives by bin and place.

        Along the places, which are evenly spaced, a derivative is flat, then a line, from its zero on another line, and
        flat again: each record changes the constants and the slopes of these pieces where they begin.
        """
        rule, at = self.slopes, self.slopes.offset + self.slopes.scale * self._between
        zero, cap, above, below = rule.step * levels, rule.cap, rule.above, rule.below

        def first_above(mark: Ints) -> Ints:
            return np.clip((mark - at[0]) // (at[1] - at[0]) + 1, 0, at.size)

        flat, steep = np.zeros((2, bins, at.size + 1), np.int64)
        np.add.at(flat[:, 0], which, -weights * cap * below)
        # the first places above the lower end, above the zero, and not below the upper end
        for place, constant, slope in (
            (first_above(zero - cap), (cap - zero) * below, below),
            (first_above(zero), zero * (below - above), above - below),
            (first_above(zero + cap - 1), (zero + cap) * above, -above),
        ):
            np.add.at(flat, (which, place), weights * constant)
            np.add.at(steep, (which, place), weights * slope)
        return (np.cumsum(flat, axis=1) + np.cumsum(steep, axis=1) * np.append(at, 0))[:, :-1]


@dataclass(frozen=True)
class DrawShares:
    """What cuts, values and a second look may spend of epsilon, together at most 1."""

    cuts: Fraction
    values: Fraction
    last: Fraction = Fraction(0)


@dataclass(frozen=True)
class DrawnValues(CurveMechanism):
    """Cut the domain by a score, and draw increasing values of its bins at once.

    1. ``levels`` levels of cuts by the score ``cuts``; every part has the same number of bins.
    2. One draw from all increasing values of the bins, by how unbalanced the derivatives are.

    What becomes of the values is the subclass's.
    """

    cuts: Score
    levels: int
    bins: int
    score: Imbalance
    shares: DrawShares
    steepest: float = field(default=1.0, kw_only=True)

    smoothness: ClassVar[int] = 2
    """What the curve misses within a bin is this power of the bin's width, if the truth is smooth."""

    def _cut(self, records: Records, draws: CurveDraws) -> tuple[Parts, Ints]:
        """The parts, and the first points of their bins."""
        levels = [self.shares.cuts / max(1, self.levels)] * self.levels
        parts = grow(records, self.points, levels, self.cuts, self.setting, draws)
        return parts, equal_bins(parts.low, parts.high, self.bins)

    def _values(self, costs: Ints, share: Fraction, draws: CurveDraws) -> Ints:
        """Increasing values of all bins, in one draw."""
        graph = monotone_graph(*costs.shape)
        return graph.curve(
            draws.select(graph.graph, graph.costs(costs), self.setting.rate(share, self.score.range))
        )

    def error(self) -> RiskBound:
        """An estimate of what finding the cuts and the rank of every bin's best value costs if the curve is smooth."""
        epsilon = float(self.setting.epsilon) / self.setting.factor
        spread = self.bins * math.log(self.score.values + 1) / (epsilon * float(self.shares.values))
        if self.levels:
            cut = self.levels**2 * math.log(self.points + 1) / (2 * epsilon * float(self.shares.cuts))
            spread += cut / self.bins
        return RiskBound(self.steepest * spread, self.steepest / self.bins**self.smoothness, proved=False)


@dataclass(frozen=True)
class StepFit(DrawnValues):
    """Steps with drawn values, whose boundaries are drawn again.

    For losses without means where the noise of the records is worth following. ``table`` has the loss of every value
    (column) for every ``y`` (row).

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 12).
    Error: ``error()`` is an estimate for smooth curves, not a bound.
    Cost: O(n·levels) after sorting, and O(bins·values).
    """

    table: Ints = field(repr=False, kw_only=True)

    smoothness = 1

    @classmethod
    def of(cls, problem: ChainProblem) -> StepFit:
        """The mechanism with sizes for a problem."""
        values = 256 if problem.strength < 30_000 else 512
        return cls(
            problem.setting,
            problem.points,
            HalvingScore(),
            3,
            problem.bins(math.sqrt(problem.strength)),
            Imbalance(problem.slopes, values),
            DrawShares(Fraction(3, 100), Fraction(40, 100), Fraction(57, 100)),
            table=problem.table(values),
            steepest=problem.steepest,
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        _, starts = self._cut(records, draws)
        values = self._values(self.score.of(records, starts), self.shares.values, draws)
        starts, values = move_boundaries(
            records, starts, values, self.points, self.table, self.setting, self.shares.last, draws
        )
        return Curve(starts, values / self.score.values, self.points)
