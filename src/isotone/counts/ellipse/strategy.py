"""The integer form of an ellipse, which is what a release uses.

A strategy is a triangular matrix Q of integers with Q'Q close to a multiple of the ellipse's precision. A release
adds integer noise w, the same for every row, to Q times the counts and solves back, so the privacy is that of
the rows: decided by the exact integer ``max |Qv|²`` over all records v (docs/theory/gaussian.md, section 3).
The counts are integers, so solving back in integers splits off exactly what the counts contribute: only w is
ever solved for, and neither the counts nor the number of records enters.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Strategy", "nearest_plane"]

_LARGEST_SUM = 2.0**61


class Strategy(Protocol):
    """An integer matrix Q on the counts, with or without the number of records as a further column."""

    @property
    def rows(self) -> int:
        """How many integers of noise one release takes."""
        ...

    @property
    def rooted(self) -> bool:
        """Whether the number of records is a column (last), so that it is released too."""
        ...

    @property
    def sensitivity_squared(self) -> int:
        """The largest squared length of Q times the change that one record makes."""
        ...

    def variances(self) -> NDArray[np.float64]:
        """The variance of each released count, and of the number of records last if rooted, for unit noise."""
        ...

    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the released counts for unit noise (without the number of records)."""
        ...

    def solve_integers(self, noise: NDArray[np.int64]) -> NDArray[np.int64]:
        """``Q⁻¹ noise``, rounded to integers so that the result commutes with adding integers to the counts."""
        ...

    def solve(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Q⁻¹ noise`` for each row of ``noise``."""
        ...

    def multiply(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Q counts`` for each row of ``counts``."""
        ...

    def diagonal(self) -> NDArray[np.float64]:
        """The diagonal of Q, in the order of the counts (and the number of records)."""
        ...

    def root_column(self) -> NDArray[np.float64]:
        """The column of the number of records (zeros if not rooted), with one entry for each row."""
        ...


def nearest_plane(
    kernel: Any, rows: tuple[Any, ...], noise: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The whole part of ``Q⁻¹ noise`` by nearest-plane rounding, and the remainder.

    It is exact for any noise.

    Privacy needs that shifting the noise by Qc shifts the result by exactly c, so no sum may wrap. The compiled
    ``kernel`` adds up, in floats, the magnitudes of all terms of each ``rest``. As long as that is at most 2⁶¹,
    every partial sum is below 2⁶² (a float sum of positive terms is right to one part in 2³²), and with pivots
    below 2⁶¹ so is ``2·rest + pivot`` below 2⁶³. Otherwise the same function runs on Python's integers. Which
    of the two runs is a function of the noise alone and does not change the result.
    """
    whole, left = np.zeros_like(noise), np.zeros_like(noise)
    if kernel(*rows, noise, whole, left, _LARGEST_SUM):
        return whole, left
    exact = [part.astype(object) if isinstance(part, np.ndarray) else part for part in rows]
    wide, rest = np.zeros(noise.size, object), np.zeros(noise.size, object)
    kernel.plain(*exact, noise.astype(object), wide, rest, math.inf)
    return wide.astype(np.int64), rest.astype(np.int64)
