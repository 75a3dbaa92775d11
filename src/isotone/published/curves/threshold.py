"""The score of Ghazi, Kamath, Kumar and Manurangsi 2022.

It is the least isotonic loss that a cut still allows.

The score of a cut is the loss of the best isotonic fit that stays in the lower half of the interval below the cut
and in the upper half above it. One record moves the scores of two cuts apart by at most the range of its loss over
*half* the interval (docs/theory/curves.md, section 5), half of the constant in the source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from isotone.array_types import Ints
from isotone.curves.chain.additive_tree import TreeMechanism
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.chain.tree import Parts, Runs, Score
from isotone.curves.grids import FINE, LEVELS
from isotone.curves.losses.known_losses import Absolute, Loss, Pinball, Squared
from isotone.curves.losses.prefix_losses import add_linear_losses, add_table_losses
from isotone.kernels import kernel
from isotone.published.curves.squared_losses import FRACTION, add_squared_losses

__all__ = ["LinearScore", "SquaredScore", "TableScore", "threshold_score", "threshold_tree"]

TABLE_BITS = 10
ROUNDING = 4
"""Rounding the squared score up to a whole number, twice, can move two cuts apart by less than this."""


def threshold_tree(problem: ChainProblem) -> TreeMechanism:
    """The tree of cuts by this score, with a depth for a problem."""
    score, deepest = threshold_score(problem.loss, problem.span, problem.setting.weight_steps)
    levels = problem.levels or max(1, math.ceil(math.log2(max(2.0, problem.strength))))
    return TreeMechanism(problem.setting, problem.points, score, min(levels, deepest), problem.steepest)


def threshold_score(loss: Loss, span: Fraction, weight_steps: int = 1) -> tuple[Score, int]:
    """The score for a loss, and the most levels of cuts that its grid of values allows.

    With weights the squared loss goes by its table: sums of squares on the fine grid would not fit 64 bits, however many
    records there are, and the number of records is private.
    """
    if isinstance(loss, Squared) and weight_steps == 1:
        return SquaredScore(), LEVELS
    if isinstance(loss, (Absolute, Pinball)):
        rule = loss.slopes(FINE, span)
        return LinearScore(rule.above, rule.below), LEVELS
    size = 1 << TABLE_BITS
    return TableScore(loss.table(size, size, span)), TABLE_BITS


@dataclass(frozen=True)
class LinearScore:
    """The score for piecewise linear losses, in exact integers.

    The slope is ``above`` beyond ``y`` and ``−below`` before it.
    """

    above: int
    below: int

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """The least loss below the cut plus the least loss above it."""
        return _linear_scores(
            runs.records.levels,
            runs.records.weights,
            runs.start,
            parts.first,
            parts.last,
            parts.floor,
            parts.width,
            offsets,
            self.above,
            self.below,
        )

    def ranges(self, parts: Parts) -> list[int]:
        """The larger slope times half the interval."""
        return [max(self.above, self.below) * (parts.width // 2)] * parts.floor.size


@dataclass(frozen=True)
class SquaredScore:
    """The score for the squared loss.

    It is rounded up to integers, and the range is widened by what that can add.
    """

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """The least loss below the cut plus the least loss above it, rounded up by less than 2."""
        whole, part = _squared_scores(
            runs.records.levels,
            runs.records.weights,
            runs.start,
            parts.first,
            parts.last,
            parts.floor,
            parts.width,
            offsets,
        )
        return whole - (part >> FRACTION)

    def ranges(self, parts: Parts) -> list[int]:
        """The loss range over half the interval of a record at an end of ``y_range``, plus the rounding."""
        ranges: list[int] = []
        for low, mid in zip(parts.floor.tolist(), parts.middle.tolist(), strict=True):
            high = low + parts.width
            ranges.append(max(high**2 - mid**2, (FINE - low) ** 2 - (FINE - mid) ** 2) + ROUNDING)
        return ranges


@dataclass(frozen=True)
class TableScore:
    """The score for any convex loss, in exact integers.

    It uses a table of the loss on a coarser grid.
    """

    table: Ints = field(repr=False)

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """The least loss below the cut plus the least loss above it."""
        coarse = FINE // (self.table.shape[0] - 1)
        return _table_scores(
            runs.records.rows(self.table),
            runs.records.weights,
            runs.start,
            parts.first,
            parts.last,
            parts.floor // coarse,
            parts.width // coarse,
            offsets,
            self.table,
        )

    @cached_property
    def _valleys(self) -> Ints:
        """Where each row is least."""
        return self.table.argmin(axis=1)

    def _range(self, low: int, high: int) -> int:
        """The largest range of a row over an interval of values.

        Rows are convex, so it is reached at an end.
        """
        least = np.take_along_axis(self.table, np.clip(self._valleys, low, high)[:, None], axis=1)[:, 0]
        return int((np.maximum(self.table[:, low], self.table[:, high]) - least).max())

    def ranges(self, parts: Parts) -> list[int]:
        """The largest range of a row of the table over a half of the interval."""
        coarse = FINE // (self.table.shape[1] - 1)
        half = parts.width // coarse // 2
        lows = (parts.floor // coarse).tolist()
        return [max(self._range(low, low + half), self._range(low + half, low + 2 * half)) for low in lows]


@kernel
def _linear_scores(
    levels: Ints,
    weights: Ints,
    start: Ints,
    first: Ints,
    last: Ints,
    floor: Ints,
    width: int,
    offsets: Ints,
    above: int,
    below: int,
) -> Ints:
    scores = np.zeros(offsets[-1], np.int64)
    heap, heights = np.empty(levels.size + 1, np.int64), np.empty(levels.size + 1, np.int64)
    half = width // 2
    for part in range(first.size):
        a, b, low = first[part], last[part], floor[part]
        out = scores[offsets[part] : offsets[part + 1]]
        mid = low + half
        add_linear_losses(levels, weights, start, a, b, 1, low, mid, above, below, heap, heights, out)
        add_linear_losses(
            levels, weights, start, a, b, -1, mid, low + width, above, below, heap, heights, out
        )
    return scores


@kernel
def _squared_scores(
    levels: Ints, weights: Ints, start: Ints, first: Ints, last: Ints, floor: Ints, width: int, offsets: Ints
) -> tuple[Ints, Ints]:
    scores = np.zeros(offsets[-1], np.int64)
    parts = np.zeros(offsets[-1], np.int64)
    blocks = np.empty((levels.size + 1, 5), np.int64)
    half = width // 2
    for part in range(first.size):
        a, b, low = first[part], last[part], floor[part]
        out = scores[offsets[part] : offsets[part + 1]]
        rest = parts[offsets[part] : offsets[part + 1]]
        add_squared_losses(levels, weights, start, a, b, 1, low, low + half, blocks, out, rest)
        add_squared_losses(levels, weights, start, a, b, -1, low + half, low + width, blocks, out, rest)
    return scores, parts


@kernel
def _table_scores(
    levels: Ints,
    weights: Ints,
    start: Ints,
    first: Ints,
    last: Ints,
    floor: Ints,
    width: int,
    offsets: Ints,
    table: Ints,
) -> Ints:
    scores = np.zeros(offsets[-1], np.int64)
    least = np.empty(width + 1, np.int64)
    half = width // 2
    for part in range(first.size):
        a, b, low = first[part], last[part], floor[part]
        out = scores[offsets[part] : offsets[part + 1]]
        add_table_losses(levels, weights, start, a, b, 1, low, low + half, table, least, out)
        add_table_losses(levels, weights, start, a, b, -1, low + half, low + width, table, least, out)
    return scores
