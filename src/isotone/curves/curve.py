"""A released curve: values at the points of a public grid, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.curves.choices import Choices, ExactChoices, SimulatedChoices
from isotone.curves.privacy import Setting
from isotone.curves.records import Records
from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.privacy.guarantee import Guarantee

__all__ = ["Curve", "CurveMechanism", "RiskBound"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A function on the points ``0, …, points − 1``, with values between 0 (lowest prediction) and 1 (highest).

    ``interpolated`` curves are linear between knots; others keep each value up to the next knot.
    """

    knots: Ints
    values: Floats
    points: int
    interpolated: bool = False

    def mirrored(self) -> Curve:
        """The same curve with the points in reverse order."""
        last = self.points - 1
        if self.interpolated:
            return replace(self, knots=last - self.knots[::-1], values=self.values[::-1])
        ends = np.r_[self.knots[1:] - 1, last]
        return replace(self, knots=last - ends[::-1], values=self.values[::-1])

    def upside_down(self) -> Curve:
        """The same curve with the values in reverse order."""
        return replace(self, values=1.0 - self.values)

    def corners(self) -> tuple[Ints, Floats]:
        """Points and values between which the curve is linear (constant pieces have two corners)."""
        if self.interpolated:
            return self.knots, self.values
        ends = np.r_[self.knots[1:] - 1, self.points - 1]
        points = np.stack([self.knots, ends], axis=1).ravel()
        values = np.repeat(self.values, 2)
        alone = np.r_[True, points[1:] != points[:-1]]
        return points[alone], values[alone]

    def at(self, points: Ints) -> Floats:
        """The values at grid points."""
        if self.interpolated:
            return np.interp(points, self.knots, self.values)
        return self.values[np.searchsorted(self.knots, points, side="right") - 1]


@dataclass(frozen=True)
class RiskBound:
    """The expected excess of the summed loss is at most ``noise + n·per_record``, whatever the data.

    ``proved`` is False where this is no theorem but an estimate, for reasons that the mechanism states.
    """

    noise: float
    per_record: float
    proved: bool = True

    def mean(self, n: float) -> float:
        """The same for the mean loss over ``n`` records."""
        return self.noise / n + self.per_record


@dataclass(frozen=True)
class CurveMechanism:
    """What the mechanisms on a chain share. ``points`` is the size of the public grid of ``x``.

    A subclass is a value built from public numbers; ``draw`` is written once, for releases and simulations.
    """

    setting: Setting
    points: int

    @property
    def guarantee(self) -> Guarantee:
        """What a release promises."""
        return self.setting.guarantee

    def draw(self, records: Records, choices: Choices) -> Curve:
        """A curve, with the choices given."""
        raise NotImplementedError

    def error(self) -> RiskBound:
        """A bound on the excess loss, without data."""
        raise NotImplementedError

    def release(self, statistic: Records) -> Curve:
        """An exact private draw, from cryptographic bits."""
        return self.draw(statistic, ExactChoices())

    def simulate(self, statistic: Records, rng: np.random.Generator) -> Curve:
        """A float draw from a seeded generator, for planning only; its values are simulated."""
        curve = self.draw(statistic, SimulatedChoices(rng))
        return replace(curve, values=Simulated.wrap(curve.values))


def refuse_small_rate(rate: Fraction, epsilon: Fraction) -> None:
    """Raise if geometric noise of this rate would not fit 64 bits."""
    if rate < Fraction(1, 1 << 44):
        raise InputError(
            f"epsilon={float(epsilon):g} is too small for this setting: its noise would not fit 64-bit integers. "
            "Take a larger epsilon, or fewer contributions."
        )
