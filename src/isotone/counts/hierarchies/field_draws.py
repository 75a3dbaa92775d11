"""Exact draws of the noise of :class:`~isotone.counts.TreeFieldMechanism` by rejection.

To draw a subtree draw all its children, and keep them with probability ``exp(-rate·share·|sum|)``; otherwise draw
them again (docs/theory/hierarchies.md, section 4). Draws that are kept are independent, so many are made at a time, and a type of subtree that
occurs several times is drawn once for all its places. Leaves of one parent and one share are the differences of two geometric
numbers each. Only the two sums of these matter for what is kept, so that they alone are drawn; what is kept in the end
is split between the leaves, all ways alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.counts.hierarchies.field_law import FieldTypes, leaf_sums
from isotone.privacy.draws import Draws

__all__ = ["FieldSampler"]

_CELLS = 1 << 18
"""Numbers of one part of the tree that are tried at a time: of a large tree few, since most of them are in vain."""


@dataclass(frozen=True, eq=False)
class FieldSampler:
    """Draws noise on the leaves of a tree. ``acceptance`` by type only says how many to try at a time."""

    types: FieldTypes
    rate: Fraction
    acceptance: NDArray[np.float64]
    sums: bool = True
    """Whether leaves may be drawn as sums, which saves exact draws. To split them takes longer than seeded draws of all leaves."""

    def draw(self, size: int, draws: Draws) -> Ints:
        """``size`` rows of noise on the nodes of the tree, which add up."""
        tree, result = self.types.tree, np.zeros((size, len(self.types.tree)), np.int64)
        for t, leaves in self._places:
            drawn = self._subtrees(t, size * len(leaves), draws)
            result[:, leaves.reshape(-1)] = self._split(t, drawn, draws).reshape(size, -1)
        return tree.sums(result)

    def _subtrees(self, t: int, size: int, draws: Draws) -> Ints:
        """``size`` independent draws of a type of subtree in rows, its leaves, or sums of them and minus such sums."""
        children, rate = self.types.children[t], self.rate * self.types.shares[t]
        if not children:
            return draws.lazy_geometrics(rate, size)[:, None]
        width = sum(2 if terms else 1 for terms in self._columns[t])
        result, found = np.empty((size, width), np.int64), 0
        while found < size:
            tries = int((size - found) * 1.05 / self.acceptance[t]) + 1
            tries = min(tries, max(1, _CELLS // width))
            rows = np.concatenate([self._children(c, k, tries, draws) for c, k in children], axis=1)
            if rate:
                rows = rows[draws.coins(rate, np.abs(rows.sum(axis=1)))]
            kept = rows[: size - found]
            result[found : found + len(kept)] = kept
            found += len(kept)
        return result

    def _children(self, c: int, k: int, size: int, draws: Draws) -> Ints:
        """``size`` rows of the draws of k children of one type."""
        sums = self._sums(c, k)
        if not sums:
            return self._subtrees(c, size * k, draws).reshape(size, -1)
        rate, signs = self.rate * self.types.shares[c], np.array([1, -1])
        parts = [draws.geometric_sums(rate, terms, 2 * size).reshape(size, 2) * signs for terms in sums]
        return np.concatenate(parts, axis=1)

    def _sums(self, c: int, k: int) -> list[int]:
        return leaf_sums(self.types, float(self.rate), c, k) if self.sums else []

    @cached_property
    def _columns(self) -> list[list[int]]:
        """What the draws of each type hold. For a sum and minus a sum the number of their leaves, for a leaf 0."""
        found: list[list[int]] = []
        for children in self.types.children:
            row: list[int] = []
            for c, k in children:
                row += self._sums(c, k) or found[c] * k
            found.append(row or [0])
        return found

    def _split(self, t: int, rows: Ints, draws: Draws) -> Ints:
        """The leaves of each row. Sums are split between theirs."""
        terms = np.array(self._columns[t])
        summed, plain = terms > 0, terms == 0
        ends = np.cumsum(np.where(summed, 2, 1))
        result = np.empty((len(rows), int(np.maximum(terms, 1).sum())), np.int64)
        places = np.repeat(summed, np.maximum(terms, 1))
        result[:, ~places] = rows[:, ends[plain] - 1]
        if summed.any():
            bins = np.tile(terms[summed], len(rows))
            ups, downs = rows[:, ends[summed] - 2].reshape(-1), -rows[:, ends[summed] - 1].reshape(-1)
            difference = _scattered(ups, bins, draws) - _scattered(downs, bins, draws)
            result[:, places] = difference.reshape(len(rows), -1)
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


def _scattered(totals: Ints, bins: Ints, draws: Draws) -> Ints:
    """Each total as a sum of ``bins`` numbers at or above 0, all such ways alike.

    Ball after ball is put into a bin, or where one of the balls before it is, each with the same chance.
    """
    before = np.repeat(np.cumsum(totals) - totals, totals)
    number = np.repeat(bins, totals)
    place = draws.below(number + np.arange(before.size) - before)
    waiting = np.flatnonzero(place >= number)
    while waiting.size:
        place[waiting] = place[before[waiting] + place[waiting] - number[waiting]]
        waiting = waiting[place[waiting] >= number[waiting]]
    first = np.repeat(np.cumsum(bins) - bins, totals)
    return np.bincount(first + place, minlength=int(bins.sum())).astype(np.int64)
