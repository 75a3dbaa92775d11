"""Least squares over margins, along the levels of attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.breakdown import Attribute, Breakdown, Margin
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares

# Least squares along the levels of one attribute, where all nodes of a level are measured alike.
#
# For each level it says how much of the variance of an estimate comes from the noise of that level
# (docs/theory/breakdowns.md, section 3). An attribute without levels is a tree of one node.


@dataclass(frozen=True, eq=False)
class Levels:
    """The nodes of an attribute with levels, below one node for all of its values."""

    tree: Hierarchy

    @classmethod
    def of(cls, attribute: Attribute | None) -> Levels:
        """The tree of an attribute, or one node if there is none."""
        parents = [np.array([-1])]
        start = 0
        for level in range(1, 1 + (0 if attribute is None else len(attribute.names))):
            assert attribute is not None
            above = (
                np.zeros(attribute.size(1), np.int64)
                if level == 1
                else np.array(attribute.parents[level - 2])
            )
            parents.append(above + start)
            start += attribute.size(level - 1)
        return cls(Hierarchy(np.concatenate(parents).astype(np.int64), np.empty(0, np.int64)))

    def __len__(self) -> int:
        return len(self.tree.levels)

    @cached_property
    def _cut(self) -> list[Hierarchy]:
        """The tree without what is finer than each level."""
        nowhere = np.empty(0, np.int64)
        return [Hierarchy(self.tree.parent[: level.stop], nowhere) for level in self.tree.levels]

    def fit(self, precision: Floats) -> LevelFit:
        """Least squares for one precision a level, down to the finest level that is measured."""
        tree = self._cut[int(np.flatnonzero(precision)[-1])]
        return LevelFit(TreeLeastSquares.of(tree, precision[tree.depth]), precision)


@dataclass(frozen=True, eq=False)
class LevelFit:
    """Estimates of all nodes, and where their variance comes from."""

    fit: TreeLeastSquares
    precision: Floats

    @property
    def tree(self) -> Hierarchy:
        """The nodes, down to the finest level that is measured."""
        return self.fit.tree

    @cached_property
    def contributions(self) -> Floats:
        """The part of each node's variance that the noise of each level has, a row a node."""
        tree, fit, levels = self.tree, self.fit, len(self.tree.levels)
        if levels == 1:
            return fit.variance[:, None]
        n = len(tree)
        upward, gap = np.zeros((n, levels)), np.zeros((n, levels))
        weight = np.where(tree.leaf, 0.0, fit.precision * fit.spread)
        for depth, level in reversed(list(enumerate(tree.levels))):
            leaf = tree.leaf[level]
            own = np.where(leaf, 1.0, weight[level] * fit.spread[level])  # weight² over the precision
            own = np.where(leaf, fit.upward[level], own)
            upward[level] = gap[level]
            upward[level, depth] += own
            upward[level] /= (1 + weight[level])[:, None] ** 2
            if level.start:
                above = tree.parent[level]
                first = np.flatnonzero(np.diff(above, prepend=-1))
                gap[above[first]] = np.add.reduceat(upward[level], first, axis=0)
        final = upward.copy()
        pull = 1 / (1 + weight)  # how much of what its children say is in the estimate of a node
        for level in tree.levels[1:]:
            above, share = tree.parent[level], fit.share[level][:, None]
            less = share * (1 - pull[above][:, None])
            others = gap[above] - upward[level]
            elsewhere = final[above] - pull[above][:, None] ** 2 * gap[above]
            final[level] = (1 - less) ** 2 * upward[level] + less**2 * others + share**2 * elsewhere
            pull[level] *= 1 - less[:, 0]
        return final

    def means(self) -> Floats:
        """The mean of the contributions over the nodes of each level, a row a level."""
        return np.array([self.contributions[level].mean(axis=0) for level in self.tree.levels])

    def estimate(self, measured: Floats) -> Floats:
        """The estimate of all nodes (last axis), which add up, from one measured number a node."""
        return self.fit.estimate(measured)


# Estimates over margins where several attributes have levels.
#
# Along the levels of an attribute a table is a sum of components: what a level says beyond the one above it, if what is at a
# node were split evenly between its children. A margin has the components of its own levels and of all coarser ones, and
# every margin that has a component measures it with noise of its own. The estimate of a component is a weighted mean, the
# same for all elements. Where all nodes of a level have as many children it is that of least squares; elsewhere it is
# near to it, and used where :mod:`isotone.counts.margins_least_squares` does not reach. It is unbiased, margins add up, and its variances are exact (docs/theory/breakdowns.md, section 3).


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
        result = np.arange(self.even[level].size)
        for above in reversed(self.parents[coarser:level]):
            result = above[result]
        return result

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
        result, places = np.multiply.outer(weights, weights), list[Ints]()
        for i, axis in enumerate(self.components.axes):
            # nodes that are alike are looked at once
            alike, place = np.unique(axis.products(margin[i], other[i]), axis=0, return_inverse=True)
            places.append(place.ravel())
            # the first axis of each of the two halves that are left, against both axes of the products
            left = len(shape) - i
            result = np.tensordot(result, alike, axes=((0, left), (1, 2)))
        return result[np.ix_(*places)]

    def estimate(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """The tables of all margins, which add up, from the noisy tables of those that are measured."""
        parts = self.components
        result = {component: self._component(component, measured) for component in parts.all}
        return [self._table(margin, result) for margin in parts.breakdown.margins]

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

    def _table(self, margin: Margin, tables: dict[Margin, Floats]) -> Floats:
        parts, total = self.components, 0.0
        for component, table in tables.items():
            if not parts.breakdown.covers(margin, component):
                continue
            for i, axis in enumerate(parts.axes):
                table = axis.spread(table, i, margin[i], component[i])
            total = total + table
        return np.asarray(total)


# Least squares over margins where several attributes have levels whose nodes are not alike.
#
# Along one attribute, the widest, the tables are a tree whose nodes are vectors: one number for each cell of all other
# attributes. Each node is measured with a matrix for its precision, and least squares are those of a tree with matrices in
# the place of numbers: two passes, for each kind of node one matrix (docs/theory/breakdowns.md, section 3).

Matrix = NDArray[np.complex128]

_WIDEST, _KINDS, _WORK = 64, 2_000, 4e8
"""The most cells of all other attributes, and the most kinds of nodes, that matrices are computed for; the most products of
one pass over all of them, for all margins."""

_LEAST = 1e-9
"""The least part of all precision that the finest table has: below it, sums of large counts would lose their last digits."""

_STEP = 1e-30
"""An imaginary step: its square is nothing beside 1, so that derivatives are exact."""


def is_small(components: NestedComponents, tau: Floats) -> bool:
    """Whether nodes are not alike, a table with all cells is measured well enough, and the work is within reach.

    Public numbers decide.
    """
    breakdown = components.breakdown
    finest = tuple(len(axis.parents) for axis in components.axes)
    alike = all(np.ptp(np.bincount(above)) == 0 for axis in components.axes for above in axis.parents)
    if alike or finest not in breakdown.margins:
        return False
    exact = NestedLeastSquares(components, tau)
    if exact.width > _WIDEST or tau[breakdown.margins.index(finest)] < _LEAST * tau.sum():
        return False
    kinds = len(exact.contexts[1])
    return kinds <= _KINDS and kinds * int(np.count_nonzero(tau)) * exact.width**3 <= _WORK


@dataclass(frozen=True, eq=False)
class NestedLeastSquares:
    """The estimate of all margins from noisy tables of some, whose cells have precisions in the ratio of ``tau``."""

    components: NestedComponents
    tau: Floats

    @cached_property
    def main(self) -> int:
        """The attribute that the tree is along, that with the most values."""
        return int(np.argmax([axis.even[-1].size for axis in self.components.axes]))

    @property
    def tree(self) -> AttributeLevels:
        """The levels of that attribute."""
        return self.components.axes[self.main]

    @cached_property
    def others(self) -> list[AttributeLevels]:
        """The other attributes."""
        return [axis for i, axis in enumerate(self.components.axes) if i != self.main]

    @property
    def width(self) -> int:
        """The number of cells of all other attributes."""
        return int(np.prod([axis.even[-1].size for axis in self.others]))

    def _rest(self, margin: Margin) -> Margin:
        return tuple(level for i, level in enumerate(margin) if i != self.main)

    def _sums(self, rest: Margin) -> Floats:
        """The matrix that adds up the cells of the other attributes to their levels in a margin."""
        parts = [np.ones((1, 1))]
        for axis, level in zip(self.others, rest, strict=True):
            finest = len(axis.parents)
            part = np.zeros((axis.even[level].size, axis.even[finest].size))
            part[axis.ancestors(finest, level), np.arange(axis.even[finest].size)] = 1
            parts.append(part)
        return reduce(np.kron, parts).astype(np.float64)

    @cached_property
    def contexts(self) -> tuple[list[Ints], list[tuple[int, int, int]]]:
        """Nodes that are alike. The context of each node, level by level, and for each its level, kind and parent."""
        kinds: list[Ints] = [np.zeros(0, np.int64)] * len(self.tree.even)
        known: dict[tuple[int, ...], int] = {}
        for level in range(len(self.tree.even) - 1, -1, -1):
            below: list[list[int]] = [[] for _ in range(self.tree.even[level].size)]
            if level < len(self.tree.parents):
                for child, above in enumerate(self.tree.parents[level].tolist()):
                    below[above].append(int(kinds[level + 1][child]))
            keys = [(level, *sorted(row)) for row in below]
            kinds[level] = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
        result: dict[tuple[int, int, int], int] = {}
        places: list[Ints] = []
        for level, row in enumerate(kinds):
            above = np.full(row.size, -1) if level == 0 else places[-1][self.tree.parents[level - 1]]
            pairs = zip(row.tolist(), above.tolist(), strict=True)
            numbers = [result.setdefault((level, kind, up), len(result)) for kind, up in pairs]
            places.append(np.array(numbers, np.int64))
        return places, list(result)

    def _solve(self, tau: NDArray[np.complex128]) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
        """For each context the covariance from its subtree, the sum of those of its children, and the final one."""
        places, listed = self.contexts
        precision = [np.zeros((self.width, self.width), np.complex128) for _ in self.tree.even]
        for one, margin in zip(tau, self.components.breakdown.margins, strict=True):
            sums = self._sums(self._rest(margin))
            precision[margin[self.main]] += one * (sums.T @ sums)
        upward, spread = [precision[0]] * len(listed), [precision[0]] * len(listed)
        for context in range(len(listed) - 1, -1, -1):  # children come after their parents
            level = listed[context][0]
            if level == len(self.tree.parents):
                upward[context] = np.linalg.inv(precision[level]).astype(np.complex128)
                continue
            node = int(np.flatnonzero(places[level] == context)[0])
            children = places[level + 1][self.tree.parents[level] == node]
            kinds, number = np.unique(children, return_counts=True)
            total = sum(
                (k * upward[c] for c, k in zip(kinds.tolist(), number.tolist(), strict=True)),
                0 * precision[0],
            )
            spread[context] = total
            own = np.linalg.solve(np.eye(self.width) + total @ precision[level], total)
            upward[context] = own.astype(np.complex128)
        final = list(upward)
        for context, (_, _, above) in enumerate(listed):
            if above >= 0:
                gain = np.linalg.solve(spread[above].T, upward[context].T).T
                final[context] = upward[context] - gain @ (spread[above] - final[above]) @ gain.T
        return upward, spread, final

    @cached_property
    def _solved(self) -> tuple[list[Floats], list[Floats]]:
        """For each context the covariance from its subtree, and the inverse of that of the sum of its children."""
        upward, spread, _ = self._solve(self.tau.astype(np.complex128))
        finest, listed = len(self.tree.parents), self.contexts[1]
        pairs = zip(spread, listed, strict=True)
        inverses = [
            np.linalg.inv(x.real).astype(np.float64) if level < finest else x.real
            for x, (level, _, _) in pairs
        ]
        return [one.real for one in upward], inverses

    @cached_property
    def _slopes(self) -> list[list[Floats]]:
        """For each margin that is measured the derivative of all final covariances in its precision."""
        result: list[list[Floats]] = []
        for m, one in enumerate(self.tau.tolist()):
            step = np.zeros(self.tau.size, np.complex128)
            step[m] = 1j * _STEP
            result.append([x.imag / _STEP for x in self._solve(self.tau + step)[2]] if one > 0 else [])
        return result

    def spread(self, margin: Margin, noise: Floats) -> Floats:
        """The variance of every value of a margin, given that of the cells of each margin, a row each, by element.

        The weight of a measured table in an estimate follows from the derivative of its variance in the table's precision.
        """
        level, sums = margin[self.main], self._sums(self._rest(margin))
        nodes = self.contexts[0][level]
        alike, place = np.unique(nodes, return_inverse=True)
        total = np.zeros((alike.size, len(sums), noise.shape[1]))
        for one, row, slopes in zip(self.tau.tolist(), noise, self._slopes, strict=True):
            if one > 0:
                parts = np.array([np.einsum("ij,jk,ik->i", sums, slopes[c], sums) for c in alike.tolist()])
                total -= one**2 * parts[:, :, None] * row
        return self._shaped(total[place], margin)

    def _shaped(self, rows: Floats, margin: Margin) -> Floats:
        """Rows of nodes, each with all cells of the others, as a table of a margin."""
        sizes = self.components.breakdown.sizes(margin)
        others = [size for i, size in enumerate(sizes) if i != self.main]
        return np.moveaxis(rows.reshape(len(rows), *others, rows.shape[-1]), 0, self.main)

    def estimate(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """The tables of all margins, which add up, from the noisy tables of those that are measured.

        The second pass is over what the first one left: it gives back the digits that matrices of unequal precisions lose.
        """
        first = self._passed(measured)
        left = [None if table is None else table - one for table, one in zip(measured, first, strict=True)]
        return [one + more for one, more in zip(first, self._passed(left), strict=True)]

    def _passed(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """One pass up the tree and one down."""
        upward, inverse = self._solved
        precisions = self._evidence(measured)
        finest = len(self.tree.parents)
        means, sums = list(precisions), list(precisions)
        means[finest] = self._times(upward, finest, precisions[finest])
        for level in range(finest - 1, -1, -1):
            sums[level] = self.tree.added(means[level + 1], 0, level + 1, level)
            # what the children say together, and what the node says
            both = self._times(inverse, level, sums[level]) + precisions[level]
            means[level] = self._times(upward, level, both)
        best = [means[0]]
        for level, above in enumerate(self.tree.parents):
            off = self._times(inverse, level, best[-1] - sums[level])
            best.append(means[level + 1] + self._times(upward, level + 1, off[above]))
        return [
            self._shaped(self._sums(self._rest(margin)) @ best[margin[self.main]], margin)
            for margin in self.components.breakdown.margins
        ]

    def _times(self, matrices: list[Floats], level: int, rows: Floats) -> Floats:
        """The rows of the nodes of a level, each times the matrix of its context."""
        result, places = np.empty_like(rows), self.contexts[0][level]
        for context in np.unique(places).tolist():
            result[places == context] = matrices[context] @ rows[places == context]
        return result

    def _evidence(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """For each level what the tables say about its nodes, each weighted by its precision."""
        elements = next(table.shape[-1] for table in measured if table is not None)
        result = [np.zeros((even.size, self.width, elements)) for even in self.tree.even]
        for one, margin, table in zip(
            self.tau.tolist(), self.components.breakdown.margins, measured, strict=True
        ):
            if table is not None and one > 0:
                rows = np.moveaxis(np.asarray(table, dtype=np.float64), self.main, 0)
                rows = rows.reshape(len(rows), -1, elements)
                result[margin[self.main]] += one * (self._sums(self._rest(margin)).T @ rows)
        return result


# Least squares over margins, by components that the margins share.
#
# A table is a sum of components, one for each set R of attributes: it varies along R, sums to zero along each of R, and
# is constant along the others. Every margin that has R measures the component of R with noise of its own, and the
# components do not mix. So the estimate is a weighted mean for each component (along the levels of an attribute, a tree),
# the same for every element whatever the covariance between elements, and its variance is a sum over components
# (docs/theory/breakdowns.md, section 2).

Axes = frozenset[int]


@dataclass(frozen=True, eq=False)
class Components:
    """What is known about the margins of a breakdown before shares are chosen."""

    breakdown: Breakdown

    @cached_property
    def tree_axis(self) -> int | None:
        """The attribute that has levels, if there is one."""
        result = [i for i, a in enumerate(self.breakdown.attributes) if len(a.names) > 1]
        return result[0] if result else None

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
        result: dict[Axes, None] = {}
        for axes in self.axes:
            for size in range(len(axes) + 1):
                result.update(dict.fromkeys(map(frozenset, itertools.combinations(sorted(axes), size))))
        return list(result)

    def added(self, axes: Axes, component: Axes) -> int:
        """How many cells of a margin are added up to get the component."""
        shape = self.breakdown.shape
        return math.prod(shape[i] for i in axes - component)

    def spread(self, axes: Axes, component: Axes) -> float:
        """The variance of a cell of a margin, for each unit of variance of the component."""
        shape = self.breakdown.shape
        own = math.prod(1 - 1 / shape[i] for i in component)
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
            result = weight * self._projected(np.asarray(table, dtype=np.float64), axes, component)
            before = collected[level]
            collected[level] = result if before is None else before + result
        shape = next(result for result in reversed(collected) if result is not None).shape[1:]
        nodes = [
            np.zeros((rows.stop - rows.start, *shape)) if result is None else result
            for rows, result in zip(levels, collected, strict=True)
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
