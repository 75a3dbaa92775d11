"""One exact draw from the exponential mechanism over a whole class of curves.

The method of the sources' Appendix A for increasing curves (the baseline), and of every shape constraint. The
score of a curve is its loss, one record moves it by the range of its own loss, and the draw is exact
(docs/theory/curves.md, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from isotone.array_types import Ints
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.circuits.circuit import Circuit, CircuitTables
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RegressionMechanism, RiskBound
from isotone.curves.grids import Grid
from isotone.curves.losses.known_losses import ROWS, largest_range
from isotone.curves.measure import equal_bins
from isotone.curves.records import Records
from isotone.curves.shapes.graphs import CurveGraph
from isotone.curves.shapes.linear import LinearGraph, LinearPieces, linear_graph, piece_costs
from isotone.curves.shapes.monotone import Monotone
from isotone.curves.shapes.shape import CurveShape

__all__ = ["BinnedDraw", "CurveDraw", "PieceDraw", "draw_bound", "point_costs"]

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
