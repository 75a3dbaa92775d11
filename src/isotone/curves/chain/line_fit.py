"""The mechanism for losses without means while the budget is small for the data: one draw of all values, and lines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.boundaries import BoundaryScore, draw_boundaries, merged, move_boundaries
from isotone.curves.chain.imbalance import Imbalance
from isotone.curves.chain.lines import find_jumps, sloped
from isotone.curves.chain.tree import Parts, Score, grow
from isotone.curves.choices import Choices
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import FINE
from isotone.curves.measure import equal_bins, pooled
from isotone.curves.records import Records
from isotone.curves.shapes.graphs import CurveGraph, monotone_graph

__all__ = ["LineFit", "LineShares"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FAR = 1000
"""Values outside their window have weight ``exp(−FAR)``: never drawn, yet no case of their own."""


@dataclass(frozen=True)
class LineShares:
    """What each of the three steps may spend of epsilon; together at most 1."""

    cuts: Fraction
    values: Fraction
    last: Fraction = Fraction(0)


@dataclass(frozen=True)
class LineFit(CurveMechanism):
    """Cut the domain, draw increasing values of its bins at once, look again where it pays, and lay lines through.

    1. ``levels`` levels of cuts by the score ``cuts``; every part has the same number of bins.
    2. One draw from all increasing values of the bins, by how unbalanced the derivatives are. With a ``margin``, values
       further than that many widths outside their part's interval are as good as excluded.
    3. With a ``last`` share: boundaries are drawn again where the values jump, and values everywhere else; or all
       boundaries, if the curve is to have ``steps``.
    4. Lines through the steps, but for jumps, and unless it is to have ``steps``.

    ``table`` has the loss of every value (column) for every ``y`` (row), for step 3. Lines are over the points of the
    grid, not over ``x``: if these are not ``even``, every point is a corner of the curve.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 12).
    Error: ``error()`` is an estimate for smooth curves, not a bound.
    Cost: O(n·levels) after sorting, and O(bins·values).
    """

    cuts: Score
    levels: int
    bins: int
    score: Imbalance
    shares: LineShares
    margin: Fraction | None = None
    table: Ints | None = field(default=None, repr=False)
    steepest: float = 1.0
    steps: bool = False
    even: bool = True

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A curve of lines, with a jump where the steps have one; or of steps."""
        levels = [self.shares.cuts / max(1, self.levels)] * self.levels
        parts = grow(records, self.points, levels, self.cuts, self.setting, choices)
        starts = equal_bins(parts.low, parts.high, self.bins)
        costs = self.score.of(records, starts) + self._outside(parts, starts)
        values = self._values(costs, self.shares.values, choices)
        if self.table is None:
            return self._lines(starts, values / self.score.values)
        if self.steps:
            starts, values = move_boundaries(
                records, starts, values, self.points, self.table, self.setting, self.shares.last, choices
            )
            return Curve(starts, values / self.score.values, self.points)
        return self._again(records, starts, values, costs, self.table, choices)

    def _values(self, costs: Ints, share: Fraction, choices: Choices) -> Ints:
        """Increasing values of all bins, in one draw."""
        graph = _graph(*costs.shape)
        return graph.curve(
            choices.select(graph.graph, graph.costs(costs), self.setting.rate(share, self.score.range))
        )

    def _outside(self, parts: Parts, starts: Ints) -> Ints:
        """What values outside their windows cost: it depends on released cuts only."""
        if self.margin is None:
            return np.zeros((starts.size, self.score.values + 1), np.int64)
        floor = parts.floor[np.searchsorted(parts.low, starts, side="right") - 1]
        margin = int(self.margin * parts.width)
        value = np.arange(self.score.values + 1) * (FINE // self.score.values)
        beyond = (value < floor[:, None] - margin) | (value > floor[:, None] + parts.width + margin)
        rate = self.setting.rate(self.shares.values, self.score.range)
        return beyond * min(1 << 60, math.ceil(FAR / rate))

    def _again(
        self, records: Records, starts: Ints, values: Ints, costs: Ints, table: Ints, choices: Choices
    ) -> Curve:
        """Boundaries once more where values jump, values once more elsewhere: no record is looked at by both."""
        steps, heights = merged(starts, values)
        of_bin = np.searchsorted(steps, starts, side="right") - 1
        jumps = np.array(find_jumps(heights / self.score.values), np.int64).reshape(-1, 2)
        jumping: NDArray[np.bool_] = np.any((of_bin >= jumps[:, :1]) & (of_bin <= jumps[:, 1:]), axis=0)
        second = self._values(np.where(jumping[:, None], 0, costs), self.shares.last, choices)
        weight = float(self.shares.values**2 / (self.shares.values**2 + self.shares.last**2))
        places, found = starts[~jumping], (weight * values + (1 - weight) * second)[~jumping]
        if jumps.size:
            low, high = steps[jumps[:, 0]], np.r_[steps[1:], self.points][jumps[:, 1]]
            score = BoundaryScore(table, heights[jumps[:, 0]], heights[jumps[:, 1]])
            cuts = draw_boundaries(records, low, high, score, self.setting, self.shares.last, choices)
            lower, upper = cuts > low, cuts < high  # a side that is left without points is gone
            places = np.r_[places, low[lower], cuts[upper]]
            found = np.r_[found, score.below[lower], score.above[upper]]
        order = np.argsort(places)
        rising = pooled(found[order] / self.score.values, np.ones(places.size))
        return self._lines(places[order], rising)

    def _lines(self, starts: Ints, values: Floats) -> Curve:
        """Lines through the steps, but for jumps."""
        curve = sloped(*merged(starts, values), self.points)
        if self.even:
            return curve
        every = np.arange(self.points)
        return Curve(every, curve.at(every), self.points, interpolated=True)

    def error(self) -> RiskBound:
        """An estimate: what finding the cuts, and the rank of the best value of every bin, costs if the curve is smooth."""
        epsilon = float(self.setting.epsilon) / self.setting.factor
        spread = self.bins * math.log(self.score.values + 1) / (epsilon * float(self.shares.values))
        if self.levels:
            cut = self.levels**2 * math.log(self.points + 1) / (2 * epsilon * float(self.shares.cuts))
            spread += cut / self.bins
        # a line is off by the square of its width
        width = 1 / self.bins if self.steps else 1 / self.bins**2
        return RiskBound(self.steepest * spread, self.steepest * width, proved=False)


@lru_cache(maxsize=2)  # the largest has millions of edges
def _graph(bins: int, values: int) -> CurveGraph:
    return monotone_graph(bins, values)
