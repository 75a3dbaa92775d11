"""The published tree of cuts for curves of a shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from isotone.array_types import Ints
from isotone.curves.circuits import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.problem import Records
from isotone.curves.shape_posterior import point_costs
from isotone.errors import InputError
from isotone.kernels import kernel

__all__ = [
    "FRACTION",
    "IMPOSSIBLE",
    "ShapeTree",
    "Splits",
    "Splitter",
    "add_squared_losses",
    "crossings",
    "refuse_large",
]


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
    levels: Ints,
    weights: Ints,
    start: Ints,
    first: int,
    last: int,
    step: int,
    low: int,
    high: int,
    blocks: Ints,
    out: Ints,
    parts: Ints,
) -> None:
    """The squared loss, as whole numbers in ``out`` minus fractions of 2**−30 in ``parts``."""
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
