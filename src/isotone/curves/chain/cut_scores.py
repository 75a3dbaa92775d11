"""How good a cut is, by the derivatives that it leaves on the wrong side or by how evenly it divides the records.

For a cut with the middle value ``mid``, a record wants to be below the cut if its loss rises at ``mid`` and above it
if the loss falls. The additive score adds up the absolute derivatives of the records that are on the wrong side. One record
moves it by at most its own derivative, and its excess bounds the excess of the optimal isotonic loss
(docs/theory/curves.md, sections 3 and 4). It needs no isotonic fit: one pass over the records for each level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Ints
from isotone.curves.chain.tree import Inside, Parts, Runs
from isotone.curves.grids import FINE
from isotone.curves.losses.slopes import Slopes

__all__ = ["AdditiveScore", "HalvingScore"]


@dataclass(frozen=True)
class AdditiveScore:
    """The additive score of a loss on the fine grid of ``y``."""

    slopes: Slopes

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """Minus the sum of derivatives below the cut, up to a constant of the part."""
        inside = Inside.of(runs, parts, offsets)
        levels, weights = runs.records.levels[inside.record], runs.records.weights[inside.record]
        return -inside.sums(weights * self.slopes.at(parts.middle[inside.part], levels))

    def ranges(self, parts: Parts) -> list[int]:
        """The largest absolute derivative at the middle of each part."""
        known: dict[int, int] = {}
        for middle in parts.middle.tolist():
            if middle not in known:
                known[middle] = self.slopes.bound(middle, FINE)
        return [known[middle] for middle in parts.middle.tolist()]


@dataclass(frozen=True)
class HalvingScore:
    """How far apart the numbers of records below and above a cut are.

    One more record moves the difference by 1 up or down, so its absolute value changes by between −1 and 1: the range
    is 2 (docs/theory/curves.md, section 11).
    """

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """``|records below − records above|``, counted with weights."""
        inside = Inside.of(runs, parts, offsets)
        below = inside.sums(runs.records.weights[inside.record])
        return np.abs(2 * below - np.repeat(below[offsets[1:] - 1], np.diff(offsets)))

    def ranges(self, parts: Parts) -> list[int]:
        """Two, in every part."""
        return [2] * parts.low.size
