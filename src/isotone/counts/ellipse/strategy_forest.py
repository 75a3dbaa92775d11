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
from numpy.typing import NDArray

from isotone.counts.ellipse.forest import ForestEllipse
from isotone.counts.ellipse.grove import Grove, plant
from isotone.counts.ellipse.strategy import nearest_plane
from isotone.kernels import kernel
from isotone.privacy.adjacency import Neighbours, adjacency

__all__ = ["ForestStrategy", "forest_strategy", "plain_strategy"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ForestStrategy:
    """The strategy Q for a forest.

    ``pivot[x]`` is on the diagonal of node x, and ``ties`` are at its ancestors (see :class:`Grove`).
    """

    grove: Grove
    pivot: _Ints
    ties: _Ints
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

    def variances(self) -> _Floats:
        """Diagonal of (Q'Q)⁻¹, from the root down in O(Σ depth²)."""
        g = self.grove
        share = -self.ties / np.repeat(self.pivot, g.width)
        fresh = 1.0 / np.square(self.pivot.astype(np.float64))
        fresh[0] *= self.rooted  # a root that is known has no variance
        by_node = _variances(g.parent, g.depth, g.width, g.start, fresh, share)
        return np.append(by_node[g.node], by_node[:1]) if self.rooted else by_node[g.node]

    def covariance(self) -> _Floats:
        """(Q'Q)⁻¹ on the elements."""
        columns = self.solve(np.eye(self.rows))[:, : self.elements]
        return columns.T @ columns

    def solve_integers(self, noise: _Ints) -> _Ints:
        """Nearest-plane rounding from the root down, then the fraction that is left."""
        rows = (*self._paths(), self.pivot, self.ties, self.rooted)
        whole, left = nearest_plane(_nearest, rows, np.append(noise, 0))
        fraction = _solve(
            *self._paths(), self.pivot, self.ties, left[:, None].astype(np.float64), self.rooted
        )
        return (whole + np.rint(fraction[:, 0]).astype(np.int64))[: self.rows]

    def solve(self, noise: _Floats) -> _Floats:
        """``Q⁻¹ noise`` for each row."""
        padded = np.zeros((self.elements + 1, len(noise)))
        padded[: self.rows] = noise.T
        return _solve(*self._paths(), self.pivot, self.ties, padded, self.rooted)[: self.rows].T

    def multiply(self, counts: _Floats) -> _Floats:
        """``Q counts`` for each row."""
        padded = np.zeros((self.elements + 1, len(counts)))
        padded[: self.rows] = counts.T
        return _multiply(*self._paths(), self.pivot, self.ties, padded)[: self.rows].T

    def diagonal(self) -> _Floats:
        """The pivots, by element."""
        by_element = self.pivot[np.append(self.grove.node, 0)].astype(np.float64)
        return by_element[: self.rows]

    def root_column(self) -> _Floats:
        """The ties to the root, by element."""
        if not self.rooted:
            return np.zeros(self.rows)
        ties = self.ties[self.grove.start[self.grove.node]].astype(np.float64)
        return np.append(ties, float(self.pivot[0]))

    def _paths(self) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]:
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
    longest = _longest(g, _filter_terms(g.parent, g.width, g.start, g.copies, pivot, ties), max_size)
    exchanges = adjacency(neighbours).exchanges
    if exchanges:
        apart = _longest_difference(g.parent, g.depth, g.width, g.start, g.times, g.copies, pivot, ties)
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


def _longest(grove: Grove, terms: _Ints, max_size: int | None) -> int:
    """The largest |Qv|² over the filters, or a bound on it for those of at most ``max_size`` elements."""
    if max_size is None:
        return int(_heaviest_filter(grove.parent, grove.times, terms))
    order = np.argsort(-terms[1:])
    heaviest, copies = terms[1:][order], grove.copies[1:][order]
    taken = np.diff(np.minimum(np.append(0, np.cumsum(copies)), max_size))
    return int(terms[0]) + sum(
        int(t) * int(c) for t, c in zip(heaviest, taken, strict=True) if t > 0 and c > 0
    )


@kernel(steps=lambda parent, width, *_: parent.size + int(width.sum()))
def _filter_terms(
    parent: _Ints, width: _Ints, start: _Ints, copies: _Ints, pivot: _Ints, ties: _Ints
) -> _Ints:
    """What each element adds to |Qv|² when it joins a filter that holds everything above it.

    In the row of z with running sum s down to y, y adds ``(s + q)² − s² = q (q + 2s)``.
    """
    terms = np.zeros(parent.size, np.int64)
    path = np.zeros(width.max() + 1, np.int64)
    for z in range(parent.size):
        w, o = width[z], start[z]
        path[w] = z
        y = z
        for j in range(w - 1, 0, -1):
            y = parent[y]
            path[j] = y
        path[0] = 0 if w > 0 else z
        total = 0
        for j in range(w + 1):
            y = path[j]
            q = pivot[z] if j == w else ties[o + j]
            terms[y] += (copies[z] // copies[y]) * q * (q + 2 * total)
            total += q
    return terms


@kernel(steps=lambda parent, times, terms: parent.size)
def _heaviest_filter(parent: _Ints, times: _Ints, terms: _Ints) -> int:
    """The largest sum of terms over sets that hold the root and, with an element, all above it."""
    best = terms.copy()
    for x in range(parent.size - 1, 0, -1):
        if best[x] > 0:
            best[parent[x]] += times[x] * best[x]
    return best[0]


@kernel(steps=lambda parent, depth, width, *_: (parent.size + int(width.sum())) * (int(depth.max()) + 1))
def _longest_difference(
    parent: _Ints,
    depth: _Ints,
    width: _Ints,
    start: _Ints,
    times: _Ints,
    copies: _Ints,
    pivot: _Ints,
    ties: _Ints,
) -> int:
    """The largest |Q(v − v')|² over two filters, without the root.

    The elements in exactly one of them fall into pieces with nothing between them; a piece is what a filter
    leaves of the subtree under its highest element. So the best set of pieces in a subtree is either one piece
    with the subtree's top, or the best sets of the subtrees below.
    """
    n = parent.size
    as_top = np.zeros(n, np.int64)
    for t in range(1, depth.max() + 1):
        terms = np.zeros(n, np.int64)
        path = np.zeros(width.max() + 1, np.int64)
        for z in range(1, n):
            k, w, o = depth[z], width[z], start[z]
            if k < t:
                continue
            first = max(1, w - (k - t))  # the place of the ancestor at depth t, or the farthest one kept
            path[w] = z
            y = z
            for j in range(w - 1, first - 1, -1):
                y = parent[y]
                path[j] = y
            total = 0
            for j in range(first, w + 1):
                y = path[j]
                q = pivot[z] if j == w else ties[o + j]
                terms[y] += (copies[z] // copies[y]) * q * (q + 2 * total)
                total += q
        for x in range(n - 1, 0, -1):
            if depth[x] == t:
                as_top[x] = terms[x]
            elif depth[x] > t and terms[x] > 0:
                terms[parent[x]] += times[x] * terms[x]
    best = np.zeros(n, np.int64)
    for x in range(n - 1, 0, -1):
        best[x] = max(best[x], as_top[x], 0)
        best[parent[x]] += times[x] * best[x]
    return best[0]


@kernel(steps=lambda parent, depth, width, *_: 4 * parent.size * (int(width.max()) + 1) ** 2)
def _variances(
    parent: _Ints, depth: _Ints, width: _Ints, start: _Ints, fresh: _Floats, share: _Floats
) -> _Floats:
    """Variances of all nodes, where a node is its shares of its ancestors plus independent fresh noise."""
    most = width.max() + 1
    front = np.zeros((depth.max() + 1, most, most))
    variance = fresh.copy()
    front[0, 0, 0] = fresh[0]
    for x in range(1, parent.size):
        k, w, o = depth[x], width[x], start[x]
        shift = 1 + width[parent[x]] - w
        for i in range(w):
            to_i = i + shift if i > 0 else 0
            for j in range(w):
                front[k, i, j] = front[k - 1, to_i, j + shift if j > 0 else 0]
        for i in range(w):
            c = 0.0
            for j in range(w):
                c += front[k, i, j] * share[o + j]
            front[k, w, i] = c
            front[k, i, w] = c
            variance[x] += share[o + i] * c
        front[k, w, w] = variance[x]
    return variance


@kernel(steps=lambda parents, top_down, node, width, *_: node.size * (int(width.max()) + 1))
def _nearest(
    parents: _Ints,
    top_down: _Ints,
    node: _Ints,
    width: _Ints,
    start: _Ints,
    pivot: _Ints,
    ties: _Ints,
    rooted: bool,
    noise: _Ints,
    whole: _Ints,
    left: _Ints,
    limit: float,
) -> bool:
    """Integers k, from the root down, and what is left of ``noise − Q k``, at most half a pivot each.

    False if some sum may exceed ``limit``; see :func:`nearest_plane`.
    """
    n = node.size
    if rooted:
        if abs(float(noise[n])) > limit:
            return False
        whole[n] = (2 * noise[n] + pivot[0]) // (2 * pivot[0])
        left[n] = noise[n] - whole[n] * pivot[0]
    for x in top_down:
        v = node[x]
        w, o, q = width[v], start[v], pivot[v]
        rest = noise[x] - ties[o] * whole[n]
        reach = abs(float(noise[x])) + abs(float(ties[o]) * float(whole[n]))
        a = parents[x]
        for j in range(w - 1, 0, -1):
            reach += abs(float(ties[o + j]) * float(whole[a]))
            rest -= ties[o + j] * whole[a]
            a = parents[a]
        if reach > limit:
            return False
        whole[x] = (2 * rest + q) // (2 * q)
        left[x] = rest - whole[x] * q
    return True


@kernel(steps=lambda parents, top_down, node, width, *_: node.size * (int(width.max()) + 1))
def _solve(
    parents: _Ints,
    top_down: _Ints,
    node: _Ints,
    width: _Ints,
    start: _Ints,
    pivot: _Ints,
    ties: _Ints,
    noise: _Floats,
    rooted: bool,
) -> _Floats:
    """``Q⁻¹ noise`` for each column.

    The last row is the root's.
    """
    n = node.size
    result = np.zeros_like(noise)
    if rooted:
        result[n] = noise[n] / pivot[0]
    for x in top_down:
        v = node[x]
        w, o = width[v], start[v]
        rest = noise[x] - ties[o] * result[n]
        a = parents[x]
        for j in range(w - 1, 0, -1):
            rest -= ties[o + j] * result[a]
            a = parents[a]
        result[x] = rest / pivot[v]
    return result


@kernel(steps=lambda parents, top_down, node, width, *_: node.size * (int(width.max()) + 1))
def _multiply(
    parents: _Ints,
    top_down: _Ints,
    node: _Ints,
    width: _Ints,
    start: _Ints,
    pivot: _Ints,
    ties: _Ints,
    counts: _Floats,
) -> _Floats:
    """``Q counts`` for each column.

    The last row is the root's.
    """
    n = node.size
    result = np.zeros_like(counts)
    result[n] = pivot[0] * counts[n]
    for x in top_down:
        v = node[x]
        w, o = width[v], start[v]
        total = pivot[v] * counts[x] + ties[o] * counts[n]
        a = parents[x]
        for j in range(w - 1, 0, -1):
            total += ties[o + j] * counts[a]
            a = parents[a]
        result[x] = total
    return result
