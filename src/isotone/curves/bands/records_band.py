"""A band for the isotonic fit to the same records in the same bins. Noise is all that is uncertain.

Proof: docs/theory/bands.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from isotone.array_types import Floats
from isotone.curves.bands.band import StepBand
from isotone.curves.bands.tilts import cumulant, reach
from isotone.curves.measure import NoisySums

__all__ = ["records_band"]

TESTED: Floats = np.sin(np.linspace(0.0, math.pi / 2, 401)) ** 2
"""The ends of cells of values. A cell is kept as a whole or not at all."""
STRENGTHS: Floats = 0.95 * 1.5 ** -np.arange(24.0)
"""Exponents of the bound on noise, as shares of what its law allows. The best for a length and a cell is a public choice."""


def records_band(sums: NoisySums, confidence: float) -> StepBand:
    """Limits of the isotonic fit in the bins, all of them right at once with probability ``confidence`` at least.

    The fit in bin ``k`` is the largest over ``i ≤ k`` of the least over ``j ≥ k`` of the means of bins ``i, …, j``. All
    these means have limits, and those of the fit follow. Bins without records have no fit, and the band says nothing.
    """
    size = sums.starts.size
    ends = np.r_[sums.starts[1:], sums.points] - 1
    low, high = _limits(sums, confidence)
    least = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]  # over all last bins from k on
    most = np.maximum.accumulate(high, axis=0)  # over all first bins up to k
    lows = np.array([least[: k + 1, k].max() for k in range(size)])
    highs = np.array([most[k, k:].min() for k in range(size)])
    lows, highs = np.maximum.accumulate(lows), np.minimum.accumulate(highs[::-1])[::-1]
    return StepBand(sums.starts, lows, ends, highs, sums.points)


def _limits(sums: NoisySums, confidence: float) -> tuple[Floats, Floats]:
    """For every first and last bin the limits of the mean between, in a square table."""
    size = sums.starts.size
    reached = [np.r_[0.0, np.cumsum(part)] for part in sums.in_records]
    noises = _noises(sums, math.log(size) + math.log(size + 1) - math.log1p(-confidence))
    lows, highs = np.zeros((size, size)), np.ones((size, size))
    for length in range(1, size + 1):
        a, c = (total[length:] - total[:-length] for total in reached)
        low, high = _kept(a, a + c, noises(length))
        first = np.arange(size + 1 - length)
        lows[first, first + length - 1], highs[first, first + length - 1] = low, high
    return lows, highs


def _kept(ones: Floats, totals: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The ends of ``{v: |ones − v·totals| ≤ noise(v)}``, cell by cell of the tested values.

    Where no cell is left the noise was larger than it may be: then nothing is said, as for totals below 0.
    """
    apart = ones[:, None] - totals[:, None] * TESTED
    kept = (apart[:, 1:] <= noise) & (apart[:, :-1] >= -noise)
    some = (totals >= 0) & kept.any(axis=1)
    last = TESTED.size - 1 - kept[:, ::-1].argmax(axis=1)
    return np.where(some, TESTED[kept.argmax(axis=1)], 0.0), np.where(some, TESTED[last], 1.0)


def _noises(sums: NoisySums, log_limit: float) -> Callable[[int], Floats]:
    """How far noise moves ``(1 − v)·ones − v·zeros`` in so many bins at most, for the ``v`` of every cell."""
    t = STRENGTHS[:, None] * reach(sums)
    each = cumulant(sums, t * (1 - TESTED)) + cumulant(sums, t * TESTED)
    # convex in v, so largest at an end of the cell
    worst = np.maximum(each[:, 1:], each[:, :-1])
    return lambda bins: ((log_limit + bins * worst) / t).min(axis=0)
