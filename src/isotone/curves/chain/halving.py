"""Cuts that halve the number of records: bins that follow the distribution of ``x``, found privately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.tree import Parts, Runs
from isotone.kernels import kernel

__all__ = ["HalvingScore"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HalvingScore:
    """How far apart the numbers of records below and above a cut are.

    One more record moves the difference by 1 up or down, so its absolute value changes by between −1 and 1: the range
    is 2 (docs/theory/curves.md, section 11).
    """

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """``|records below − records above|``, counted with weights."""
        return _differences(runs.records.weights, runs.start, parts.first, parts.last, offsets)

    def ranges(self, parts: Parts) -> list[int]:
        """Two, in every part."""
        return [2] * parts.low.size


@kernel
def _differences(weights: Ints, start: Ints, first: Ints, last: Ints, offsets: Ints) -> Ints:
    scores = np.empty(offsets[-1], np.int64)
    for part in range(first.size):
        total = 0
        for record in range(start[first[part]], start[last[part]]):
            total += weights[record]
        place, below = offsets[part], 0
        scores[place] = total
        for run in range(first[part], last[part]):
            for record in range(start[run], start[run + 1]):
                below += weights[record]
            place += 1
            scores[place] = abs(2 * below - total)
    return scores
