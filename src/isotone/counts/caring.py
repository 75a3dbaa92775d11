"""The objective that a plan minimises over many counts.

All counts alike, all levels alike, the worst count, or weights. Weights are public: they stand in the manifest,
and must not come from the data; an earlier private release may fill them in.
"""

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
from isotone.privacy.checks import exact, shown

__all__ = ["Care", "care_of", "care_weights", "cared_error", "relative_to"]

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
