"""All ideals of a small order, listed; and the least isotonic losses on both sides of each.

An ideal (down-set) holds everything below each of its elements. Orders of few elements or small width have few
ideals: at most ``(n/w + 1)**w`` for width ``w`` (docs/theory/curves-posets.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["MOST_IDEALS", "IdealList", "list_ideals"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

MOST_IDEALS = 1_000_000
MOST_WORDS = 1 << 24


@dataclass(frozen=True)
class IdealList:
    """Ideals in the order of their discovery: the empty one first, each later one is an earlier one plus one element.

    Ideal ``i > 0`` is ideal ``parent[i]`` and the element ``added[i]``; ``members`` packs all of them as bits.
    """

    size: int
    parent: Ints = field(repr=False)
    added: Ints = field(repr=False)
    members: Words = field(repr=False)

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
        """All pairs of ideals that differ by one element, ``(smaller, larger)``, by rising size of the larger."""
        names = _names(self.members)
        order = np.argsort(names, kind="stable")
        known = names[order]
        smaller: list[Ints] = []
        larger: list[Ints] = []
        for x in range(self.size):
            word, bit = x >> 6, np.uint64(1) << np.uint64(x & 63)
            without = np.flatnonzero((self.members[:, word] & bit) == 0)
            extended = self.members[without]
            extended[:, word] |= bit
            wanted = _names(extended)
            place = np.minimum(np.searchsorted(known, wanted), known.size - 1)
            found = known[place] == wanted
            smaller.append(without[found])
            larger.append(order[place[found]])
        low, high = np.concatenate(smaller), np.concatenate(larger)
        by_size = np.argsort(self.sums(np.ones(self.size, np.int64))[high], kind="stable")
        return low[by_size], high[by_size]


def list_ideals(size: int, covers: Ints, order: Ints, most: int = MOST_IDEALS) -> IdealList | None:
    """All ideals of the order on ``0, …, size − 1`` with these covers, or None if there are more than ``most``.

    ``order`` is a linear extension. An element can be added to the ideals of those before it that hold its lower covers.
    """
    words = (size + 63) // 64
    parents, added = [np.zeros(1, np.int64)], [np.full(1, -1, np.int64)]
    members = np.zeros((1, words), np.uint64)
    below = np.zeros((size, words), np.uint64)
    for lower, upper in covers.tolist():
        below[upper, lower >> 6] |= np.uint64(1) << np.uint64(lower & 63)
    for x in order.tolist():
        ready = np.flatnonzero(((members & below[x]) == below[x]).all(axis=1))
        if members.shape[0] + ready.size > most or (members.shape[0] + ready.size) * words > MOST_WORDS:
            return None
        extended = members[ready]
        extended[:, x >> 6] |= np.uint64(1) << np.uint64(x & 63)
        members = np.concatenate([members, extended])
        parents.append(ready)
        added.append(np.full(ready.size, x, np.int64))
    return IdealList(size, np.concatenate(parents), np.concatenate(added), members)


def _names(members: Words) -> NDArray[np.bytes_]:
    """Rows of bits as texts of equal length, which sort and compare as one."""
    rows = np.ascontiguousarray(members)
    return rows.view(f"S{8 * rows.shape[1]}").ravel()


@njit(cache=True)
def _sums(parent: Ints, added: Ints, weights: Ints) -> Ints:
    sums = np.zeros(parent.size, np.int64)
    for i in range(1, parent.size):
        sums[i] = sums[parent[i]] + weights[added[i]]
    return sums
