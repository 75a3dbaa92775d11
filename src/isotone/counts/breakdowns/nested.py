"""Estimates over margins where several attributes have levels.

Along the levels of an attribute a table is a sum of components: what a level says beyond the one above it, if what is at a
node were split evenly between its children. A margin has the components of its own levels and of all coarser ones, and
every margin that has a component measures it with noise of its own. The estimate of a component is a weighted mean, the
same for all elements. Where all nodes of a level have as many children it is that of least squares; elsewhere it is
near to it, and used where :mod:`isotone.counts.breakdowns.nested_exact` does not reach. It is unbiased, margins add up, and its variances are exact (docs/theory/breakdowns.md, section 3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.breakdowns.cells import Attribute, Breakdown, Margin

__all__ = ["NestedComponents", "NestedMeans"]


@dataclass(frozen=True, eq=False)
class AttributeLevels:
    """The nodes of one attribute at each level, from level 0, which has one node, on."""

    parents: tuple[Ints, ...]
    """For each level from 1 on the place of each node's parent."""

    @classmethod
    def of(cls, attribute: Attribute) -> AttributeLevels:
        """The levels of an attribute below one node for all of its values."""
        first = np.zeros(attribute.size(1), np.int64)
        return cls((first, *(np.array(places, np.int64) for places in attribute.parents)))

    @cached_property
    def even(self) -> list[Floats]:
        """The part of the whole that each node has if every node is split evenly."""
        parts = [np.ones(1)]
        for above in self.parents:
            parts.append((parts[-1] / np.bincount(above, minlength=parts[-1].size))[above])
        return parts

    def ancestors(self, level: int, coarser: int) -> Ints:
        """The place at a coarser level of each node of a level."""
        found = np.arange(self.even[level].size)
        for above in reversed(self.parents[coarser:level]):
            found = above[found]
        return found

    def ratio(self, level: int, coarser: int) -> Floats:
        """The part of its ancestor at a coarser level that each node of a level has."""
        return self.even[level] / self.even[coarser][self.ancestors(level, coarser)]

    def below(self, coarser: int, level: int) -> Floats:
        """How many nodes of a level are below each one of a coarser level."""
        places = self.ancestors(level, coarser)
        return np.bincount(places, minlength=self.even[coarser].size).astype(np.float64)

    def products(self, shown: int, measured: int) -> Floats:
        """For each node of the level shown, and each two components, the product of their parts in an estimate of it.

        A part is what the component, found from the measured level, gives to the node: a number for each measured node.
        """
        top = min(shown, measured) + 1
        plain = np.zeros((self.even[shown].size, top + 1, top + 1))  # of sums at ancestors; first none
        for r, q in itertools.product(range(top), repeat=2):
            low, high = max(r, q), min(r, q)
            inside = self.below(low, measured)[self.ancestors(shown, low)]
            plain[:, r + 1, q + 1] = self.ratio(shown, low) * self.ratio(shown, high) * inside
        once = plain[:, 1:] - plain[:, :-1]
        return once[:, :, 1:] - once[:, :, :-1]

    def added(self, table: Floats, axis: int, level: int, coarser: int) -> Floats:
        """A table of a level added up to a coarser one along an axis."""
        for above in reversed(self.parents[coarser:level]):
            # those with one parent stand side by side
            table = np.add.reduceat(table, np.flatnonzero(np.diff(above, prepend=-1)), axis=axis)
        return table

    def beyond(self, table: Floats, axis: int, level: int) -> Floats:
        """What a level says beyond the one above it, along an axis."""
        if level == 0:
            return table
        return table - self.spread(self.added(table, axis, level, level - 1), axis, level, level - 1)

    def spread(self, table: Floats, axis: int, level: int, coarser: int) -> Floats:
        """A table of a coarser level split evenly, along an axis."""
        shape = [-1 if i == axis else 1 for i in range(table.ndim)]
        return np.take(table, self.ancestors(level, coarser), axis) * self.ratio(level, coarser).reshape(
            shape
        )


@dataclass(frozen=True, eq=False)
class NestedComponents:
    """What is known about the margins of a breakdown before shares are chosen. A component is a level of each attribute."""

    breakdown: Breakdown
    tree_axis: None = None

    @cached_property
    def axes(self) -> list[AttributeLevels]:
        """The attributes."""
        return [AttributeLevels.of(attribute) for attribute in self.breakdown.attributes]

    @cached_property
    def all(self) -> list[Margin]:
        """The components that some margin has."""
        below = (itertools.product(*(range(level + 1) for level in m)) for m in self.breakdown.margins)
        return list(dict.fromkeys(itertools.chain.from_iterable(below)))

    def noise(self, margin: Margin, component: Margin) -> float:
        """The mean variance of a component found from a margin whose cells have variance 1."""
        return math.prod(
            float(axis.products(r, level)[:, r, r].mean())
            for axis, level, r in zip(self.axes, margin, component, strict=True)
        )

    @cached_property
    def closed_form(self) -> tuple[Floats, Floats]:
        """How the variance of each component spreads to margins, and how margins measure components.

        Exact where all nodes of a level are alike, and for the choice of shares everywhere.
        """
        margins, covers = self.breakdown.margins, self.breakdown.covers
        spreads, shares = np.zeros((len(margins), len(self.all))), np.zeros((len(self.all), len(margins)))
        for c, component in enumerate(self.all):
            for m, margin in enumerate(margins):
                if not covers(margin, component):
                    continue
                noise = self.noise(margin, component)
                shares[c, m] = 1 / noise if noise > 0 else 1.0  # a component without noise is 0
                parts = (axis.ratio(t, r) for axis, t, r in zip(self.axes, margin, component, strict=True))
                spreads[m, c] = math.prod(float((part**2).mean()) for part in parts) if noise > 0 else 0.0
        return spreads, shares

    def mean_variances(self, tau: Floats) -> tuple[Floats, Floats]:
        """About the mean variance of the cells of each margin for noise of precision ``tau``, and its derivative."""
        spreads, shares = self.closed_form
        precision = shares @ tau
        return spreads @ (1 / precision), -(spreads / precision**2) @ shares


@dataclass(frozen=True, eq=False)
class NestedMeans:
    """The estimate of all margins from noisy tables of some, whose cells have precisions in the ratio of ``tau``."""

    components: NestedComponents
    tau: Floats

    @cached_property
    def weights(self) -> dict[Margin, Floats]:
        """For each component the weights of the margins that it is found from, which add up to 1."""
        rows = self.components.closed_form[1] * self.tau
        rows = rows / rows.sum(axis=1, keepdims=True)
        return dict(zip(self.components.all, rows, strict=True))

    def spread(self, margin: Margin, noise: Floats) -> Floats:
        """The variance of every value of a margin, given that of the cells of each margin, a row each, by element."""
        parts = self.components
        sizes = parts.breakdown.sizes(margin)
        total = np.zeros((*sizes, noise.shape[1]))
        for m, other in enumerate(parts.breakdown.margins):
            if self.tau[m] > 0:
                total += self._gain(margin, m, other)[..., None] * noise[m]
        return total

    def _gain(self, margin: Margin, m: int, other: Margin) -> Floats:
        """How much of the variance of a cell of another margin is in an estimate of each cell of a margin."""
        common = tuple(map(min, margin, other))
        shape = tuple(level + 1 for level in common)
        weights = np.array(
            [self.weights[r][m] for r in itertools.product(*(range(n) for n in shape))]
        ).reshape(shape)
        found, places = np.multiply.outer(weights, weights), list[Ints]()
        for i, axis in enumerate(self.components.axes):
            # nodes that are alike are looked at once
            alike, place = np.unique(axis.products(margin[i], other[i]), axis=0, return_inverse=True)
            places.append(place.ravel())
            # the first axis of each of the two halves that are left, against both axes of the products
            left = len(shape) - i
            found = np.tensordot(found, alike, axes=((0, left), (1, 2)))
        return found[np.ix_(*places)]

    def estimate(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """The tables of all margins, which add up, from the noisy tables of those that are measured."""
        parts = self.components
        found = {component: self._component(component, measured) for component in parts.all}
        return [self._table(margin, found) for margin in parts.breakdown.margins]

    def _component(self, component: Margin, measured: Sequence[NDArray[np.number] | None]) -> Floats:
        parts, total = self.components, None
        for m, (margin, table) in enumerate(zip(parts.breakdown.margins, measured, strict=True)):
            if table is None or self.weights[component][m] == 0:
                continue
            part = np.asarray(table, dtype=np.float64) * self.weights[component][m]
            for i, axis in enumerate(parts.axes):
                part = axis.added(part, i, margin[i], component[i])
            total = part if total is None else total + part
        assert total is not None
        for i, axis in enumerate(parts.axes):
            total = axis.beyond(total, i, component[i])
        return total

    def _table(self, margin: Margin, found: dict[Margin, Floats]) -> Floats:
        parts, total = self.components, 0.0
        for component, table in found.items():
            if not parts.breakdown.covers(margin, component):
                continue
            for i, axis in enumerate(parts.axes):
                table = axis.spread(table, i, margin[i], component[i])
            total = total + table
        return np.asarray(total)
