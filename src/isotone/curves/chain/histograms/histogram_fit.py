"""Curves for losses that means do not minimise, from noisy histograms of bins and private choices of their boundaries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from isotone.array_types import Ints
from isotone.curves.chain.boundaries import move_boundaries
from isotone.curves.chain.cut_scores import HalvingScore
from isotone.curves.chain.histograms.noisy_histograms import Windows, best_steps, noisy_losses
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.chain.tree import Parts, grow
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.losses.known_losses import ROWS, largest_range
from isotone.curves.measure import equal_bins
from isotone.curves.records import Records

__all__ = ["HistogramFit", "HistogramShares"]


@dataclass(frozen=True)
class HistogramShares:
    """What each of the four steps may spend of epsilon, together at most 1."""

    halving: Fraction = Fraction(4, 100)
    coarse: Fraction = Fraction(10, 100)
    fine: Fraction = Fraction(38, 100)
    boundaries: Fraction = Fraction(48, 100)


@dataclass(frozen=True)
class HistogramSize:
    """Sizes while epsilon times the number of records is ``below`` a limit. ``bins`` is for its root."""

    below: float
    values: int
    halvings: int
    bins: float
    coarse_cells: int
    fine_cells: int
    margin: float


SIZES = (
    HistogramSize(30_000, 256, 3, 1.0, 12, 4, 0.05),
    HistogramSize(200_000, 512, 4, 1.2, 16, 5, 0.03),
    HistogramSize(math.inf, 1024, 5, 1.2, 24, 8, 0.02),
)


@dataclass(frozen=True)
class HistogramFit(CurveMechanism):
    """Four steps. Even out ``x``, find the curve roughly, find its values closely, draw its boundaries.

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
    shares: HistogramShares = HistogramShares()
    unit: float = 1.0

    @classmethod
    def of(cls, case: ChainProblem) -> HistogramFit:
        """The mechanism with sizes for a case."""
        root = math.sqrt(case.strength)
        size = next(size for size in SIZES if case.strength < size.below)
        return cls(
            case.setting,
            case.points,
            case.table(size.values),
            reach=case.loss.slopes(ROWS, case.span).cap,
            halvings=size.halvings,
            coarse_bins=case.bins(0.3 * root),
            fine_bins=case.bins(size.bins * root),
            coarse_cells=size.coarse_cells,
            fine_cells=size.fine_cells,
            margin=size.margin,
            unit=case.unit(size.values),
        )

    @property
    def _values(self) -> int:
        return self.table.shape[1] - 1

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each fine bin."""
        levels = [self.shares.halving / max(1, self.halvings)] * self.halvings
        parts = grow(records, self.points, levels, HalvingScore(), self.setting, draws)
        coarse, rough = self._rough(records, parts, draws)
        starts = equal_bins(parts.low, parts.high, self.fine_bins)
        steps = self._close(records, starts, coarse, rough, draws)
        share = self.shares.boundaries
        starts, steps = move_boundaries(
            records, starts, steps, self.points, self.table, self.setting, share, draws
        )
        return Curve(starts, steps / self._values, self.points)

    def _rough(self, records: Records, parts: Parts, draws: CurveDraws) -> tuple[Ints, Ints]:
        """The coarse bins and their values."""
        starts = equal_bins(parts.low, parts.high, self.coarse_bins)
        zeros = np.zeros(starts.size, np.int64)
        windows = Windows(starts, zeros, zeros + self.table.shape[0] - 1, self.coarse_cells)
        losses = noisy_losses(records, windows, self.table, self.setting, self.shares.coarse, draws)
        return starts, best_steps(losses, zeros, zeros + self._values)

    def _close(self, records: Records, starts: Ints, coarse: Ints, rough: Ints, draws: CurveDraws) -> Ints:
        """The values of the fine bins, between the neighbours' rough values and a margin."""
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
        losses = noisy_losses(records, windows, self.table, self.setting, self.shares.fine, draws)
        return best_steps(losses, lowest, highest)

    def error(self) -> RiskBound:
        """An estimate from the bound of the boundaries (section 11) and what noise and width of the fine bins cost."""
        epsilon = float(self.setting.epsilon) / self.setting.factor
        scale = self.unit * largest_range(self.table)
        drawn = scale * math.log(self.points + 1) / (epsilon * float(self.shares.boundaries))
        cells = self.fine_cells + 2
        noise = scale * math.sqrt(2.0 * cells * self.fine_bins) / (epsilon * float(self.shares.fine))
        return RiskBound(drawn + noise, scale / self.fine_bins, proved=False)
