"""One exact draw from the exponential mechanism over a whole class of curves.

The method of the sources' Appendix A for increasing curves (the baseline), and of every shape constraint: the
score of a curve is its loss, one record moves it by the range of its own loss, and the draw is exact
(docs/theory/curves.md, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.curves.choices import Choices
from isotone.curves.circuits.circuit import CircuitTables
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import FINE
from isotone.curves.measure import equal_bins
from isotone.curves.records import Records
from isotone.curves.shapes.graphs import CurveGraph
from isotone.curves.shapes.linear_graph import LinearGraph, piece_costs
from isotone.kernels import kernel

__all__ = ["BinnedDraw", "CurveDraw", "PieceDraw", "point_costs"]

Ints = NDArray[np.int64]


def point_costs(records: Records, points: int, table: Ints) -> Ints:
    """The loss of all records at each point, for each value of the table, less the least at that point."""
    coarse = FINE // (table.shape[0] - 1)
    costs = _add_rows((records.levels + coarse // 2) // coarse, records.cells, records.weights, points, table)
    return costs - costs.min(axis=1, keepdims=True)


@kernel
def _add_rows(levels: Ints, cells: Ints, weights: Ints, points: int, table: Ints) -> Ints:
    costs = np.zeros((points, table.shape[1]), np.int64)
    for record in range(levels.size):
        row = costs[cells[record]]
        for value in range(table.shape[1]):
            row[value] += weights[record] * table[levels[record], value]
    return costs


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

    @cached_property
    def _range(self) -> int:
        return int(np.ptp(self.table, axis=1).max())

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A curve of the class."""
        costs = self.curves.costs(point_costs(records, self.points, self.table))
        rate = self.setting.rate(Fraction(1), self._range)
        values = self.curves.curve(choices.select(self.curves.graph, costs, rate)) / (self.table.shape[1] - 1)
        if self.interpolated:
            return Curve(np.arange(self.points), values, self.points, interpolated=True)
        starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
        return Curve(starts, values[starts], self.points)

    def error(self) -> RiskBound:
        """Section 7: ``R·ln(number of curves)/ε`` and half a step of the values' grid."""
        graph = self.curves.graph
        count = CircuitTables(graph, np.zeros(graph.nodes, np.int64), Fraction(1)).log_total()
        noise = self.unit * self._range * count * self.setting.factor / float(self.setting.epsilon)
        return RiskBound(noise, self.steepest / (2 * (self.table.shape[1] - 1)))


@dataclass(frozen=True)
class BinnedDraw(CurveMechanism):
    """A draw from the step curves on equal bins: ``inner`` has a point for every bin.

    For so few records that a curve with more freedom would follow noise.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 7; a record has one bin).
    Error: ``error()`` is an estimate: how much a curve rises within a bin is not known.
    """

    inner: CurveDraw

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A step curve with at most one step for each bin."""
        whole = np.zeros(1, np.int64), np.full(1, self.points, np.int64)
        starts = equal_bins(*whole, self.inner.points)
        bins = np.searchsorted(starts, records.cells, side="right") - 1
        curve = self.inner.draw(Records(bins, records.levels, records.weights), choices)
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

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A continuous curve with at most the given number of linear pieces."""
        losses = point_costs(records, self.points, self.table)
        costs = self.pieces.costs(piece_costs(losses, self.knots, self.pieces.ends, self.values))
        rate = self.setting.rate(Fraction(1), int(np.ptp(self.table, axis=1).max()))
        knots, values = self.pieces.curve(choices.select(self.pieces.graph, costs, rate))
        return Curve(self.knots[knots], values / (self.values - 1), self.points, interpolated=True)

    def error(self) -> RiskBound:
        """Section 7: as for all draws, with half a step of the values at the knots."""
        graph = self.pieces.graph
        count = CircuitTables(graph, np.zeros(graph.nodes, np.int64), Fraction(1)).log_total()
        scale = self.unit * int(np.ptp(self.table, axis=1).max()) * self.setting.factor
        return RiskBound(scale * count / float(self.setting.epsilon), self.steepest / (2 * (self.values - 1)))
