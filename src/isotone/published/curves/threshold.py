"""The published trees of cuts for curves, shapes and orders, with their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.cuts import ChainProblem, Curve, CurveMechanism, RiskBound, TreeMechanism
from isotone.curves.ideals import Cut, ListedRegion, Region
from isotone.curves.losses import (
    Absolute,
    Loss,
    Pinball,
    Squared,
    WeightedLevels,
    add_linear_losses,
    add_table_losses,
)
from isotone.curves.poset_regression import (
    MOST_THRESHOLD_LEVELS,
    CutRule,
    OrderMechanism,
    PosetProblem,
    equal_shares,
    grow_regions,
)
from isotone.curves.problem import FINE, LEVELS, Records
from isotone.curves.shape_posterior import point_costs
from isotone.curves.tree import Parts, Runs, Score
from isotone.errors import InputError
from isotone.kernels import kernel

# The papers' meta-algorithm for shapes.
#
# Halve the range, and choose how a curve of the shape crosses the middle.
#
# Ghazi, Kamath, Kumar and Manurangsi 2022, Algorithm 2, with the corrections of docs/theory/curves.md, section 9. A
# *node* is a stretch of the domain with an interval of values and what the shape demands there. A *split* of a node
# says where the curve passes the middle of the interval; its score is the least loss of a curve of the shape that passes
# there. One record moves it by at most the range of its loss over the node's interval.
#
# What a shape allows does not depend on the data, so impossible splits have multiplicity 0, and a node that leaves no
# choice is not split further: both are functions of what was released before.

IMPOSSIBLE = 1 << 60
"""The score of a split that no curve of the shape allows."""
MOST_ENTRIES = 20_000_000
"""The largest table that a split may need: up to about 3 GB in all."""


def refuse_large(entries: int, points: int, values: int) -> None:
    """Raise an error if the tables of the first node would be too large.

    Only public numbers decide.
    """
    if entries > MOST_ENTRIES:
        raise InputError(
            f"The tree for this shape on {points:,} points of x and {values:,} values needs tables of {entries:,} entries, "
            f"and {MOST_ENTRIES:,} is the limit: take fewer points (x_grid), fewer values (value_levels) or fewer pieces."
        )


@dataclass(frozen=True)
class Splits:
    """Candidate splits of one node.

    Their scores, and a row of numbers that describes each.
    """

    scores: Ints = field(repr=False)
    rows: Ints = field(repr=False)


def crossings(size: int, values: tuple[int, int, int], rises: tuple[int, int]) -> Ints:
    """All ways for a curve on ``size`` points to pass the middle.

    Rows ``(points up to it, last value, next value)``.

    ``values`` are the lowest, the middle and the highest; ``rises`` the least and the most that the curve may rise between
    two points. Before the first point the last value is the lowest, after the last the next is the middle + 1: fillers.
    """
    low, mid, high = values
    last, following = np.arange(low, mid + 1), np.arange(mid + 1, high + 1)
    grid = np.meshgrid(
        np.arange(1, size), last[last > mid - rises[1]], following[following <= mid + rises[1]], indexing="ij"
    )
    inner = np.stack([axis.ravel() for axis in grid], axis=1)
    rise = inner[:, 2] - inner[:, 1]
    inner = inner[(rise >= rises[0]) & (rise <= rises[1])]
    before = np.stack([np.zeros_like(following), np.full_like(following, low), following], axis=1)
    after = np.stack([np.full_like(last, size), last, np.full_like(last, mid + 1)], axis=1)
    return np.concatenate([before, inner, after]).astype(np.int64)


class Splitter(Protocol):
    """What a shape has to say about nodes. Values are indices ``0, …, values − 1`` of a grid."""

    @property
    def points(self) -> int:
        """The number of points of ``x``."""
        ...

    def root(self) -> Any:
        """The node that stands for all curves."""
        ...

    def interval(self, node: Any) -> tuple[int, int]:
        """The lowest and the highest value in a node."""
        ...

    def settled(self, node: Any) -> bool:
        """Whether nothing is left to choose in a node."""
        ...

    def prepare(self, table: Ints) -> Any:
        """What the scores of all nodes are made of, from the losses of all points and columns of the table."""
        ...

    def splits(self, node: Any, losses: Any) -> Splits:
        """All candidate splits of a node."""
        ...

    def children(self, node: Any, row: Ints) -> list[Any]:
        """The nodes that a split leaves, without those that have no points."""
        ...

    def fixed(self, node: Any, row: Ints) -> list[tuple[int, int]]:
        """Points and values (on the grid) that a split fixes."""
        ...

    def fill(self, node: Any) -> list[tuple[int, int]]:
        """Points and values of one curve in a node that is not split further.

        The data play no part.
        """
        ...


@dataclass(frozen=True)
class ShapeTree(CurveMechanism):
    """A tree of splits for one shape.

    ``columns`` is the table's number of columns for each step of the splitter's values.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 9).
    """

    splitter: Splitter
    levels: int
    values: int
    table: Ints = field(repr=False)
    interpolated: bool = False
    unit: float = 1.0
    steepest: float = 1.0

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of the shape."""
        losses = self.splitter.prepare(point_costs(records, self.points, self.table))
        active, done = [self.splitter.root()], []
        corners: list[tuple[int, int]] = []
        for _ in range(self.levels):
            done += [node for node in active if self.splitter.settled(node)]
            active = [node for node in active if not self.splitter.settled(node)]
            if not active:
                break
            rows = self._choose(active, losses, draws)
            for node, row in zip(active, rows, strict=True):
                corners += self.splitter.fixed(node, row)
            active = [
                child
                for node, row in zip(active, rows, strict=True)
                for child in self.splitter.children(node, row)
            ]
        for node in done + active:
            corners += self.splitter.fill(node)
        return self._curve(dict(corners))

    def _choose(self, active: list[Any], losses: Any, draws: CurveDraws) -> list[Ints]:
        """One split for every node."""
        splits = [self.splitter.splits(node, losses) for node in active]
        sizes = [len(split.scores) for split in splits]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        scores = np.concatenate([split.scores for split in splits])
        possible = (scores < IMPOSSIBLE).astype(np.int64)
        share = Fraction(1, self.levels)
        rates = [self.setting.rate(share, self._range(node)) for node in active]
        chosen = draws.segments(scores * possible, offsets, rates, possible)
        return [split.rows[index] for split, index in zip(splits, chosen.tolist(), strict=True)]

    def _range(self, node: Any) -> int:
        """The largest range of a record's loss over the node's interval."""
        fine = (self.table.shape[1] - 1) // (self.values - 1)
        low, high = self.splitter.interval(node)
        return max(1, int(np.ptp(self.table[:, low * fine : high * fine + 1], axis=1).max()))

    def _curve(self, corners: dict[int, int]) -> Curve:
        knots = np.array(sorted(corners), dtype=np.int64)
        values = np.array([corners[int(knot)] for knot in knots]) / (self.values - 1)
        if self.interpolated:
            return Curve(knots, values, self.points, interpolated=True)
        changes = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
        return Curve(knots[changes], values[changes], self.points)

    def error(self) -> RiskBound:
        """The risk bound of section 9.

        ``T²·ln N`` over epsilon, times the loss range of one value at the first level.
        """
        count = self.levels**2 * np.log(float(self.points) * self.values**2)
        scale = self.unit * int(np.ptp(self.table, axis=1).max()) * self.setting.factor
        return RiskBound(
            float(scale * count / float(self.setting.epsilon)), self.steepest * 2.0**-self.levels
        )


# The least squared loss of an isotonic fit to every prefix of a sequence, by pooled blocks in integers.
#
# As in :mod:`isotone.curves.losses`, for the squared loss (docs/theory/curves.md, section 5).

FRACTION = 30
"""Binary digits that are kept of the fractional part of a block's squared loss."""


@kernel
def _block_loss(weight: int, total: int, squares: int, low: int, high: int) -> tuple[int, int]:
    """The squared loss of a block at its mean, clipped to [low, high].

    ``(a, b)`` means ``a − b/2**30``, rounded up.
    """
    mean = total // weight
    rest = total - mean * weight
    if mean < low:
        mean, rest = low, 0
    elif mean >= high:
        mean, rest = high, 0
    whole = rest * rest // weight
    part = ((rest * rest - whole * weight) << FRACTION) // weight
    # sums below may wrap around; the result fits, so it is right
    return squares - 2 * mean * total + mean * mean * weight - whole, part


@kernel
def add_squared_losses(
    records: WeightedLevels,
    span: tuple[int, int, int],
    ends: tuple[int, int],
    blocks: Ints,
    out: Ints,
    parts: Ints,
) -> None:
    """The squared loss, as whole numbers in ``out`` minus fractions of 2**−30 in ``parts``."""
    (levels, weights, start), (first, last, step), (low, high) = records, span, ends
    if step < 0:
        low, high = -high, -low
    top = 0  # columns of a block: weight, total, squares, loss and fraction of all blocks up to it
    run = first if step > 0 else last - 1
    for place in range(1, last - first + 1):
        for record in range(start[run], start[run + 1]):
            index = record if step > 0 else start[run] + start[run + 1] - 1 - record
            weight = weights[index]
            if weight == 0:
                continue
            total = weight * step * levels[index]
            squares = weight * levels[index] * levels[index]
            while top > 0 and _at_least(blocks[top - 1, 1], blocks[top - 1, 0], total, weight):
                top -= 1
                weight += blocks[top, 0]
                total += blocks[top, 1]
                squares += blocks[top, 2]
            loss, part = _block_loss(weight, total, squares, low, high)
            blocks[top, 0], blocks[top, 1], blocks[top, 2] = weight, total, squares
            blocks[top, 3] = loss + (blocks[top - 1, 3] if top > 0 else 0)
            blocks[top, 4] = part + (blocks[top - 1, 4] if top > 0 else 0)
            top += 1
        if top > 0:
            out[place if step > 0 else last - first - place] += blocks[top - 1, 3]
            parts[place if step > 0 else last - first - place] += blocks[top - 1, 4]
        run += step


@kernel
def _at_least(total: int, weight: int, other_total: int, other_weight: int) -> bool:
    """Whether ``total/weight >= other_total/other_weight``, exactly and without large products."""
    mean, other = total // weight, other_total // other_weight
    if mean != other:
        return mean > other
    return (total - mean * weight) * other_weight >= (other_total - other * other_weight) * weight


# The threshold mechanisms of the paper on private isotonic regression.

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
        records = WeightedLevels(runs.records.levels, runs.records.weights, runs.start)
        cells = parts.first, parts.last, parts.floor
        return _linear_scores(records, cells, parts.width, offsets, (self.above, self.below))

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
        records = WeightedLevels(runs.records.levels, runs.records.weights, runs.start)
        cells = parts.first, parts.last, parts.floor
        whole, part = _squared_scores(records, cells, parts.width, offsets)
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
        records = WeightedLevels(runs.records.rows(self.table), runs.records.weights, runs.start)
        cells = parts.first, parts.last, parts.floor // coarse
        return _table_scores(records, cells, parts.width // coarse, offsets, self.table)

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


Cells = tuple[Ints, Ints, Ints]
"""The first run of each part, the one after its last, and its lowest value."""


@kernel
def _linear_scores(
    records: WeightedLevels, cells: Cells, width: int, offsets: Ints, slopes: tuple[int, int]
) -> Ints:
    scores, size = np.zeros(offsets[-1], np.int64), records.levels.size + 1
    room = np.empty(size, np.int64), np.empty(size, np.int64)
    (first, last, floor), half = cells, width // 2
    for part in range(first.size):
        a, b, low = first[part], last[part], floor[part]
        out = scores[offsets[part] : offsets[part + 1]]
        add_linear_losses(records, (a, b, 1), (low, low + half), slopes, room, out)
        add_linear_losses(records, (a, b, -1), (low + half, low + width), slopes, room, out)
    return scores


@kernel
def _squared_scores(records: WeightedLevels, cells: Cells, width: int, offsets: Ints) -> tuple[Ints, Ints]:
    scores = np.zeros(offsets[-1], np.int64)
    parts = np.zeros(offsets[-1], np.int64)
    blocks = np.empty((records.levels.size + 1, 5), np.int64)
    (first, last, floor), half = cells, width // 2
    for part in range(first.size):
        a, b, low = first[part], last[part], floor[part]
        out = scores[offsets[part] : offsets[part + 1]]
        rest = parts[offsets[part] : offsets[part + 1]]
        add_squared_losses(records, (a, b, 1), (low, low + half), blocks, out, rest)
        add_squared_losses(records, (a, b, -1), (low + half, low + width), blocks, out, rest)
    return scores, parts


@kernel
def _table_scores(records: WeightedLevels, cells: Cells, width: int, offsets: Ints, table: Ints) -> Ints:
    scores = np.zeros(offsets[-1], np.int64)
    least = np.empty(width + 1, np.int64)
    (first, last, floor), half = cells, width // 2
    for part in range(first.size):
        a, b, low = first[part], last[part], floor[part]
        out = scores[offsets[part] : offsets[part + 1]]
        add_table_losses(records, (a, b, 1), (low, low + half), table, least, out)
        add_table_losses(records, (a, b, -1), (low + half, low + width), table, least, out)
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
