"""Boundaries between two values, drawn again where both values are known.

Boundaries move in windows that do not overlap, so they look at different records and all of them together cost what
one costs. Moving a boundary past a record exchanges two values for it, which differ little where steps are low: the
noise in the loss is in proportion to the height of the step, and heights add up to at most the range
(docs/theory/curves.md, section 11).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.curves.chain.tree import Inside, Parts, Runs, draw_cuts
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting

__all__ = ["BoundaryScore", "draw_boundaries", "merged", "move_boundaries"]


def move_boundaries(
    records: Records,
    starts: Ints,
    values: Ints,
    points: int,
    table: Ints,
    setting: CurveSetting,
    share: Fraction,
    draws: CurveDraws,
) -> tuple[Ints, Ints]:
    """Steps with the same values (columns of ``table``) and new boundaries, for ``share`` of epsilon.

    A boundary may move between the middles of its two steps.
    """
    starts, values = merged(starts, values)
    if starts.size == 1:
        return starts, values
    middles = (starts + np.r_[starts[1:], points]) // 2
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
