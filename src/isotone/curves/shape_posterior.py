"""Curves of a shape: one draw of all such curves, their posterior mean, and the curve of the shape next to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.bands import PosteriorFit, curve_of, spread_of
from isotone.curves.circuits import Circuit, CircuitTables, CurveDraws, cheapest
from isotone.curves.cuts import ChainProblem, Curve, CurveMechanism, RegressionMechanism, RiskBound
from isotone.curves.losses import ROWS, largest_range
from isotone.curves.posterior import NoisySums, equal_bins, values_of_bins
from isotone.curves.problem import Grid, Records
from isotone.curves.shapes import (
    CurveGraph,
    CurveShape,
    LinearGraph,
    LinearPieces,
    Lipschitz,
    Monotone,
    linear_graph,
    piece_costs,
    refuse_many_edges,
)
from isotone.errors import InputError
from isotone.order.isotonic import pool_adjacent_violators

# One exact draw from the exponential mechanism over a whole class of curves.
#
# The method of the sources' Appendix A for increasing curves (the baseline), and of every shape constraint. The
# score of a curve is its loss, one record moves it by the range of its own loss, and the draw is exact
# (docs/theory/curves.md, section 7).

Choice = Callable[[Circuit, Ints], Ints]
"""The nodes of a path of a graph, from the costs of its nodes."""

FEW_VALUES = 4
"""Steps of the values of a draw on a few bins."""
AT_ONCE = 1 << 20
"""Losses that are held in memory while they are added up."""


def point_costs(records: Records, points: int, table: Ints) -> Ints:
    """The loss of all records at each point, for each value of the table, less the least at that point."""
    costs = np.zeros((points, table.shape[1]), dtype=np.int64)
    order = np.argsort(records.cells, kind="stable")
    cells, rows, weights = records.cells[order], records.rows(table)[order], records.weights[order]
    size = max(1, AT_ONCE // table.shape[1])
    for start in range(0, cells.size, size):
        part = slice(start, start + size)
        first = np.flatnonzero(np.diff(cells[part], prepend=-1))
        losses = weights[part, None] * table[rows[part]]
        costs[cells[part][first]] += np.add.reduceat(losses, first, axis=0)
    return costs - costs.min(axis=1, keepdims=True)


def draw_bound(mechanism: RegressionMechanism[Any], circuit: Circuit, scale: float, step: float) -> RiskBound:
    """``R·ln(number of functions)/ε`` for a range ``R`` of losses, and half a step of the values' grid."""
    count = CircuitTables(circuit, np.zeros(circuit.nodes, np.int64), Fraction(1)).log_total()
    setting = mechanism.setting
    return RiskBound(scale * max(count, math.log(2)) * setting.factor / float(setting.epsilon), step / 2)


@dataclass(frozen=True)
class CurveDraw(CurveMechanism):
    """A draw from all curves of a graph, with values on the columns of ``table``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 7).
    Error: ``error()``: the logarithm of the number of curves, and half a grid step of values.
    Cost: O(edges of the graph), and O(n·values) for the losses.
    """

    curves: CurveGraph
    table: Ints = field(repr=False)
    unit: float = 1.0
    steepest: float = 1.0
    interpolated: bool = False

    @classmethod
    def of(cls, problem: ChainProblem) -> CurveDraw:
        """The mechanism with sizes for a problem."""
        shape = problem.shape or Monotone()
        return cls.on(problem, problem.grid, shape, shape.steps(problem))

    @classmethod
    def on(cls, problem: ChainProblem, grid: Grid, shape: CurveShape, values: int) -> CurveDraw:
        """The mechanism on a grid of its own."""
        graph = shape.graph(grid, values, problem.height)
        return cls(
            problem.setting,
            grid.points,
            graph,
            problem.table(values),
            problem.unit(values),
            problem.steepest,
            shape.interpolated,
        )

    @cached_property
    def _range(self) -> int:
        return largest_range(self.table)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of the class."""
        rate = self.setting.rate(Fraction(1), self._range)
        losses = point_costs(records, self.points, self.table)
        return self.chosen(losses, lambda circuit, costs: draws.select(circuit, costs, rate))

    def chosen(self, losses: Ints, choose: Choice) -> Curve:
        """The curve that is chosen by the losses of every value at every point."""
        path = choose(self.curves.graph, self.curves.costs(losses))
        values = self.curves.curve(path) / (self.table.shape[1] - 1)
        if self.interpolated:
            return Curve(np.arange(self.points), values, self.points, interpolated=True)
        starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
        return Curve(starts, values[starts], self.points)

    def error(self) -> RiskBound:
        """Section 7, for all curves of the graph."""
        return draw_bound(self, self.curves.graph, self.unit * self._range, self.step)

    @property
    def step(self) -> float:
        """What a step of the values costs a record at most."""
        return self.steepest / (self.table.shape[1] - 1)


@dataclass(frozen=True)
class BinnedDraw(CurveMechanism):
    """A draw from the step curves on equal bins. ``inner`` has a point for every bin.

    For so few records that a curve with more freedom would follow noise.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 7; a record has one bin).
    Error: ``error()`` is an estimate: how much a curve rises within a bin is not known.
    """

    inner: CurveDraw

    @classmethod
    def of(cls, problem: ChainProblem) -> BinnedDraw:
        """The mechanism with sizes for a problem."""
        bins = min(problem.points, round(3 + 3 * problem.evenness))
        inner = CurveDraw.on(problem, Grid(*problem.y_range, bins), Monotone(), FEW_VALUES)
        return cls(problem.setting, problem.points, inner)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        whole = np.zeros(1, np.int64), np.full(1, self.points, np.int64)
        starts = equal_bins(*whole, self.inner.points)
        binned = Records(records.bins(starts), records.levels, records.weights)
        curve = self.inner.draw(binned, draws)
        return Curve(starts[curve.knots], curve.values, self.points)

    def error(self) -> RiskBound:
        """Section 7, and what a curve costs that rises evenly."""
        drawn = self.inner.error()
        within = self.inner.steepest / (2 * self.inner.points)
        return RiskBound(drawn.noise, drawn.per_record + within, proved=False)


@dataclass(frozen=True)
class PieceDraw(CurveMechanism):
    """A draw from the curves with few linear pieces between public knots.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 7).
    """

    pieces: LinearGraph
    knots: Ints
    values: int
    table: Ints = field(repr=False)
    unit: float = 1.0
    steepest: float = 1.0

    @classmethod
    def of(cls, problem: ChainProblem) -> PieceDraw:
        """The mechanism with sizes for a problem, whose shape has linear pieces."""
        shape, setting = problem.shape, problem.setting
        assert isinstance(shape, LinearPieces)
        knots, values = shape.places(problem.points), shape.steps(problem) + 1
        pieces = linear_graph(knots.size, values, shape.pieces)
        table, unit = problem.table(ROWS), problem.unit(ROWS)
        return cls(setting, problem.points, pieces, knots, values, table, unit, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A continuous curve with at most the given number of linear pieces."""
        rate = self.setting.rate(Fraction(1), largest_range(self.table))
        losses = point_costs(records, self.points, self.table)
        return self.chosen(losses, lambda circuit, costs: draws.select(circuit, costs, rate))

    def chosen(self, losses: Ints, choose: Choice) -> Curve:
        """The curve that is chosen by the losses of every value at every point."""
        costs = self.pieces.costs(piece_costs(losses, self.knots, self.pieces.ends, self.values))
        knots, values = self.pieces.curve(choose(self.pieces.graph, costs))
        return Curve(self.knots[knots], values / (self.values - 1), self.points, interpolated=True)

    def error(self) -> RiskBound:
        """The bound of all draws (section 7), with half a step of the values at the knots."""
        return draw_bound(self, self.pieces.graph, self.unit * largest_range(self.table), self.step)

    @property
    def step(self) -> float:
        """What a step of the values costs a record at most."""
        return self.steepest / (self.values - 1)


# Chains whose states carry a shape: the posterior mean of curves that bend upward, or have a bounded slope.
#
# A state is a value of an even grid and a slope. From a point to the next the value rises by the slope (rounded down or up, so
# that the mean rise is the slope), and now and then the slope is drawn again; for curves that bend upward from those that are
# not smaller. Seven priors are averaged by their evidence. Weights are logarithms: however much data there are, none is lost.

SLOPES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 9.0)
"""Slopes, in grids of values over the whole domain, as far as they are allowed,"""
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""and shares of the largest that is."""
REDRAWS = (0.0, 0.3, 1.5, 6.0, 20.0)
"""Expected numbers of new slopes along a curve, if any slope may come;"""
TURNS = 2.0
"""if only none and the largest do. The last prior is a curve without any slope."""
ENDS = 3.0
"""How many values more the first value's lowest and highest count as."""
BY_WIDTH, USUAL = 3.0, 2.0
"""So much of the weight of slopes, against 1 that all share alike, is by how far they are apart, and falls off at this scale."""


@dataclass(frozen=True)
class ShapedChain:
    """Curves on ``points`` with so many ``values`` from 0 to 1, which never rise by more than ``steepest`` at once.

    ``upward``: no rise is smaller than the one before.
    """

    points: int
    values: int
    steepest: float
    upward: bool

    def mean(self, log_likelihood: Floats) -> Floats:
        """The posterior mean at every point, which has the shape. The likelihood is by point and value."""
        evidence, forward = self.forward(log_likelihood)
        share = np.exp(evidence - evidence.max())
        share /= share.sum()
        message, grid = np.zeros_like(forward[0]), np.linspace(0.0, 1.0, self.values)
        result = np.empty(self.points)
        for point in range(self.points - 1, -1, -1):
            seen = forward[point] + message
            chance = np.exp(seen - seen.max(axis=(1, 2), keepdims=True)).sum(axis=1)
            result[point] = share @ (chance @ grid / chance.sum(axis=1))
            if point:
                ahead = self._redrawn(message + log_likelihood[point], back=True)
                message = self._moved(ahead[..., ::-1])[..., ::-1]
        return self._of_shape(result)

    def _of_shape(self, mean: Floats) -> Floats:
        """The same curve without what rounding to values did to its rises."""
        rises = np.clip(np.diff(mean), 0.0, self.steepest)
        if self.upward:
            rises = pool_adjacent_violators(rises, np.ones(rises.size))
        return np.minimum(mean[0] + np.r_[0.0, np.cumsum(rises)], 1.0)

    @cached_property
    def slopes(self) -> Floats:
        """All slopes, in values from a point to the next."""
        top = self.steepest * (self.points - 1)
        slopes = [slope for slope in SLOPES if slope < top] + [share * top for share in SHARES]
        return np.unique(slopes) * (self.values - 1) / max(1, self.points - 1)

    @cached_property
    def weights(self) -> Floats:
        """How likely slopes are, by prior."""
        size, slopes = self.slopes.size, self.slopes * (self.points - 1) / (self.values - 1)
        width = np.gradient(slopes) * np.exp(-slopes / USUAL)
        none, top = np.eye(size)[0], np.eye(size)[-1]
        any_slope = 1 + none + BY_WIDTH * size * width / width.sum()
        return np.array([any_slope for _ in REDRAWS] + [none + top, none])

    @cached_property
    def _logs(self) -> tuple[Floats, Floats, Floats]:
        """Logarithms by prior: of a slope that stays, of every new one, and of all that may come after each."""
        redraw = np.minimum(0.9, np.array([*REDRAWS, TURNS, 0.0]) / self.points)[:, None, None]
        weights = self.weights[:, :, None]
        after = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1] if self.upward else weights.sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            return np.log(1 - redraw), np.log(redraw * weights), np.log(np.where(after > 0, after, 1.0))

    def _start(self) -> Floats:
        first = np.ones(self.values)
        first[[0, -1]] += ENDS
        with np.errstate(divide="ignore"):
            return np.log(self.weights[:, :, None] * first)

    def forward(self, log_likelihood: Floats, *, alone: bool = False) -> tuple[Floats, list[Floats]]:
        """The log evidence of each prior, against that of nothing, and of the states given the points up to each."""
        states = [self._start() + log_likelihood[0]]
        for point in range(1, self.points):
            states.append(self._redrawn(self._moved(states[-1])) + log_likelihood[point])
        evidence = np.logaddexp.reduce(states[-1].reshape(len(states[-1]), -1), axis=1)
        return evidence - (0.0 if alone else _of_nothing(self)), states

    @cached_property
    def _rises(self) -> tuple[tuple[Ints, Floats], ...]:
        """Where values come from if the rise is rounded down, or up, and the logarithm of how often it is."""
        low = np.floor(self.slopes).astype(np.int64)[:, None]
        over = self.slopes[:, None] - low
        place = np.maximum(np.arange(1, self.values + 1) - np.stack([low, low + 1]), 0)[:, None]
        with np.errstate(divide="ignore"):
            return (place[0], np.log(1 - over)), (place[1], np.log(over))

    def _moved(self, state: Floats) -> Floats:
        """Values after a rise by the slope. Those that would leave the range are gone."""
        padded = np.concatenate([np.full((*state.shape[:2], 1), -np.inf), state], axis=2)
        down, up = (np.take_along_axis(padded, place, axis=2) + log_p for place, log_p in self._rises)
        return np.logaddexp(down, up)

    def _redrawn(self, state: Floats, *, back: bool = False) -> Floats:
        """Slopes after they were drawn again, or not. ``back``: what a message about those after tells of those before."""
        stay, new, after = self._logs
        drawn = state + new if back else state - after
        if not self.upward:
            drawn = np.logaddexp.reduce(drawn, axis=1, keepdims=True)
        elif back:
            drawn = np.logaddexp.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        else:
            drawn = np.logaddexp.accumulate(drawn, axis=1)
        return np.logaddexp(state + stay, drawn - after if back else drawn + new)


@lru_cache(maxsize=64)
def _of_nothing(chain: ShapedChain) -> Floats:
    """The log weight of all curves that stay inside the range, by prior."""
    return chain.forward(np.zeros((chain.points, chain.values)), alone=True)[0]


# Means and probabilities that bend one way, or have a bounded slope: the posterior mean of such curves.

STEPS = 128
"""The least number of steps of the grid of values, if none is given."""
ROUNDINGS = 16
"""More than the units in the last place that a distance of two released numbers may be off."""


@dataclass(frozen=True)
class PosteriorOfShape(CurveMechanism):
    """The posterior mean of all curves of a shape, given noisy sums. States of ``chain`` carry the shape.

    ``inner`` measures, on the points of the shape. All the rest is post-processing.

    Guarantee: that of ``inner`` (docs/theory/curves.md, section 8.2).
    Error: ``error()`` is an estimate, not a bound.
    """

    inner: PosteriorFit
    chain: ShapedChain

    @classmethod
    def of(cls, problem: ChainProblem) -> PosteriorOfShape:
        """The mechanism with sizes for a problem, whose loss is fitted by means and whose shape bends or bounds slopes."""
        shape = problem.shape
        assert shape is not None
        values = problem.value_levels or max(STEPS, shape.values)
        steepest, bounded = 1.0, isinstance(shape, Lipschitz)
        if isinstance(shape, Lipschitz):
            shape.rise(problem.grid, values, problem.height)  # refuses slopes too small for the grid
            steepest = _steepest(shape.slope, problem)
        refuse_many_edges(90 * problem.points * (values + 1), problem.points, values + 1)
        chain = ShapedChain(problem.points, values + 1, steepest, upward=not bounded)
        return cls(problem.setting, problem.points, PosteriorFit.of(problem), chain)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of the shape."""
        return self.curve(self.inner.measure(records, draws))

    def curve(self, sums: NoisySums) -> Curve:
        """The curve that is made of noisy sums."""
        low, high = (float(end) for end in self.inner.ends)
        values = np.linspace(low, high, self.chain.values)
        result = values_of_bins(sums, values, spread_of(self.inner.labels)).log_likelihood
        width = np.diff(np.r_[sums.starts, self.points])
        log_p = np.repeat((result - result.max(axis=1, keepdims=True)) / width[:, None], width, axis=0)
        return Curve(np.arange(self.points), self.chain.mean(log_p), self.points, interpolated=True)

    def error(self) -> RiskBound:
        """An estimate: that of the measurement."""
        return self.inner.error()


def _steepest(slope: Fraction, problem: ChainProblem) -> float:
    """The largest rise from a point to the next, so that the slope holds for the rounded floats that are released."""
    width = problem.grid.step - _rounding(problem.grid.low, problem.grid.high)
    height = slope * width - _rounding(*problem.loss.values(problem.y_range))
    if height <= 0:
        raise InputError(
            f"On {problem.points} points between {problem.grid.low} and {problem.grid.high} floating-point numbers are too "
            "coarse for a bounded slope: take fewer points (x_grid), or subtract a public number from x and from the bounds."
        )
    return float(min(1, height / problem.height))


def _rounding(low: Fraction, high: Fraction) -> Fraction:
    """More than rounding can change a distance of two numbers from this range, which are a mixture of its ends each."""
    return ROUNDINGS * Fraction(math.ulp(float(max(abs(low), abs(high)))))


# Means and probabilities with a required shape: the posterior of a rising curve, and the curve of the shape next to it.

PRECISION = 1 << 40
"""Squared distances are counted in whole numbers of this part."""
SOME = 1e-3
"""Points without records count as much as this share of the most crowded one."""


@dataclass(frozen=True)
class NearestOfShape(CurveMechanism):
    """The curve of a shape that is nearest to the posterior of a rising curve, in squares weighted by records.

    ``inner`` measures, on the points of the shape. All curves of the shape are those that ``shape`` could draw; the
    nearest of them is found exactly, so it has the shape exactly. It is post-processing.

    Guarantee: that of ``inner`` (docs/theory/curves.md, section 8.2).
    Error: ``error()`` is an estimate, not a bound.
    """

    inner: PosteriorFit
    shape: CurveDraw | PieceDraw

    @classmethod
    def of(cls, problem: ChainProblem) -> NearestOfShape:
        """The mechanism with sizes for a problem, whose loss is fitted by means."""
        assert problem.shape is not None
        return cls(problem.setting, problem.points, PosteriorFit.of(problem), problem.shape.drawn(problem))

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of the shape."""
        sums = self.inner.measure(records, draws)
        result = self.inner.posterior(sums, self.inner.levels)
        expected = curve_of(sums, result, self.inner.output, self.inner.ends, even=True).at(
            np.arange(self.points)
        )
        width = np.diff(np.r_[sums.starts, self.points])
        density = np.repeat((result.ones + result.zeros) / width, width)
        weight = density / max(float(density.max()), 1e-9) + SOME
        columns = np.linspace(0.0, 1.0, self.shape.table.shape[1])
        apart = weight[:, None] * (columns[None, :] - expected[:, None]) ** 2
        return self.shape.chosen(np.rint(PRECISION * apart).astype(np.int64), cheapest)

    def error(self) -> RiskBound:
        """An estimate: that of the measurement, and half a step of values."""
        measured = self.inner.error()
        return RiskBound(measured.noise, measured.per_record + self.shape.step / 2, proved=False)
