"""The baseline on chains and forests. One exact draw from all monotone functions on a grid of values.

The score of a function is its loss; one record moves it by the range of its own loss. On a forest the total weight of
the functions on a subtree with a given value at its root is a product of running sums over its children: a circuit
(docs/theory/curves-posets.md, section 9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits.circuit import Circuit
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import RiskBound
from isotone.curves.losses.known_losses import largest_range
from isotone.curves.poset.problem import PosetProblem
from isotone.curves.poset.tree import OrderMechanism
from isotone.curves.records import Records
from isotone.curves.shapes.curve_draws import draw_bound, point_costs
from isotone.errors import InputError

__all__ = ["MOST_NODES", "Branches", "PosetBaseline", "branches"]

MOST_NODES = 8_000_000


@dataclass(frozen=True)
class Branches:
    """A forest. ``order`` lists the elements with children before parents. ``parent`` is −1 at the roots.

    ``downward``: roots are at the bottom of the order, so that values count from the top.
    """

    order: Ints = field(repr=False)
    parent: Ints = field(repr=False)
    downward: bool = False


def branches(size: int, covers: Ints, bottom_up: Ints) -> Branches:
    """The order as a forest, upward or downward. Refused if it is none."""
    for lower, upper, downward in ((0, 1, False), (1, 0, True)):
        if np.bincount(covers[:, lower], minlength=size).max(initial=0) <= 1:
            parent = np.full(size, -1, np.int64)
            parent[covers[:, lower]] = covers[:, upper]
            return Branches(bottom_up[::-1] if downward else bottom_up, parent, downward)
    raise InputError(
        "The baseline needs a chain or a forest: no element with two elements right above it, or none with two right "
        "below it. Use method='additive'."
    )


@dataclass(frozen=True)
class PosetBaseline(OrderMechanism):
    """The exponential mechanism over all monotone functions on a chain or forest, with values on a grid.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, section 9).
    Cost: O(elements · values), and O(n·values) for the losses.
    """

    forest: Branches
    table: Ints = field(repr=False)
    unit: float = 1.0
    steepest: float = 1.0

    def __post_init__(self) -> None:
        if 2 * self.arrangement.size * self.table.shape[1] > MOST_NODES:
            raise InputError(
                f"The baseline on {self.arrangement.size:,} elements and {self.table.shape[1]} values is too large. Use "
                "method='additive', or fewer values (value_levels)."
            )

    @classmethod
    def of(cls, problem: PosetProblem) -> PosetBaseline:
        """The mechanism with a grid of values for a problem."""
        arrangement = problem.arrangement
        size = math.sqrt(problem.strength / math.log(arrangement.size + 1))
        values = problem.value_levels or 1 << min(7, max(1, round(math.log2(max(2.0, size)))))
        forest = branches(arrangement.size, arrangement.covers, arrangement.bottom_up)
        table, unit = problem.table(values), problem.unit(values)
        return cls(problem.setting, arrangement, forest, table, unit, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """A monotone function."""
        size, values = self.arrangement.size, self.table.shape[1]
        losses = point_costs(records, size, self.table)[self.forest.order]
        if self.forest.downward:
            losses = losses[:, ::-1]
        costs = np.zeros((size, 2, values), np.int64)
        costs[:, 0, :] = losses
        selected = draws.select(self._circuit, np.append(costs.ravel(), 0), self._rate())
        place, node = np.divmod(selected, 2 * values)
        chosen = (node < values) & (place < size)
        level = np.empty(size, np.int64)
        level[self.forest.order[place[chosen]]] = node[chosen]
        return (values - 1 - level if self.forest.downward else level) / (values - 1)

    def _rate(self) -> Fraction:
        return self.setting.rate(Fraction(1), largest_range(self.table))

    @cached_property
    def _circuit(self) -> Circuit:
        """Nodes "this value" and "at most this value" for the element at place ``p``, for every value."""
        values, order, parent = self.table.shape[1], self.forest.order, self.forest.parent
        above: dict[int, list[int]] = {}
        steps = np.arange(values)
        counts: list[Ints] = []
        child: list[Ints] = []
        for place, element in enumerate(order.tolist()):
            inner = above.pop(element, [])
            start = 2 * values * place
            counts.append(np.full(values, len(inner)))
            if inner:
                child.append(np.stack([2 * values * p + values + steps for p in inner], axis=1).ravel())
            counts.append(np.where(steps > 0, 2, 1))
            sums = np.stack([start + values + steps - 1, start + steps], axis=1).ravel()
            child.append(sums[1:])  # the lowest value has no sum before it
            above.setdefault(int(parent[element]), []).append(place)
        roots = above.pop(-1)
        counts.append(np.array([len(roots)]))
        child.append(np.array([2 * values * p + 2 * values - 1 for p in roots]))
        summed = np.append(np.tile(np.repeat([False, True], values), order.size), False)
        first = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return Circuit(summed, first.astype(np.int64), np.concatenate(child).astype(np.int64))

    def error(self) -> RiskBound:
        """Section 9, for all monotone functions."""
        step = self.steepest / (self.table.shape[1] - 1)
        return draw_bound(self, self._circuit, self.unit * largest_range(self.table), step)
