"""Exact draws of a tree field by rejection.

To draw a subtree draw all its children, and keep them with probability ``exp(-rate·share·|sum|)``; otherwise draw
them again (docs/theory/hierarchies.md, section 4). Draws that are kept are independent, so many are made at a time, and a type of subtree that
occurs several times is drawn once for all its places.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.counts.hierarchies.field_law import FieldTypes
from isotone.privacy.draws import Draws

__all__ = ["FieldSampler"]

Ints = NDArray[np.int64]

_CELLS = 1 << 22
"""Numbers of one part of the tree in memory at a time."""


@dataclass(frozen=True, eq=False)
class FieldSampler:
    """Draws noise on the leaves of a tree; ``acceptance`` by type only says how many to try at a time."""

    types: FieldTypes
    rate: Fraction
    acceptance: NDArray[np.float64]

    def draw(self, size: int, draws: Draws) -> Ints:
        """``size`` rows of noise on the nodes of the tree, which add up."""
        tree, result = self.types.tree, np.zeros((size, len(self.types.tree)), np.int64)
        for t, leaves in self._places:
            drawn = self._subtrees(t, size * len(leaves), draws)
            result[:, leaves.reshape(-1)] = drawn.reshape(size, -1)
        return tree.sums(result)

    def _subtrees(self, t: int, size: int, draws: Draws) -> Ints:
        """``size`` independent draws of a type of subtree: its leaves, in rows."""
        children, rate = self.types.children[t], self.rate * self.types.shares[t]
        if not children:
            return draws.lazy_geometrics(rate, size)[:, None]
        width = int(self.types.leaves[t])
        result, found = np.empty((size, width), np.int64), 0
        while found < size:
            tries = int((size - found) * 1.05 / self.acceptance[t]) + 1
            tries = min(tries, max(1, _CELLS // width))
            parts = [self._subtrees(c, tries * k, draws).reshape(tries, -1) for c, k in children]
            rows = np.concatenate(parts, axis=1)
            if rate:
                rows = rows[draws.coins(rate, np.abs(rows.sum(axis=1)))]
            kept = rows[: size - found]
            result[found : found + len(kept)] = kept
            found += len(kept)
        return result

    @cached_property
    def _places(self) -> list[tuple[int, Ints]]:
        """For each type of root the leaves of its roots, in the sequence in which a draw gives them."""
        tree, of = self.types.tree, self.types.of.tolist()
        children: list[list[int]] = [[] for _ in range(len(tree))]
        for x, above in enumerate(tree.parent.tolist()):
            if above >= 0:
                children[above].append(x)
        leaves: list[list[int]] = [[]] * len(tree)
        for x in range(len(tree) - 1, -1, -1):
            row = sorted(children[x], key=of.__getitem__)  # stable: those of one type side by side
            leaves[x] = [y for c in row for y in leaves[c]] if row else [x]
        roots: dict[int, list[list[int]]] = {}
        for x in range(tree.roots):
            roots.setdefault(of[x], []).append(leaves[x])
        return [(t, np.array(rows, np.int64)) for t, rows in roots.items()]
