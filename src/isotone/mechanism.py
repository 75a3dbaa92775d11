"""The one shape of every mechanism, and the value that describes its error.

A mechanism is an immutable value built without data. Plans, ledgers, audits, bridges to other libraries
and the command line see only :class:`Mechanism`; a new mechanism is one new file that has this shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from isotone.privacy.guarantee import Guarantee

__all__ = ["Error", "Mechanism", "Progress", "no_progress"]

Progress = Callable[[float, str], None]
"""Called as ``progress(fraction_done, what)`` during long work; fractions never go back."""


def no_progress(fraction: float, what: str) -> None:
    """Ignore progress."""


@runtime_checkable
class Mechanism(Protocol):
    """What every mechanism can do.

    ``log_density(output, statistic)`` (continuous) or ``probability(output, statistic)`` (discrete) exist
    besides where they are explicit; audits look for them.
    """

    @property
    def guarantee(self) -> Guarantee:
        """What a release promises."""
        ...

    def error(self) -> Any:
        """How far a release is from the truth, from the mechanism's own distribution, without data."""
        ...

    def release(self, statistic: Any) -> Any:
        """An exact private draw, from cryptographic bits."""
        ...

    def simulate(self, *args: Any, **kwargs: Any) -> Any:
        """A float draw from a seeded generator, for planning only; its type is :class:`Simulated`."""
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
