"""The threshold mechanisms of the paper on private isotonic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.curve import RiskBound
from isotone.curves.cuts import ChainProblem, TreeMechanism
from isotone.curves.grids import FINE, LEVELS
from isotone.curves.ideals import Cut, ListedRegion, Region
from isotone.curves.losses import Absolute, Loss, Pinball, Squared, add_linear_losses, add_table_losses
from isotone.curves.poset_regression import (
    MOST_THRESHOLD_LEVELS,
    CutRule,
    OrderMechanism,
    PosetProblem,
    equal_shares,
    grow_regions,
)
from isotone.curves.problem import Records
from isotone.curves.shape_posterior import point_costs
from isotone.curves.tree import Parts, Runs, Score
from isotone.kernels import kernel
from isotone.published.curves.shape_tree import FRACTION, add_squared_losses

__all__ = [
    "CoupledRegion",
    "LinearScore",
    "PosetThresholdTree",
    "SquaredScore",
    "TableScore",
    "ideal_losses",
    "threshold_score",
    "threshold_tree",
]


# The score of Ghazi, Kamath, Kumar and Manurangsi 2022.
#
# It is the least isotonic loss that a cut still allows.
#
# The score of a cut is the loss of the best isotonic fit that stays in the lower half of the interval below the cut
# and in the upper half above it. One record moves the scores of two cuts apart by at most the range of its loss over
# *half* the interval (docs/theory/curves.md, section 5), half of the constant in the source.

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


# The score of Ghazi, Kamath, Kumar and Manurangsi 2022 on an order, by listing its ideals.
#
# The score of an ideal is the loss of the best monotone function with values in the lower half of the interval on the
# ideal and in the upper half elsewhere. By the threshold representation it is a sum over values of least sums of
# derivatives among the ideals inside, or around, this one; two passes over the pairs of ideals that differ by one
# element give it for all of them (docs/theory/curves-posets.md, section 8). A method for reference: the additive score
# is as good in theory, better in practice, and needs no list.


@dataclass(frozen=True)
class PosetThresholdTree(OrderMechanism):
    """A tree of cuts by optimal isotonic losses (Algorithm 3 of the source, with the right constants).

    ``table`` holds the loss on a grid of values, exactly convex in the value: it is the loss that is minimised.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, sections 1 and 8).
    Cost: O(values · pairs of ideals that differ by one element) a level.
    """

    levels: int
    table: Ints = field(repr=False)
    steepest: float = 1.0

    @classmethod
    def of(cls, problem: PosetProblem) -> PosetThresholdTree:
        """The mechanism with a depth for a problem."""
        levels = problem.levels or min(
            MOST_THRESHOLD_LEVELS, max(1, math.ceil(math.log2(max(2.0, problem.strength))))
        )
        table = problem.table(1 << max(levels, 4))
        return cls(problem.setting, problem.arrangement, levels, table, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Step values, at most ``2**levels`` of them."""
        costs = point_costs(records, self.arrangement.size, self.table)
        step = FINE // (self.table.shape[1] - 1)

        def level(floor: Ints, width: int) -> CutRule:
            def cut(region: Region, low: int, wide: int, share: Fraction) -> Cut:
                if not isinstance(region, ListedRegion):
                    raise TypeError("the arrangement of this mechanism lists its ideals")
                window = slice(low // step, (low + wide) // step + 1)
                scores = ideal_losses(region, costs[:, window])
                rate = self.setting.rate(share, self._range(window))
                return region.choose(scores, rate, draws)

            return cut

        return grow_regions(self.arrangement, equal_shares(self.levels), level).middles()

    def _range(self, window: slice) -> int:
        """The largest range of a row of the table over a half of the interval."""
        values = self.table[:, window]
        half = values.shape[1] // 2
        lower = np.ptp(values[:, : half + 1], axis=1).max()
        upper = np.ptp(values[:, half:], axis=1).max()
        return max(1, int(lower), int(upper))

    def error(self) -> RiskBound:
        """The risk bound of section 1, as for the additive score.

        ``steepest`` is the largest slope of the loss over the range.
        """
        return RiskBound.of_cuts(
            self.setting, equal_shares(self.levels), self.arrangement.log_ideals(), self.steepest
        )


def ideal_losses(region: ListedRegion, costs: Ints) -> Ints:
    """The least loss for every ideal.

    The lower half of the values is inside the ideal and the upper half outside.

    ``costs[x, v]`` is the loss of value ``v`` at element ``x``; an odd number of values, convex in ``v``.
    """
    ideals = region.ideals
    smaller, larger = ideals.extensions()
    slopes = np.diff(costs[region.members], axis=1)
    top = int(costs[region.members, -1].sum())
    return top + _threshold_sums(ideals.parent, ideals.added, smaller, larger, slopes)


@kernel
def _threshold_sums(parent: Ints, added: Ints, smaller: Ints, larger: Ints, slopes: Ints) -> Ints:
    """Over all steps of the values, the least of minus the sum of slopes.

    The minimum is over ideals inside or around each.
    """
    total = np.zeros(parent.size, np.int64)
    least = np.empty(parent.size, np.int64)
    steps = slopes.shape[1]
    for step in range(steps):
        least[0] = 0
        for i in range(1, parent.size):
            least[i] = least[parent[i]] - slopes[added[i], step]
        if step < steps // 2:
            for k in range(smaller.size):
                least[larger[k]] = min(least[larger[k]], least[smaller[k]])
        else:
            for k in range(smaller.size - 1, -1, -1):
                least[smaller[k]] = min(least[smaller[k]], least[larger[k]])
        total += least
    return total


# Draw ideals of any order by coupling from the past.
#
# The draws are exact, and the running time depends on the data.
#
# The same coins drive two chains from the empty ideal and from the full one, started ever further back, until they meet:
# what they meet in has exactly the law (Propp and Wilson 1996). How long this takes tells something about the data to
# whoever can measure it, and stopping it, or trying something else when it is slow, would put that into the release.
# So it is done on request only, and without a limit (docs/theory/curves-posets.md, section 10).


@dataclass(frozen=True)
class CoupledRegion:
    """A convex set of elements along a linear extension.

    ``covers`` are those of the whole order.
    """

    elements: Ints = field(repr=False)
    covers: Ints = field(repr=False)

    @property
    def members(self) -> Ints:
        """The elements."""
        return self.elements

    def log_ideals(self) -> float:
        """A bound on the logarithm of the number of ideals.

        No order has more ideals than subsets.
        """
        return self.elements.size * math.log(2.0)

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal."""
        size = self.elements.size
        place = np.full(weights.size, -1, np.int64)
        place[self.elements] = np.arange(size)
        pairs = place[self.covers]
        pairs = pairs[(pairs >= 0).all(axis=1)]
        starts, others, ups = _neighbours(size, pairs)
        # a coin for each element: in with weight exp(−rate·weight), out with weight 1
        scores = np.stack([np.zeros(size, np.int64), weights[self.elements]], axis=1).ravel()
        offsets, once = np.arange(size + 1) * 2, np.ones(2 * size, np.int64)
        coins: list[Bools] = []  # the latest sweep first
        while True:
            coins += [
                draws.segments(scores, offsets, [rate] * size, once).astype(np.bool_)
                for _ in range(max(1, len(coins)))
            ]
            low, high = np.zeros(size, np.bool_), np.ones(size, np.bool_)
            for coin in reversed(coins):
                _sweep(low, coin, starts, others, ups)
                _sweep(high, coin, starts, others, ups)
            if np.array_equal(low, high):
                return Cut(self._part(low), self._part(~low))

    def _part(self, inside: Bools) -> CoupledRegion | None:
        return CoupledRegion(self.elements[inside], self.covers) if inside.any() else None


def _neighbours(size: int, pairs: Ints) -> tuple[Ints, Ints, Bools]:
    """For every element its covers on both sides, and whether each lies above it."""
    own = np.concatenate([pairs[:, 0], pairs[:, 1]])
    other = np.concatenate([pairs[:, 1], pairs[:, 0]])
    above = np.repeat([True, False], pairs.shape[0])
    order = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[order], np.arange(size + 1)).astype(np.int64)
    return starts, other[order], above[order]


@kernel
def _sweep(inside: Bools, coin: Bools, starts: Ints, others: Ints, above: Bools) -> None:
    """Give each element in turn the side its coin names, if the rest leaves an ideal then."""
    for x in range(inside.size):
        free = True
        for k in range(starts[x], starts[x + 1]):
            if coin[x] and not above[k] and not inside[others[k]]:
                free = False
            if not coin[x] and above[k] and inside[others[k]]:
                free = False
        if free:
            inside[x] = coin[x]
