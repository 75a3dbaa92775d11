"""Cuts that halve the number of records: bins that follow the distribution of ``x``, found privately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.tree import Inside, Parts, Runs

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
        inside = Inside.of(runs, parts, offsets)
        below = inside.sums(runs.records.weights[inside.record])
        return np.abs(2 * below - np.repeat(below[offsets[1:] - 1], np.diff(offsets)))

    def ranges(self, parts: Parts) -> list[int]:
        """Two, in every part."""
        return [2] * parts.low.size
