"""Straight lines fitted to noisy sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.cuts import MANY, ChainProblem, Curve, DrawnValues, DrawShares, Imbalance
from isotone.curves.posterior import pooled
from isotone.curves.problem import FINE, Records
from isotone.curves.tree import AdditiveScore, BoundaryScore, HalvingScore, Parts, draw_boundaries, merged

# Turn a released step curve into lines.
#
# The steps say more than their values, if the curve behind them has few jumps.
#
# Where rises are alike from step to step, the curve probably rises all along, and lines through the steps are closer to
# it; where one rise is far higher than its neighbours, it probably jumps, and the step should stay. Everything here looks
# at released steps only: it is post-processing and costs no privacy (docs/theory/curves.md, section 12).

FACTOR = 4.0
"""A jump is at least this many times as high as the rises beside it,"""
LEAST = 0.1
"""and more than this share of the range."""


def find_jumps(values: Floats) -> list[tuple[int, int]]:
    """Pairs ``(i, j)`` of steps between which the values jump.

    No step is in two pairs.

    ``j`` is ``i + 1``, or ``i + 2`` where one step in the middle of the jump has a value between.

    >>> find_jumps(np.array([0.2, 0.21, 0.8, 0.81]))
    [(1, 2)]
    >>> find_jumps(np.array([0.2, 0.2, 0.5, 0.8, 0.8])), find_jumps(np.array([0.2, 0.4, 0.6, 0.8]))
    ([(1, 3)], [])
    """
    rises = np.r_[0.0, np.diff(values), 0.0]  # rises[k] leads to step k
    result: list[tuple[float, int, int]] = []
    for i in range(values.size - 1):
        for j in range(i + 1, min(i + 3, values.size)):
            inner, beside = rises[i + 1 : j + 1], max(rises[i], rises[j + 1])
            if inner.min() > FACTOR * beside and inner.sum() > LEAST:
                result.append((float(inner.sum()), i, j))
    jumps: list[tuple[int, int]] = []
    for _, i, j in sorted(result, reverse=True):
        if all(j < a or b < i for a, b in jumps):
            jumps.append((i, j))
    return sorted(jumps)


def sloped(starts: Ints, values: Floats, points: int) -> Curve:
    """The steps with slopes.

    Each turns about its middle until it would meet a neighbour, and stays flat at a jump.

    The slope of a step is the smaller of the slopes to its neighbours' middles (a limited slope, as in schemes for
    conservation laws), so the curve still rises everywhere and each step keeps its mean.
    """
    ends = np.r_[starts[1:] - 1, points - 1]
    half = (ends - starts) / 2.0
    rises, apart = np.diff(values), np.diff((starts + ends) / 2.0)
    for i, j in find_jumps(values):
        rises[i:j] = np.inf  # nobody behind a jump is a neighbour
    left, right = np.r_[np.inf, rises], np.r_[rises, np.inf]
    slope = np.minimum(left / np.r_[1.0, apart], right / np.r_[apart, 1.0])
    slope = np.where(np.isfinite(slope), slope, 0.0)  # a step between two jumps stays flat
    # a step never rises by more than its neighbours are away, nor beyond the range
    swing = np.minimum.reduce([slope * half, left / 2, right / 2, values, 1.0 - values])
    corners = np.stack([values - swing, values + swing], axis=1).ravel()
    knots = np.stack([starts, ends], axis=1).ravel()
    alone = np.r_[True, knots[1:] != knots[:-1]]
    rising = np.maximum.accumulate(np.clip(corners, 0.0, 1.0))
    return Curve(knots[alone], rising[alone], points, interpolated=True)


def lines_through(starts: Ints, values: Floats, points: int, *, even: bool) -> Curve:
    """Lines through the steps, but for jumps.

    There is a corner at every point, if points are not ``even``.
    """
    curve = sloped(*merged(starts, values), points)
    if even:
        return curve
    every = np.arange(points)
    return Curve(every, curve.at(every), points, interpolated=True)


# Lines through drawn values, for losses without means while the budget is small for the data.

FAR = 1000
"""Values outside their window have weight ``exp(−FAR)``, so small that they are never drawn; no special case is needed."""


def _bins(problem: ChainProblem) -> int:
    return problem.bins(1.6 * problem.strength ** (1 / 3))


@dataclass(frozen=True)
class LineFit(DrawnValues):
    """Lines through values that stay near the intervals of their parts.

    Values further outside their part's interval than ``margin`` times its width are as good as excluded. Lines are over
    the points of the grid, not over ``x``: if these are not ``even``, every point is a corner of the curve.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 12).
    Error: ``error()`` is an estimate for smooth curves, not a bound.
    Cost: O(n·levels) after sorting, and O(bins·values).
    """

    margin: Fraction = Fraction(1, 2)
    even: bool = True

    @classmethod
    def of(cls, problem: ChainProblem) -> LineFit:
        """The mechanism with sizes for a problem."""
        return cls(
            problem.setting,
            problem.points,
            AdditiveScore(problem.slopes),
            2,
            _bins(problem),
            Imbalance(problem.slopes, 64),
            DrawShares(Fraction(1, 2), Fraction(1, 2)),
            even=problem.grid.even,
            steepest=problem.steepest,
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of lines, with a jump where the values have one."""
        parts, starts = self._cut(records, draws)
        costs = self.score.of(records, starts) + self._outside(parts, starts)
        values = self._values(costs, self.shares.values, draws)
        return lines_through(starts, values / self.score.values, self.points, even=self.even)

    def _outside(self, parts: Parts, starts: Ints) -> Ints:
        """What values outside their windows cost. It depends on released cuts only."""
        floor = parts.floor[np.searchsorted(parts.low, starts, side="right") - 1]
        margin = int(self.margin * parts.width)
        value = np.arange(self.score.values + 1) * (FINE // self.score.values)
        beyond = (value < floor[:, None] - margin) | (value > floor[:, None] + parts.width + margin)
        rate = self.setting.rate(self.shares.values, self.score.range)
        return beyond * min(1 << 60, math.ceil(FAR / rate))


@dataclass(frozen=True)
class RefinedLineFit(DrawnValues):
    """Lines through values, after a second look at every record.

    Where the values jump, the boundary is drawn again; everywhere else the values are. ``table`` has the loss of every
    value (column) for every ``y`` (row). ``even`` is as in :class:`LineFit`.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 12).
    Error: ``error()`` is an estimate for smooth curves, not a bound.
    Cost: O(n·levels) after sorting, and O(bins·values).
    """

    table: Ints = field(repr=False, kw_only=True)
    even: bool = True

    @classmethod
    def of(cls, problem: ChainProblem) -> RefinedLineFit:
        """The mechanism with sizes for a problem."""
        halving = Fraction(15, 100) if problem.strength < MANY else Fraction(8, 100)
        values = Fraction(45, 100) if problem.strength < MANY else Fraction(50, 100)
        return cls(
            problem.setting,
            problem.points,
            HalvingScore(),
            3,
            _bins(problem),
            Imbalance(problem.slopes),
            DrawShares(halving, values, 1 - halving - values),
            table=problem.table(256),
            even=problem.grid.even,
            steepest=problem.steepest,
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of lines, with a jump where the values have one."""
        _, starts = self._cut(records, draws)
        costs = self.score.of(records, starts)
        values = self._values(costs, self.shares.values, draws)
        return self._again(records, starts, values, costs, draws)

    def _again(self, records: Records, starts: Ints, values: Ints, costs: Ints, draws: CurveDraws) -> Curve:
        """Boundaries once more where values jump, values once more elsewhere. No record is looked at by both."""
        steps, heights = merged(starts, values)
        of_bin = np.searchsorted(steps, starts, side="right") - 1
        jumps = np.array(find_jumps(heights / self.score.values), np.int64).reshape(-1, 2)
        jumping: NDArray[np.bool_] = np.any((of_bin >= jumps[:, :1]) & (of_bin <= jumps[:, 1:]), axis=0)
        second = self._values(np.where(jumping[:, None], 0, costs), self.shares.last, draws)
        weight = float(self.shares.values**2 / (self.shares.values**2 + self.shares.last**2))
        places, result = starts[~jumping], (weight * values + (1 - weight) * second)[~jumping]
        if jumps.size:
            low, high = steps[jumps[:, 0]], np.r_[steps[1:], self.points][jumps[:, 1]]
            score = BoundaryScore(self.table, heights[jumps[:, 0]], heights[jumps[:, 1]])
            cuts = draw_boundaries(records, low, high, score, self.setting, self.shares.last, draws)
            lower, upper = cuts > low, cuts < high  # a side that is left without points is gone
            places = np.r_[places, low[lower], cuts[upper]]
            result = np.r_[result, score.below[lower], score.above[upper]]
        order = np.argsort(places)
        rising = pooled(result[order] / self.score.values, np.ones(places.size))
        return lines_through(places[order], rising, self.points, even=self.even)
