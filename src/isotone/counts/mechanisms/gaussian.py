"""Independent Gaussian noise, calibrated exactly.

The choice where a small delta is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import noise
from isotone.counts.mechanisms.additive import deviation
from isotone.counts.mechanisms.independent import IndependentMechanism
from isotone.counts.statistic import Counts
from isotone.errors import InputError
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["GaussianMechanism", "gaussian_guarantee"]


def gaussian_guarantee(
    epsilon: Number | None, delta: Number | None, rho: Number | None, neighbours: Neighbours
) -> Guarantee:
    """The guarantee for (epsilon, delta), or for rho.

    Exactly one of the two forms must be given.
    """
    if rho is None and (epsilon is None or delta is None):
        raise InputError("Gaussian noise needs epsilon and delta, or rho. With delta = 0 use PosetMechanism.")
    promise = Unit(neighbours=neighbours).guarantee(epsilon, delta, rho)
    if promise.kind == "pure":
        raise InputError("delta must be above 0 for Gaussian noise. With delta = 0 use PosetMechanism.")
    return promise


@dataclass(frozen=True, init=False)
class GaussianMechanism(IndependentMechanism):
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

    def __init__(
        self,
        P: Poset,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        promise = gaussian_guarantee(epsilon, delta, rho, neighbours)
        self._settle(P, promise, contributions, max_size)
        reach = self.sensitivity.l2_squared
        if promise.kind == "zcdp":
            variance = reach / (2 * promise.rho)
        else:
            variance = sigma_squared(promise.epsilon, promise.delta, reach)
        self._set(variance=variance)

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

    def _variance(self) -> float:
        return float(self.variance)

    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.normal(scale=math.sqrt(self.variance), size=shape)

    def _upper_quantile(self, tail: float) -> float:
        from scipy.special import ndtri

        return -math.sqrt(self.variance) * float(ndtri(tail))

    def _integer_noise(self) -> NDArray[np.int64]:
        return noise.rounded_gaussians(self.variance, len(self.P))
