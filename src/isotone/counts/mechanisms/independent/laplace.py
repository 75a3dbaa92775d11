"""Independent Laplace noise. What a user without the order would pick first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanisms.additive import PureMechanism
from isotone.counts.mechanisms.independent.independent import IndependentMechanism
from isotone.counts.statistic import Counts, deviation
from isotone.errors import InputError
from isotone.privacy.draws import ExactDraws

__all__ = ["LaplaceMechanism"]

_SMALLEST_RATE = Fraction(1, 2**44)


@dataclass(frozen=True, init=False)
class LaplaceMechanism(PureMechanism, IndependentMechanism):
    """Counts with independent Laplace noise of scale ``sensitivity / epsilon``.

    The ℓ1 sensitivity is the largest number of yeses in a record: ``max_size``, or the number of elements.
    The released integers are the exactly rounded sum of counts and real noise.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 2).
    Error: 2·(sensitivity/epsilon)² for each count, before rounding.

    >>> from isotone.order import Poset
    >>> m = LaplaceMechanism(Poset.chain("ab"), epsilon=1)
    >>> m.error().variance
    array([8., 8.])
    """

    def _prepare(self) -> None:
        if self.rate < _SMALLEST_RATE:
            raise InputError(
                f"Laplace noise on counts needs a rate of at least 2**-44, not {float(self.rate):g}: below that, sums "
                "may not fit 64 bits. Ask for a larger epsilon, or for fewer contributions."
            )

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential tails, epsilon over the ℓ1 sensitivity."""
        return self.epsilon / self.sensitivity.l1

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        y, rate = deviation(self.P, output, counts), float(self.rate)
        return y.shape[-1] * math.log(rate / 2) - rate * np.sum(np.abs(y), axis=-1)

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of rounded noise), one per row."""
        k, rate = np.abs(deviation(self.P, output, counts)), float(self.rate)
        at_zero = math.log(-math.expm1(-rate / 2))
        elsewhere = math.log(-math.expm1(-rate) / 2) - rate * (k - 0.5)
        return np.sum(np.where(k == 0, at_zero, elsewhere), axis=-1)

    def _variance(self) -> float:
        return float(2 / self.rate**2)

    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.laplace(scale=float(1 / self.rate), size=shape)

    def _upper_quantile(self, tail: float) -> float:
        return -math.log(2 * tail) / float(self.rate)

    def _integers(self, draws: ExactDraws, size: int) -> NDArray[np.int64]:
        return draws.rounded_laplaces(self.rate, size)
