"""Turn a released step curve into lines.

The steps say more than their values, if the curve behind them has few jumps.

Where rises are alike from step to step, the curve probably rises all along, and lines through the steps are closer to
it; where one rise is far higher than its neighbours, it probably jumps, and the step should stay. Everything here looks
at released steps only: it is post-processing and costs no privacy (docs/theory/curves.md, section 12).
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.chain.boundaries import merged
from isotone.curves.curve import Curve

__all__ = ["find_jumps", "lines_through", "sloped"]

FACTOR = 4.0
"""A jump is at least this many times as high as the rises beside it,"""
LEAST = 0.1
"""and more than this share of the range."""


def find_jumps(values: Floats) -> list[tuple[int, int]]:
    """Pairs ``(i, j)`` of steps between which the values jump.

    No step is in two pairs.

    ``j`` is ``i + 1``, or ``i + 2`` where one step in the middle of the jump has a value between.

    >>> find_jumps(np.array([0.2, 0.21, 0.8, 0.81]))
    [(1, 2)]
    >>> find_jumps(np.array([0.2, 0.2, 0.5, 0.8, 0.8])), find_jumps(np.array([0.2, 0.4, 0.6, 0.8]))
    ([(1, 3)], [])
    """
    rises = np.r_[0.0, np.diff(values), 0.0]  # rises[k] leads to step k
    found: list[tuple[float, int, int]] = []
    for i in range(values.size - 1):
        for j in range(i + 1, min(i + 3, values.size)):
            inner, beside = rises[i + 1 : j + 1], max(rises[i], rises[j + 1])
            if inner.min() > FACTOR * beside and inner.sum() > LEAST:
                found.append((float(inner.sum()), i, j))
    jumps: list[tuple[int, int]] = []
    for _, i, j in sorted(found, reverse=True):
        if all(j < a or b < i for a, b in jumps):
            jumps.append((i, j))
    return sorted(jumps)


def sloped(starts: Ints, values: Floats, points: int) -> Curve:
    """The steps with slopes.

    Each turns about its middle until it would meet a neighbour, and stays flat at a jump.

    The slope of a step is the smaller of the slopes to its neighbours' middles (a limited slope, as in schemes for
    conservation laws), so the curve still rises everywhere and each step keeps its mean.
    """
    ends = np.r_[starts[1:] - 1, points - 1]
    half = (ends - starts) / 2.0
    rises, apart = np.diff(values), np.diff((starts + ends) / 2.0)
    for i, j in find_jumps(values):
        rises[i:j] = np.inf  # nobody behind a jump is a neighbour
    left, right = np.r_[np.inf, rises], np.r_[rises, np.inf]
    slope = np.minimum(left / np.r_[1.0, apart], right / np.r_[apart, 1.0])
    slope = np.where(np.isfinite(slope), slope, 0.0)  # a step between two jumps stays flat
    # a step never rises by more than its neighbours are away, nor beyond the range
    swing = np.minimum.reduce([slope * half, left / 2, right / 2, values, 1.0 - values])
    corners = np.stack([values - swing, values + swing], axis=1).ravel()
    knots = np.stack([starts, ends], axis=1).ravel()
    alone = np.r_[True, knots[1:] != knots[:-1]]
    rising = np.maximum.accumulate(np.clip(corners, 0.0, 1.0))
    return Curve(knots[alone], rising[alone], points, interpolated=True)


def lines_through(starts: Ints, values: Floats, points: int, *, even: bool) -> Curve:
    """Lines through the steps, but for jumps.

    There is a corner at every point, if points are not ``even``.
    """
    curve = sloped(*merged(starts, values), points)
    if even:
        return curve
    every = np.arange(points)
    return Curve(every, curve.at(every), points, interpolated=True)
