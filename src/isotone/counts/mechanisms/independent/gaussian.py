"""Independent Gaussian noise, calibrated exactly.

The choice where a small delta is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanisms.concentrated import ConcentratedMechanism, gaussian_variance
from isotone.counts.mechanisms.independent.independent import IndependentMechanism
from isotone.counts.statistic import Counts, deviation
from isotone.mechanism import Progress
from isotone.privacy.draws import ExactDraws

__all__ = ["GaussianMechanism"]


@dataclass(frozen=True, init=False)
class GaussianMechanism(ConcentratedMechanism, IndependentMechanism):
    """Counts with independent Gaussian noise, exactly rounded to integers.

    Give ``epsilon`` and ``delta`` (the variance is then the smallest that gives that guarantee; Balle and Wang
    2018, rounded up), or ``rho`` for zero-concentrated privacy (the variance is ``l2² / 2 rho``). The squared
    ℓ2 sensitivity is the largest number of yeses in a record: ``max_size``, or the number of elements.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours`` (docs/theory/baselines.md, section 4).
    Error: ``variance`` for each count, before rounding.

    >>> from isotone.order import Poset
    >>> GaussianMechanism(Poset.chain("ab"), rho="0.5").error().variance
    array([2., 2.])
    """

    variance: Fraction

    def _prepare(self, progress: Progress) -> None:
        self._set(variance=gaussian_variance(self.guarantee, self.sensitivity.l2_squared))

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        y, variance = deviation(self.P, output, counts), float(self.variance)
        return -np.sum(y**2, axis=-1) / (2 * variance) - y.shape[-1] / 2 * math.log(2 * math.pi * variance)

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of rounded noise), one per row."""
        from scipy.special import log_ndtr

        k, sd = np.abs(deviation(self.P, output, counts)), math.sqrt(self.variance)
        upper, lower = log_ndtr((0.5 - k) / sd), log_ndtr((-0.5 - k) / sd)
        return np.sum(upper + np.log(-np.expm1(lower - upper)), axis=-1)

    def _widen(self, share: Fraction) -> None:
        self._set(variance=self.variance / share)

    def _variance(self) -> float:
        return float(self.variance)

    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.normal(scale=math.sqrt(self.variance), size=shape)

    def _upper_quantile(self, tail: float) -> float:
        from scipy.special import ndtri

        return -math.sqrt(self.variance) * float(ndtri(tail))

    def _integers(self, draws: ExactDraws, size: int) -> NDArray[np.int64]:
        return draws.rounded_gaussians(self.variance, size)
