"""Noisy histograms of ``y`` in bins of ``x``, and the increasing steps that fit them best.

For losses that no sum determines (absolute, pinball, Huber). Each record is counted in one cell of one bin, so the noise
does not grow with the number of cells; everything after the noise is post-processing, and may search all increasing
curves (docs/theory/curves.md, section 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting
from isotone.kernels import kernel

__all__ = ["Windows", "best_steps", "noisy_losses"]

SPREAD = 4
"""A cell's records count as spread over this many rows of the table."""


@dataclass(frozen=True)
class Windows:
    """Bins of ``x`` and, in each, the rows of ``y`` from ``bottom`` to ``top`` that are told apart.

    ``cells`` equal cells lie between; what is at or beyond an end is counted at that end, in a cell of its own.
    """

    starts: Ints
    bottom: Ints
    top: Ints
    cells: int

    def counts(self, records: Records, rows: Ints) -> Ints:
        """How much weight is in each cell, which is private."""
        bins = records.bins(self.starts)
        low, high = self.bottom[bins], self.top[bins]
        inner = 1 + (rows - low) * self.cells // (high - low)
        cell = np.where(rows <= low, 0, np.where(rows >= high, self.cells + 1, inner))
        size = self.starts.size * (self.cells + 2)
        # sums of whole numbers below 2**53: exact in floats
        flat = np.bincount(bins * (self.cells + 2) + cell, weights=records.weights, minlength=size)
        return flat.astype(np.int64).reshape(self.starts.size, self.cells + 2)

    def losses(self, counts: Floats, table: Ints) -> Floats:
        """For every bin the loss of every value, if the records of a cell are spread evenly over it."""
        inner = (np.arange(self.cells * SPREAD) + 0.5) / (self.cells * SPREAD)
        share = np.r_[0.0, inner, 1.0]
        rows = np.rint(self.bottom[:, None] + (self.top - self.bottom)[:, None] * share).astype(np.int64)
        each = np.repeat(counts[:, 1:-1] / SPREAD, SPREAD, axis=1)
        weight = np.concatenate([counts[:, :1], each, counts[:, -1:]], axis=1)
        return np.stack([w @ table[r] for w, r in zip(weight, rows, strict=True)])


def noisy_losses(
    records: Records, windows: Windows, table: Ints, setting: CurveSetting, share: Fraction, draws: CurveDraws
) -> Floats:
    """Estimated losses of all values in all bins, for ``share`` of epsilon."""
    rate = setting.noise_rate(share, 1)
    counts = windows.counts(records, records.rows(table))
    return windows.losses(draws.perturb(counts, rate) / setting.weight_steps, table)


@kernel(steps=lambda losses, *_: 4 * losses.size)
def best_steps(losses: Floats, lowest: Ints, highest: Ints) -> Ints:
    """The nondecreasing values with the least sum of losses, where bin ``b`` has one from ``lowest[b]`` to ``highest[b]``.

    Both ends must be nondecreasing. The losses need not be convex: noise may have made them otherwise.
    """
    bins, values = losses.shape
    least = np.full((bins, values), np.inf)
    origin = np.zeros((bins, values), np.int64)
    for b in range(bins):
        best, place = np.inf, 0
        for value in range(values):
            if b > 0 and least[b - 1, value] < best:
                best, place = least[b - 1, value], value
            if lowest[b] <= value <= highest[b]:
                least[b, value] = losses[b, value] + (best if b > 0 else 0.0)
                origin[b, value] = place
    steps = np.empty(bins, np.int64)
    value = np.argmin(least[bins - 1])
    for b in range(bins - 1, -1, -1):
        steps[b] = value
        value = origin[b, value]
    return steps
