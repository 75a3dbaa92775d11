"""The one shape of every mechanism, and the value that describes its error.

A mechanism is an immutable value built without data. Plans, ledgers, audits, bridges to other libraries
and the command line see only :class:`Mechanism`; a new mechanism is one new file that has this shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from isotone.privacy.guarantee import Guarantee

Progress = Callable[[float, str], None]
"""Called as ``progress(fraction_done, what)`` during long work; fractions never go back."""


def no_progress(fraction: float, what: str) -> None:
    """Ignore progress."""


Statistic = TypeVar("Statistic", contravariant=True)
Output = TypeVar("Output", covariant=True)


@runtime_checkable
class HasGuarantee(Protocol):
    """Anything that says what it guarantees."""

    @property
    def guarantee(self) -> Guarantee:
        """What a release guarantees."""
        ...


@runtime_checkable
class ExpectedError(Protocol):
    """How far a release is from the truth, as :class:`Error` says it for counts, and a bound on the risk for curves."""

    @property
    def method(self) -> str:
        """How the numbers were found, in words."""
        ...


@runtime_checkable
class Mechanism(HasGuarantee, Protocol[Statistic, Output]):
    """What every mechanism can do. ``Statistic`` goes into a release, ``Output`` comes out."""

    def error(self) -> ExpectedError:
        """How far a release is from the truth, from the mechanism's own distribution, without data."""
        ...

    def release(self, statistic: Statistic, /) -> Output:
        """An exact private draw, from cryptographic bits."""
        ...

    def simulate(self, what: Any, /, rng: np.random.Generator) -> Any:
        """Float draws from a seeded generator, for planning only, of type :class:`Simulated`.

        ``what`` is the number of draws where the noise does not depend on the statistic, and a public statistic
        to try the mechanism on elsewhere.
        """
        ...


@runtime_checkable
class HasTotal(Protocol):
    """A mechanism that may release the number of records along with the counts, for free."""

    @property
    def has_total(self) -> bool:
        """Whether it does, with these parameters."""
        ...

    def release_with_total(self, counts: Any, records: int) -> tuple[NDArray[np.int64], int]:
        """The counts and the number of records, both with noise."""
        ...

    def total_variance(self) -> float:
        """The variance of the noise on the number of records."""
        ...


@runtime_checkable
class HasGroups(HasGuarantee, Protocol):
    """A mechanism with one draw for the counts of several groups, whose noise depends on each other."""

    groups: int

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of all groups, a row each, with noise."""
        ...

    def group_law(self, stream: str, draws: int) -> Any:
        """Draws of the released noise of all groups, of which the rows of one draw stand together."""
        ...


@runtime_checkable
class HasLogDensity(Protocol):
    """A mechanism whose noise has an explicit density. A budget changes its scale alone."""

    def log_density(self, output: Any, counts: Any = None) -> NDArray[np.float64]:
        """The log density of outputs given the statistic."""
        ...


@runtime_checkable
class HasMethod(Protocol):
    """A mechanism that was found by one of several methods."""

    @property
    def method(self) -> Any:
        """Which, to be shown."""
        ...


@dataclass(frozen=True)
class Error:
    """The error of an additive mechanism, one number per coordinate.

    ``variance`` is the expected squared error of each coordinate. ``standard_error`` is zero where the
    variance is exact, and the simulation's standard error of ``variance`` where it is not. ``method`` says
    which, in words.
    """

    variance: NDArray[np.float64]
    method: str = "exact"
    standard_error: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def sd(self) -> NDArray[np.float64]:
        """Root mean squared error of each coordinate."""
        return np.sqrt(self.variance)

    @property
    def total(self) -> float:
        """Expected squared Euclidean error of the whole vector."""
        return math.fsum(self.variance)  # rounded once, so whatever the sequence

    @property
    def rmse(self) -> float:
        """Root of the mean squared error over coordinates (0 for an empty vector)."""
        return math.sqrt(self.total / self.variance.size) if self.variance.size else 0.0

    @property
    def worst(self) -> float:
        """The largest root mean squared error of a coordinate (0 for an empty vector)."""
        return float(np.sqrt(np.max(self.variance))) if self.variance.size else 0.0
