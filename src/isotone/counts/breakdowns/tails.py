"""How far a weighted sum of many draws of noise stays from 0.

The sum of independent draws whose densities are symmetric and log-concave is of the same kind, and of all such numbers of
one variance those with a truncated exponential density reach farthest (docs/theory/breakdowns.md, section 5).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

__all__ = ["gaussian_reach", "log_concave_reach", "rounding_reach"]


@lru_cache(maxsize=64)
def log_concave_reach(outside: float) -> float:
    """The least multiple of the standard deviation that such a number exceeds with probability ``outside`` at most.

    >>> round(log_concave_reach(0.05), 2)  # a Gaussian: 1.96
    2.17
    """
    cut = np.geomspace(0.1, 700.0, 100_001)  # where the density ends; for shorter ones it is nearly uniform
    kept = -np.expm1(-cut)
    square = (2 - np.exp(-cut) * (cut * (cut + 2) + 2)) / kept
    ratio = -np.log1p(-(1 - outside) * kept) / np.sqrt(square)
    return max(float(ratio.max()), (1 - outside) * math.sqrt(3)) * (1 + 1e-6)


def gaussian_reach(outside: float) -> float:
    """The same for Gaussian noise."""
    from scipy.special import ndtri

    return -float(ndtri(outside / 2))


def rounding_reach(outside: float) -> float:
    """How far a sum of independent numbers of mean 0, each between -1 and 1 times its weight, stays from 0 (Hoeffding).

    In multiples of the root of the sum of the squared weights.
    """
    return math.sqrt(2 * math.log(2 / outside))
