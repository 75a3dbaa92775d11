"""The share of categories that have each of the counts ``0..upper``.

Mechanisms take one as ``z``: either the private :class:`Distribution` that a privatiser made, or an array of
probabilities, which is then taken as public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.privacy.guarantee import Guarantee

__all__ = ["Distribution", "DistributionLike", "is_simulated", "probabilities_of"]


@dataclass(frozen=True, eq=False)
class Distribution:
    """A private distribution of counts, and how it was made.

    ``probabilities`` has one entry for each count ``0..upper``. ``noisy_cumulative`` holds, for the methods
    that privatise the cumulative histogram, the noisy numbers of categories with count ``<= i`` for
    ``i = 0..upper-1``: a private output, free to be post-processed further.
    """

    probabilities: NDArray[np.float64]
    epsilon: Fraction
    size: int
    upper: int
    method: str
    post: str
    guarantee: Guarantee
    noisy_cumulative: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return self.upper + 1

    def __repr__(self) -> str:
        return (
            f"Distribution(counts 0..{self.upper}, {self.size} categories, method={self.method!r}, "
            f"post={self.post!r}, {self.guarantee})"
        )


DistributionLike = Distribution | Sequence[float] | NDArray[np.float64] | ArrayLike


def is_simulated(z: DistributionLike) -> bool:
    """Whether ``z`` came out of a simulation, so that nothing built on it may be released."""
    return isinstance(z.probabilities if isinstance(z, Distribution) else z, Simulated)


def probabilities_of(z: DistributionLike, name: str = "z") -> NDArray[np.float64]:
    """The probabilities of ``z``, exactly normalised.

    Returns a read-only copy.

    >>> probabilities_of([1, 0, 3], "z")
    Traceback (most recent call last):
      ...
    isotone.errors.InputError: z must be probabilities that sum to 1, not to 4.
    """
    values = z.probabilities if isinstance(z, Distribution) else z
    try:
        p = np.array(values, dtype=np.float64).view(np.ndarray)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a Distribution, or a list or array of probabilities.") from None
    if p.ndim != 1 or p.size == 0:
        raise InputError(f"{name} must be a non-empty list of probabilities, one for each count 0..upper.")
    if not bool(np.all(np.isfinite(p))) or bool(np.any(p < 0)):
        raise InputError(f"{name} must be probabilities: finite numbers, none below 0.")
    total = float(np.sum(p))
    if abs(total - 1) > 1e-6:
        raise InputError(f"{name} must be probabilities that sum to 1, not to {total:g}.")
    p /= total
    p.flags.writeable = False
    return p
