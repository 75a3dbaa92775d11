"""Two private views of one cumulative histogram.

What each says of it, and with what error.

The number of categories with count ``<= t`` is seen twice: *directly*, as the noisy cumulative histogram, at the
thresholds where it was measured, and *through the table*, whose every count carries geometric noise. Both views are
unbiased, their noises are independent, and their covariances are exact for the fixed table at hand
(docs/theory/tables-whole.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.tables import banded_matrices as bands
from isotone.tables.matrices.geometric import Rates, end_weights, push_through, step_rates

__all__ = [
    "BINNED",
    "SILENT",
    "DenseSystem",
    "DirectViews",
    "GaussianViews",
    "Views",
    "binned_channel",
    "corrections",
    "cumulative_covariance",
    "first_guess",
    "noise_precision",
    "unbiased_cumulative",
]


SILENT = 30.0
"""An ε so large that its noise is never seen: larger ones are judged as this one, without overflow."""


def unbiased_cumulative(observed: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """From the histogram of counts with clamped geometric noise, the cumulative histogram without it.

    Unbiased, whatever the table is. A noisy count ``k`` contributes ``[k <= t] + up_k·[k = t] - down_k·[k = t+1]``
    with the corrections below.

    >>> truth = np.array([5.0, 0.0, 1.0, 4.0])
    >>> unbiased_cumulative(push_through(truth, 0.7), 0.7)
    array([5., 5., 6.])
    """
    up, down = corrections(len(observed), epsilon)
    return np.cumsum(observed)[:-1] + (up * observed)[:-1] - (down * observed)[1:]


def cumulative_covariance(histogram: NDArray[np.float64], epsilon: Rates) -> NDArray[np.float64]:
    """The covariance of ``unbiased_cumulative`` when the table has ``histogram``.

    It is tridiagonal and given by its bands.

    A sum over the categories of the table as it is, not over tables drawn from a distribution: at large ε the
    second is larger many times over.
    """
    up, down = corrections(len(histogram), epsilon)
    seen = push_through(histogram, np.minimum(epsilon, SILENT))
    covariance = np.zeros((2, len(histogram) - 1))
    covariance[0] = (up * (1 + up) * seen)[:-1] + (down * (1 + down) * seen)[1:]
    covariance[1, :-1] = -(up * down * seen)[1:-1]
    return covariance


def noise_precision(epsilon: float) -> float:
    """One over the variance of two-sided geometric noise, ``(1-a)²/(2a)`` with ``a = exp(-epsilon)``.

    It is 0 for an ε of 0, at which nothing is measured.
    """
    return float(2 * np.sinh(min(epsilon, SILENT) / 2) ** 2)


def first_guess(observed: NDArray[np.int64]) -> NDArray[np.float64]:
    """A positive histogram to start from.

    The noisy one with one more category on each count, rescaled.
    """
    size, n = int(np.sum(observed)), len(observed)
    return np.asarray((observed + 1) * (size / (size + n)), np.float64)


def corrections(n: int, epsilon: Rates) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``up[k]`` and ``down[k]``, with which row ``k`` of the inverse of G is ``-down, 1 + down + up, -up``.

    ``up[k] = a_k/((1-a_k²)·w_k)`` with ``a_k`` that of the step above ``k``, and ``down[k]`` with that of the step below.
    """
    rates = np.minimum(step_rates(n, epsilon), SILENT)
    weights = end_weights(n, rates)
    slope = np.exp(-rates) / -np.expm1(-2 * rates)
    return np.append(slope, 0.0) / weights, np.insert(slope, 0, 0.0) / weights


@dataclass(frozen=True, eq=False)
class Views:
    """The two views of the cumulative histogram of ``size`` categories.

    ``direct`` has independent errors of variance ``1/precision[t]``, and a precision of 0 where it was not measured;
    ``indirect`` has the tridiagonal ``covariance`` (its bands). A histogram ``η`` has the misfit
    ``½·(F-indirect)ᵀ·covariance⁻¹·(F-indirect) + ½·Σ precision·(F-direct)²`` with ``F`` its cumulative sums. The covariance
    is that of the histogram that is ``believed``.
    """

    direct: NDArray[np.float64]
    precision: NDArray[np.float64]
    indirect: NDArray[np.float64]
    covariance: NDArray[np.float64]
    size: int
    rates: NDArray[np.float64]
    believed: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        direct: NDArray[np.int64],
        noisy_counts: NDArray[np.int64],
        precision: float | NDArray[np.float64],
        rates: Rates,
    ) -> Views:
        """From the noisy cumulative histogram with its precisions, and the noisy table with the rates of its steps.

        ``noisy_counts`` carry clamped geometric noise of ``rates[f]`` for the step from ``f`` to ``f + 1``. At first
        :func:`first_guess` is believed.
        """
        n = len(direct) + 1
        observed = np.bincount(noisy_counts, minlength=n)
        believed = first_guess(observed)
        return cls(
            direct=np.asarray(direct, np.float64),
            precision=step_rates(n, precision),
            indirect=unbiased_cumulative(observed.astype(np.float64), rates),
            covariance=cumulative_covariance(believed, rates),
            size=len(noisy_counts),
            rates=step_rates(n, rates),
            believed=believed,
        )

    def given(self, histogram: NDArray[np.float64]) -> Views:
        """The same views, their errors judged by a better idea of the histogram."""
        covariance = cumulative_covariance(histogram, self.rates)
        return replace(self, covariance=covariance, believed=histogram)

    @property
    def complete(self) -> bool:
        """Whether every threshold was measured."""
        return bool(np.all(self.precision > 0))

    @cached_property
    def _factored(self) -> bands.Factor:
        return bands.factor(self.covariance)

    def misfit(self, cumulative: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The misfit of a cumulative histogram, and its gradient."""
        through = cumulative - self.indirect
        weighted = self._factored.solve(through)
        straight = cumulative - self.direct
        value = 0.5 * float(through @ weighted) + 0.5 * float((self.precision * straight) @ straight)
        return value, weighted + self.precision * straight


# Two views of one cumulative histogram when both carry Gaussian noise.
#
# The direct view has independent errors at every threshold. The view through the table is the histogram of noisy counts in bins
# a quarter of the noise wide: its mean is linear in the histogram, and its covariance is exact for the fixed table at hand. Gaussian
# noise cannot be taken out of a count as geometric noise can, so nothing is inverted and matrices are full.

BINNED = 256
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
