"""The tree of private cuts of a chain, its scores, and boundaries drawn again between two values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.losses import Slopes
from isotone.curves.problem import FINE, CurveSetting, Records

# The tree of cuts. Halve the range of values again and again, and let private cuts of the domain follow.
#
# At every level the domain is partitioned into parts, and each part has an interval of values of the same width.
# In each part a cut is drawn by the exponential mechanism: what lies below it gets the lower half of the interval,
# what lies above the upper half. Parts of one level hold different records, so a level costs the same however
# many parts it has (docs/theory/curves.md, section 4).
#
# Parts without records are cut like any other: to stop there would tell that they are empty.


@dataclass(frozen=True)
class Parts:
    """A partition of the domain. The released output of a tree, together with the records in each part.

    Part ``p`` is the points ``low[p], …, high[p] − 1`` and the values ``floor[p], …, floor[p] + width``. Its records are
    those of the runs ``first[p], …, last[p] − 1``: private, and no part of the output.
    """

    low: Ints
    high: Ints
    floor: Ints
    width: int
    first: Ints = field(repr=False)
    last: Ints = field(repr=False)

    @property
    def middle(self) -> Ints:
        """The middle of each part's interval of values."""
        return self.floor + self.width // 2


@dataclass(frozen=True)
class Runs:
    """Sorted records, grouped by point. Run ``r`` has the records ``start[r], …, start[r + 1] − 1`` at ``point[r]``."""

    records: Records
    point: Ints = field(repr=False)
    start: Ints = field(repr=False)

    @classmethod
    def of(cls, records: Records) -> Runs:
        """The runs of sorted records."""
        cells = records.cells
        starts = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]]) if cells.size else np.zeros(0, np.int64)
        return cls(records, cells[starts], np.r_[starts, cells.size].astype(np.int64))


@dataclass(frozen=True)
class Inside:
    """The records of all parts, one part after the other, with the part that each is in."""

    record: Ints = field(repr=False)
    part: Ints = field(repr=False)
    _ends: Ints = field(repr=False)
    _starts: Ints = field(repr=False)

    @classmethod
    def of(cls, runs: Runs, parts: Parts, offsets: Ints) -> Inside:
        """The records of the runs of each part."""
        before = runs.start[parts.first]
        counts, cuts = runs.start[parts.last] - before, parts.last - parts.first + 1
        skipped = before - (np.cumsum(counts) - counts)  # records before a part that are in none
        part = np.repeat(np.arange(counts.size), counts)
        run = np.arange(offsets[-1]) + np.repeat(parts.first - offsets[:-1], cuts)
        ends = runs.start[run] - np.repeat(skipped, cuts)
        return cls(np.arange(part.size) + skipped[part], part, ends, np.repeat(before - skipped, cuts))

    def sums(self, values: Ints) -> Ints:
        """For every cut the sum over the records of its part that are below it. They have one value each."""
        total = np.concatenate([[0], np.cumsum(values)])  # may wrap around; differences that fit are right
        return total[self._ends] - total[self._starts]


class Score(Protocol):
    """How bad a cut is. Cut ``j`` of a part puts its first ``j`` runs below."""

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """The scores of all cuts of all parts. Those of part ``p`` are at ``offsets[p], …, offsets[p + 1] − 1``."""
        ...

    def ranges(self, parts: Parts) -> list[int]:
        """For every part, how far apart one record of weight 1 can move the scores of two cuts."""
        ...


def grow(
    records: Records,
    points: int,
    shares: Sequence[Fraction],
    score: Score,
    setting: CurveSetting,
    draws: CurveDraws,
) -> Parts:
    """The partition after ``len(shares)`` levels, of which level ``t`` spends ``shares[t]`` of epsilon."""
    runs = Runs.of(records)
    parts = Parts(
        low=np.zeros(1, np.int64),
        high=np.full(1, points, np.int64),
        floor=np.zeros(1, np.int64),
        width=FINE,
        first=np.zeros(1, np.int64),
        last=np.full(1, runs.point.size, np.int64),
    )
    for share in shares:
        rates = [setting.rate(share, scale) for scale in score.ranges(parts)]
        parts = _cut(runs, parts, score, rates, draws)
    return parts


def _cut(runs: Runs, parts: Parts, score: Score, rates: list[Fraction], draws: CurveDraws) -> Parts:
    """Cut every part once."""
    return _children(parts, *draw_cuts(runs, parts, score, rates, draws))


def draw_cuts(
    runs: Runs, parts: Parts, score: Score, rates: Sequence[Fraction], draws: CurveDraws
) -> tuple[Ints, Ints]:
    """In every part a cut, as the first point above it and the first run above it (which is private)."""
    sizes = parts.last - parts.first + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    before, gaps = _gaps(runs, parts, offsets)
    # how many cuts have scores of their own is private; how many there are at most is not
    size = int((parts.high - parts.low).sum())
    chosen = draws.segments(score.scores(runs, parts, offsets), offsets, rates, gaps, size)
    place = offsets[:-1] + chosen
    # the score is the same on a whole gap between two runs: within it, the cut is uniform
    return before[place] + draws.below(gaps[place]) + 1, parts.first + chosen


def _gaps(runs: Runs, parts: Parts, offsets: Ints) -> tuple[Ints, Ints]:
    """For every cut between runs the last point below it, and how many places in the gap it stands for."""
    before = np.empty(offsets[-1], dtype=np.int64)
    after = np.empty(offsets[-1], dtype=np.int64)
    inner = np.ones(offsets[-1], dtype=np.bool_)
    inner[offsets[:-1]] = False
    before[inner] = _of_parts(runs.point, parts)
    before[offsets[:-1]] = parts.low - 1
    outer = np.ones(offsets[-1], dtype=np.bool_)
    outer[offsets[1:] - 1] = False
    after[outer] = _of_parts(runs.point, parts)
    after[offsets[1:] - 1] = parts.high
    return before, after - before


def _of_parts(point: Ints, parts: Parts) -> Ints:
    """The points of all runs, part by part."""
    sizes = parts.last - parts.first
    ahead = np.cumsum(sizes) - sizes
    return point[np.arange(sizes.sum()) + np.repeat(parts.first - ahead, sizes)]


def _children(parts: Parts, cut: Ints, split: Ints) -> Parts:
    """The halves of every part, in order. A half without a domain is dropped, which only outputs decide."""
    half = parts.width // 2
    low, high = _interleave(parts.low, cut), _interleave(cut, parts.high)
    floor = _interleave(parts.floor, parts.floor + half)
    first, last = _interleave(parts.first, split), _interleave(split, parts.last)
    alive = low < high
    return Parts(low[alive], high[alive], floor[alive], half, first[alive], last[alive])


def _interleave(a: Ints, b: Ints) -> Ints:
    return np.stack([a, b], axis=1).ravel()


# How good a cut is, by the derivatives that it leaves on the wrong side or by how evenly it divides the records.
#
# For a cut with the middle value ``mid``, a record wants to be below the cut if its loss rises at ``mid`` and above it
# if the loss falls. The additive score adds up the absolute derivatives of the records that are on the wrong side. One record
# moves it by at most its own derivative, and its excess bounds the excess of the optimal isotonic loss
# (docs/theory/curves.md, sections 3 and 4). It needs no isotonic fit: one pass over the records for each level.


@dataclass(frozen=True)
class AdditiveScore:
    """The additive score of a loss on the fine grid of ``y``."""

    slopes: Slopes

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """Minus the sum of derivatives below the cut, up to a constant of the part."""
        inside = Inside.of(runs, parts, offsets)
        levels, weights = runs.records.levels[inside.record], runs.records.weights[inside.record]
        return -inside.sums(weights * self.slopes.at(parts.middle[inside.part], levels))

    def ranges(self, parts: Parts) -> list[int]:
        """The largest absolute derivative at the middle of each part."""
        known: dict[int, int] = {}
        for middle in parts.middle.tolist():
            if middle not in known:
                known[middle] = self.slopes.bound(middle, FINE)
        return [known[middle] for middle in parts.middle.tolist()]


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


# Boundaries between two values, drawn again where both values are known.
#
# Boundaries move in windows that do not overlap, so they look at different records and all of them together cost what
# one costs. Moving a boundary past a record exchanges two values for it, which differ little where steps are low: the
# noise in the loss is in proportion to the height of the step, and heights add up to at most the range
# (docs/theory/curves.md, section 11).


class StepValues(NamedTuple):
    """The first point and the value of each step, and the number of points."""

    starts: Ints
    values: Ints
    points: int


def move_boundaries(
    records: Records,
    steps: StepValues,
    table: Ints,
    setting: CurveSetting,
    share: Fraction,
    draws: CurveDraws,
) -> tuple[Ints, Ints]:
    """Steps with the same values (columns of ``table``) and new boundaries, for ``share`` of epsilon.

    A boundary may move between the middles of its two steps.
    """
    starts, values = merged(steps.starts, steps.values)
    if starts.size == 1:
        return starts, values
    middles = (starts + np.r_[starts[1:], steps.points]) // 2
    score = BoundaryScore(table, values[:-1], values[1:])
    cuts = draw_boundaries(records, middles[:-1], middles[1:], score, setting, share, draws)
    moved = np.r_[0, cuts]
    kept = np.r_[moved[1:] > moved[:-1], True]  # a step whose boundaries meet is gone
    return moved[kept], values[kept]


def draw_boundaries(
    records: Records,
    low: Ints,
    high: Ints,
    score: BoundaryScore,
    setting: CurveSetting,
    share: Fraction,
    draws: CurveDraws,
) -> Ints:
    """In every window ``low, …, high − 1`` the first point above a boundary. Windows must not overlap."""
    runs = Runs.of(records)
    windows = Parts(
        low=low,
        high=high,
        floor=np.zeros(low.size, np.int64),
        width=0,
        first=np.searchsorted(runs.point, low),
        last=np.searchsorted(runs.point, high),
    )
    rates = [setting.rate(share, scale) for scale in score.ranges(windows)]
    cuts, _ = draw_cuts(runs, windows, score, rates, draws)
    return cuts


def merged(starts: Ints, values: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """The same steps, with equal neighbours made one."""
    new = np.r_[True, values[1:] != values[:-1]]
    return starts[new], values[new]


@dataclass(frozen=True)
class BoundaryScore:
    """The loss of a boundary's place. In window ``i`` it parts the values ``below[i]`` and ``above[i]``.

    ``table`` has the loss of every value (column) for every ``y`` (row), in integers.
    """

    table: Ints = field(repr=False)
    below: Ints
    above: Ints

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """What the records below the cut lose by having the lower value, up to a constant of the window."""
        inside = Inside.of(runs, parts, offsets)
        rows, weights = runs.records.rows(self.table)[inside.record], runs.records.weights[inside.record]
        below, above = self.below[inside.part], self.above[inside.part]
        return inside.sums(weights * (self.table[rows, below] - self.table[rows, above]))

    def ranges(self, parts: Parts) -> list[int]:
        """The most that a record can lose or gain by the exchange of the two values."""
        return np.abs(self.table[:, self.below] - self.table[:, self.above]).max(axis=0).tolist()
