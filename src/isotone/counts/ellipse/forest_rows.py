"""Compiled algebra of the rows of a forest's strategy, each with entries at an element and at its ancestors.

Lengths over filters are exact in 64 bits; variances and solutions are floats (docs/theory/gaussian.md, section 3).
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.kernels import kernel

__all__ = [
    "filter_terms",
    "heaviest_filter",
    "longest_difference",
    "multiply_rows",
    "nearest_integers",
    "node_variances",
    "solve_rows",
]


@kernel(steps=lambda parent, width, *_: parent.size + int(width.sum()))
def filter_terms(parent: Ints, width: Ints, start: Ints, copies: Ints, pivot: Ints, ties: Ints) -> Ints:
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
def heaviest_filter(parent: Ints, times: Ints, terms: Ints) -> int:
    """The largest sum of terms over sets that hold the root and, with an element, all above it."""
    best = terms.copy()
    for x in range(parent.size - 1, 0, -1):
        if best[x] > 0:
            best[parent[x]] += times[x] * best[x]
    return best[0]


@kernel(steps=lambda parent, depth, width, *_: (parent.size + int(width.sum())) * (int(depth.max()) + 1))
def longest_difference(
    parent: Ints,
    depth: Ints,
    width: Ints,
    start: Ints,
    times: Ints,
    copies: Ints,
    pivot: Ints,
    ties: Ints,
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
def node_variances(
    parent: Ints, depth: Ints, width: Ints, start: Ints, fresh: Floats, share: Floats
) -> Floats:
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
def nearest_integers(
    parents: Ints,
    top_down: Ints,
    node: Ints,
    width: Ints,
    start: Ints,
    pivot: Ints,
    ties: Ints,
    rooted: bool,
    noise: Ints,
    whole: Ints,
    left: Ints,
    limit: float,
) -> bool:
    """Integers k, from the root down, and what is left of ``noise − Q k``, at most half a pivot each.

    False if some sum may exceed ``limit``; see :func:`.strategy.nearest_plane`.
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
def solve_rows(
    parents: Ints,
    top_down: Ints,
    node: Ints,
    width: Ints,
    start: Ints,
    pivot: Ints,
    ties: Ints,
    noise: Floats,
    rooted: bool,
) -> Floats:
    """``Q⁻¹ noise`` for each column. The last row is the root's."""
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
def multiply_rows(
    parents: Ints,
    top_down: Ints,
    node: Ints,
    width: Ints,
    start: Ints,
    pivot: Ints,
    ties: Ints,
    counts: Floats,
) -> Floats:
    """``Q counts`` for each column. The last row is the root's."""
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
