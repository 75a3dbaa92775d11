"""Where the two stages get their randomness: cryptographic and exact, or seeded for experiments.

Everything that is not drawn here is a function of what was drawn and of public numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.privacy.unit import Unit
from isotone.tables.distribution.distribution import Distribution
from isotone.tables.distribution.privatize import privatize_distribution, simulate_distribution

__all__ = ["Draws", "Exact", "Seeded"]


class Draws(Protocol):
    """What the two stages draw."""

    def choice(self, scores: NDArray[np.int64], rate: Fraction) -> int:
        """An index with probability proportional to ``exp(-rate·score)``."""
        ...

    def distribution(
        self, table: NDArray[np.int64], upper: int, epsilon: Fraction, unit: Unit
    ) -> Distribution:
        """The first stage: the distribution of the table's counts."""
        ...

    def geometrics(self, epsilon: Fraction, size: int) -> NDArray[np.int64]:
        """Two-sided geometric noise."""
        ...

    def words(self, size: int) -> NDArray[np.uint64]:
        """Uniform 64-bit words, for post-processing."""
        ...


class Exact:
    """Exact draws from cryptographic bits: what a release takes."""

    def choice(self, scores: NDArray[np.int64], rate: Fraction) -> int:
        """See :class:`Draws`."""
        return noise.choose_exponential(scores, rate)

    def distribution(
        self, table: NDArray[np.int64], upper: int, epsilon: Fraction, unit: Unit
    ) -> Distribution:
        """See :class:`Draws`."""
        return privatize_distribution(
            table, upper, epsilon, contributions=unit.contributions, neighbours=unit.neighbours
        )

    def geometrics(self, epsilon: Fraction, size: int) -> NDArray[np.int64]:
        """See :class:`Draws`."""
        return noise.two_sided_geometrics(epsilon, size)

    def words(self, size: int) -> NDArray[np.uint64]:
        """See :class:`Draws`."""
        return noise.random_words(size)


class Seeded:
    """The same laws from a numpy generator: not private."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def choice(self, scores: NDArray[np.int64], rate: Fraction) -> int:
        """See :class:`Draws`."""
        weights = np.exp(-float(rate) * (scores - np.min(scores)))
        return int(self.rng.choice(len(scores), p=weights / np.sum(weights)))

    def distribution(
        self, table: NDArray[np.int64], upper: int, epsilon: Fraction, unit: Unit
    ) -> Distribution:
        """See :class:`Draws`."""
        return simulate_distribution(
            table, upper, epsilon, rng=self.rng, contributions=unit.contributions, neighbours=unit.neighbours
        )

    def geometrics(self, epsilon: Fraction, size: int) -> NDArray[np.int64]:
        """See :class:`Draws`."""
        return noise.simulate.two_sided_geometrics(self.rng, epsilon, size).view(np.ndarray)

    def words(self, size: int) -> NDArray[np.uint64]:
        """See :class:`Draws`."""
        return self.rng.integers(0, 1 << 64, size, np.uint64)
