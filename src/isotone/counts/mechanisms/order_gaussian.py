"""Gaussian noise shaped by the order.

The choice where δ > 0 or zCDP is allowed and the order is not tiny.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.ellipse.ellipse_certificate import EllipseCertificate
from isotone.counts.ellipse.order_ellipse import Ellipse, best_strategy, shape_of
from isotone.counts.ellipse.strategy import Strategy
from isotone.counts.mechanisms.concentrated import ConcentratedMechanism, gaussian_variance
from isotone.counts.statistic import Counts, check_counts, check_records, deviation
from isotone.errors import InputError
from isotone.mechanism import Error, Progress
from isotone.noise.simulate import Simulated, refuse_simulated
from isotone.privacy.checks import confidence_level
from isotone.privacy.draws import Draws, ExactDraws, require_exact

__all__ = ["OrderGaussianMechanism"]

_FINEST, _COARSEST = 28, 10
_LARGEST_DEVIATION = 41  # the exact samplers take standard deviations below 2**43
_LARGEST_COVARIANCE = 5000
_CHUNK = 1 << 22


@dataclass(frozen=True, init=False)
class OrderGaussianMechanism(ConcentratedMechanism):
    """Counts over a poset with Gaussian noise whose covariance follows the order.

    Give ``epsilon`` and ``delta``, or ``rho``. The covariance is nearly the best that any Gaussian can have:
    ``certificate()`` says how nearly. ``max_size`` states that no record has more yeses than that; the noise
    is then never worse than independent noise with sensitivity √max_size.

    ``method`` says how the covariance was found: chain, forest, dense, forest inside the order, or independent.
    ``variance`` is that of the integer noise on the rows of ``strategy``.

    A release adds exact integer noise (discrete Gaussian for zCDP, the continuous Gaussian exactly rounded for
    (ε, δ)) to integer combinations of the counts, and solves back: post-processing, rounded to integers.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours`` (docs/theory/gaussian.md, sections 3 and 7).
    Error: ``error()`` and ``covariance()`` are exact, before rounding to integers, and need no data.
    Cost: forests to 100,000 elements, chains to 5,000, other orders to 1,000; see ``counts/ellipse/order_ellipse.py``.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> m = OrderGaussianMechanism(P, rho="0.5")
    >>> m.release([120, 80, 33]).shape
    (3,)
    >>> round(m.error().total, 2)  # independent noise: 9.0
    4.95
    """

    variance: Fraction
    method: str
    shape: Ellipse = field(repr=False, compare=False)
    strategy: Strategy = field(repr=False, compare=False)
    active: NDArray[np.int64] = field(repr=False, compare=False)
    """The positions of the elements that can be yes at all, in the sequence of the strategy, which is canonical."""

    def _prepare(self, progress: Progress) -> None:
        shape = shape_of(self.P.canonical.order, self.max_size, self.neighbours, progress)
        self._set(shape=shape, active=self.P.canonical.positions[shape.active])
        self._scale(gaussian_variance(self.guarantee) * self.unit.changes**2)

    def _scale(self, multiplier: Fraction) -> None:
        """Noise with this variance at sensitivity 1."""
        bits = _scale_bits(multiplier)
        strategy, method = best_strategy(self.shape, bits, self.sensitivity.coordinates)
        self._set(strategy=strategy, method=method, variance=multiplier * strategy.sensitivity_squared)

    def _widen(self, share: Fraction) -> None:
        self._scale(self.variance / self.strategy.sensitivity_squared / share)

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding."""
        return Error(self._variances[: len(self.P)].copy())

    @cached_property
    def _variances(self) -> NDArray[np.float64]:
        """Variances by element (zero for elements that no record can reach), and of the number of records."""
        unit = self.strategy.variances()
        result = np.zeros(len(self.P) + int(self.strategy.rooted))
        result[self.active] = unit[: self.active.size]
        if self.strategy.rooted:
            result[-1] = unit[-1]
        return result * float(self.variance)

    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the noise, before rounding, in the order of ``P.elements``."""
        if len(self.P) > _LARGEST_COVARIANCE:
            raise InputError(
                f"The covariance of {len(self.P)} counts is too large a matrix; it is given up to "
                f"{_LARGEST_COVARIANCE}. Variances of any number are in error()."
            )
        result = np.zeros((len(self.P), len(self.P)))
        active = self.active
        result[np.ix_(active, active)] = self.strategy.covariance() * float(self.variance)
        return result

    def covariance_error(self) -> float:
        """The covariance is exact."""
        return 0.0

    def certificate(self) -> EllipseCertificate:
        """The exact integer sensitivity, and how close the covariance is to the best of all Gaussians."""
        unit = self.strategy.variances()[: self.active.size]
        return EllipseCertificate(
            method=self.method,
            sensitivity_squared=self.strategy.sensitivity_squared,
            trace=float(unit.sum()) * self.strategy.sensitivity_squared,
            lower_bound=self.shape.lower_bound,
            independent=float(len(self.P) * self.sensitivity.coordinates),
        )

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        return self._simulate(size, rng)[:, : len(self.P)]

    def simulate_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on the counts and, in the last column, on the number of records."""
        if not self.has_total:
            raise InputError("This noise does not cover the number of records.")
        return self._simulate(size, rng)

    def _simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        result = np.zeros((size, len(self.P) + int(self.strategy.rooted)))
        sd, active = math.sqrt(self.variance), self.active
        step = max(1, _CHUNK // self.strategy.rows)
        for start in range(0, size, step):
            rows = min(step, size - start)
            drawn = self.strategy.solve(rng.normal(scale=sd, size=(rows, self.strategy.rows)))
            result[start : start + rows, active] = drawn[:, : active.size]
            if self.strategy.rooted:
                result[start : start + rows, -1] = drawn[:, -1]
        return Simulated.wrap(result)

    def total_covariance(self) -> Error:
        """The covariance of the noise on each count with that on the number of records, before rounding."""
        if not self.has_total:
            raise InputError("This noise does not cover the number of records.")
        result = np.zeros(len(self.P))
        for start in range(0, self.strategy.rows, 512):
            rows = np.arange(start, min(start + 512, self.strategy.rows))
            unit = np.zeros((rows.size, self.strategy.rows))
            unit[np.arange(rows.size), rows] = 1.0
            solved = self.strategy.solve(unit)
            result[self.active] += solved[:, -1] @ solved[:, : self.active.size]
        return Error(result * float(self.variance))

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row.

        It is that of the continuous noise before rounding; with elements that no record can reach it is the
        density of the others, and minus infinity where those are not zero.
        """
        y = np.atleast_2d(deviation(self.P, output, counts))
        active, strategy = self.active, self.strategy
        padded = np.zeros((len(y), strategy.rows))
        padded[:, : active.size] = y[:, active]
        image, root = strategy.multiply(padded), strategy.root_column()
        squares = np.sum(image**2, axis=1)
        log_determinant = 2 * float(np.sum(np.log(strategy.diagonal())))
        if strategy.rooted:  # the number of records is integrated out
            squares -= (image @ root) ** 2 / float(root @ root)
            log_determinant -= math.log(float(root @ root))
        variance = float(self.variance)
        constant = (log_determinant - active.size * math.log(2 * math.pi * variance)) / 2
        impossible = np.any(np.delete(y, active, axis=1) != 0, axis=1)
        result = np.where(impossible, -np.inf, constant - squares / (2 * variance))
        return result.reshape(np.shape(output)[:-1])

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import ndtri

        return ndtri(p)[:, None] * self.error().sd

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding."""
        from scipy.special import ndtri

        return float(ndtri((1 + confidence_level(confidence)) / 2)) * self.error().sd

    @property
    def has_total(self) -> bool:
        """Whether the number of records can be released as well, for free."""
        return self.strategy.rooted

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers. Exactly private, from cryptographic bits."""
        return self._reachable(check_counts(self.P, counts)) + self._integer_noise(
            require_exact(ExactDraws())
        )

    def _reachable(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts, with zero where no record can have a yes.

        These are elements above which there are more than ``max_size``.
        """
        result = np.zeros_like(values)
        result[self.active] = values[self.active]
        return result

    def release_with_total(self, counts: Counts, records: int) -> tuple[NDArray[np.int64], int]:
        """Release the counts and the number of records with noise.

        Together they are as private as the counts alone.

        The number of records is a further coordinate of the same noise (docs/theory/gaussian.md, section 2).
        """
        values = check_counts(self.P, counts)
        if not self.has_total:
            raise InputError(
                "This noise does not cover the number of records: where units are exchanged it is not protected, and "
                "independent noise has no place for it."
            )
        number = check_records(records, values)
        drawn = self._solved_noise(require_exact(ExactDraws()))
        return self._reachable(values) + self._on_elements(drawn), number + int(drawn[-1])

    def total_variance(self) -> float:
        """The variance of the released number of records, before rounding.

        Infinite if it is not released.
        """
        return float(self._variances[-1]) if self.strategy.rooted else math.inf

    def _solved_noise(self, draws: Draws) -> NDArray[np.int64]:
        return self.strategy.solve_integers(self._gaussians(draws, self.strategy.rows))

    def _gaussians(self, draws: Draws, size: int) -> NDArray[np.int64]:
        draw = draws.discrete_gaussians if self.guarantee.kind == "zcdp" else draws.rounded_gaussians
        return draw(self.variance, size)

    def _on_elements(self, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        result = np.zeros(len(self.P), np.int64)
        result[self.active] = drawn[: self.active.size]
        return result

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._on_elements(self._solved_noise(draws))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        refuse_simulated(rows)
        drawn = self._gaussians(require_exact(ExactDraws()), len(rows) * self.strategy.rows)
        result = np.zeros_like(rows)
        for i, noise in enumerate(drawn.reshape(len(rows), self.strategy.rows)):
            result[i, self.active] = self.strategy.solve_integers(noise)[: self.active.size]
        result[:, self.active] += rows[:, self.active]
        return result


def _scale_bits(multiplier: Fraction) -> int:
    """The number of bits of the integer scale.

    As fine as the exact samplers allow, within reason.
    """
    deviation_bits = math.ceil(math.log2(multiplier.numerator / multiplier.denominator) / 2)
    bits = min(_FINEST, _LARGEST_DEVIATION - deviation_bits)
    if bits < _COARSEST:
        raise InputError(
            "This guarantee needs Gaussian noise with a standard deviation above 2**30 on every count. Ask for a "
            "weaker one: a larger epsilon, delta or rho, or fewer contributions."
        )
    return bits
