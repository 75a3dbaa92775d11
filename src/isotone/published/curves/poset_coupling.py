"""Draw ideals of any order by coupling from the past.

The draws are exact, and the running time depends on the data.

The same coins drive two chains from the empty ideal and from the full one, started ever further back, until they meet:
what they meet in has exactly the law (Propp and Wilson 1996). How long this takes tells something about the data to
whoever can measure it, and stopping it, or trying something else when it is slow, would put that into the release.
So it is done on request only, and without a limit (docs/theory/curves-posets.md, section 10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from isotone.array_types import Bools, Ints
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.poset.regions import Cut
from isotone.kernels import kernel

__all__ = ["CoupledRegion"]


@dataclass(frozen=True)
class CoupledRegion:
    """A convex set of elements along a linear extension.

    ``covers`` are those of the whole order.
    """

    elements: Ints = field(repr=False)
    covers: Ints = field(repr=False)

    @property
    def members(self) -> Ints:
        """The elements."""
        return self.elements

    def log_ideals(self) -> float:
        """A bound on the logarithm of the number of ideals.

        No order has more ideals than subsets.
        """
        return self.elements.size * math.log(2.0)

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal."""
        size = self.elements.size
        place = np.full(weights.size, -1, np.int64)
        place[self.elements] = np.arange(size)
        pairs = place[self.covers]
        pairs = pairs[(pairs >= 0).all(axis=1)]
        starts, others, ups = _neighbours(size, pairs)
        # a coin for each element: in with weight exp(−rate·weight), out with weight 1
        scores = np.stack([np.zeros(size, np.int64), weights[self.elements]], axis=1).ravel()
        offsets, once = np.arange(size + 1) * 2, np.ones(2 * size, np.int64)
        coins: list[Bools] = []  # the latest sweep first
        while True:
            coins += [
                draws.segments(scores, offsets, [rate] * size, once).astype(np.bool_)
                for _ in range(max(1, len(coins)))
            ]
            low, high = np.zeros(size, np.bool_), np.ones(size, np.bool_)
            for coin in reversed(coins):
                _sweep(low, coin, starts, others, ups)
                _sweep(high, coin, starts, others, ups)
            if np.array_equal(low, high):
                return Cut(self._part(low), self._part(~low))

    def _part(self, inside: Bools) -> CoupledRegion | None:
        return CoupledRegion(self.elements[inside], self.covers) if inside.any() else None


def _neighbours(size: int, pairs: Ints) -> tuple[Ints, Ints, Bools]:
    """For every element its covers on both sides, and whether each lies above it."""
    own = np.concatenate([pairs[:, 0], pairs[:, 1]])
    other = np.concatenate([pairs[:, 1], pairs[:, 0]])
    above = np.repeat([True, False], pairs.shape[0])
    order = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[order], np.arange(size + 1)).astype(np.int64)
    return starts, other[order], above[order]


@kernel
def _sweep(inside: Bools, coin: Bools, starts: Ints, others: Ints, above: Bools) -> None:
    """Give each element in turn the side its coin names, if the rest leaves an ideal then."""
    for x in range(inside.size):
        free = True
        for k in range(starts[x], starts[x + 1]):
            if coin[x] and not above[k] and not inside[others[k]]:
                free = False
            if not coin[x] and above[k] and inside[others[k]]:
                free = False
        if free:
            inside[x] = coin[x]
