"""What error is to be small, and the least error that noise of a kind can have."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.order import Poset
from isotone.order.bipartitions.small import is_small, part_of
from isotone.privacy.checks import exact, shown

__all__ = [
    "Care",
    "care_of",
    "care_weights",
    "cared_error",
    "gaussian_total",
    "k_norm_total",
    "log_differences",
    "log_hull",
    "relative_to",
]


# The objective that a plan minimises over many counts.
#
# All counts alike, all levels alike, the worst count, or weights. Weights are public: they stand in the manifest,
# and must not come from the data; an earlier private release may fill them in.

Care = str | Mapping[Any, Any]
"""What matters: the mean square over all counts ("nodes"), its mean over "levels", the "worst", or weights by element."""

_WORDS = ("nodes", "levels", "worst")
_LEAST = Fraction(1, 10**100)
_UNNAMED = 1e-6
"""The weight of elements without one, against the largest."""


def care_of(P: Poset, care: Any) -> str | dict[str, str]:
    """``care`` as plain values, with exact weights as text by the name of the element."""
    if isinstance(care, str) and str.__str__(care) in _WORDS:
        return str.__str__(care)
    if not isinstance(care, Mapping):
        raise InputError(f"care is 'nodes', 'levels', 'worst' or weights by element, not {shown(care)}.")
    known = {str(x) for x in P.elements}
    weights: dict[str, str] = {}
    for name, given in care.items():
        if str(name) not in known:
            raise InputError(f"care= names {name!r}, which is not an element of this order.")
        weight = exact(given, f"the weight of {name!r}")
        if weight and not _LEAST <= weight <= 1 / _LEAST:
            raise InputError(
                f"The weight of {name!r} must be 0 or between 1e-100 and 1e100, not {shown(given)}."
            )
        weights[str(name)] = str(weight)
    if not any(exact(weight) for weight in weights.values()):
        raise InputError("care= needs at least one weight above 0.")
    return weights


def care_weights(P: Poset, care: str | Mapping[str, str]) -> Floats:
    """The weight of each element's variance. They add up to 1."""
    if isinstance(care, Mapping):
        weights = np.array([float(exact(care.get(str(x), "0"))) for x in P.elements])
        # what nobody cares for has some weight still: it is published too, and should be worth it
        weights = np.where(weights > 0, weights, _UNNAMED * weights.max())
    elif care == "levels":
        depth = _depths(P)
        weights = 1 / np.bincount(depth)[depth]
    else:
        weights = np.ones(len(P))
    return weights / weights.sum()


def cared_error(P: Poset, care: str | Mapping[str, str]) -> Callable[[Error], float]:
    """The root of what is to be small, of an error."""
    if care == "worst":
        return lambda error: error.worst
    weights = care_weights(P, care)
    return lambda error: math.sqrt(math.fsum(weights * error.variance))


def relative_to(guesses: Mapping[Any, Any]) -> dict[Hashable, Any]:
    """Weights for relative errors, given guessed counts.

    The guesses are public, like all weights: never take them from the data itself.

    >>> relative_to({"a": 10, "b": 0})
    {'a': Fraction(1, 100), 'b': Fraction(1, 1)}
    """
    return {
        name: 1 / max(exact(guess, f"the guess of {name!r}"), exact(1)) ** 2
        for name, guess in guesses.items()
    }


def _depths(P: Poset) -> NDArray[np.int64]:
    """The length of the longest way up from each element."""
    depth = np.zeros(len(P), np.int64)
    place = np.empty(len(P), np.int64)
    place[P.linear_order] = np.arange(len(P))
    pairs = P.cover_pairs[np.argsort(-place[P.cover_pairs[:, 0]], kind="stable")]
    for low, high in pairs.tolist():
        depth[low] = max(depth[low], depth[high] + 1)
    return depth


# Lower bounds of squared errors without simulation, to skip mechanisms that cannot be the best.
#
# Noise with density ``exp(−rate·‖y‖)`` has the squared error ``(n+1)(n+2)/rate²`` times that of a uniform point of the
# unit ball of its norm, and no body of a given volume is closer to its centre than a Euclidean ball. The ellipse of a
# Gaussian contains all changes, and a matrix of given determinant has its least trace when it is a multiple of the
# identity (docs/theory/baselines.md, section 8).

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
