"""A credible band of what the posterior holds likely, point by point. It is a belief of the model, and guarantees nothing."""

from __future__ import annotations

import numpy as np

from isotone.curves.bands.band import LineBand
from isotone.curves.measure import NoisySums
from isotone.curves.posterior.posterior import CurvePosterior

__all__ = ["credible_band"]


def credible_band(sums: NoisySums, found: CurvePosterior, confidence: float) -> LineBand:
    """The central share ``confidence`` of the posterior of every bin's value, with lines through the middles of bins."""
    below = np.cumsum(found.chances, axis=1)
    below /= below[:, -1:]
    tail = (1 - confidence) / 2
    last = found.values.size - 1
    low = np.minimum((below <= tail).sum(axis=1), last)
    high = np.minimum((below < 1 - tail).sum(axis=1), last)
    lows = np.maximum.accumulate(found.values[low])
    highs = np.minimum.accumulate(found.values[high][::-1])[::-1]
    # values of straight log odds are rounded bin by bin, so that the ends may change places
    return LineBand(sums.middles, np.minimum(lows, highs), np.maximum(lows, highs), sums.points)
