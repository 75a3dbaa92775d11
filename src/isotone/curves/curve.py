"""A released curve. Values at the points of a public grid, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits.selection import CurveDraws, SeededCurveDraws, exact_draws
from isotone.curves.measure import NoisySums
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting
from isotone.noise import Simulated
from isotone.privacy.guarantee import Guarantee

__all__ = ["Curve", "CurveMechanism", "MechanismRule", "RegressionMechanism", "RiskBound"]

Fit = TypeVar("Fit")
Asked = TypeVar("Asked")
Built = TypeVar("Built")


@dataclass(frozen=True)
class Curve:
    """A function on the points ``0, …, points − 1``, with values between 0 (lowest prediction) and 1 (highest).

    ``interpolated`` curves are linear between knots; others keep each value up to the next knot.
    """

    knots: Ints
    values: Floats
    points: int
    interpolated: bool = False
    sums: NoisySums | None = field(default=None, repr=False, compare=False)
    """The noisy sums that the curve was made of, where it was."""

    def mirrored(self) -> Curve:
        """The same curve with the points in reverse order."""
        last = self.points - 1
        sums = self.sums and self.sums.mirrored()
        if self.interpolated:
            return replace(self, knots=last - self.knots[::-1], values=self.values[::-1], sums=sums)
        ends = np.r_[self.knots[1:] - 1, last]
        return replace(self, knots=last - ends[::-1], values=self.values[::-1], sums=sums)

    def upside_down(self) -> Curve:
        """The same curve with the values in reverse order."""
        return replace(self, values=1.0 - self.values, sums=self.sums and self.sums.upside_down())

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

    @property
    def method(self) -> str:
        """Whether this is a theorem."""
        return "proved" if self.proved else "estimated"

    @classmethod
    def of_cuts(
        cls, setting: CurveSetting, shares: Sequence[Fraction], log_cuts: float, steepest: float
    ) -> RiskBound:
        """The bound of a tree of cuts, ``L·ln N/(2ε_t)`` for level ``t``, and the last width for the values."""
        cuts = float(sum(1 / share for share in shares)) * log_cuts * setting.factor
        return cls(steepest * cuts / (2 * float(setting.epsilon)), steepest * 2.0 ** -len(shares))

    def mean(self, n: float) -> float:
        """The same for the mean loss over ``n`` records."""
        return self.noise / n + self.per_record


@dataclass(frozen=True)
class RegressionMechanism(Generic[Fit]):
    """What the mechanisms on chains and on orders share.

    A subclass is a value built from public numbers; ``draw`` is written once, for releases and simulations.
    """

    setting: CurveSetting

    @property
    def guarantee(self) -> Guarantee:
        """What a release guarantees."""
        return self.setting.guarantee

    def draw(self, records: Records, draws: CurveDraws) -> Fit:
        """A fit, with the draws given."""
        raise NotImplementedError

    def error(self) -> RiskBound:
        """A bound on the excess loss, without data."""
        raise NotImplementedError

    def release(self, statistic: Records) -> Fit:
        """An exact private draw, from cryptographic bits."""
        return self.draw(statistic, exact_draws())

    def simulate(self, statistic: Records, rng: np.random.Generator) -> Fit:
        """A float draw from a seeded generator, for planning only. Its values are simulated."""
        return simulated(self.draw(statistic, SeededCurveDraws(rng)))


def simulated(fit: Any) -> Any:
    """The same fit, with values that no release accepts."""
    return replace(fit, values=Simulated.wrap(fit.values)) if isinstance(fit, Curve) else Simulated.wrap(fit)


@dataclass(frozen=True)
class CurveMechanism(RegressionMechanism[Curve]):
    """A mechanism on a chain. ``points`` is the size of the public grid of ``x``."""

    points: int


@dataclass(frozen=True)
class MechanismRule(Generic[Asked, Built]):
    """A row of a table of mechanisms. It has a name, the methods it stands for, when it applies, and what it builds."""

    name: str
    methods: tuple[str, ...]
    when: Callable[[Asked], bool]
    build: Callable[[Asked], Built]
