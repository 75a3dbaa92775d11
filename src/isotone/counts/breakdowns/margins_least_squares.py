"""Least squares over margins, by components that the margins share.

A table is a sum of components, one for each set R of attributes: it varies along R, sums to zero along each of R, and
is constant along the others. Every margin that has R measures the component of R with noise of its own, and the
components do not mix. So the estimate is a weighted mean for each component (along the levels of an attribute, a tree),
the same for every element whatever the covariance between elements, and its variance is a sum over components
(docs/theory/breakdowns.md, section 2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.counts.breakdowns.cells import Breakdown, Margin
from isotone.counts.breakdowns.levels import LevelFit, Levels
from isotone.counts.breakdowns.nested import NestedComponents, NestedMeans
from isotone.counts.breakdowns.nested_exact import NestedLeastSquares, is_small

__all__ = ["Components", "Estimator", "MarginLeastSquares", "components_of", "estimator_of"]

Axes = frozenset[int]


@dataclass(frozen=True, eq=False)
class Components:
    """What is known about the margins of a breakdown before shares are chosen."""

    breakdown: Breakdown

    @cached_property
    def tree_axis(self) -> int | None:
        """The attribute that has levels, if there is one."""
        found = [i for i, a in enumerate(self.breakdown.attributes) if len(a.names) > 1]
        return found[0] if found else None

    @cached_property
    def levels(self) -> Levels:
        """The tree of that attribute."""
        axis = self.tree_axis
        return Levels.of(None if axis is None else self.breakdown.attributes[axis])

    def level(self, margin: Margin) -> int:
        """The level of a margin in the tree."""
        return 0 if self.tree_axis is None else margin[self.tree_axis]

    @cached_property
    def flat(self) -> tuple[int, ...]:
        """The attributes without levels."""
        return tuple(i for i in range(len(self.breakdown.attributes)) if i != self.tree_axis)

    @cached_property
    def axes(self) -> list[Axes]:
        """The attributes without levels of each margin."""
        return [frozenset(i for i in self.flat if margin[i]) for margin in self.breakdown.margins]

    @cached_property
    def all(self) -> list[Axes]:
        """The components that some margin has."""
        found: dict[Axes, None] = {}
        for axes in self.axes:
            for size in range(len(axes) + 1):
                found.update(dict.fromkeys(map(frozenset, itertools.combinations(sorted(axes), size))))
        return list(found)

    def added(self, axes: Axes, component: Axes) -> int:
        """How many cells of a margin are added up to get the component."""
        return math.prod(self.breakdown.shape[i] for i in axes - component)

    def spread(self, axes: Axes, component: Axes) -> float:
        """The variance of a cell of a margin, for each unit of variance of the component."""
        own = math.prod(1 - 1 / self.breakdown.shape[i] for i in component)
        return own / self.added(axes, component) ** 2

    @cached_property
    def closed_form(self) -> tuple[Floats, Floats]:
        """Without levels, how the variance of each component spreads to margins, and how margins measure components."""
        spreads = [[self.spread(axes, c) if c <= axes else 0.0 for c in self.all] for axes in self.axes]
        shares = [[1 / self.added(axes, c) if c <= axes else 0.0 for axes in self.axes] for c in self.all]
        return np.array(spreads), np.array(shares)

    def precision(self, component: Axes, tau: Floats) -> Floats:
        """The precision with which each level measures a component, given that of the cells of each margin."""
        result = np.zeros(len(self.levels))
        for margin, axes, one in zip(self.breakdown.margins, self.axes, tau.tolist(), strict=True):
            if component <= axes:
                result[self.level(margin)] += one / self.added(axes, component)
        return result

    def mean_variances(self, tau: Floats) -> tuple[Floats, Floats]:
        """The mean variance of the cells of each margin for noise of precision ``tau``, and its derivative in ``tau``.

        A row of the derivative is a margin whose variance changes.
        """
        if self.tree_axis is None:
            spreads, shares = self.closed_form
            precision = shares @ tau
            return spreads @ (1 / precision), -(spreads / precision**2) @ shares
        margins = self.breakdown.margins
        value, slope = np.zeros(len(margins)), np.zeros((len(margins), len(margins)))
        places = [self.level(margin) for margin in margins]
        for component in self.all:
            precision = self.precision(component, tau)
            means = self.levels.fit(precision).means()
            has = [k for k, axes in enumerate(self.axes) if component <= axes]
            for t in has:
                part = self.spread(self.axes[t], component) * means[places[t]]
                value[t] += part.sum()
                for s in has:
                    if places[s] < part.size and precision[places[s]] > 0:
                        added = self.added(self.axes[s], component)
                        slope[t, s] -= part[places[s]] / (precision[places[s]] * added)
        return value, slope


@dataclass(frozen=True, eq=False)
class MarginLeastSquares:
    """The estimate of all margins from noisy tables of some, whose cells have precisions in the ratio of ``tau``.

    A margin of precision 0 is not measured; it must be a sum of one that is.
    """

    components: Components
    tau: Floats

    @cached_property
    def fits(self) -> list[LevelFit]:
        """The fit of each component."""
        parts = self.components
        return [parts.levels.fit(parts.precision(component, self.tau)) for component in parts.all]

    def gains(self, margin: Margin) -> Floats:
        """How much of the variance of a measured cell is in an estimate of a margin.

        A row for each value at the margin's level of the tree, a column for each margin that is measured.
        """
        parts = self.components
        margins = parts.breakdown.margins
        own = parts.axes[margins.index(margin)]
        rows = parts.levels.tree.levels[parts.level(margin)]
        result = np.zeros((rows.stop - rows.start, len(margins)))
        for component, fit in zip(parts.all, self.fits, strict=True):
            if not component <= own:
                continue
            from_level = fit.contributions[rows] * parts.spread(own, component)
            for s, (other, axes) in enumerate(zip(margins, parts.axes, strict=True)):
                level = parts.level(other)
                if component <= axes and self.tau[s] > 0:
                    weight = self.tau[s] ** 2 / (parts.added(axes, component) * fit.precision[level])
                    result[:, s] += from_level[:, level] * weight
        return result

    def spread(self, margin: Margin, noise: Floats) -> Floats:
        """The variance of every value of a margin, given that of the cells of each margin, a row each, by element."""
        by_node, sizes = self.gains(margin) @ noise, self.components.breakdown.sizes(margin)
        shape = [size if i == self.components.tree_axis else 1 for i, size in enumerate(sizes)]
        return np.broadcast_to(by_node.reshape(*shape, -1), (*sizes, noise.shape[1]))

    def estimate(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """The tables of all margins, which add up, from the noisy tables of those that are measured.

        A table has an axis for each attribute, and last one for the elements.
        """
        parts = self.components
        estimates = [self._component(k, measured) for k in range(len(parts.all))]
        return [self._table(margin, estimates) for margin in parts.breakdown.margins]

    def _component(self, k: int, measured: Sequence[NDArray[np.number] | None]) -> Floats:
        """The estimate of one component at all nodes of the tree, which are the first axis."""
        parts, component, fit = self.components, self.components.all[k], self.fits[k]
        levels = fit.tree.levels
        collected: list[Floats | None] = [None] * len(levels)
        for s, table in enumerate(measured):
            axes, level = parts.axes[s], parts.level(parts.breakdown.margins[s])
            if table is None or not component <= axes or self.tau[s] == 0:
                continue
            weight = self.tau[s] / (parts.added(axes, component) * fit.precision[level])
            found = weight * self._projected(np.asarray(table, dtype=np.float64), axes, component)
            before = collected[level]
            collected[level] = found if before is None else before + found
        shape = next(found for found in reversed(collected) if found is not None).shape[1:]
        nodes = [
            np.zeros((rows.stop - rows.start, *shape)) if found is None else found
            for rows, found in zip(levels, collected, strict=True)
        ]
        stacked = np.concatenate(nodes)
        return np.moveaxis(fit.estimate(np.moveaxis(stacked, 0, -1)), -1, 0)

    def _projected(self, table: Floats, axes: Axes, component: Axes) -> Floats:
        """What a table says about a component, added up along other attributes, without means along its own."""
        for i in axes - component:
            table = table.sum(axis=i, keepdims=True)
        for i in component:
            table = table - table.mean(axis=i, keepdims=True)
        return self._tree_first(table)

    def _tree_first(self, table: Floats) -> Floats:
        """A table whose first axis is the tree. Without one it has a new axis of one entry."""
        axis = self.components.tree_axis
        return table[None] if axis is None else np.moveaxis(table, axis, 0)

    def _table(self, margin: Margin, estimates: list[Floats]) -> Floats:
        parts = self.components
        axes = parts.axes[parts.breakdown.margins.index(margin)]
        rows = parts.levels.tree.levels[parts.level(margin)]
        total: Floats | None = None
        for component, estimate in zip(parts.all, estimates, strict=True):
            if component <= axes:
                part = estimate[rows] / parts.added(axes, component)
                total = part if total is None else total + part
        assert total is not None
        axis = parts.tree_axis
        table = total[0] if axis is None else np.moveaxis(total, 0, axis)
        sizes = parts.breakdown.sizes(margin)
        return np.broadcast_to(table, (*sizes, table.shape[-1])).copy()


Estimator = MarginLeastSquares | NestedMeans | NestedLeastSquares


def components_of(breakdown: Breakdown) -> Components | NestedComponents:
    """The components of the margins, those of one tree at most, or of several."""
    several = sum(len(attribute.names) > 1 for attribute in breakdown.attributes) > 1
    return NestedComponents(breakdown) if several else Components(breakdown)


def estimator_of(components: Components | NestedComponents, tau: Floats) -> Estimator:
    """The estimate of all margins from noisy tables whose cells have precisions in the ratio of ``tau``."""
    if isinstance(components, NestedComponents):
        return (NestedLeastSquares if is_small(components, tau) else NestedMeans)(components, tau)
    return MarginLeastSquares(components, tau)
