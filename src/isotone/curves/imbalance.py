"""How unbalanced the derivatives in a bin are at a value: zero at the best value, and steep around it.

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
    """The absolute sum of derivatives, for every bin at every one of ``values + 1`` evenly spaced values."""

    slopes: Slopes
    values: int = 256

    @property
    def _candidates(self) -> Ints:
        return np.arange(self.values + 1, dtype=np.int64) * (FINE // self.values)

    @cached_property
    def range(self) -> int:
        """How far apart one record of weight 1 can move the scores of two values: up or down by its derivative."""
        return 2 * max(self.slopes.bound(value, FINE) for value in self._candidates.tolist())

    def of(self, records: Records, starts: Ints) -> Ints:
        """The scores by bin and value; bins begin at ``starts``."""
        rule = self.slopes
        return _imbalances(
            np.searchsorted(starts, records.cells, side="right") - 1,
            records.levels,
            records.weights,
            starts.size,
            rule.offset + rule.scale * self._candidates,
            np.array([rule.step, rule.cap, rule.above, rule.below]),
        )


@njit(cache=True)
def _imbalances(which: Ints, levels: Ints, weights: Ints, bins: int, at: Ints, rule: Ints) -> Ints:
    step, cap, above, below = rule
    sums = np.zeros((bins, at.size), np.int64)
    for record in range(which.size):
        for value in range(at.size):
            slope = min(max(at[value] - step * levels[record], -cap), cap)
            sums[which[record], value] += weights[record] * slope * (above if slope > 0 else below)
    return np.abs(sums)
