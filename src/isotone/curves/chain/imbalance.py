"""How unbalanced the derivatives in a bin are around a value: zero at the best value, and steep beside it.

The loss of a value near the best one grows with the square of the distance; the sum of the derivatives grows with the
distance itself, so a choice that goes by it finds the best value far more closely (docs/theory/curves.md, section 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.curves.grids import FINE
from isotone.curves.records import Records
from isotone.curves.slopes import Slopes

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
        sums = self._sums(records.bins(starts), records.levels, records.weights, starts.size)
        return np.maximum(0, np.maximum(sums[:, :-1], -sums[:, 1:]))

    def _sums(self, which: Ints, levels: Ints, weights: Ints, bins: int) -> Ints:
        """Sums of derivatives by bin and place.

        Along the places, which are evenly spaced, a derivative is flat, then a line, from its zero on another line, and
        flat again: each record changes the constants and the slopes of these pieces where they begin.
        """
        rule, at = self.slopes, self.slopes.offset + self.slopes.scale * self._between
        zero, cap, above, below = rule.step * levels, rule.cap, rule.above, rule.below

        def first_above(mark: Ints) -> Ints:
            return np.clip((mark - at[0]) // (at[1] - at[0]) + 1, 0, at.size)

        flat, steep = np.zeros((2, bins, at.size + 1), np.int64)
        np.add.at(flat[:, 0], which, -weights * cap * below)
        # the first places above the lower end, above the zero, and not below the upper end
        for place, constant, slope in (
            (first_above(zero - cap), (cap - zero) * below, below),
            (first_above(zero), zero * (below - above), above - below),
            (first_above(zero + cap - 1), (zero + cap) * above, -above),
        ):
            np.add.at(flat, (which, place), weights * constant)
            np.add.at(steep, (which, place), weights * slope)
        return (np.cumsum(flat, axis=1) + np.cumsum(steep, axis=1) * np.append(at, 0))[:, :-1]
