"""The mechanism for losses without means and ample budgets: histograms find values, choices find boundaries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.curves.chain.boundaries import move_boundaries
from isotone.curves.chain.halving import HalvingScore
from isotone.curves.chain.histograms import Windows, best_steps, noisy_losses
from isotone.curves.chain.tree import Parts, grow
from isotone.curves.choices import Choices
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.measure import equal_bins
from isotone.curves.records import Records

__all__ = ["HistogramFit", "Shares"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Shares:
    """What each of the four steps may spend of epsilon; together at most 1."""

    halving: Fraction = Fraction(4, 100)
    coarse: Fraction = Fraction(10, 100)
    fine: Fraction = Fraction(38, 100)
    boundaries: Fraction = Fraction(48, 100)


@dataclass(frozen=True)
class HistogramFit(CurveMechanism):
    """Four steps: even out ``x``, find the curve roughly, find its values closely, draw its boundaries.

    1. ``halvings`` levels of cuts halve the number of records in each part; every part has the same number of bins.
    2. A noisy histogram with cells over the whole range of ``y`` in ``coarse_bins`` bins, and its best increasing steps.
    3. In ``fine_bins`` bins a second one with cells only near those steps, and its best increasing steps.
    4. The boundaries of these steps, each drawn between the middles of its neighbours.

    ``table`` has the loss of every value (column) for every ``y`` (row); ``reach`` is the number of rows beyond which the
    slope of the loss does not change any more: records further away are as good as at that distance.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 11).
    Error: ``error()`` is an estimate for smooth curves, not a bound.
    Cost: O(n·halvings) after sorting, and O(bins·values·cells).
    """

    table: Ints = field(repr=False)
    reach: int
    halvings: int
    coarse_bins: int
    fine_bins: int
    coarse_cells: int = 12
    fine_cells: int = 4
    margin: float = 0.05
    shares: Shares = Shares()
    unit: float = 1.0

    @property
    def _values(self) -> int:
        return self.table.shape[1] - 1

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A step curve with at most one step for each fine bin."""
        levels = [self.shares.halving / max(1, self.halvings)] * self.halvings
        parts = grow(records, self.points, levels, HalvingScore(), self.setting, choices)
        coarse, rough = self._rough(records, parts, choices)
        starts = equal_bins(parts.low, parts.high, self.fine_bins)
        steps = self._close(records, starts, coarse, rough, choices)
        share = self.shares.boundaries
        starts, steps = move_boundaries(
            records, starts, steps, self.points, self.table, self.setting, share, choices
        )
        return Curve(starts, steps / self._values, self.points)

    def _rough(self, records: Records, parts: Parts, choices: Choices) -> tuple[Ints, Ints]:
        """The coarse bins and their values."""
        starts = equal_bins(parts.low, parts.high, self.coarse_bins)
        zeros = np.zeros(starts.size, np.int64)
        windows = Windows(starts, zeros, zeros + self.table.shape[0] - 1, self.coarse_cells)
        losses = noisy_losses(records, windows, self.table, self.setting, self.shares.coarse, choices)
        return starts, best_steps(losses, zeros, zeros + self._values)

    def _close(self, records: Records, starts: Ints, coarse: Ints, rough: Ints, choices: Choices) -> Ints:
        """The values of the fine bins: those between the neighbours' rough values, and a margin."""
        near = np.searchsorted(coarse, starts, side="right") - 1
        margin = math.ceil(self.margin * self._values)
        lowest = np.maximum(0, rough[np.maximum(near - 1, 0)] - margin)
        highest = np.minimum(self._values, rough[np.minimum(near + 1, rough.size - 1)] + margin)
        top = self.table.shape[0] - 1
        scale = top // self._values
        windows = Windows(
            starts,
            np.maximum(0, lowest * scale - self.reach),
            np.minimum(top, highest * scale + self.reach),
            self.fine_cells,
        )
        losses = noisy_losses(records, windows, self.table, self.setting, self.shares.fine, choices)
        return best_steps(losses, lowest, highest)

    def error(self) -> RiskBound:
        """An estimate: the bound of the boundaries (section 11), and what noise and width of the fine bins cost together."""
        epsilon = float(self.setting.epsilon) / self.setting.factor
        scale = self.unit * int(np.ptp(self.table, axis=1).max())
        drawn = scale * math.log(self.points + 1) / (epsilon * float(self.shares.boundaries))
        cells = self.fine_cells + 2
        noise = scale * math.sqrt(2.0 * cells * self.fine_bins) / (epsilon * float(self.shares.fine))
        return RiskBound(drawn + noise, scale / self.fine_bins, proved=False)
