"""The additive score: how much derivative a cut leaves on the wrong side.

For a cut with the middle value ``mid``, a record wants to be below the cut if its loss rises at ``mid`` and above it
if the loss falls. The score adds up the absolute derivatives of the records that are on the wrong side. One record
moves it by at most its own derivative, and its excess bounds the excess of the optimal isotonic loss
(docs/theory/curves.md, sections 3 and 4). It needs no isotonic fit: one pass over the records for each level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.tree import Parts, Runs
from isotone.curves.grids import FINE
from isotone.curves.slopes import Slopes, derivative
from isotone.kernels import kernel

__all__ = ["AdditiveScore"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AdditiveScore:
    """The additive score of a loss on the fine grid of ``y``."""

    slopes: Slopes

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """Up to a constant of the part: minus the sum of derivatives below the cut."""
        rule = self.slopes
        return _scores(
            runs.records.levels,
            runs.records.weights,
            runs.start,
            parts.first,
            parts.last,
            rule.places(parts.middle),
            offsets,
            rule.rule,
        )

    def ranges(self, parts: Parts) -> list[int]:
        """The largest absolute derivative at the middle of each part."""
        known: dict[int, int] = {}
        for middle in parts.middle.tolist():
            if middle not in known:
                known[middle] = self.slopes.bound(middle, FINE)
        return [known[middle] for middle in parts.middle.tolist()]


@kernel
def _scores(
    levels: Ints, weights: Ints, start: Ints, first: Ints, last: Ints, middle: Ints, offsets: Ints, rule: Ints
) -> Ints:
    scores = np.empty(offsets[-1], np.int64)
    for part in range(first.size):
        place = offsets[part]
        score = 0
        scores[place] = 0
        for run in range(first[part], last[part]):
            for record in range(start[run], start[run + 1]):
                score -= weights[record] * derivative(middle[part], levels[record], rule)
            place += 1
            scores[place] = score
    return scores
