"""How unbalanced the derivatives in a bin are around a value: zero at the best value, and steep beside it.

The loss of a value near the best one grows with the square of the distance; the sum of the derivatives grows with the
distance itself, so a choice that goes by it finds the best value far more closely (docs/theory/curves.md, section 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.curves.grids import FINE
from isotone.curves.losses import Slopes
from isotone.curves.records import Records

__all__ = ["Imbalance"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Imbalance:
    """By how much the derivatives miss 0, for every bin and every one of ``values + 1`` evenly spaced values.

    They are summed half a step below the value and half a step above it: a sum above 0 below the value, or below 0 above
    it, is by how much. So a value that many records share is found, though no derivatives cancel *at* any value then.
    """

    slopes: Slopes
    values: int = 256

    @property
    def _between(self) -> Ints:
        """Half a step below every value, and above the last: ``values + 2`` places."""
        step = FINE // self.values
        return np.arange(self.values + 2, dtype=np.int64) * step - step // 2

    @cached_property
    def range(self) -> int:
        """How far apart one record of weight 1 can move the scores of two values: up or down by its derivative."""
        return 2 * max(self.slopes.bound(place, FINE) for place in self._between.tolist())

    def of(self, records: Records, starts: Ints) -> Ints:
        """The scores by bin and value; bins begin at ``starts``."""
        rule = self.slopes
        sums = _derivatives(
            np.searchsorted(starts, records.cells, side="right") - 1,
            records.levels,
            records.weights,
            starts.size,
            rule.offset + rule.scale * self._between,
            np.array([rule.step, rule.cap, rule.above, rule.below]),
        )
        return np.maximum(0, np.maximum(sums[:, :-1], -sums[:, 1:]))


@njit(cache=True)
def _derivatives(which: Ints, levels: Ints, weights: Ints, bins: int, at: Ints, rule: Ints) -> Ints:
    step, cap, above, below = rule
    sums = np.zeros((bins, at.size), np.int64)
    for record in range(which.size):
        for place in range(at.size):
            slope = min(max(at[place] - step * levels[record], -cap), cap)
            sums[which[record], place] += weights[record] * slope * (above if slope > 0 else below)
    return sums
