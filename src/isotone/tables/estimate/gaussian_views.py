"""Two views of one cumulative histogram when both carry Gaussian noise.

The direct view has independent errors at every threshold. The view through the table is the histogram of noisy counts in bins
a quarter of the noise wide: its mean is linear in the histogram, and its covariance is exact for the fixed table at hand. Gaussian
noise cannot be taken out of a count as geometric noise can, so nothing is inverted and matrices are full.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.tables.estimate.views import Views, first_guess

__all__ = ["DENSE", "DenseSystem", "DirectViews", "GaussianViews", "binned_channel"]

DENSE = 256
"""Up to so many counts the table itself is looked at. Beyond, matrices would be large, and the direct view is used alone."""
_RIDGE = 0.05  # categories of variance that are added to every bin: nearly empty ones are not normal


@dataclass(frozen=True, eq=False)
class GaussianViews:
    """The two views of the cumulative histogram of ``size`` categories.

    ``direct`` has independent errors of variance ``1/precision``. ``observed`` has the mean ``histogram @ channel``, and the
    covariance of the histogram that is ``believed``.
    """

    direct: Floats
    precision: float
    observed: Floats
    channel: Floats = field(repr=False)
    size: int
    believed: Floats

    @classmethod
    def of(
        cls,
        direct: NDArray[np.int64],
        noisy: NDArray[np.int64],
        precision: float,
        variance: float,
        upper: int,
    ) -> GaussianViews:
        """From the noisy cumulative histogram, and the noisy counts with the variance of their noise."""
        deviation = variance**0.5
        reach, width = int(3 * deviation) + 1, max(1, int(deviation / 4))
        starts = np.arange(-reach, upper + reach + 1, width)  # the first and the last bin are open
        observed = np.bincount(
            np.clip(np.searchsorted(starts, noisy, side="right") - 1, 0, None), minlength=len(starts)
        )
        channel = binned_channel(upper + 1, starts, variance)
        seen, believed = observed.astype(np.float64), _guessed(noisy, upper)
        return cls(direct.astype(np.float64), precision, seen, channel, len(noisy), believed)

    def given(self, histogram: Floats) -> GaussianViews:
        """The same views, their errors judged by a better idea of the histogram."""
        return replace(self, believed=histogram)

    @cached_property
    def _weighed(self) -> tuple[Floats, Floats, float]:
        """The quadratic misfit of the observed bins, its matrix, its linear part and its constant."""
        mean = self.believed @ self.channel
        covariance = np.diag(mean + _RIDGE + 1e-6 * np.max(mean, initial=0.0))
        covariance -= (self.channel.T * self.believed) @ self.channel
        weighed = np.linalg.solve(covariance, np.column_stack([self.channel.T, self.observed]))
        matrix, linear = self.channel @ weighed[:, :-1], self.channel @ weighed[:, -1]
        return (matrix + matrix.T) / 2, linear, float(self.observed @ weighed[:, -1])

    @cached_property
    def curvature(self) -> Floats:
        """The second derivatives of the misfit in the cumulative histogram."""
        matrix = self._weighed[0]
        through = matrix[:-1, :-1] - matrix[:-1, 1:] - matrix[1:, :-1] + matrix[1:, 1:]
        return through + self.precision * np.eye(len(self.direct))

    def misfit(self, cumulative: Floats) -> tuple[float, Floats]:
        """The misfit of a cumulative histogram, and its gradient."""
        matrix, linear, constant = self._weighed
        histogram = np.diff(cumulative, prepend=0.0, append=float(self.size))
        pull = matrix @ histogram - linear
        straight = cumulative - self.direct
        value = 0.5 * float((pull - linear) @ histogram + constant)
        value += 0.5 * self.precision * float(straight @ straight)
        return value, self.precision * straight - np.diff(pull)


def _guessed(noisy: NDArray[np.int64], upper: int) -> Floats:
    return first_guess(np.bincount(np.clip(noisy, 0, upper), minlength=upper + 1))


def binned_channel(n: int, starts: NDArray[np.int64], variance: float) -> Floats:
    """The probability of every bin given every count, for discrete Gaussian noise."""
    most = int(max(n - starts[0], starts[-1])) + 1
    apart = np.arange(-most, most + 1)
    below = np.cumsum(np.exp(-(apart**2.0) / (2 * variance)))
    below = np.concatenate([[0.0], below / below[-1]])  # at place d + most: less than d
    lower = below[np.clip(starts[None, :] - np.arange(n)[:, None] + most, 0, len(below) - 1)]
    lower[:, 0] = 0.0
    return np.diff(lower, axis=1, append=1.0)


class DenseSystem:
    """The Newton system of a model with :class:`GaussianViews`, with the interface of a banded factor.

    Log-intensities have a banded block, which is eliminated; that of the cumulative histogram is full. Vectors are interleaved as
    there, with unused places for the second of every three.
    """

    def __init__(
        self, views: GaussianViews, penalty: Floats, dispersion: Floats, intensity: Floats, hold: Floats
    ) -> None:
        from scipy.linalg import cho_factor, cho_solve_banded, cholesky_banded

        n = len(intensity)
        band = penalty[: min(len(penalty), n)].copy()
        band[0] += intensity / dispersion
        totals, at = views.curvature.copy(), np.arange(n - 1)
        totals[at, at] += hold[:-1] + hold[1:]
        totals[at[:-1], at[1:]] -= hold[1:-1]
        totals[at[1:], at[:-1]] -= hold[1:-1]
        self._mixed = np.zeros((n, n - 1))
        self._mixed[at, at], self._mixed[at + 1, at] = -1 / dispersion[:-1], 1 / dispersion[1:]
        self._band = cholesky_banded(band, lower=True)
        self._passed = cho_solve_banded((self._band, True), self._mixed)
        self._factor = cho_factor(totals - self._mixed.T @ self._passed, lower=True)

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant."""
        full = np.diag(self._factor[0])
        return 2 * float(np.sum(np.log(self._band[0])) + np.sum(np.log(full)))

    def solve(self, right: Floats) -> Floats:
        """The solution for an interleaved right side."""
        from scipy.linalg import cho_solve, cho_solve_banded

        out = np.zeros(len(right))
        out[2::3] = cho_solve(self._factor, right[2::3] - self._passed.T @ right[0::3])
        out[0::3] = cho_solve_banded((self._band, True), right[0::3] - self._mixed @ out[2::3])
        return out


class DirectViews(Views):
    """The direct view alone, for tables with too many counts for full matrices."""

    @classmethod
    def alone(cls, direct: NDArray[np.int64], noisy: NDArray[np.int64], precision: float) -> DirectViews:
        """From the noisy cumulative histogram. The noisy counts are where a fit begins, and say next to nothing."""
        seen, n, size = direct.astype(np.float64), len(direct), len(noisy)
        silent = np.zeros((2, n))
        silent[0] = 1e6 * max(size, 1) ** 2
        return cls(seen, np.full(n, precision), seen, silent, size, np.zeros(n), _guessed(noisy, n))

    def given(self, histogram: Floats) -> DirectViews:
        """The same, as its errors do not depend on the histogram."""
        return self
