"""Two private views of one cumulative histogram.

What each says of it, and with what error.

The number of categories with count ``<= t`` is seen twice: *directly*, as the noisy cumulative histogram of
the first stage, and *through the table*, whose every count carries geometric noise. Both views are unbiased
for ``t = 0..n-2``, their noises are independent, and their covariances are exact for the fixed table at hand
(docs/theory/tables-whole.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.tables.estimate import bands
from isotone.tables.matrices.geometric import push_through

__all__ = [
    "SILENT",
    "Views",
    "cumulative_covariance",
    "first_guess",
    "noise_precision",
    "unbiased_cumulative",
]

SILENT = 50.0
"""An ε so large that its noise is never seen: larger ones are judged as this one, without overflow."""


def unbiased_cumulative(observed: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """From the histogram of counts with clamped geometric noise, the cumulative histogram without it.

    Unbiased, whatever the table is. With ``b = a/(1-a)²`` (``a/(1-a)`` for the two ends of the scale) a noisy
    count ``k`` contributes ``[k <= t] + b_k·[k = t] - b_k·[k = t+1]``.

    >>> truth = np.array([5.0, 0.0, 1.0, 4.0])
    >>> unbiased_cumulative(push_through(truth, 0.7), 0.7)
    array([5., 5., 6.])
    """
    correction = _corrections(len(observed), epsilon) * observed
    return np.cumsum(observed)[:-1] + correction[:-1] - correction[1:]


def cumulative_covariance(histogram: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """The covariance of ``unbiased_cumulative`` when the table has ``histogram``.

    It is tridiagonal and given by its bands.

    A sum over the categories of the table as it is, not over tables drawn from a distribution: at large ε the
    second is larger many times over.
    """
    b = _corrections(len(histogram), epsilon)
    seen = push_through(histogram, min(epsilon, SILENT))
    own = b * (1 + b) * seen
    covariance = np.zeros((2, len(histogram) - 1))
    covariance[0] = own[:-1] + own[1:]
    covariance[1, :-1] = -(b[1:-1] ** 2) * seen[1:-1]
    return covariance


def noise_precision(epsilon: float) -> float:
    """One over the variance of two-sided geometric noise, ``(1-a)²/(2a)`` with ``a = exp(-epsilon)``."""
    return float(2 * np.sinh(min(epsilon, SILENT) / 2) ** 2)


def first_guess(observed: NDArray[np.int64]) -> NDArray[np.float64]:
    """A positive histogram to start from.

    The noisy one with one more category on each count, rescaled.
    """
    size, n = int(np.sum(observed)), len(observed)
    return np.asarray((observed + 1) * (size / (size + n)), np.float64)


def _corrections(n: int, epsilon: float) -> NDArray[np.float64]:
    epsilon = min(epsilon, SILENT)
    rest = -np.expm1(-epsilon)
    b = np.full(n, np.exp(-epsilon) / rest**2)
    b[[0, -1]] = np.exp(-epsilon) / rest
    return b


@dataclass(frozen=True, eq=False)
class Views:
    """The two views of the cumulative histogram of ``size`` categories.

    ``direct`` has independent errors of variance ``1/precision``; ``indirect`` has the tridiagonal
    ``covariance`` (its bands). A histogram ``η`` has the misfit ``½·(F-indirect)ᵀ·covariance⁻¹·(F-indirect) +
    ½·precision·|F-direct|²`` with ``F`` its cumulative sums.
    """

    direct: NDArray[np.float64]
    precision: float
    indirect: NDArray[np.float64]
    covariance: NDArray[np.float64]
    size: int

    @classmethod
    def of(
        cls,
        noisy_cumulative: NDArray[np.int64],
        noisy_counts: NDArray[np.int64],
        first: float,
        second: float,
    ) -> Views:
        """From the noisy cumulative histogram (ε per step ``first``) and the noisy table (``second``).

        The covariance is that of :func:`first_guess`, until :meth:`given` knows better.
        """
        observed = np.bincount(noisy_counts, minlength=len(noisy_cumulative) + 1)
        return cls(
            direct=np.asarray(noisy_cumulative, np.float64),
            precision=noise_precision(first),
            indirect=unbiased_cumulative(observed.astype(np.float64), second),
            covariance=cumulative_covariance(first_guess(observed), second),
            size=len(noisy_counts),
        )

    def given(self, histogram: NDArray[np.float64], epsilon: float) -> Views:
        """The same views, their errors judged by a better idea of the histogram."""
        covariance = cumulative_covariance(histogram, epsilon)
        return Views(self.direct, self.precision, self.indirect, covariance, self.size)

    def misfit(self, cumulative: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The misfit of a cumulative histogram, and its gradient."""
        through = cumulative - self.indirect
        weighted = bands.factor(self.covariance).solve(through)
        straight = cumulative - self.direct
        value = 0.5 * float(through @ weighted) + 0.5 * self.precision * float(straight @ straight)
        return value, weighted + self.precision * straight
