"""Gaussian noise shaped by the order.

The choice where δ > 0 or zCDP is allowed and the order is not tiny.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.ellipse.ellipse_certificate import EllipseCertificate
from isotone.counts.ellipse.order_ellipse import Ellipse, best_strategy, shape_of
from isotone.counts.mechanisms.additive import LinearCounts
from isotone.counts.mechanisms.concentrated import ConcentratedMechanism, gaussian_variance
from isotone.counts.statistic import Counts, check_counts, check_records, deviation
from isotone.errors import InputError
from isotone.linear.noise import Gaussian
from isotone.linear.strategy import Embedded
from isotone.mechanism import Error, Progress
from isotone.noise.simulate import Simulated
from isotone.privacy.draws import ExactDraws, require_exact

__all__ = ["OrderGaussianMechanism"]

_FINEST, _COARSEST = 28, 10
_LARGEST_DEVIATION = 41  # the exact samplers take standard deviations below 2**43
_LARGEST_COVARIANCE = 5000


@dataclass(frozen=True, init=False)
class OrderGaussianMechanism(ConcentratedMechanism, LinearCounts):
    """Counts over a poset with Gaussian noise whose covariance follows the order.

    Give ``epsilon`` and ``delta``, or ``rho``. The covariance is nearly the best that any Gaussian can have:
    ``certificate()`` says how nearly. ``max_size`` states that no record has more yeses than that; the noise
    is then never worse than independent noise with sensitivity √max_size.

    ``method`` says how the covariance was found: chain, forest, dense, forest inside the order, or independent.
    ``variance`` is that of the integer noise on the rows of ``strategy``, which is for the counts that can be yes at all.

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

    method: str
    shape: Ellipse = field(repr=False, compare=False)
    strategy: Embedded = field(repr=False, compare=False)
    noise: Gaussian

    def _prepare(self, progress: Progress) -> None:
        self._set(shape=shape_of(self.P.canonical.order, self.max_size, self.neighbours, progress))
        self._scale(gaussian_variance(self.guarantee) * self.unit.changes**2)

    def _scale(self, multiplier: Fraction) -> None:
        """Noise with this variance at sensitivity 1."""
        bits, active = _scale_bits(multiplier), self.P.canonical.positions[self.shape.active]
        within, method = best_strategy(self.shape, bits, self.sensitivity.coordinates)
        variance = multiplier * within.sensitivity_squared
        self._set(method=method, noise=Gaussian(variance, self.guarantee.kind == "zcdp"))
        self._set(strategy=Embedded(within, active, len(self.P)))

    def _widen(self, share: Fraction) -> None:
        self._scale(self.variance / self.strategy.sensitivity / share)

    @property
    def variance(self) -> Fraction:
        """The variance of the integer noise on the rows of the strategy."""
        return self.noise.sigma2

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding."""
        return Error(self._variances[: len(self.P)].copy())

    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the noise, before rounding, in the order of ``P.elements``."""
        if len(self.P) > _LARGEST_COVARIANCE:
            raise InputError(
                f"The covariance of {len(self.P)} counts is too large a matrix; it is given up to "
                f"{_LARGEST_COVARIANCE}. Variances of any number are in error()."
            )
        return super().covariance()

    def covariance_error(self) -> float:
        """The covariance is exact."""
        return 0.0

    def certificate(self) -> EllipseCertificate:
        """The exact integer sensitivity, and how close the covariance is to the best of all Gaussians."""
        unit = self.strategy.within.variances()[: self.strategy.active.size]
        return EllipseCertificate(
            method=self.method,
            sensitivity_squared=self.strategy.sensitivity,
            trace=float(unit.sum()) * self.strategy.sensitivity,
            lower_bound=self.shape.lower_bound,
            independent=float(len(self.P) * self.sensitivity.coordinates),
        )

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        return super().simulate(size, rng)[:, : len(self.P)]

    def simulate_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on the counts and, in the last column, on the number of records."""
        if not self.has_total:
            raise InputError("This noise does not cover the number of records.")
        return super().simulate(size, rng)

    def total_covariance(self) -> Error:
        """The covariance of the noise on each count with that on the number of records, before rounding."""
        if not self.has_total:
            raise InputError("This noise does not cover the number of records.")
        result, within, active = np.zeros(len(self.P)), self.strategy.within, self.strategy.active
        for start in range(0, within.rows, 512):
            rows = np.arange(start, min(start + 512, within.rows))
            unit = np.zeros((rows.size, within.rows))
            unit[np.arange(rows.size), rows] = 1.0
            solved = within.solve(unit)
            result[active] += solved[:, -1] @ solved[:, : active.size]
        return Error(result * self.noise.variance)

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row.

        It is that of the continuous noise before rounding; with elements that no record can reach it is the
        density of the others, and minus infinity where those are not zero.
        """
        y = np.atleast_2d(deviation(self.P, output, counts))
        active, strategy = self.strategy.active, self.strategy.within
        padded = np.zeros((len(y), strategy.rows))
        padded[:, : active.size] = y[:, active]
        image, root = strategy.multiply(padded), strategy.root_column()
        squares = np.sum(image**2, axis=1)
        log_determinant = 2 * float(np.sum(np.log(strategy.diagonal())))
        if strategy.rooted:  # the number of records is integrated out
            squares -= (image @ root) ** 2 / float(root @ root)
            log_determinant -= math.log(float(root @ root))
        variance = self.noise.variance
        constant = (log_determinant - active.size * math.log(2 * math.pi * variance)) / 2
        impossible = np.any(np.delete(y, active, axis=1) != 0, axis=1)
        result = np.where(impossible, -np.inf, constant - squares / (2 * variance))
        return result.reshape(np.shape(output)[:-1])

    @property
    def has_total(self) -> bool:
        """Whether the number of records can be released as well, for free."""
        return self.strategy.within.rooted

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
        drawn = self.released(np.append(values, number), require_exact(ExactDraws()))
        return drawn[:-1], int(drawn[-1])

    def total_variance(self) -> float:
        """The variance of the released number of records, before rounding.

        Infinite if it is not released.
        """
        return float(self._variances[-1]) if self.has_total else math.inf

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        return self._release_at_once(rows)


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
