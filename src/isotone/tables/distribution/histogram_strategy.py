"""What a distribution privatiser measures, and how it reads a histogram out of the noisy measurements.

Every privatiser here is a linear *strategy* over the histogram of counts: a vector of integers is measured,
independent noise is added to each entry, and a histogram is estimated from the result. Measurements are
integers, so integer noise is exact, and the two-sided geometric replaces the Laplace of the literature:
the same privacy from the same scale, a little less variance, and nothing to round.

One step (one count changes by one) moves one category from bin ``f`` to a bin next to it. ``l1`` is the
largest distance, summed over entries, by which that moves the measurements.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cumulative", "Cyclic", "HistogramStrategy", "Plain"]


class HistogramStrategy(Protocol):
    """A linear strategy on histograms of a fixed length.

    N, the number of categories, is public.
    """

    @property
    def l1(self) -> int:
        """How far one step moves the measurements, at most, in the sum of absolute values."""
        ...

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true measurements."""
        ...

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The histogram of ``size`` categories that the measurements suggest.

        Bins may be negative.
        """
        ...


class Plain:
    """The bins themselves.

    One bin loses a category and its neighbour gains it, so ``l1`` is 2.
    """

    l1 = 2

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bins."""
        return histogram

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The bins."""
        return noisy


class Cumulative:
    """The numbers of categories with count ``<= i``, for ``i = 0..n-2`` (docs/theory/tables.md, section 2).

    A step between ``f`` and ``f+1`` changes entry ``f`` by one and no other: ``l1`` is 1.
    """

    l1 = 1

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cumulative histogram without its last entry, which is N."""
        return np.cumsum(histogram)[:-1]

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """Differences of the cumulative histogram."""
        return np.diff(noisy, prepend=0.0, append=float(size))


class Cyclic:
    """The cumulative histogram with one more noise term common to all its entries (Kohli and Laskowski 2026).

    The published mechanism adds ``L_i - L_{i+1}`` to bin ``i`` with ``L_n = L_0``. In cumulative coordinates
    that is independent noise on each entry, which makes it private, and ``L_0`` on all of them, which is
    post-processing: it doubles the variance. Here ``L_0`` is the noise on a measurement that is always 0.
    """

    l1 = 1

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cumulative histogram without its last entry, and a 0."""
        return np.append(np.cumsum(histogram)[:-1], 0)

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """Differences of the cumulative histogram, shifted by the common term."""
        return np.diff(noisy[:-1] + noisy[-1], prepend=0.0, append=float(size))
