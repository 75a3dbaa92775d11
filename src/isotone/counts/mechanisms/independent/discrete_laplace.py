"""The Laplace mechanism on the integers. Independent two-sided geometric noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import noise
from isotone.counts.mechanisms.additive import PureMechanism
from isotone.counts.mechanisms.independent.independent import IndependentMechanism
from isotone.counts.statistic import Counts, deviation
from isotone.privacy.draws import ExactDraws

__all__ = ["DiscreteLaplaceMechanism"]


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

    @property
    def rate(self) -> Fraction:
        """The rate of the geometric tails, epsilon over the ℓ1 sensitivity."""
        return self.epsilon / self.sensitivity.l1

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of noise), one per row."""
        k, rate = np.abs(deviation(self.P, output, counts)), float(self.rate)
        return k.shape[-1] * math.log(math.tanh(rate / 2)) - rate * np.sum(k, axis=-1)

    @property
    def rounding(self) -> float:
        """Nothing is rounded."""
        return 0.0

    def _variance(self) -> float:
        return 0.5 / math.sinh(min(float(self.rate), 700.0) / 2) ** 2

    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        return noise.simulate.two_sided_geometrics(rng, self.rate, shape).astype(float)

    def _upper_quantile(self, tail: float) -> float:
        rate = float(self.rate)  # above h with probability exp(-rate·(h + 1)) / (1 + exp(-rate))
        return max(0.0, math.ceil(-(math.log(tail) + math.log1p(math.exp(-rate))) / rate - 1))

    def _integers(self, draws: ExactDraws, size: int) -> NDArray[np.int64]:
        return draws.geometrics(self.rate, size)
