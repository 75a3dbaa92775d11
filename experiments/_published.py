"""The sampler of Joseph, Ribero and Yu (2025) as their paper describes it. It is not uniform: never release with it.

Lemma 3.14: take a maximal element away, draw an extended bipartition of the rest by recursion, and insert the
element uniformly among its valid placements, to the right of everything below it on either side. How many
placements are valid depends on the draw so far, so the result is not uniform over extended bipartitions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.order import Poset

__all__ = ["PublishedSampler", "insertion_order", "log_probability", "plain_noise"]

Ints = NDArray[np.int64]
Orders = NDArray[np.int32]
Bools = NDArray[np.bool_]


def insertion_order(P: Poset) -> list[int]:
    """The elements in the order in which the recursion inserts them.

    It removes maximal elements: from the first element that is left, follow parent pointers to the top.
    """
    less = P.leq_matrix() & ~np.eye(len(P), dtype=np.bool_)
    left, removed = list(range(len(P))), []
    while left:
        x = left[0]
        while parents := [y for y in left if less[x, y]]:
            x = parents[0]
        left.remove(x)
        removed.append(x)
    return removed[::-1]


class PublishedSampler:
    """Extended bipartitions and noise by the published algorithm."""

    def __init__(self, P: Poset) -> None:
        self.P = P
        self.less = P.leq_matrix() & ~np.eye(len(P), dtype=np.bool_)
        self.inserted = np.array(insertion_order(P), np.int64)

    def distribution(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction]:
        """The exact probability of every extended bipartition, by following all placements."""
        states: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {((), ()): Fraction(1)}
        for x in self.inserted.tolist():
            grown: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {}
            for (A, B), p in states.items():
                placements = [(side, k) for side in (0, 1) for k in self._valid((A, B)[side], x)]
                for side, k in placements:
                    sides = [A, B]
                    sides[side] = (*sides[side][:k], x, *sides[side][k:])
                    key = (sides[0], sides[1])
                    grown[key] = grown.get(key, Fraction(0)) + p / len(placements)
            states = grown
        return states

    def _valid(self, side: tuple[int, ...], x: int) -> range:
        after = max((k + 1 for k, y in enumerate(side) if self.less[y, x]), default=0)
        return range(after, len(side) + 1)

    def simulate(self, size: int, rng: np.random.Generator) -> tuple[Orders, Ints]:
        """``size`` draws: rows of positions, side A first, and the sizes of side A."""
        orders, sizes = np.empty((size, len(self.P)), np.int32), np.empty(size, np.int64)
        _insert_all(self.less, self.inserted, rng.random((size, len(self.P))), orders, sizes)
        return orders, sizes


@njit(cache=True)
def _insert_all(
    less: Bools, inserted: Ints, uniforms: NDArray[np.float64], orders: Orders, sizes: Ints
) -> None:
    n = inserted.size
    A, B = np.empty(n, np.int64), np.empty(n, np.int64)
    for r in range(sizes.size):
        a = b = 0
        for t in range(n):
            x = inserted[t]
            i, j = a, b
            while i > 0 and not less[A[i - 1], x]:
                i -= 1
            while j > 0 and not less[B[j - 1], x]:
                j -= 1
            k = int(uniforms[r, t] * (a - i + 1 + b - j + 1))
            if k <= a - i:
                for place in range(a, i + k, -1):
                    A[place] = A[place - 1]
                A[i + k] = x
                a += 1
            else:
                k += j - (a - i + 1)
                for place in range(b, k, -1):
                    B[place] = B[place - 1]
                B[k] = x
                b += 1
        for k in range(a):
            orders[r, k] = A[k]
        for k in range(b):
            orders[r, a + k] = B[k]
        sizes[r] = a


@njit(cache=True)
def log_probability(less: Bools, inserted: Ints, order: Ints, a: int) -> float:
    """The log probability that the published algorithm draws an extended bipartition."""
    n = inserted.size
    rank = np.empty(n, np.int64)
    for t in range(n):
        rank[inserted[t]] = t
    total = 0.0
    for t in range(n):
        x, valid = inserted[t], 2
        for k in range(a - 1, -1, -1):
            if rank[order[k]] < t:
                if less[order[k], x]:
                    break
                valid += 1
        for k in range(n - 1, a - 1, -1):
            if rank[order[k]] < t:
                if less[order[k], x]:
                    break
                valid += 1
        total -= np.log(float(valid))
    return total


def plain_noise(P: Poset, rng: np.random.Generator) -> NDArray[np.float64]:
    """One draw of the published mechanism at ε = 1, in plain numpy and lists, root added and dropped.

    Lemmas 3.14, 3.13, 3.11 and 3.6 in turn: an extended bipartition, its two chains of filters, the vertices of
    their simplex, a uniform point of it, scaled by a Gamma radius. (Filters are built as J ∪ up(a): the step that
    the paper gives, comparing consecutive rows, is not right.)
    """
    n = len(P)
    above = P.leq_matrix()
    sides: tuple[list[int], list[int]] = ([], [])
    for x in insertion_order(P):
        placements: list[tuple[int, int]] = []
        for s in (0, 1):
            k = len(sides[s])
            while k > 0 and not above[sides[s][k - 1], x]:
                k -= 1
            placements.extend((s, place) for place in range(k, len(sides[s]) + 1))
        s, place = placements[rng.integers(len(placements))]
        sides[s].insert(place, x)
    vertices: list[NDArray[np.float64]] = []
    for side, sign in zip(sides, (1.0, -1.0), strict=True):
        filter_ = np.zeros(n)
        vertices.append(np.append(sign, filter_))  # the empty filter: the root alone
        for x in reversed(side):
            filter_ = np.maximum(filter_, above[x])
            vertices.append(np.append(sign, sign * filter_))
    weights = rng.dirichlet(np.ones(n + 2))
    return (rng.gamma(n + 2) * (weights @ np.array(vertices)))[1:]
