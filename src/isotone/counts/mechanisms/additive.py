"""What mechanisms that add noise to the counts have in common.

The noise never depends on the counts. So its law is known before any data is read: error, quantiles and
simultaneous intervals are properties of the mechanism.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.consistency import consistent
from isotone.counts.sensitivity import Sensitivity
from isotone.counts.statistic import Counts, check_counts
from isotone.errors import InputError
from isotone.linear.law import LAW_STREAM, Law, require_known, upper_draw, whole_width
from isotone.mechanism import Error
from isotone.noise.public_stream import public_stream
from isotone.noise.simulated_array import Simulated
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, whole_number
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit

__all__ = ["AdditiveMechanism", "PureMechanism", "draws_of", "simulated_covariance"]

LAW_DRAWS, LAW_NUMBERS, LEAST_DRAWS = 50_000, 1_500_000, 5_000
"""A law has so many draws, fewer if they are more numbers than that, and no fewer than the last."""

OTHER_DRAWS = 4_000
"""Draws of a second stream, from which only scales come."""


@dataclass(frozen=True, init=False)
class AdditiveMechanism(ABC):
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
        noise the variance is, so that (ε, δ) holds for all of them together.
        """
        made = self._copy()
        guarantee = self.guarantee
        made._set(guarantee=replace(guarantee, epsilon=guarantee.epsilon * share, rho=guarantee.rho * share))
        return made

    def _copy(self) -> Self:
        """The same mechanism without what was computed about it."""
        made = object.__new__(type(self))
        made._set(**{field.name: getattr(self, field.name) for field in fields(self)})
        return made

    @property
    def rounding(self) -> float:
        """How far rounding moves a released count at most, 0 for noise that is drawn as integers."""
        return 0.5

    @property
    def whole_parts(self) -> NDArray[np.float64] | float | None:
        """The least variance of the whole numbers that noise is a weighted sum of, None if it is continuous first."""
        return None if self.rounding else self.error().variance

    def rounding_variance(self) -> NDArray[np.float64]:
        """The variance of what rounding adds to each count, that of a uniform number where noise is not tiny."""
        return np.full(len(self.P), self.rounding**2 / 3)

    @property
    def law_draws(self) -> int:
        """How many draws the law has, which is a public number."""
        return draws_of(len(self.P))

    def simulate_independent(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate like :meth:`simulate`, with rows that are independent of each other."""
        return self.simulate(size, rng)

    def law(self, stream: str = "", *, total: bool = False, draws: int | None = None) -> Law:
        """The law of the released whole numbers, from public streams.

        Laws of different ``stream`` are independent of each other: those of different releases. With ``total`` the
        last column is the noise on the number of records.
        """
        simulate = self.simulate_released_with_total if total else self.simulate_released
        size = self.law_draws if draws is None else draws
        rows = simulate(size, public_stream(f"{LAW_STREAM} draws {stream}"))
        other = self._simulate_scales(OTHER_DRAWS, public_stream(f"{LAW_STREAM} scales {stream}"), total)
        return Law(_small(rows), _small(other))

    def _simulate_scales(self, size: int, rng: np.random.Generator, total: bool) -> Simulated:
        """What is added, for scales alone. Rows need not be independent of each other."""
        return (self.simulate_released_with_total if total else self.simulate_released)(size, rng)

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the whole numbers that a release adds to the counts, in independent rows."""
        return Simulated.wrap(np.floor(np.asarray(self.simulate_independent(size, rng)) + 0.5))

    def simulate_released_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate what is added to the counts and, in the last column, to the number of records."""
        return Simulated.wrap(np.floor(np.asarray(self.simulate_with_total(size, rng)) + 0.5))

    def simulate_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on the counts and, in the last column, on the number of records."""
        raise InputError(f"{type(self).__name__} releases no number of records.")

    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the noise, before rounding, in the order of ``P.elements``.

        Where it has no closed form it is estimated, and :meth:`covariance_error` says how well. It steers weights,
        never confidence.
        """
        return self._covariances[0]

    def covariance_error(self) -> float:
        """The largest standard error of an entry of the covariance, relative to the two standard deviations."""
        return self._covariances[1]

    @cached_property
    def _covariances(self) -> tuple[NDArray[np.float64], float]:
        return simulated_covariance(self)

    @cached_property
    def _unrounded(self) -> NDArray[np.float64]:
        """The draws of the law before rounding, for half-widths without a closed form."""
        stream = public_stream(f"{LAW_STREAM} draws ")
        return np.asarray(self.simulate_independent(self.law_draws, stream), dtype=np.float64)

    def quantiles(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """Quantiles of the noise on each count before rounding, one row per probability."""
        p = np.atleast_1d(np.asarray(probabilities, dtype=float))
        if not np.all((p > 0) & (p < 1)):
            raise InputError("Probabilities must lie strictly between 0 and 1.")
        return self._quantiles(p)

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.quantile(self._unrounded, p, axis=0)

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far the released integer stays from the truth with at least the given probability."""
        return whole_width(self.unrounded_half_widths(confidence))

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        return float(whole_width(self.unrounded_simultaneous_half_width(confidence)))

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding to integers."""
        require_known(self.law_draws, confidence)
        return upper_draw(np.abs(self._unrounded), confidence)

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, before rounding to integers."""
        require_known(self.law_draws, confidence)
        return float(upper_draw(np.max(np.abs(self._unrounded), axis=1), confidence))

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


def draws_of(numbers: int) -> int:
    """How many draws the law of so many numbers has."""
    return min(LAW_DRAWS, max(LEAST_DRAWS, LAW_NUMBERS // max(numbers, 1)))


def simulated_covariance(mechanism: AdditiveMechanism) -> tuple[NDArray[np.float64], float]:
    """The covariance of draws, with the variances that are known, and the largest relative standard error."""
    rows = max(2_000, min(40_000, LAW_NUMBERS // len(mechanism.P)))
    drawn = np.asarray(mechanism.simulate(rows, public_stream("isotone covariance 1")), dtype=np.float64)
    matrix, scale = drawn.T @ drawn / rows, np.ones(len(mechanism.P))
    # counts of a partition add up in every draw, and would not with other variances
    if all(choice.kind != "partition" for choice in mechanism.P.choices):
        known, found = mechanism.error().sd, np.sqrt(np.diag(matrix))
        scale = np.divide(known, found, out=np.zeros_like(known), where=found > 0)
    # the fourth moments of noise with exponential tails are at most about six times those of a Gaussian's square
    return matrix * np.outer(scale, scale), math.sqrt(6 / rows)


def _small(noise: Simulated) -> NDArray[np.number]:
    """Whole numbers, small where they fit."""
    whole = np.asarray(noise, dtype=np.float64)
    return whole.astype(np.int32) if np.max(np.abs(whole), initial=0.0) < 2**31 else whole
