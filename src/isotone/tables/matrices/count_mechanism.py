"""The interface of count mechanisms.

Each is a private transition matrix over the counts ``0..n-1``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise import Simulated
from isotone.privacy.calibration import discrete_sigma_squared
from isotone.privacy.checks import Number, positive, share, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit
from isotone.tables.distribution import Counts, DistributionLike, probabilities_of, top_coded
from isotone.tables.matrices.geometric import Loss, loss_rows


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


# Count mechanisms that add integer noise to a count and clamp the sum to ``0..n-1``.


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveCountMechanism(CountMechanism):
    """Symmetric integer noise, then a clamp. A subclass says what the noise is."""

    @abstractmethod
    def _log_mass(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithm of the probability that the noise is ``distance >= 0``."""

    @abstractmethod
    def _log_tail(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithm of the probability that the noise is at least ``distance``, for 0 and above."""

    @abstractmethod
    def _noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        """The noise, with the draws given."""

    def matrix(self) -> NDArray[np.float64]:
        """The transition matrix, dense."""
        inner, tails = self._parts()
        matrix = inner.copy()
        matrix[:, 0], matrix[:, -1] = tails, tails[::-1]
        if self.n == 1:
            matrix[:] = 1.0
        return matrix

    def output(self, z: DistributionLike) -> NDArray[np.float64]:
        """``z·T``."""
        p = self._checked(z)
        inner, tails = self._parts()
        out = p @ inner
        out[0], out[-1] = p @ tails, p @ tails[::-1]
        return out if self.n > 1 else np.ones(1)

    def count_error(self, z: DistributionLike, loss: Loss = "absolute") -> float:
        """The expected loss, over the dense rows one at a time."""
        p = self._checked(z)
        costs = loss_rows(loss, self.n)
        inner, tails = self._parts()
        if self.n == 1:
            return float(costs[0, 0])
        ends = p @ (tails * costs[:, 0] + tails[::-1] * costs[:, -1])
        return float(ends + sum(p[i] * (inner[i, 1:-1] @ costs[i, 1:-1]) for i in np.flatnonzero(p)))

    def privacy_loss(self) -> float:
        """The largest log-ratio between neighbouring rows.

        Of the noise inside, and of its tails at the ends.
        """
        if self.n == 1:
            return 0.0
        tails = self._log_tail(np.arange(self.n))
        inside = self._log_mass(np.arange(self.n - 1))  # the distances of two rows from an inner column
        return float(max(np.max(np.abs(np.diff(tails))), np.max(np.abs(np.diff(inside)), initial=0.0)))

    def error(self) -> Error:
        """Mean squared error given each true count, exact."""
        i = np.arange(self.n, dtype=np.float64)
        if self.n == 1:
            return Error(np.zeros(1))
        inner, tails = self._parts()
        ends = tails * i**2 + tails[::-1] * i[::-1] ** 2
        return Error(ends + np.array([inner[k, 1:-1] @ (i[1:-1] - k) ** 2 for k in range(self.n)]))

    def _draw(self, counts: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        added = np.clip(self._noise(len(counts), draws), -self.n, self.n)
        return np.clip(counts + added, 0, self.upper)

    def _log_entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.n == 1:
            return np.zeros(len(rows))
        logs = self._log_mass(np.abs(columns - rows))
        logs = np.where(columns == 0, self._log_tail(rows), logs)
        return np.where(columns == self.upper, self._log_tail(self.upper - rows), logs)

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The matrix without its clamp (a view of one row), and the first column with it."""
        mass = np.exp(self._log_mass(np.abs(np.arange(-(self.n - 1), self.n))))
        return sliding_window_view(mass, self.n)[::-1], np.exp(self._log_tail(np.arange(self.n)))


# Clamped discrete Gaussian noise, an (ε, δ) baseline.
#
# See Canonne, Kamath and Steinke 2020.


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


# The staircase mechanism (Geng, Kairouz, Oh and Viswanath 2015), rounded to integers and clamped.


@dataclass(frozen=True, eq=False, repr=False)
class StaircaseMechanism(AdditiveCountMechanism):
    """Staircase noise with the step ``1/(1 + exp(ε/2))`` that minimises its mean absolute value.

    Rounded to the nearest integer, the noise is a random sign times ``G + move``, where G is geometric with
    ``P(G = g)`` proportional to ``exp(-ε·g)`` and ``move`` is 1 with probability ``exp(-ε/2)/2``
    (docs/theory/tables.md, section 9). Guarantee: ε-DP, as post-processing of the real-valued noise.
    """

    @property
    def _log_move(self) -> float:
        return -self.step / 2 - math.log(2)

    def _log_mass(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        stays = math.log1p(-math.exp(self._log_move))
        others = np.logaddexp(stays - self.step, self._log_move) - math.log(2) - self.step * (distance - 1.0)
        return math.log(-math.expm1(-self.step)) + np.where(distance == 0, stays, others)

    def _log_tail(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        just = math.log(-math.expm1(-self.step)) + self._log_move
        first = np.logaddexp(-self.step, just) - math.log(2)
        beyond = first - self.step * (np.maximum(distance, 1) - 1.0)
        return np.where(distance > 0, beyond, np.log1p(-np.exp(beyond)))

    def _noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        rate = self.unit.per_step(self.epsilon)
        size_of = draws.one_sided_geometrics(rate, size)
        kept = draws.one_sided_geometrics(rate / 2, size) > 0
        coins = draws.words(size)
        moved = size_of + (kept & ((coins & 1) == 1))
        return np.where((coins & 2) == 2, moved, -moved)


def staircase(
    n: int, epsilon: Number, *, contributions: int = 1, neighbours: Neighbours = "add-remove"
) -> StaircaseMechanism:
    """The staircase mechanism on counts ``0..n-1``.

    Guarantee: epsilon-DP for adding or removing one person (docs/theory/tables.md, section 9).

    >>> t = staircase(5, epsilon=1)
    >>> bool(abs(t.matrix().sum(axis=1) - 1).max() < 1e-12), t.privacy_loss() <= 1
    (True, True)
    """
    return StaircaseMechanism(
        whole_number(n, "n"), positive(epsilon, "epsilon"), Unit(contributions, neighbours)
    )
