"""What mechanisms that add noise to the counts have in common.

The noise never depends on the counts. So its law is known before any data is read: error, quantiles and
simultaneous intervals are properties of the mechanism.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.counts.consistency import consistent
from isotone.counts.statistic import Counts, Sensitivity, check_counts
from isotone.errors import InputError
from isotone.linear.mechanism import AdditiveNoise, LinearMechanism
from isotone.mechanism import Progress, no_progress
from isotone.noise.simulate import refuse_simulated
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import sigma_squared, sigma_squared_zcdp
from isotone.privacy.checks import Number, whole_number
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Unit

__all__ = [
    "AdditiveMechanism",
    "ConcentratedMechanism",
    "LinearCounts",
    "PureMechanism",
    "gaussian_guarantee",
    "gaussian_variance",
]


@dataclass(frozen=True, init=False)
class AdditiveMechanism(AdditiveNoise):
    """Counts over ``P`` plus noise.

    The common part of the mechanisms that do not follow the order.

    ``neighbours`` and ``contributions`` say what is protected: adding or removing, or replacing, one unit
    that gives up to ``contributions`` records. ``max_size`` states that no record has more yeses than
    that after closing (``cut`` makes it true); None sets no limit.
    """

    can_release: ClassVar[bool] = True
    """False for mechanisms that exist for comparison and have no exact sampler."""

    P: Poset
    guarantee: Guarantee
    contributions: int
    max_size: int | None
    sensitivity: Sensitivity

    def _settle(self, P: Poset, guarantee: Guarantee, contributions: int, max_size: int | None) -> None:
        """Check the public parameters and store them as plain values. Every mechanism does this first.

        Mechanisms go on with the stored values, never with the arguments, which may be numpy scalars that wrap.
        """
        unit = Unit(contributions, guarantee.neighbours, guarantee.unit)
        largest = None if max_size is None else whole_number(max_size, "max_size")
        self._set(P=P, guarantee=guarantee, contributions=unit.contributions, max_size=largest)
        self._set(sensitivity=Sensitivity.of(P, unit.neighbours, unit.contributions, largest))

    @property
    def unit(self) -> Unit:
        """The privacy unit."""
        return Unit(self.contributions, self.neighbours, self.guarantee.unit)

    @property
    def neighbours(self) -> Neighbours:
        """The adjacency, adding or removing one unit, or replacing it."""
        return self.guarantee.neighbours

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the guarantee (0 under zCDP)."""
        return self.guarantee.epsilon

    @property
    def size(self) -> int:
        """One number for each count."""
        return len(self.P)

    @property
    def adds_up(self) -> bool:
        """Whether there are partitions, whose counts add up in every draw."""
        return any(choice.kind == "partition" for choice in self.P.choices)

    @abstractmethod
    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        """One exact draw of the noise, rounded to integers."""

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers. Exactly private, from cryptographic bits."""
        return check_counts(self.P, counts) + self._integer_noise(require_exact(ExactDraws()))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        released = [self.release(row) for row in rows]
        return np.array(released, np.int64).reshape(rows.shape)

    def part(self, share: Fraction) -> Self:
        """One of several draws from the same records.

        With shares that add up to 1, all of them together guarantee what this does. Epsilon is divided; for Gaussian
        noise the variance is. Under (ε, δ) a part of it says no more than the whole does, and keeps more.
        """
        made, guarantee = self._copy(), self.guarantee
        if guarantee.kind != "approximate":
            parts = {"epsilon": guarantee.epsilon * share, "rho": guarantee.rho * share}
            made._set(guarantee=replace(guarantee, **parts))
        made._widen(share)
        return made

    def _widen(self, share: Fraction) -> None:
        """Go on with the noise of a part of the budget. By default it follows from the guarantee."""

    def consistent(
        self, values: ArrayLike, upper: float | None = None, integers: bool = False
    ) -> NDArray[np.float64] | NDArray[np.int64]:
        """Released ``values`` made monotone and nonnegative.

        Each is weighted by its variance. See :func:`consistent`.
        """
        variance = self.error().variance
        weights = 1 / np.maximum(variance, 1e-9 * variance.max()) if np.any(variance > 0) else None
        return consistent(self.P, values, weights, upper, integers)

    def __str__(self) -> str:
        return f"{type(self).__name__} over {len(self.P)} elements, {self.guarantee}"


@dataclass(frozen=True, init=False)
class PureMechanism(AdditiveMechanism):
    """A mechanism that is given by ``epsilon`` and the unit alone."""

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        self._prepare()

    def _prepare(self) -> None:
        """Refuse what the mechanism cannot do. By default it can do everything."""


@dataclass(frozen=True, init=False)
class LinearCounts(LinearMechanism, AdditiveMechanism):
    """Counts over ``P``, estimated from sums of them with independent noise."""

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers.

        Exactly private, from cryptographic bits: noise is added to integers, and what follows is a function of the
        noisy integers alone.
        """
        return self._released(check_counts(self.P, counts), require_exact(ExactDraws()))

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._released(np.zeros(len(self.P), np.int64), draws)

    def _release_at_once(self, rows: Ints) -> Ints:
        """Release the counts of each row, with all noise drawn at once."""
        refuse_simulated(rows)
        return self._released_rows(rows, require_exact(ExactDraws()))


# What mechanisms with Gaussian noise have in common, a guarantee with delta or rho.


@dataclass(frozen=True, init=False)
class ConcentratedMechanism(AdditiveMechanism):
    """A mechanism that is given by ``epsilon`` and ``delta``, or by ``rho``, and the unit."""

    def __init__(
        self,
        P: Poset,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self._settle(P, gaussian_guarantee(epsilon, delta, rho, neighbours), contributions, max_size)
        self._prepare(progress)

    @abstractmethod
    def _prepare(self, progress: Progress) -> None:
        """Calibrate the noise to the settled guarantee and sensitivity."""


def gaussian_guarantee(
    epsilon: Number | None, delta: Number | None, rho: Number | None, neighbours: Neighbours
) -> Guarantee:
    """The guarantee for (epsilon, delta), or for rho.

    Exactly one of the two forms must be given.
    """
    if rho is None and (epsilon is None or delta is None):
        raise InputError("Gaussian noise needs epsilon and delta, or rho. With delta = 0 use PosetMechanism.")
    guarantee = Unit(neighbours=neighbours).guarantee(epsilon, delta, rho)
    if guarantee.kind == "pure":
        raise InputError("delta must be above 0 for Gaussian noise. With delta = 0 use PosetMechanism.")
    return guarantee


def gaussian_variance(guarantee: Guarantee, sensitivity_squared: Number = 1) -> Fraction:
    """The variance of Gaussian noise at this squared sensitivity."""
    if guarantee.kind == "zcdp":
        return sigma_squared_zcdp(guarantee.rho, sensitivity_squared)
    return sigma_squared(guarantee.epsilon, guarantee.delta, sensitivity_squared)
