"""The K-norm mechanism of the ℓ∞ ball, the strongest that ignores the order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanisms.additive import PureMechanism
from isotone.counts.statistic import Counts, deviation
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated
from isotone.privacy.checks import confidence_level
from isotone.privacy.draws import ExactDraws

__all__ = ["LInfinityMechanism"]


@dataclass(frozen=True, init=False)
class LInfinityMechanism(PureMechanism):
    """Counts with noise of density proportional to ``exp(-rate · max|y|)``.

    ``rate`` is epsilon over the ℓ∞ sensitivity, which is ``contributions`` whatever the order, the size of
    the records and the neighbours. The released integers are the exactly rounded sum of counts and noise.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 3).
    Error: (n+1)(n+2)/3 / rate² for each count, before rounding.

    >>> from isotone.order import Poset
    >>> LInfinityMechanism(Poset.chain("abcd"), epsilon=1).error().variance
    array([10., 10., 10., 10.])
    """

    @property
    def rate(self) -> Fraction:
        """Epsilon over the ℓ∞ sensitivity."""
        return self.epsilon / self.sensitivity.linf

    def norm(self, y: ArrayLike) -> NDArray[np.float64]:
        """The largest entry in units of the sensitivity.

        It is 1 for the largest change by one unit.
        """
        return np.max(np.abs(deviation(self.P, y, None)), axis=-1) / self.sensitivity.linf

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        from scipy.special import gammaln

        n = len(self.P)
        constant = n * math.log(float(self.rate) / 2) - gammaln(n + 1)
        return constant - float(self.epsilon) * self.norm(deviation(self.P, output, counts))

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of rounded noise), one per row.

        It depends on the largest magnitude and how often it occurs (docs/theory/baselines.md, section 3).
        """
        from scipy.special import gammaln, hyp1f1

        k, n, rate = np.abs(deviation(self.P, output, counts)), len(self.P), float(self.rate)
        largest = np.max(k, axis=-1)
        often = np.sum(k == largest[..., None], axis=-1)
        # ∫ f^m exp(-rate·f) df over [0, 1] is exp(-rate)/(m + 1) · 1F1(1; m + 2; rate)
        edge = np.log(1 / rate + hyp1f1(1, often + 2, rate) / (often + 1)) - rate * (largest + 0.5)
        at_zero = np.log(1 / rate + hyp1f1(1, n + 2, rate / 2) / (2 * (n + 1))) - rate / 2
        constant = (n + 1) * math.log(rate) - n * math.log(2) - gammaln(n + 1)
        return constant + np.where(largest == 0, at_zero, edge)

    def probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The probability of released integers given the counts (or of integer noise), one per row."""
        return np.exp(self.log_probability(output, counts))

    def error(self) -> Error:
        """The exact variance of the noise, the same for every count."""
        n = len(self.P)
        return Error(np.full(n, float((n + 1) * (n + 2) / (3 * self.rate**2))))

    @cached_property
    def _covariances(self) -> tuple[NDArray[np.float64], float]:
        return np.diag(self.error().variance), 0.0

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        half_sides = rng.standard_gamma(len(self.P) + 1, size=(size, 1)) / float(self.rate)
        return Simulated.wrap(self.P.canonical.back(rng.uniform(-1, 1, (size, len(self.P))) * half_sides))

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        values = [math.copysign(self._upper_quantile(min(q, 1 - q)), q - 0.5) for q in p.tolist()]
        return np.repeat(np.array(values)[:, None], len(self.P), axis=1)

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the exact half-width that its noise stays within, before rounding."""
        return np.full(len(self.P), self._upper_quantile((1 - confidence_level(confidence)) / 2))

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The exact half-width that *all* noise stays within, at once, before rounding."""
        from scipy.special import gammaincinv

        return float(gammaincinv(len(self.P), confidence_level(confidence))) / float(self.rate)

    def _upper_quantile(self, tail: float) -> float:
        from scipy.optimize import root_scalar
        from scipy.special import gammaincc

        n, rate = len(self.P), float(self.rate)

        def excess(t: float) -> float:
            return float(gammaincc(n + 1, t) - t / n * gammaincc(n, t)) - 2 * tail

        if tail >= 0.5:
            return 0.0
        largest = 10.0 * n - 10 * math.log(2 * tail)
        return float(root_scalar(excess, bracket=(0.0, largest)).root) / rate

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return draws.rounded_cube(self.rate, len(self.P))
