"""The integer strategy of a forest.

Sparse rows, and exact sensitivities by dynamic programming.

The row of an element has entries at itself and at its ancestors. A filter meets every root path in its upper
part, so the squared length of Qv is a sum of one term per element of the filter, and its maximum over filters is
found from the leaves up (docs/theory/gaussian.md, section 3). All sums are exact in 64 bits: a partial sum is
at most a few times the square of the scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.counts.ellipse.forest_ellipse import ForestEllipse
from isotone.counts.ellipse.forest_rows import (
    filter_terms,
    heaviest_filter,
    longest_difference,
    multiply_rows,
    nearest_integers,
    node_variances,
    solve_rows,
)
from isotone.counts.ellipse.grove import Grove, plant
from isotone.linear.strategy import nearest_plane
from isotone.privacy.adjacency import Neighbours, adjacency

__all__ = ["ForestStrategy", "forest_strategy", "plain_strategy"]


@dataclass(frozen=True)
class ForestStrategy:
    """The strategy Q for a forest.

    ``pivot[x]`` is on the diagonal of node x, and ``ties`` are at its ancestors (see :class:`Grove`).
    """

    grove: Grove
    pivot: Ints
    ties: Ints
    rooted: bool
    sensitivity_squared: int

    @property
    def elements(self) -> int:
        """The number of elements."""
        return self.grove.node.size

    @property
    def rows(self) -> int:
        """One for each element, and one for the root if it is kept."""
        return self.elements + int(self.rooted)

    def variances(self) -> Floats:
        """Diagonal of (Q'Q)⁻¹, from the root down in O(Σ depth²)."""
        g = self.grove
        share = -self.ties / np.repeat(self.pivot, g.width)
        fresh = 1.0 / np.square(self.pivot.astype(np.float64))
        fresh[0] *= self.rooted  # a root that is known has no variance
        by_node = node_variances(g.parent, g.depth, g.width, g.start, fresh, share)
        return np.append(by_node[g.node], by_node[:1]) if self.rooted else by_node[g.node]

    def covariance(self) -> Floats:
        """(Q'Q)⁻¹ on the elements."""
        columns = self.solve(np.eye(self.rows))[:, : self.elements]
        return columns.T @ columns

    def solve_integers(self, noise: Ints) -> Ints:
        """Nearest-plane rounding from the root down, then the fraction that is left."""
        rows = (*self._paths(), self.pivot, self.ties, self.rooted)
        whole, left = nearest_plane(nearest_integers, rows, np.append(noise, 0))
        fraction = solve_rows(
            *self._paths(), self.pivot, self.ties, left[:, None].astype(np.float64), self.rooted
        )
        return (whole + np.rint(fraction[:, 0]).astype(np.int64))[: self.rows]

    def solve(self, noise: Floats) -> Floats:
        """``Q⁻¹ noise`` for each row."""
        padded = np.zeros((self.elements + 1, len(noise)))
        padded[: self.rows] = noise.T
        return solve_rows(*self._paths(), self.pivot, self.ties, padded, self.rooted)[: self.rows].T

    def multiply(self, counts: Floats) -> Floats:
        """``Q counts`` for each row."""
        padded = np.zeros((self.elements + 1, len(counts)))
        padded[: self.rows] = counts.T
        return multiply_rows(*self._paths(), self.pivot, self.ties, padded)[: self.rows].T

    def diagonal(self) -> Floats:
        """The pivots, by element."""
        by_element = self.pivot[np.append(self.grove.node, 0)].astype(np.float64)
        return by_element[: self.rows]

    def root_column(self) -> Floats:
        """The ties to the root, by element."""
        if not self.rooted:
            return np.zeros(self.rows)
        ties = self.ties[self.grove.start[self.grove.node]].astype(np.float64)
        return np.append(ties, float(self.pivot[0]))

    def _paths(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        g = self.grove
        return g.parents, g.top_down, g.node, g.width, g.start


def forest_strategy(
    ellipse: ForestEllipse,
    bits: int,
    neighbours: Neighbours = "add-remove",
    max_size: int | None = None,
) -> ForestStrategy | None:
    """The ellipse on an integer scale of ``2**bits``, or None if that is too coarse to be invertible."""
    g = ellipse.grove
    scale = np.sqrt(ellipse.pivot) * 2.0**bits
    real = -np.repeat(scale, g.width) * ellipse.share
    real[g.start[1:-1]] *= ellipse.root_scale  # the root stands for root_scale times the number of records
    pivot, ties = np.rint(scale).astype(np.int64), np.rint(real).astype(np.int64)
    pivot[0] = round(float(scale[0]) * ellipse.root_scale)
    rootless = ellipse.root_scale == 0.0
    if pivot[1:].min() <= 0 or (pivot[0] <= 0 and not rootless):
        return None
    longest = _longest(g, filter_terms(g.parent, g.width, g.start, g.copies, pivot, ties), max_size)
    exchanges = adjacency(neighbours).exchanges
    if exchanges:
        apart = longest_difference(g.parent, g.depth, g.width, g.start, g.times, g.copies, pivot, ties)
        longest = min(int(apart), 4 * longest)
    pivot[0] = max(pivot[0], 1)  # unused if rootless
    return ForestStrategy(g, pivot, ties, not exchanges and not rootless, longest)


def plain_strategy(elements: int, bits: int, coordinates: int) -> ForestStrategy:
    """The strategy of ordinary Gaussian noise.

    The same multiple of each count, for records that move ``coordinates`` counts.
    """
    grove = plant(np.full(elements, -1))
    pivot = np.full(grove.nodes, 1 << bits)
    return ForestStrategy(grove, pivot, np.zeros(grove.start[-1], np.int64), False, coordinates << 2 * bits)


def _longest(grove: Grove, terms: Ints, max_size: int | None) -> int:
    """The largest |Qv|² over the filters, or a bound on it for those of at most ``max_size`` elements."""
    if max_size is None:
        return int(heaviest_filter(grove.parent, grove.times, terms))
    order = np.argsort(-terms[1:])
    heaviest, copies = terms[1:][order], grove.copies[1:][order]
    taken = np.diff(np.minimum(np.append(0, np.cumsum(copies)), max_size))
    return int(terms[0]) + sum(
        int(t) * int(c) for t, c in zip(heaviest, taken, strict=True) if t > 0 and c > 0
    )
