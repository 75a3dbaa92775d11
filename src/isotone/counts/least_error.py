"""Lower bounds of squared errors without simulation, to skip mechanisms that cannot be the best.

Noise with density ``exp(−rate·‖y‖)`` has the squared error ``(n+1)(n+2)/rate²`` times that of a uniform point of the
unit ball of its norm, and no body of a given volume is closer to its centre than a Euclidean ball. The ellipse of a
Gaussian contains all changes, and a matrix of given determinant has its least trace when it is a multiple of the
identity (docs/theory/baselines.md, section 8).
"""

from __future__ import annotations

import math

from isotone.order import Poset
from isotone.order.bipartitions.small import is_small, part_of

__all__ = ["gaussian_total", "k_norm_total", "log_differences", "log_hull"]

LARGEST = 2_000
"""The sizes of all down-sets are looked at in orders of up to so many elements."""


def k_norm_total(size: int, rate: float, log_volume: float) -> float:
    """The least total squared error of noise with density ``exp(−rate·‖y‖)`` whose unit ball has this volume."""
    return (size + 1) * gaussian_total(size, 1.0, log_volume) / rate**2


def gaussian_total(size: int, variance: float, log_volume: float) -> float:
    """The least total variance of Gaussian noise whose ellipse contains a body of this volume.

    ``variance`` is that of the noise at sensitivity 1.
    """
    log_ball = size / 2 * math.log(math.pi) - math.lgamma(size / 2 + 1)
    return size * variance * math.exp(2 / size * (log_volume - log_ball))


def log_hull(P: Poset) -> float:
    """A lower bound of the logarithm of the volume of the hull of all records and their negatives.

    It is exact for a small order, where the extended bipartitions can be counted.
    """
    if is_small(P):
        return math.log(sum(part_of(P).counts)) - math.lgamma(len(P) + 1)
    return math.log(2) + _log_polytope(P)


def log_differences(P: Poset) -> float:
    """A lower bound of the logarithm of the volume of the hull of all differences of two records.

    It is exact for a small order. Elsewhere the sum of a body and its negative has at least the volume of twice the
    body (Brunn and Minkowski).
    """
    n = len(P)
    if is_small(P):
        pairs = sum(count * math.comb(n, a) for a, count in enumerate(part_of(P).counts))
        return math.log(pairs) - math.lgamma(n + 1)
    return n * math.log(2) + _log_polytope(P)


def _log_polytope(P: Poset) -> float:
    """A lower bound of the logarithm of the volume of the order polytope, which holds all records.

    An order has at least ``n! / Π|↓x|`` linear extensions, and at least one.
    """
    if len(P) > LARGEST:
        return -math.lgamma(len(P) + 1)
    return -sum(math.log(below) for below in P.leq_matrix().sum(axis=0).tolist())
