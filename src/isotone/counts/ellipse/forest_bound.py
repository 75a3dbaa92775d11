"""A lower bound on the total variance of Gaussian noise on a forest.

It holds at sensitivity 1 and for forests of any size.

For any random filter with second moments V = E[vv'], every Gaussian whose sensitivity is at most 1 has a total
variance of at least ``(tr V^½)²`` (docs/theory/gaussian.md, section 6). Here the random filter opens a gate at
each element independently; an element is in it if its own gate and all gates above it are open. Then V has an
inverse on the edges of the tree, so one elimination in O(n) counts the eigenvalues of V above any number
(Sylvester's law of inertia), and counts at finely spaced numbers give the trace from below.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.counts.ellipse.forest_ellipse import ForestEllipse
from isotone.kernels import kernel

__all__ = ["forest_bound"]

_NARROW = 2e-4
_ALMOST_OPEN = 1 - 1e-9


def forest_bound(ellipse: ForestEllipse) -> float:
    """The bound from gates that give each element its presence in the optimal ellipse."""
    grove = ellipse.grove
    gate, fresh = _gates(grove.parent, np.append(1.0, np.clip(ellipse.presence, 1e-12, 1.0)))
    elements = int(grove.copies[1:].sum())

    def above(roots: Floats) -> Ints:
        found = [
            _count_above(grove.parent, grove.times, grove.copies, gate, fresh, r * r) for r in roots.tolist()
        ]
        return np.array(found, np.int64)

    # edges are square roots of eigenvalues; no eigenvalue exceeds the number of elements
    edges = np.append(0.0, np.geomspace(1e-7, 1.0, 65) * np.sqrt(elements))
    counts = np.append(elements, above(edges[1:]))
    while True:
        steps = np.diff(edges)
        total = float(counts[1:] @ steps)
        uncertain = (counts[:-1] - counts[1:]) * steps
        if uncertain.sum() <= _NARROW * total:
            return total**2
        wide = np.flatnonzero(uncertain > 0.5 * _NARROW * total / uncertain.size)
        middle = (edges[wide] + edges[wide + 1]) / 2
        edges, counts = np.insert(edges, wide + 1, middle), np.insert(counts, wide + 1, above(middle))


@kernel(steps=lambda parent, presence: parent.size)
def _gates(parent: Ints, presence: Floats) -> tuple[Floats, Floats]:
    """The chance that each gate is open, and the variance of each element given its parent."""
    gate, fresh = np.ones(parent.size), np.ones(parent.size)
    for x in range(1, parent.size):
        p = parent[x]
        gate[x] = min(presence[x] / presence[p], _ALMOST_OPEN)
        presence[x] = presence[p] * gate[x]
        fresh[x] = presence[x] * (1.0 - gate[x])
    return gate, fresh


@kernel(steps=lambda parent, *_: 16 * parent.size)
def _count_above(parent: Ints, times: Ints, copies: Ints, gate: Floats, fresh: Floats, value: float) -> int:
    """The number of eigenvalues of V above ``value``.

    They are the negative pivots of the rooted inverse minus E/value.
    """
    pivot = 1.0 / fresh
    pivot[1:] -= 1.0 / value
    negative = 0
    for x in range(parent.size - 1, -1, -1):
        if pivot[x] == 0.0:
            pivot[x] = 1e-300
        if pivot[x] < 0.0:
            negative += copies[x]
        if x > 0:
            link = gate[x] / fresh[x]
            pivot[parent[x]] += times[x] * link * (gate[x] - link / pivot[x])
    return negative
