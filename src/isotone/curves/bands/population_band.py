"""A band for the curve that the records were drawn from, simultaneous, for every population and number of records.

Proof: docs/theory/bands.md, section 2.
"""

from __future__ import annotations

import math

import numpy as np

from isotone.array_types import Floats
from isotone.curves.bands.band import StepBand
from isotone.curves.bands.tilts import COUNT, VALUES, cumulant, tilts
from isotone.curves.measure import NoisySums

__all__ = ["log_threshold", "population_band"]


def population_band(sums: NoisySums, confidence: float) -> StepBand:
    """Limits of a rising curve, all of them right at once with probability ``confidence`` at least.

    The upper end at a point is the least upper limit of the bins that begin there or later; the lower end the largest
    lower limit of those that end there or earlier.
    """
    ends = np.r_[sums.starts[1:], sums.points] - 1
    log_limit = log_threshold(sums.points, confidence)
    highs = np.minimum.accumulate(_highs(sums, log_limit)[::-1])[::-1]
    # a curve that rises also rises turned upside down and read from the right
    lows = 1 - np.minimum.accumulate(_highs(sums.mirrored().upside_down(), log_limit)[::-1])
    return StepBand(ends, lows, sums.starts, highs, sums.points)


def log_threshold(points: int, confidence: float) -> float:
    """The least ``x`` with ``2·points·COUNT·(1 + x)·exp(−x) ≤ 1 − confidence``."""
    chances = math.log(2 * COUNT) + math.log(points) - math.log1p(-confidence)
    x = chances
    for _ in range(100):  # a contraction, from below
        x = chances + math.log1p(x)
    return x * (1 + 1e-12)


def _highs(sums: NoisySums, log_limit: float) -> Floats:
    """For every bin an upper limit of the curve at its first point, by all runs of bins that begin with it."""
    ones, zeros = sums.in_records
    thetas, etas = tilts(sums)
    noises = cumulant(sums, thetas) + cumulant(sums, etas)
    best = np.zeros_like(thetas)
    place = np.zeros(ones.size, dtype=np.int64)
    for b in range(ones.size - 1, -1, -1):
        # the best run from a bin goes on to the best run from the next one, if that gains anything
        best = np.maximum(best, 0.0) - thetas * ones[b] + etas * zeros[b] - noises
        kept = np.flatnonzero((best < log_limit).all(axis=1))
        # the largest value that is kept; 0 always is. One between two tested values is kept if the lower of them is
        place[b] = kept[-1] + 1 if kept.size else 0
    return VALUES[place + 1]
