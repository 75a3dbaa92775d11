"""The last stroke on a step curve: its values stay, and every boundary between two steps is drawn again.

A boundary may move between the middles of its two steps, so boundaries look at different records and all of them
together cost what one costs. Moving a boundary past a record exchanges two values for it, which differ little where
steps are low: the noise in the loss is in proportion to the height of the step, and heights add up to at most the range
(docs/theory/curves.md, section 11).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.curves.choices import Choices
from isotone.curves.grids import FINE
from isotone.curves.privacy import Setting
from isotone.curves.records import Records
from isotone.curves.tree import Parts, Runs, draw_cuts

__all__ = ["BoundaryScore", "move_boundaries"]

Ints = NDArray[np.int64]


def move_boundaries(
    records: Records,
    starts: Ints,
    values: Ints,
    points: int,
    table: Ints,
    setting: Setting,
    share: Fraction,
    choices: Choices,
) -> tuple[Ints, Ints]:
    """Steps with the same values (columns of ``table``) and new boundaries, for ``share`` of epsilon."""
    starts, values = merged(starts, values)
    if starts.size == 1:
        return starts, values
    runs = Runs.of(records)
    middles = (starts + np.r_[starts[1:], points]) // 2
    edges = np.searchsorted(runs.point, middles)
    windows = Parts(
        low=middles[:-1],
        high=middles[1:],
        floor=np.zeros(middles.size - 1, np.int64),
        width=0,
        first=edges[:-1],
        last=edges[1:],
    )
    score = BoundaryScore(table, values)
    rates = [setting.rate(share, scale) for scale in score.ranges(windows)]
    cuts, _ = draw_cuts(runs, windows, score, rates, choices)
    moved = np.r_[0, cuts]
    kept = np.r_[moved[1:] > moved[:-1], True]  # a step whose boundaries meet is gone
    return moved[kept], values[kept]


def merged(starts: Ints, values: Ints) -> tuple[Ints, Ints]:
    """The same steps, with equal neighbours made one."""
    new = np.r_[True, values[1:] != values[:-1]]
    return starts[new], values[new]


@dataclass(frozen=True)
class BoundaryScore:
    """The loss of a boundary's place: window ``i`` lies between the values ``values[i]`` and ``values[i + 1]``.

    ``table`` has the loss of every value (column) for every ``y`` (row), in integers.
    """

    table: Ints = field(repr=False)
    values: Ints

    def scores(self, runs: Runs, parts: Parts, offsets: Ints) -> Ints:
        """What the records below the cut lose by having the lower value, up to a constant of the window."""
        coarse = FINE // (self.table.shape[0] - 1)
        return _losses(
            (runs.records.levels + coarse // 2) // coarse,
            runs.records.weights,
            runs.start,
            parts.first,
            parts.last,
            offsets,
            self.table,
            self.values,
        )

    def ranges(self, parts: Parts) -> list[int]:
        """The most that a record can lose or gain by the exchange of the two values."""
        columns = self.table[:, self.values]
        return np.abs(np.diff(columns, axis=1)).max(axis=0).tolist()


@njit(cache=True)
def _losses(
    rows: Ints, weights: Ints, start: Ints, first: Ints, last: Ints, offsets: Ints, table: Ints, values: Ints
) -> Ints:
    scores = np.empty(offsets[-1], np.int64)
    for part in range(first.size):
        place, score = offsets[part], 0
        scores[place] = 0
        for run in range(first[part], last[part]):
            for record in range(start[run], start[run + 1]):
                row = table[rows[record]]
                score += weights[record] * (row[values[part]] - row[values[part + 1]])
            place += 1
            scores[place] = score
    return scores
