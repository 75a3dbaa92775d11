"""The direction of a curve, chosen privately. Which way is the isotonic fit better?"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from isotone.curves.chain.tree import Runs
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.grids import FINE
from isotone.curves.losses.prefix_losses import add_linear_losses
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting

__all__ = ["AUTO_SHARE", "choose_direction"]

AUTO_SHARE = Fraction(5, 100)
"""The share of epsilon that finding the direction costs."""


def choose_direction(records: Records, points: int, setting: CurveSetting, draws: CurveDraws) -> bool:
    """Whether the curve rises, by the exponential mechanism.

    The score of a direction is the least absolute loss of a curve in that direction. One record raises it by something
    between 0 and the width of ``y_range`` (docs/theory/curves.md, section 10).
    """
    scores = [least_absolute_loss(records), least_absolute_loss(records.mirrored(points))]
    rate = setting.rate(AUTO_SHARE, FINE)
    chosen = draws.segments(np.array(scores), np.array([0, 2]), [rate], np.ones(2, dtype=np.int64))
    return int(chosen[0]) == 0


def least_absolute_loss(records: Records) -> int:
    """The least absolute loss of a rising curve, in steps of ``y``."""
    runs = Runs.of(records)
    losses = np.zeros(runs.point.size + 1, dtype=np.int64)
    heap, heights = np.empty((2, records.cells.size + 1), dtype=np.int64)
    add_linear_losses(
        records.levels,
        records.weights,
        runs.start,
        0,
        runs.point.size,
        1,
        0,
        FINE,
        1,
        1,
        heap,
        heights,
        losses,
    )
    return int(losses[-1])
