"""Least squares over margins where several attributes have levels whose nodes are not alike.

Along one attribute, the widest, the tables are a tree whose nodes are vectors: one number for each cell of all other
attributes. Each node is measured with a matrix for its precision, and least squares are those of a tree with matrices in
the place of numbers: two passes, for each kind of node one matrix (docs/theory/breakdowns.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.breakdowns.cells import Margin
from isotone.counts.breakdowns.nested import AttributeLevels, NestedComponents

__all__ = ["NestedLeastSquares", "is_small"]

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
        found: dict[tuple[int, int, int], int] = {}
        places: list[Ints] = []
        for level, row in enumerate(kinds):
            above = np.full(row.size, -1) if level == 0 else places[-1][self.tree.parents[level - 1]]
            pairs = zip(row.tolist(), above.tolist(), strict=True)
            numbers = [found.setdefault((level, kind, up), len(found)) for kind, up in pairs]
            places.append(np.array(numbers, np.int64))
        return places, list(found)

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
        found: list[list[Floats]] = []
        for m, one in enumerate(self.tau.tolist()):
            step = np.zeros(self.tau.size, np.complex128)
            step[m] = 1j * _STEP
            found.append([x.imag / _STEP for x in self._solve(self.tau + step)[2]] if one > 0 else [])
        return found

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
        told = self._told(measured)
        finest = len(self.tree.parents)
        means, sums = list(told), list(told)
        means[finest] = self._times(upward, finest, told[finest])
        for level in range(finest - 1, -1, -1):
            sums[level] = self.tree.added(means[level + 1], 0, level + 1, level)
            # what the children say together, and what the node says
            both = self._times(inverse, level, sums[level]) + told[level]
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

    def _told(self, measured: Sequence[NDArray[np.number] | None]) -> list[Floats]:
        """For each level what the tables say about its nodes, each weighted by its precision."""
        elements = next(table.shape[-1] for table in measured if table is not None)
        told = [np.zeros((even.size, self.width, elements)) for even in self.tree.even]
        for one, margin, table in zip(
            self.tau.tolist(), self.components.breakdown.margins, measured, strict=True
        ):
            if table is not None and one > 0:
                rows = np.moveaxis(np.asarray(table, dtype=np.float64), self.main, 0)
                rows = rows.reshape(len(rows), -1, elements)
                told[margin[self.main]] += one * (self._sums(self._rest(margin)).T @ rows)
        return told
