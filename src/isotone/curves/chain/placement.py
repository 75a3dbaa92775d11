"""Where the bins of the second round begin, from what the first round released and public numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isotone.curves.measure import NoisySums
from isotone.curves.posterior.posterior import CurvePosterior

__all__ = ["placed_starts"]

Ints = NDArray[np.int64]

CROWDS, RISES = 0.45, 0.25
"""At most so many of the bins go to crowds, and so many to where the curve rises; the others are even."""
CLEAR = 1.5
"""How clearly a crowd must stand out: so much beyond what the largest of the noises reaches."""


def placed_starts(sums: NoisySums, found: CurvePosterior, n: int, bins: int) -> Ints:
    """The first points of at most ``bins`` bins, from noisy sums of even coarse bins and their posterior ``found``.

    About ``n`` records are expected. A coarse bin gets bins by its width, by how crowded it clearly is, and by the posterior of its density ``r`` and of
    the slope ``g`` of the curve there: in proportion to ``(r·g²)^{1/3}``, which evens out what steps miss.
    """
    size = sums.starts.size
    ones, zeros = sums.in_records
    expected = n / size
    surplus = ones + zeros - expected
    crowd = np.where(surplus > (math.log(size) + CLEAR) * math.sqrt(sums.noise.variance / 2), surplus, 0.0)
    crowded = CROWDS * min(1.0, float(crowd.sum()) / n)
    slope = np.gradient(found.population) if size > 1 else np.zeros(1)
    rising = ((found.ones + found.zeros) * slope**2) ** (1 / 3)
    share = np.full(size, (1.0 - crowded - RISES) / size) + RISES * rising / max(float(rising.sum()), 1e-9)
    if crowded > 0:
        share += crowded * crowd / crowd.sum()
    reached = np.r_[0.0, np.cumsum(share)]
    edges = np.r_[sums.starts, sums.points].astype(np.float64)
    cuts = np.interp(np.arange(bins) / bins, reached / reached[-1], edges)
    return np.unique(np.floor(cuts + 1e-9).astype(np.int64))
