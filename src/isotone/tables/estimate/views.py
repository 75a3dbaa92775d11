"""Two private views of one cumulative histogram.

What each says of it, and with what error.

The number of categories with count ``<= t`` is seen twice: *directly*, as the noisy cumulative histogram, at the
thresholds where it was measured, and *through the table*, whose every count carries geometric noise. Both views are
unbiased, their noises are independent, and their covariances are exact for the fixed table at hand
(docs/theory/tables-whole.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.tables.estimate import banded_matrices as bands
from isotone.tables.matrices.geometric import Rates, end_weights, push_through, step_rates

__all__ = [
    "SILENT",
    "Views",
    "corrections",
    "cumulative_covariance",
    "first_guess",
    "noise_precision",
    "unbiased_cumulative",
]

SILENT = 50.0
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
