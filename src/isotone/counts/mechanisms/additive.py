"""What mechanisms that add noise to the counts have in common.

The noise never depends on the counts. So its law is known before any data is read: error, quantiles and
simultaneous intervals are properties of the mechanism.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.consistency import consistent
from isotone.counts.sensitivity import Sensitivity
from isotone.counts.statistic import Counts, check_counts
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.simulated import Simulated
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, confidence_level, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["AdditiveMechanism", "PureMechanism", "deviation"]

_DRAWS = 1_000_000
"""Numbers drawn where a quantile has no closed form: more rows for short vectors."""

_CHUNK = 1 << 22
"""Numbers in memory at a time."""


@dataclass(frozen=True, init=False)
class AdditiveMechanism(ABC):
    """Counts over ``P`` plus noise.

    The common part of the mechanisms that do not follow the order.

    ``neighbours`` and ``contributions`` say what is protected: adding or removing, or replacing, one unit
    that gives up to ``contributions`` records. ``max_size`` states that no record has more yeses than
    that after closing (``cut`` makes it true); None sets no limit.
    """

    P: Poset
    guarantee: Guarantee
    contributions: int
    max_size: int | None
    sensitivity: Sensitivity

    def _settle(self, P: Poset, guarantee: Guarantee, contributions: int, max_size: int | None) -> None:
        """Check the public parameters and store them as plain values.

        Every mechanism does this first.

        Mechanisms go on with the stored values, never with the arguments, which may be numpy scalars that wrap.
        """
        unit = Unit(contributions, guarantee.neighbours, guarantee.unit)
        largest = None if max_size is None else whole_number(max_size, "max_size")
        if largest is not None and P.choices:
            raise InputError(
                "max_size cannot go with exclusive options: a record that is cut may lose its option. Leave out "
                "max_size, or take P.forget_choices()."
            )
        self._set(P=P, guarantee=guarantee, contributions=unit.contributions, max_size=largest)
        self._set(sensitivity=Sensitivity.of(P, unit.neighbours, unit.contributions, largest))

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

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

    @abstractmethod
    def error(self) -> Error:
        """Expected squared error of each count, before rounding to integers."""

    @abstractmethod
    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """``size`` draws of the noise, one per row, for planning and experiments."""

    @abstractmethod
    def _integer_noise(self) -> NDArray[np.int64]:
        """One exact draw of the noise, rounded to integers, from cryptographic bits."""

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers.

        Exactly private, from cryptographic bits.
        """
        return check_counts(self.P, counts) + self._integer_noise()

    def quantiles(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """Quantiles of the noise on each count before rounding, one row per probability."""
        p = np.atleast_1d(np.asarray(probabilities, dtype=float))
        if not np.all((p > 0) & (p < 1)):
            raise InputError("Probabilities must lie strictly between 0 and 1.")
        return np.quantile(np.concatenate(list(_sample(self))), p, axis=0)

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far a release stays from the truth with at least the given probability.

        About the released integers, so whole numbers.
        """
        return _whole(self.unrounded_half_widths(confidence))

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        return float(_whole(self.unrounded_simultaneous_half_width(confidence)))

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding to integers."""
        level = confidence_level(confidence)
        return _quantile(np.concatenate([np.abs(part) for part in _sample(self)]), level)

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, before rounding to integers."""
        level = confidence_level(confidence)
        return float(
            _quantile(np.concatenate([np.max(np.abs(part), axis=1) for part in _sample(self)]), level)
        )

    def consistent(
        self, values: ArrayLike, upper: float | None = None, integers: bool = False
    ) -> NDArray[np.float64] | NDArray[np.int64]:
        """Released ``values`` made monotone and nonnegative.

        Each is weighted by its variance. See :func:`consistent`.
        """
        variance = self.error().variance
        weights = 1 / variance if np.all(variance > 0) else None
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


def _sample(mechanism: AdditiveMechanism) -> Iterator[NDArray[np.float64]]:
    """Draws of a mechanism's noise for its quantiles, in parts.

    They are always the same ones, so that answers repeat.
    """
    rng, size = np.random.default_rng(0), len(mechanism.P)
    rows = min(50_000, max(2_000, _DRAWS // size))
    step = max(1, _CHUNK // size)  # all draws of a large order would not fit into memory
    for start in range(0, rows, step):
        yield np.asarray(mechanism.simulate(min(step, rows - start), rng))


def _quantile(drawn: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """A number that at least the share ``level`` of the law is within, known from draws of it.

    One of the draws, as noise on a lattice has no numbers between; three standard errors of the share higher, so that
    chance in the draws does not make the statement false.
    """
    safe = level + 3 * math.sqrt(level * (1 - level) / len(drawn))
    return np.quantile(drawn, min(safe, 1.0), axis=0, method="higher")


def _whole(width: ArrayLike) -> NDArray[np.float64]:
    """The half-width of released integers.

    Noise within ``width`` is, once rounded, within the rounded width.
    """
    return np.floor(np.asarray(width, dtype=float) + 0.5)


def deviation(P: Poset, output: ArrayLike, counts: Counts | None) -> NDArray[np.float64]:
    """``output - counts`` (or ``output`` itself, as noise), with one entry per element in the last axis."""
    noise = np.asarray(output, dtype=float)
    if noise.ndim == 0 or noise.shape[-1] != len(P):
        raise InputError(f"The last axis must have one entry for each of the {len(P)} elements.")
    return noise if counts is None else noise - check_counts(P, counts).astype(float)
