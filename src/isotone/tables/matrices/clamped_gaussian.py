"""Clamped discrete Gaussian noise, an (ε, δ) baseline.

See Canonne, Kamath and Steinke 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import discrete_sigma_squared
from isotone.privacy.checks import Number, positive, share, whole_number
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables.matrices.clamped_noise import AdditiveCountMechanism

__all__ = ["DiscreteGaussianCountMechanism", "discrete_gaussian"]


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteGaussianCountMechanism(AdditiveCountMechanism):
    """Integer noise with ``P(d)`` proportional to ``exp(-d²/(2·variance))``.

    Guarantee: (ε, δ)-DP (docs/theory/tables.md, section 9). ``privacy_loss`` is the largest log-ratio of
    neighbouring rows all the same: finite, because outputs are clamped, and above ε.
    """

    delta: Fraction = field(kw_only=True)
    variance: Fraction = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", share(self.delta, "delta"))
        object.__setattr__(self, "variance", positive(self.variance, "variance"))

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP for the unit of the table."""
        return self.unit.approximate(self.epsilon, self.delta)

    def _support(self) -> NDArray[np.int64]:
        return np.arange(self.n + int(40 * float(self.variance) ** 0.5) + 2)

    def _log_weights(self) -> NDArray[np.float64]:
        """The logarithms of the probabilities of 0, 1, 2, …, beyond the last that matters."""
        logs = -(self._support() ** 2.0) / (2 * float(self.variance))
        return logs - np.log(2 * np.sum(np.exp(logs)) - 1)

    def _log_mass(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._log_weights()[distance]

    def _log_tail(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.logaddexp.accumulate(self._log_weights()[::-1])[::-1][distance]

    def _noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        return draws.discrete_gaussians(self.variance, size)


def discrete_gaussian(
    n: int,
    epsilon: Number,
    delta: Number,
    *,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
) -> DiscreteGaussianCountMechanism:
    """Discrete Gaussian noise on counts ``0..n-1``, with about the least variance that the guarantee allows.

    Guarantee: (epsilon, delta)-DP for adding or removing one person (docs/theory/tables.md, section 9).

    >>> t = discrete_gaussian(5, epsilon=1, delta="1e-6")
    >>> round(float(t.variance) ** 0.5, 2)
    4.23
    """
    unit, total, slack = Unit(contributions, neighbours), positive(epsilon, "epsilon"), share(delta, "delta")
    variance = discrete_sigma_squared(total, slack, unit.steps)
    return DiscreteGaussianCountMechanism(whole_number(n, "n"), total, unit, delta=slack, variance=variance)
