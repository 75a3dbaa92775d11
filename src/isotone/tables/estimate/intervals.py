"""Intervals of true counts from their posteriors."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["content", "is_shortest", "shortest"]

_KEPT = 0.92  # the share of intervals of 95 % that a release is to keep
_SPREADS = 4.0  # standard deviations of chance that still leave so many
_FEWEST = 200  # categories: with fewer, no content leaves room for chance


def content(level: float, size: int) -> float:
    """How much of its posterior an interval of this level has, where ``size`` categories share a prior.

    Chance alone leaves out more than one means to where categories are few. Intervals that miss less make up for it: those of
    95 % have the upper limit of Wilson for 92 %, so that four standard deviations of chance leave 92 % of them. This is a public number.

    >>> [round(content(0.95, size), 4) for size in (50, 200, 400, 1000)]
    [0.969, 0.969, 0.9594, 0.95]
    """
    size = max(size, _FEWEST)
    square = _SPREADS**2 / size
    chance = sqrt(square * (_KEPT * (1 - _KEPT) + square / 4))
    limit = (_KEPT + square / 2 + chance) / (1 + square)
    return 1 - (1 - level) * min(1.0, (1 - limit) / 0.05)


def shortest(law: NDArray[np.float64], level: float) -> tuple[int, int]:
    """The shortest interval of whole numbers that has ``level`` of a law, and of equally short ones the likeliest.

    >>> shortest(np.array([0.04, 0.5, 0.46]), 0.95)
    (1, 2)
    """
    below = np.concatenate([[0.0], np.cumsum(law)])
    low = np.arange(len(law))
    high = np.maximum(np.searchsorted(below, below[:-1] + level), low + 1)
    high[0] = min(high[0], len(law))  # all counts, if rounding leaves them less
    low, high = low[high <= len(law)], high[high <= len(law)]
    best = np.argmin(high - low - (below[high] - below[low]))
    return int(low[best]), int(high[best]) - 1


def is_shortest(law: NDArray[np.float64], low: int, high: int, level: float, loose: float) -> bool:
    """Whether an interval is the shortest of a law that is known up to ``loose``."""
    below = np.concatenate([[0.0], np.cumsum(law)])
    width, own = high + 1 - low, below[high + 1] - below[low]
    likeliest, shorter = (float(np.max(below[w:] - below[: len(below) - w])) for w in (width, width - 1))
    return own >= max(level, likeliest) - loose and (width == 1 or shorter < level + loose)
