"""Products of two chains. An ideal is a staircase, drawn row by row.

In the product of a chain of rows and a chain of columns an ideal holds the first ``h[i]`` columns of row ``i``, and
``h`` never rises. A region is what lies between two staircases, ``low[i] <= h[i] <= high[i]``. Totals over the
heights of the rows before are running sums, so a cut costs O(cells) (docs/theory/curves-posets.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.curves.circuits.circuit import Circuit, CircuitTables
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.poset.regions import Cut
from isotone.kernels import kernel

__all__ = ["GridRegion"]


@dataclass(frozen=True)
class GridRegion:
    """The cells ``cells[i, low[i]:high[i]]`` of a product of two chains. ``low`` and ``high`` never rise.

    ``cells`` holds the numbers of the elements, row by row.
    """

    cells: Ints = field(repr=False)
    low: Ints = field(repr=False)
    high: Ints = field(repr=False)

    @classmethod
    def whole(cls, cells: Ints) -> GridRegion:
        """All cells."""
        rows, columns = cells.shape
        return cls(cells, np.zeros(rows, np.int64), np.full(rows, columns, np.int64))

    @property
    def members(self) -> Ints:
        """The elements, row by row."""
        return self._members

    @cached_property
    def _members(self) -> Ints:
        column = np.arange(self.cells.shape[1])
        inside = (column >= self.low[:, None]) & (column < self.high[:, None])
        return self.cells[inside]

    def log_ideals(self) -> float:
        """The logarithm of the number of staircases."""
        circuit = Circuit(*_staircases(self.low, self.high))
        return CircuitTables(circuit, np.zeros(circuit.nodes, np.int64), Fraction(1)).log_total()

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw a staircase."""
        circuit = Circuit(*_staircases(self.low, self.high))
        costs = _row_costs(weights, self.cells, self.low, self.high, circuit.nodes)
        selected = draws.select(circuit, costs, rate)
        chosen = selected[~circuit.summed[selected]]  # one height for each row
        starts = np.concatenate([[0], np.cumsum(2 * (self.high - self.low + 1))])
        row = np.searchsorted(starts, chosen, side="right") - 1
        heights = np.empty_like(self.low)
        heights[row] = self.high[row] - (chosen - starts[row]) // 2
        return Cut(self._between(self.low, heights), self._between(heights, self.high))

    def _between(self, low: Ints, high: Ints) -> GridRegion | None:
        rows = np.flatnonzero(low < high)
        if not rows.size:
            return None
        span = slice(int(rows[0]), int(rows[-1]) + 1)
        return GridRegion(self.cells[span], low[span], high[span])


@kernel(steps=lambda low, high: 8 * (low.size + int((high - low).sum())))
def _staircases(low: Ints, high: Ints) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """The circuit of all staircases.

    For each row two nodes a height, from the highest down: "this height" (a product with the sum of the row before) and
    "this height or a higher one" (a sum).
    """
    nodes, edges = 0, 0
    for i in range(low.size):
        heights = high[i] - low[i] + 1
        nodes += 2 * heights
        edges += (3 if i > 0 else 2) * heights - 1
    summed = np.zeros(nodes, np.bool_)
    first = np.empty(nodes + 1, np.int64)
    child = np.empty(edges, np.int64)
    node, edge, before = 0, 0, 0
    for i in range(low.size):
        start = node
        for h in range(high[i], low[i] - 1, -1):
            first[node] = edge
            if i > 0:  # the sum over heights of at least h in the row before
                child[edge] = before + 2 * (high[i - 1] - max(h, low[i - 1])) + 1
                edge += 1
            node += 1
            first[node] = edge
            summed[node] = True
            if h < high[i]:
                child[edge] = node - 2
                edge += 1
            child[edge] = node - 1
            edge += 1
            node += 1
        before = start
    first[nodes] = edge
    return summed, first, child


@kernel(steps=lambda weights, cells, *_: 4 * cells.size)
def _row_costs(weights: Ints, cells: Ints, low: Ints, high: Ints, nodes: int) -> Ints:
    """The weights below the height in its row, less the least such sum, for "this height" nodes."""
    costs = np.zeros(nodes, np.int64)
    node = 0
    for i in range(low.size):
        total, least = 0, 0
        for h in range(low[i], high[i]):
            total += weights[cells[i, h]]
            least = min(least, total)
        for h in range(high[i], low[i] - 1, -1):
            costs[node] = total - least
            node += 2
            if h > low[i]:
                total -= weights[cells[i, h - 1]]
    return costs
