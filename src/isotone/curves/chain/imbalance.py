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
from isotone.kernels import kernel

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
        sums = _derivatives(
            records.bins(starts),
            records.levels,
            records.weights,
            starts.size,
            self.slopes.places(self._between),
            self.slopes.rule,
        )
        return np.maximum(0, np.maximum(sums[:, :-1], -sums[:, 1:]))


@kernel
def _derivatives(which: Ints, levels: Ints, weights: Ints, bins: int, at: Ints, rule: Ints) -> Ints:
    """Sums of derivatives by bin and place.

    Along the places ``at``, which are evenly spaced, a derivative is flat, then a line, from its zero on another line,
    and flat again: each record changes the constants and the slopes of these pieces where they begin.
    """
    step, cap, above, below = rule
    start, apart = at[0], at[1] - at[0]
    flat = np.zeros((bins, at.size + 1), np.int64)
    steep = np.zeros((bins, at.size + 1), np.int64)
    for record in range(which.size):
        b, weight, zero = which[record], weights[record], step * levels[record]
        # the first places above the lower end, above the zero, and not below the upper end
        rising = min(max((zero - cap - start) // apart + 1, 0), at.size)
        positive = min(max((zero - start) // apart + 1, 0), at.size)
        capped = min(max((zero + cap - 1 - start) // apart + 1, 0), at.size)
        flat[b, 0] -= weight * cap * below
        flat[b, rising] += weight * (cap - zero) * below
        steep[b, rising] += weight * below
        flat[b, positive] += weight * zero * (below - above)
        steep[b, positive] += weight * (above - below)
        flat[b, capped] += weight * (zero + cap) * above
        steep[b, capped] -= weight * above
    sums = np.empty((bins, at.size), np.int64)
    for b in range(bins):
        constant, slope = 0, 0
        for place in range(at.size):
            constant += flat[b, place]
            slope += steep[b, place]
            sums[b, place] = constant + slope * at[place]
    return sums
