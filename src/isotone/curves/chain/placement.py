"""Where the bins of the next round begin, from what the last one released and public numbers."""

from __future__ import annotations

import math

import numpy as np

from isotone.array_types import Ints
from isotone.curves.measure import NoisySums
from isotone.curves.posterior.posterior import CurvePosterior

__all__ = ["placed_starts"]

CROWDS, RISES = 0.6, 0.25
"""At most so many of the bins go to crowds, and so many to where the curve rises; the others are even."""
RARE, FEWEST = 6.0, 8
"""Where the mean of ``y`` is ``m`` and this times ``m·(1 − m)`` is below 1, there are fewer bins by its root, but so many."""
CLEAR = 1.5
"""How clearly a crowd must stand out: so much beyond what the largest of the noises reaches."""


def placed_starts(sums: NoisySums, found: CurvePosterior, n: int, bins: int, most: int | None = None) -> Ints:
    """The first points of about ``bins`` bins, from the noisy sums of other bins and their posterior ``found``.

    About ``n`` records are expected. A bin of the sums gets new ones by its width, by how crowded it clearly is, and by the
    posterior of its records ``r`` and of the rise ``g`` of the curve there: in proportion to ``(r·g²)^{1/3}``, which evens
    out what steps miss. ``most`` is given where what was seen decides how many bins there are: fewer where ``y`` is nearly
    always the same, which leaves little to be told apart, and up to twice as many where records are in crowds.
    """
    size = sums.starts.size
    width = np.diff(np.r_[sums.starts, sums.points]) / sums.points
    surplus = sum(sums.in_records) - n * width
    crowd = np.where(surplus > (math.log(size) + CLEAR) * math.sqrt(sums.noise.variance / 2), surplus, 0.0)
    share_in_crowds = min(1.0, float(crowd.sum()) / n)
    crowded = CROWDS * share_in_crowds
    rise = np.gradient(found.population) if size > 1 else np.zeros(1)
    rising = ((found.ones + found.zeros) * rise**2) ** (1 / 3)
    share = (1.0 - crowded - RISES) * width + RISES * rising / max(float(rising.sum()), 1e-9)
    if crowded > 0:
        share += crowded * crowd / crowd.sum()
    if most is not None:
        ones, zeros = float(found.ones.sum()), float(found.zeros.sum())
        varied = min(1.0, RARE * ones * zeros / max(ones + zeros, 1e-9) ** 2) ** 0.5
        bins = max(min(bins, FEWEST), round(bins * varied))
        bins = max(bins, min(most, round(bins * (1 + share_in_crowds))))
    reached = np.r_[0.0, np.cumsum(share)]
    edges = np.r_[sums.starts, sums.points].astype(np.float64)
    cuts = np.interp(np.arange(bins) / bins, reached / reached[-1], edges)
    return np.unique(np.floor(cuts + 1e-9).astype(np.int64))
