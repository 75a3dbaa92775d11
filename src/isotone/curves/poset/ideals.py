"""All ideals of a small order, listed, and the least isotonic losses on both sides of each.

An ideal (down-set) holds everything below each of its elements. Orders of few elements or small width have few
ideals: at most ``(n/w + 1)**w`` for width ``w`` (docs/theory/curves-posets.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel

__all__ = ["MOST_IDEALS", "MOST_WORDS", "IdealList", "list_ideals"]

Words = NDArray[np.uint64]

MOST_IDEALS = 1_000_000
MOST_WORDS = 1 << 24
"""Of 64 bits, for the list itself: an order of many elements has a shorter one."""


@dataclass(frozen=True)
class IdealList:
    """Ideals in the order of their discovery. The empty one first, each later one is an earlier one plus one element.

    Ideal ``i > 0`` is ideal ``parent[i]`` and the element ``added[i]``; ``members`` packs all of them as bits. They were
    found in steps, one for each element: step ``k`` found those from ``first[k]`` to ``first[k + 1] − 1``, and its element
    has lower covers that no ideal before step ``since[k]`` holds all of. Step 0 is the empty ideal.
    """

    size: int
    parent: Ints = field(repr=False)
    added: Ints = field(repr=False)
    members: Words = field(repr=False)
    first: Ints = field(repr=False)
    since: Ints = field(repr=False)

    @property
    def count(self) -> int:
        """The number of ideals."""
        return self.parent.size

    def sums(self, weights: Ints) -> Ints:
        """The sum of the weights in every ideal."""
        return _sums(self.parent, self.added, weights)

    def ideal(self, index: int) -> NDArray[np.bool_]:
        """Which elements an ideal holds."""
        bits = np.unpackbits(self.members[index].view(np.uint8), bitorder="little")
        return bits[: self.size].astype(np.bool_)

    def extensions(self) -> tuple[Ints, Ints]:
        """All pairs of ideals that differ by one element, ``(smaller, larger)``, by rising number of the larger.

        An ideal found in a step is its parent plus the step's element ``x``. So the step's pairs are the parents with
        their children, and one pair of children for every pair of parents: both lack the same element but for ``x``.
        """
        child = np.full(self.count, -1, np.int64)
        smaller, larger = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for k in range(1, self.size + 1):
            found = np.arange(self.first[k], self.first[k + 1])
            parents = self.parent[found]
            child[parents] = found
            low = child[np.concatenate(smaller[self.since[k] : k])]
            high = child[np.concatenate(larger[self.since[k] : k])]
            both = (low >= 0) & (high >= 0)
            smaller.append(np.concatenate([parents, low[both]]))
            larger.append(np.concatenate([found, high[both]]))
            child[parents] = -1
        low, high = np.concatenate(smaller), np.concatenate(larger)
        by_number = np.argsort(high, kind="stable")
        return low[by_number], high[by_number]


def list_ideals(size: int, covers: Ints, order: Ints, most: int = MOST_IDEALS) -> IdealList | None:
    """All ideals of the order on ``0, …, size − 1`` with these covers, or None if there are too many.

    ``order`` is a linear extension. An element can be added to the ideals of those before it that hold its lower covers;
    none found before the last of these does.
    """
    words = (size + 63) // 64
    below = np.zeros((size, words), np.uint64)
    step = np.empty(size, np.int64)
    step[order] = np.arange(1, size + 1)
    since = np.zeros(size + 1, np.int64)
    for lower, upper in covers.tolist():
        below[upper, lower >> 6] |= np.uint64(1) << np.uint64(lower & 63)
        since[step[upper]] = max(since[step[upper]], step[lower])
    parents, added = [np.zeros(1, np.int64)], [np.full(1, -1, np.int64)]
    found = [np.zeros((1, words), np.uint64)]
    first = [0, 1]
    for k, x in enumerate(order.tolist(), start=1):
        recent = np.concatenate(found[since[k] :])
        held = np.flatnonzero(below[x])
        ready = np.flatnonzero(((recent[:, held] & below[x, held]) == below[x, held]).all(axis=1))
        first.append(first[-1] + ready.size)
        if first[-1] > most or first[-1] * words > MOST_WORDS:
            return None
        extended = recent[ready]
        extended[:, x >> 6] |= np.uint64(1) << np.uint64(x & 63)
        found.append(extended)
        parents.append(first[since[k]] + ready)
        added.append(np.full(ready.size, x, np.int64))
    return IdealList(
        size, np.concatenate(parents), np.concatenate(added), np.concatenate(found), np.array(first), since
    )


@kernel(steps=lambda parent, *_: 2 * parent.size)
def _sums(parent: Ints, added: Ints, weights: Ints) -> Ints:
    sums = np.zeros(parent.size, np.int64)
    for i in range(1, parent.size):
        sums[i] = sums[parent[i]] + weights[added[i]]
    return sums
