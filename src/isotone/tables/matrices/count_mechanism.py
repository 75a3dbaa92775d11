"""The interface of count mechanisms.

Each is a private transition matrix over the counts ``0..n-1``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise import Simulated
from isotone.privacy.checks import positive, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables.distribution.distribution import DistributionLike, probabilities_of
from isotone.tables.matrices.losses import Loss
from isotone.tables.top_coding import Counts, top_coded

__all__ = ["CountMechanism"]


@dataclass(frozen=True, eq=False, repr=False)
class CountMechanism(ABC):
    """A mechanism that publishes one count for each category, row by row.

    A true count ``i`` is published as ``j`` with probability ``matrix()[i, j]``, each category by itself. One
    person changes one count by one, so the guarantee for a table is that of neighbouring rows of the matrix;
    with ``contributions`` or replace-one neighbours the matrix is built for a smaller ε (privacy/guarantee.py).
    """

    n: int
    epsilon: Fraction
    unit: Unit = field(default_factory=Unit)
    simulated: bool = False
    """Whether it was built on a simulated distribution, and so must not release."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole_number(self.n, "n"))
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    @property
    def upper(self) -> int:
        """The largest count. Larger ones are clipped to it (top-coded) before anything else."""
        return self.n - 1

    @property
    def step(self) -> float:
        """The ε between neighbouring rows, as a float for planning."""
        return float(self.unit.per_step(self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP for the unit of the table."""
        return self.unit.pure(self.epsilon)

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """One private count for each category, exactly as ``matrix()`` says, from cryptographic bits."""
        if self.simulated:
            raise InputError(
                "This mechanism was built on a simulated distribution, which is not private. Build it on the "
                "result of privatize_distribution(), or on a public distribution."
            )
        return self._draw(top_coded(counts, self.upper), require_exact(ExactDraws()))

    def simulate(self, counts: Counts, rng: np.random.Generator) -> Simulated:
        """Draws of the same law from a seeded generator.

        They are not private and serve experiments only.
        """
        return Simulated.wrap(self._draw(top_coded(np.asarray(counts), self.upper), SeededDraws(rng)))

    def log_probability(self, output: Sequence[int] | int, counts: Sequence[int] | int) -> float:
        """The log-probability that ``release(counts)`` is ``output``."""
        published = top_coded(np.atleast_1d(output), self.upper + 1)
        true = top_coded(np.atleast_1d(counts), self.upper)
        if published.shape != true.shape:
            raise InputError(f"output has {published.size} counts, but the table has {true.size}.")
        inside = published <= self.upper
        logs = np.full(true.shape, -np.inf)
        logs[inside] = self._log_entries(true[inside], published[inside])
        return float(np.sum(logs))

    def probability(self, output: Sequence[int] | int, counts: Sequence[int] | int) -> float:
        """The probability that ``release(counts)`` is ``output``."""
        return float(np.exp(self.log_probability(output, counts)))

    def fixed_point_error(self, z: DistributionLike) -> float:
        """The largest difference between ``z`` and the distribution of counts published from it."""
        p = self._checked(z)
        return float(np.max(np.abs(self.output(p) - p)))

    @abstractmethod
    def matrix(self) -> NDArray[np.float64]:
        """The dense transition matrix.

        Row i is the law of what is published for a true count i.
        """

    @abstractmethod
    def output(self, z: DistributionLike) -> NDArray[np.float64]:
        """The distribution ``z·T`` of published counts. The true ones are drawn from ``z``."""

    @abstractmethod
    def count_error(self, z: DistributionLike, loss: Loss = "absolute") -> float:
        """The expected loss of a published count whose true value is drawn from ``z``."""

    @abstractmethod
    def privacy_loss(self) -> float:
        """The largest log-ratio between entries of neighbouring rows, computed from their logarithms."""

    @abstractmethod
    def error(self) -> Error:
        """The mean squared error of a published count, one number for each true count ``0..upper``."""

    @abstractmethod
    def _draw(self, counts: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        """A published count for each top-coded one, with the draws given."""

    @abstractmethod
    def _log_entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]: ...

    def _checked(self, z: DistributionLike) -> NDArray[np.float64]:
        p = probabilities_of(z)
        if len(p) != self.n:
            raise InputError(
                f"z has {len(p)} probabilities, but this mechanism is for counts 0..{self.upper}."
            )
        return p

    def __repr__(self) -> str:
        return f"{type(self).__name__}(counts 0..{self.upper}, {self.guarantee})"
