"""Curves of losses that means do not minimise, from noisy histograms and private choices of boundaries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.cuts import ChainProblem, Curve, CurveMechanism, RiskBound
from isotone.curves.losses import ROWS, largest_range
from isotone.curves.posterior import equal_bins
from isotone.curves.problem import CurveSetting, Records
from isotone.curves.tree import HalvingScore, Parts, StepValues, grow, move_boundaries
from isotone.kernels import kernel

# Noisy histograms of ``y`` in bins of ``x``, and the increasing steps that fit them best.
#
# For losses that no sum determines (absolute, pinball, Huber). Each record is counted in one cell of one bin, so the noise
# does not grow with the number of cells; everything after the noise is post-processing, and may search all increasing
# curves (docs/theory/curves.md, section 11).

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


# Curves for losses that means do not minimise, from noisy histograms of bins and private choices of their boundaries.


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
        near = StepValues(starts, steps, self.points)
        starts, steps = move_boundaries(
            records, near, self.table, self.setting, self.shares.boundaries, draws
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
