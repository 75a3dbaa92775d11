"""Independent noise with one law for all counts, as the classical mechanisms add it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanisms.additive import LinearCounts, PureMechanism
from isotone.counts.mechanisms.concentrated import ConcentratedMechanism, gaussian_variance
from isotone.counts.statistic import Counts, deviation
from isotone.errors import InputError
from isotone.linear.noise import DiscreteGaussian, Gaussian, Geometric, Laplace, Noise
from isotone.linear.strategy import Identity
from isotone.mechanism import Progress
from isotone.privacy.calibration import largest_rho

__all__ = [
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "IndependentMechanism",
    "LaplaceMechanism",
]

_SMALLEST_RATE = Fraction(1, 2**44)


@dataclass(frozen=True, init=False)
class IndependentMechanism(LinearCounts):
    """Counts over ``P``, each with its own draw of one symmetric noise."""

    def _measure(self, noise: Noise) -> None:
        places = self.P.canonical.back(np.arange(len(self.P)))
        self._set(strategy=Identity(places, self.sensitivity.coordinates), noise=noise)

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of integer noise), one per row."""
        return self.noise.log_probability(deviation(self.P, output, counts))

    def probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The probability of released integers given the counts (or of integer noise), one per row."""
        return np.exp(self.log_probability(output, counts))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        return self._release_at_once(rows)


@dataclass(frozen=True, init=False)
class LaplaceMechanism(PureMechanism, IndependentMechanism):
    """Counts with independent Laplace noise of scale ``sensitivity / epsilon``.

    What a user without the order would pick first.
    The ℓ1 sensitivity is the largest number of yeses in a record: ``max_size``, or the number of elements.
    The released integers are the exactly rounded sum of counts and real noise.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 2).
    Error: 2·(sensitivity/epsilon)² for each count, before rounding.

    >>> from isotone.order import Poset
    >>> m = LaplaceMechanism(Poset.chain("ab"), epsilon=1)
    >>> m.error().variance
    array([8., 8.])
    """

    noise: Laplace

    def _prepare(self) -> None:
        self._measure(Laplace(self.epsilon / self.sensitivity.l1))
        if self.rate < _SMALLEST_RATE:
            raise InputError(
                f"Laplace noise on counts needs a rate of at least 2**-44, not {float(self.rate):g}: below that, sums "
                "may not fit 64 bits. Ask for a larger epsilon, or for fewer contributions."
            )

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential tails, epsilon over the ℓ1 sensitivity."""
        return self.noise.rate

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        return self.noise.log_density(deviation(self.P, output, counts))


@dataclass(frozen=True, init=False)
class DiscreteLaplaceMechanism(PureMechanism, IndependentMechanism):
    """Counts with independent integer noise of probability proportional to ``exp(-rate·|k|)``.

    ``rate`` is epsilon over the ℓ1 sensitivity: ``max_size``, or the number of elements, times
    ``contributions``. Integers from the start: nothing is rounded, and the error is a little below Laplace's.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 2).
    Error: 2a/(1-a)² with a = exp(-rate) for each count, exactly that of a release.

    >>> from isotone.order import Poset
    >>> m = DiscreteLaplaceMechanism(Poset.chain("ab"), epsilon=1)
    >>> m.error().variance.round(4)
    array([7.8354, 7.8354])
    """

    noise: Geometric

    def _prepare(self) -> None:
        self._measure(Geometric(self.epsilon / self.sensitivity.l1))

    @property
    def rate(self) -> Fraction:
        """The rate of the geometric tails, epsilon over the ℓ1 sensitivity."""
        return self.noise.rate


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

    noise: Gaussian

    def _prepare(self, progress: Progress) -> None:
        self._measure(Gaussian(gaussian_variance(self.guarantee, self.sensitivity.l2_squared)))

    @property
    def variance(self) -> Fraction:
        """The variance of the noise on each count."""
        return self.noise.sigma2

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        return self.noise.log_density(deviation(self.P, output, counts))


@dataclass(frozen=True, init=False)
class DiscreteGaussianMechanism(ConcentratedMechanism, IndependentMechanism):
    """Counts with independent integer noise of probability proportional to ``exp(-k² / 2·parameter)``.

    Give ``rho``, which is its natural guarantee: ``parameter`` is then ``l2² / 2 rho``. With ``epsilon`` and
    ``delta`` the largest rho that implies them is used; :class:`GaussianMechanism` needs about 13 % less
    variance for the same (1, 1e-6), because it need not go through rho.

    Guarantee: rho-zCDP, or (epsilon, delta)-DP through it, for ``neighbours`` (Canonne, Kamath and Steinke
    2020; docs/theory/baselines.md, section 5).
    Error: the variance of the discrete Gaussian, exactly that of a release.

    >>> from isotone.order import Poset
    >>> DiscreteGaussianMechanism(Poset.chain("ab"), rho="0.5").error().variance
    array([2., 2.])
    """

    noise: DiscreteGaussian

    def _prepare(self, progress: Progress) -> None:
        guarantee = self.guarantee
        concentrated = (
            guarantee.rho if guarantee.kind == "zcdp" else largest_rho(guarantee.epsilon, guarantee.delta)
        )
        self._measure(DiscreteGaussian(self.sensitivity.l2_squared / (2 * concentrated)))

    @property
    def parameter(self) -> Fraction:
        """The parameter of the noise, which is its variance unless it is small."""
        return self.noise.sigma2
