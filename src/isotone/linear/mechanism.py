"""The mechanism of a strategy, a noise and least squares, and the law of released noise.

The law of released noise, as independent draws of it, ranks that err on the safe side, and bounds for weighted sums.

The law is public, so anyone may draw from it. A quantile is taken at a rank that is below the true quantile with
probability at most ``FALSE_CONFIDENCE`` over the draws (docs/theory/inference.md, section 1). The draws come from a
public stream of constant label: numbers repeat on every machine and in every version.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.linear.strategy import Identity, Noise, Strategy
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated, public_stream
from isotone.privacy.checks import confidence_level
from isotone.privacy.draws import Draws

LAW_STREAM = "isotone law 1"
"""The label of the public stream, with its version."""

FALSE_CONFIDENCE = 1e-6
"""How likely it is at most, over the draws, that a stated half-width is below the true quantile."""


def require_known(draws: int, confidence: float) -> None:
    """Refuse a confidence that so many draws cannot tell, before they are drawn."""
    rank(draws, confidence_level(confidence))


@lru_cache(maxsize=256)
def rank(draws: int, level: float) -> int:
    """The least k such that the k-th smallest of the draws is below the true quantile with probability at most 1e-6.

    If it is, at least k draws fall below the quantile, and each does so with probability at most ``level``.

    >>> rank(100_000, 0.95)
    95325
    """
    from scipy.special import betainc

    low, high = math.ceil(draws * level), draws
    if level**draws > FALSE_CONFIDENCE:
        most = math.floor(1e3 * FALSE_CONFIDENCE ** (1 / draws)) / 1e3
        raise InputError(
            f"A confidence of {level:g} cannot be known from {draws:,} draws of the noise. Ask for {most:g} at most."
        )
    while low < high:
        middle = (low + high) // 2
        if betainc(middle, draws - middle + 1, level) <= FALSE_CONFIDENCE:  # that many or more fall below
            high = middle
        else:
            low = middle + 1
    return low


def upper_draw(drawn: NDArray[np.number], confidence: float) -> Floats:
    """One of the draws of a law that the law is within with the given probability."""
    place = rank(len(drawn), confidence_level(confidence)) - 1
    return np.partition(drawn, place, axis=0)[place].astype(np.float64)


def whole_width(width: ArrayLike) -> Floats:
    """The half-width of released integers.

    Noise within ``width`` is, once rounded, within the rounded width.
    """
    return np.floor(np.asarray(width, dtype=float) + 0.5)


@dataclass(frozen=True, eq=False)
class Law:
    """Independent draws of the noise on some released numbers, one number a column."""

    draws: NDArray[np.number] = field(repr=False)
    other: NDArray[np.number] = field(repr=False)
    """Fewer draws from another stream, for everything that decides which statement is made."""

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.draws)

    def upper(self, noise: NDArray[np.number], confidence: float) -> Floats:
        """A bound that each column of ``noise``, one row a draw, stays below with the given probability."""
        return upper_draw(noise, confidence)

    def half_widths(self, confidence: float) -> Floats:
        """How far each number alone stays from the truth."""
        return self.upper(np.abs(self.draws), confidence)

    def simultaneous_half_width(self, confidence: float) -> float:
        """How far all numbers stay from the truth at once."""
        return float(self.upper(np.max(np.abs(self.draws), axis=1), confidence))

    def half_width(self, contrast: ArrayLike, confidence: float) -> float:
        """How far a linear combination of the numbers stays from the truth."""
        return float(self.upper(np.abs(self.along(contrast)), confidence))

    def along(self, contrast: ArrayLike) -> Floats:
        """The draws of a linear combination."""
        return _along(self.draws, np.asarray(contrast, dtype=float))

    def linear(self, weights: ArrayLike) -> Law:
        """The law of linear combinations, one for each column of ``weights``."""
        matrix = np.asarray(weights, dtype=float)
        return Law(self.draws @ matrix, self.other @ matrix)

    def plus(self, law: Law) -> Law:
        """The law of sums of these numbers and of others whose draws are independent of them."""
        rows, few = min(self.size, law.size), min(len(self.other), len(law.other))
        return Law(self.draws[:rows] + law.draws[:rows], self.other[:few] + law.other[:few])


def scales(draws: NDArray[np.number]) -> Floats:
    """The standard deviation of each column, and no less than a half of a whole number's step."""
    return np.maximum(np.sqrt(np.mean(draws.astype(float) ** 2, axis=0)), 0.5)


def _along(draws: NDArray[np.number], contrast: Floats) -> Floats:
    """A product that looks only at the columns that matter."""
    columns = np.flatnonzero(contrast)
    return draws[:, columns].astype(np.float64) @ contrast[columns]


# How far a weighted sum of many draws of noise stays from 0.
#
# The sum of independent draws whose densities are symmetric and log-concave is of the same kind, and of all such numbers of
# one variance those with a truncated exponential density reach farthest (docs/theory/breakdowns.md, section 5).


@lru_cache(maxsize=64)
def log_concave_reach(outside: float) -> float:
    """The least multiple of the standard deviation that such a number exceeds with probability ``outside`` at most.

    >>> round(log_concave_reach(0.05), 2)  # a Gaussian: 1.96
    2.17
    """
    cut = np.geomspace(0.1, 700.0, 100_001)  # where the density ends; for shorter ones it is nearly uniform
    kept = -np.expm1(-cut)
    square = (2 - np.exp(-cut) * (cut * (cut + 2) + 2)) / kept
    ratio = -np.log1p(-(1 - outside) * kept) / np.sqrt(square)
    return max(float(ratio.max()), (1 - outside) * math.sqrt(3)) * (1 + 1e-6)


def gaussian_reach(outside: float) -> float:
    """The same for Gaussian noise."""
    from scipy.special import ndtri

    return -float(ndtri(outside / 2))


def rounding_reach(outside: float) -> float:
    """How far a sum of independent numbers of mean 0, each between -1 and 1 times its weight, stays from 0 (Hoeffding).

    In multiples of the root of the sum of the squared weights.
    """
    return math.sqrt(2 * math.log(2 / outside))


# Noise that does not depend on what it is added to, and the mechanism of a strategy, a noise and least squares.
#
# The law of such noise is known before any data is read: error, quantiles and simultaneous intervals are properties of the
# mechanism.

LAW_DRAWS, LAW_NUMBERS, LEAST_DRAWS = 50_000, 1_500_000, 5_000
"""A law has so many draws, fewer if they are more numbers than that, and no fewer than the last."""

OTHER_DRAWS = 4_000
"""Draws of a second stream, from which only scales come."""

_CHUNK = 1 << 22
"""Numbers simulated at a time."""


@dataclass(frozen=True, init=False)
class AdditiveNoise(ABC):
    """Noise on some numbers, whatever these are."""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _copy(self) -> Self:
        """The same without what was computed about it."""
        result = object.__new__(type(self))
        result._set(**{one.name: getattr(self, one.name) for one in fields(self)})
        return result

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers have noise."""

    @abstractmethod
    def error(self) -> Error:
        """Expected squared error of each number, before rounding to integers."""

    @abstractmethod
    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """``size`` draws of the noise, one per row, for planning and experiments."""

    @property
    def rounding(self) -> float:
        """How far rounding moves a released number at most, 0 for noise that is drawn as integers."""
        return 0.5

    @property
    def whole_parts(self) -> Floats | float | None:
        """The least variance of the whole numbers that noise is a weighted sum of, None if it is continuous first."""
        return None if self.rounding else self.error().variance

    def rounding_variance(self) -> Floats:
        """The variance of what rounding adds to each number, that of a uniform number where noise is not tiny."""
        return np.full(self.size, self.rounding**2 / 3)

    @property
    def law_draws(self) -> int:
        """How many draws the law has, which is a public number."""
        return draws_of(self.size)

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
        """Simulate the whole numbers that a release adds, in independent rows."""
        return Simulated.wrap(np.floor(np.asarray(self.simulate_independent(size, rng)) + 0.5))

    def simulate_released_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate what is added to the counts and, in the last column, to the number of records."""
        return Simulated.wrap(np.floor(np.asarray(self.simulate_with_total(size, rng)) + 0.5))

    def simulate_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on the counts and, in the last column, on the number of records."""
        raise InputError(f"{type(self).__name__} releases no number of records.")

    def covariance(self) -> Floats:
        """The covariance of the noise, before rounding.

        Where it has no closed form it is estimated, and :meth:`covariance_error` says how well. It steers weights,
        never confidence.
        """
        return self._covariances[0]

    def covariance_error(self) -> float:
        """The largest standard error of an entry of the covariance, relative to the two standard deviations."""
        return self._covariances[1]

    @property
    def adds_up(self) -> bool:
        """Whether some of the noise adds up to other noise in every draw."""
        return False

    @cached_property
    def _covariances(self) -> tuple[Floats, float]:
        return self._simulated_covariances()

    def _simulated_covariances(self) -> tuple[Floats, float]:
        """The covariance of draws, with the variances that are known, and the largest relative standard error."""
        rows = max(2_000, min(40_000, LAW_NUMBERS // self.size))
        drawn = np.asarray(self.simulate(rows, public_stream("isotone covariance 1")), dtype=np.float64)
        matrix, scale = drawn.T @ drawn / rows, np.ones(self.size)
        if not self.adds_up:  # else it would not with other variances
            known, result = self.error().sd, np.sqrt(np.diag(matrix))
            scale = np.divide(known, result, out=np.zeros_like(known), where=result > 0)
        # the fourth moments of noise with exponential tails are at most about six times those of a Gaussian's square
        return matrix * np.outer(scale, scale), math.sqrt(6 / rows)

    @cached_property
    def _unrounded(self) -> Floats:
        """The draws of the law before rounding, for half-widths without a closed form."""
        stream = public_stream(f"{LAW_STREAM} draws ")
        return np.asarray(self.simulate_independent(self.law_draws, stream), dtype=np.float64)

    def quantiles(self, probabilities: ArrayLike) -> Floats:
        """Quantiles of the noise on each number before rounding, one row per probability."""
        p = np.atleast_1d(np.asarray(probabilities, dtype=float))
        if not np.all((p > 0) & (p < 1)):
            raise InputError("Probabilities must lie strictly between 0 and 1.")
        return self._quantiles(p)

    def _quantiles(self, p: Floats) -> Floats:
        return np.quantile(self._unrounded, p, axis=0)

    def half_widths(self, confidence: float = 0.95) -> Floats:
        """For each number alone, how far a release stays from the truth with at least the given probability."""
        return whole_width(self.unrounded_half_widths(confidence))

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released numbers stay from the truth, at once, with at least the given probability."""
        return float(whole_width(self.unrounded_simultaneous_half_width(confidence)))

    def unrounded_half_widths(self, confidence: float = 0.95) -> Floats:
        """For each number alone, the half-width that its noise stays within, before rounding to integers."""
        require_known(self.law_draws, confidence)
        return upper_draw(np.abs(self._unrounded), confidence)

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, before rounding to integers."""
        require_known(self.law_draws, confidence)
        return float(upper_draw(np.max(np.abs(self._unrounded), axis=1), confidence))


@dataclass(frozen=True, init=False)
class LinearMechanism(AdditiveNoise):
    """Sums of counts with independent noise, from which all counts are estimated by least squares.

    The law of an estimate is that of a linear image of independent noise: closed where the counts themselves are
    measured and where the noise is Gaussian, and known from draws elsewhere.
    """

    strategy: Strategy = field(repr=False, compare=False)
    noise: Noise

    def error(self) -> Error:
        """The exact variance of each estimate, before rounding to integers."""
        return Error(self._variances.copy())

    @cached_property
    def _variances(self) -> Floats:
        return self.strategy.variances(self.noise)

    @cached_property
    def _covariances(self) -> tuple[Floats, float]:
        known = self.strategy.covariance(self.noise)
        return self._simulated_covariances() if known is None else (known, 0.0)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        result, step = np.empty((size, self.strategy.size)), max(1, _CHUNK // self.strategy.rows)
        for start in range(0, size, step):
            rows = result[start : start + step]
            rows[:] = self.strategy.estimate(self.strategy.simulated(len(rows), self.noise, rng), self.noise)
        return Simulated.wrap(result)

    def _released(self, counts: Ints, draws: Draws) -> Ints:
        """Whole numbers near the counts, from noise on every measured sum."""
        return self._released_rows(counts[None], draws)[0]

    def _released_rows(self, rows: Ints, draws: Draws) -> Ints:
        """The same for each row, with noise of its own, all of which is drawn at once."""
        drawn = np.zeros((len(rows), self.strategy.rows), np.int64)
        for share, places in self.strategy.blocks:
            noise = self.noise.part(share).integers(draws, len(rows) * places.size)
            drawn[:, places] = noise.reshape(len(rows), -1)
        return self.strategy.released(rows, drawn, self.noise, draws)

    def _widen(self, share: Fraction) -> None:
        """Go on with the noise of a part of the budget."""
        self._set(noise=self.noise.part(share))

    @property
    def rounding(self) -> float:
        """That of the noise where counts are measured themselves; a half where estimates are rounded."""
        return self.noise.rounding if isinstance(self.strategy, Identity) else 0.5

    def _quantiles(self, p: Floats) -> Floats:
        from scipy.special import ndtri

        if isinstance(self.strategy, Identity):
            h = self.noise.upper_quantile
            values = [0.0 if q == 0.5 else math.copysign(h(min(q, 1 - q)), q - 0.5) for q in p.tolist()]
            return np.repeat(np.array(values)[:, None], self.size, axis=1)
        return ndtri(p)[:, None] * self.error().sd if self.noise.normal else super()._quantiles(p)

    def unrounded_half_widths(self, confidence: float = 0.95) -> Floats:
        """For each number alone, the half-width that its noise stays within, before rounding."""
        from scipy.special import ndtri

        if isinstance(self.strategy, Identity):
            return np.full(self.size, self.noise.upper_quantile((1 - confidence_level(confidence)) / 2))
        if self.noise.normal:
            return float(ndtri((1 + confidence_level(confidence)) / 2)) * self.error().sd
        return super().unrounded_half_widths(confidence)

    def unrounded_simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """The half-width that *all* noise stays within, at once, before rounding."""
        if not isinstance(self.strategy, Identity):
            return super().unrounded_simultaneous_half_width(confidence)
        outside = -math.expm1(math.log(confidence_level(confidence)) / self.size)
        return self.noise.upper_quantile(outside / 2)


def draws_of(numbers: int) -> int:
    """How many draws the law of so many numbers has."""
    return min(LAW_DRAWS, max(LEAST_DRAWS, LAW_NUMBERS // max(numbers, 1)))


def _small(noise: Simulated) -> Any:
    """Whole numbers, small where they fit."""
    whole = np.asarray(noise, dtype=np.float64)
    return whole.astype(np.int32) if np.max(np.abs(whole), initial=0.0) < 2**31 else whole
