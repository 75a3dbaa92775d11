"""What mechanisms with Gaussian noise have in common, a guarantee with delta or rho."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import sigma_squared, sigma_squared_zcdp
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee, Unit

__all__ = ["ConcentratedMechanism", "gaussian_guarantee", "gaussian_variance"]


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
