"""A released curve, and the curve that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws, SeededCurveDraws, exact_draws
from isotone.curves.losses import Absolute, Loss, Pinball, add_linear_losses, add_table_losses
from isotone.curves.posterior import NoisySums
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.tree import Runs
from isotone.noise import Simulated
from isotone.order.isotonic import pool_adjacent_violators
from isotone.privacy.guarantee import Guarantee

__all__ = [
    "CROWDED",
    "CURVES",
    "DESIGNS",
    "OTHER_CURVES",
    "Curve",
    "CurveMechanism",
    "MechanismRule",
    "Reference",
    "RegressionMechanism",
    "RiskBound",
    "least_risk",
    "planned",
    "risk",
]


# A released curve. Values at the points of a public grid, and nothing else.

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


# Reference data for planning.
#
# Curves, designs and noise on which methods are compared without any private data.

AnyFloats = NDArray[np.floating[Any]]

CURVES: dict[str, Callable[[AnyFloats, float], AnyFloats]] = {
    "logistic": lambda u, place: 1 / (1 + np.exp(-12 * (u - place))),
    "step": lambda u, place: 0.2 + 0.6 * (u > place),
    "root": lambda u, place: np.sqrt(u),
}
"""Curves as functions of the rank of ``x``, so that they are the same for every design; they rise at ``place``."""

OTHER_CURVES: dict[str, Callable[[AnyFloats, float], AnyFloats]] = {
    "linear": lambda u, place: u,
    "constant": lambda u, place: 0.4 + 0 * u,
    "low": lambda u, place: 0.02 + 0.1 * u,
    "stairs": lambda u, place: 0.1 + 0.8 * np.floor(4 * (0.6 * u + 0.4 * place)) / 3,
}
"""More curves for plans: straight, flat, with few positives, and with several steps."""

DESIGNS: dict[str, Callable[[AnyFloats], AnyFloats]] = {"uniform": lambda u: u, "skewed": lambda u: u**5}
"""The ``x`` of a rank between 0 and 1: evenly spread, or crowded at the lower end."""

CROWDED: dict[str, Callable[[AnyFloats], AnyFloats]] = {
    "crowd": lambda u: np.interp(u, [0, 0.05, 0.95, 1], [0, 0.6, 0.63, 1]),
    "exponential": lambda u: np.expm1(6 * u) / np.expm1(6.0),
    "ages": lambda u: np.round(70 * u**1.5) / 70,
    "middle": lambda u: 0.5 + 0.5 * (2 * u - 1) ** 7,
    "heaps": lambda u: np.interp(u, [0, 0.1, 0.35, 0.45, 0.75, 0.85, 1], [0, 0.2, 0.2, 0.5, 0.5, 0.9, 1]),
}
"""Designs that are harder: most ``x`` in a small part of the range, near one end, on whole years, about the middle, and on two
points."""

PLANNED = (
    *((curve, "uniform") for curve in ("logistic", "linear", "step", "stairs", "constant", "low")),
    *((curve, "crowd") for curve in ("logistic", "linear", "step")),
    *((curve, "exponential") for curve in ("logistic", "stairs")),
    *((curve, "ages") for curve in ("linear", "step")),
    *((curve, "middle") for curve in ("stairs", "logistic", "step")),
    *((curve, "heaps") for curve in ("step", "linear", "low", "constant")),
)
"""Curves and designs of a plan, from easy to hard. No population that plans are judged by is among them."""

UNIT = (Fraction(0), Fraction(1))
OPTIMUM_VALUES = 1024
OPTIMUM_UNIT = 1 << 30


@dataclass(frozen=True)
class Reference:
    """A synthetic population.

    With ``labels``, ``y`` is 0 or 1. Otherwise it is the curve with Gaussian noise of 0.1, or has a beta law about the curve
    if ``wide``, with a fifth of the variance of labels.
    """

    curve: str
    design: str
    labels: bool
    wide: bool = False

    def sample(self, n: int, points: int, rng: np.random.Generator) -> Records:
        """``n`` records on grids of the unit square."""
        u = rng.random(n)
        # a random place, so that no number of bins fits it by chance
        truth = (CURVES | OTHER_CURVES)[self.curve](u, float(rng.uniform(0.3, 0.7)))
        if self.labels:
            y = (rng.random(n) < truth) * 1.0
        elif self.wide:
            y = rng.beta(np.maximum(4 * truth, 1e-3), np.maximum(4 * (1 - truth), 1e-3))
        else:
            y = np.clip(truth + rng.normal(0, 0.1, n), 0, 1)
        x_grid, y_grid = Grid(*UNIT, points), Grid(*UNIT, FINE + 1)
        return Records(
            x_grid.snap(np.asarray((DESIGNS | CROWDED)[self.design](u), np.float64)),
            y_grid.snap(np.asarray(y, np.float64)),
            np.ones(n, np.int64),
        ).sorted()


def planned(labels: bool | None) -> list[Reference]:
    """The populations of a plan. With None every other one has labels.

    Without labels two of three are wide, and none has few positives, which is a matter of labels.
    """
    pairs = [(curve, design) for curve, design in PLANNED if labels is not False or curve != "low"]
    return [
        Reference(curve, design, place % 2 == 1 if labels is None else labels, wide=place % 3 > 0)
        for place, (curve, design) in enumerate(pairs)
    ]


def risk(curve: Curve, records: Records, loss: Loss) -> float:
    """The mean loss of a curve on records with ``y`` between 0 and 1."""
    low, high = (float(end) for end in loss.values(UNIT))
    predictions = low + (high - low) * np.asarray(curve.at(records.cells))
    return float(np.mean(loss.evaluate(predictions, records.levels / FINE)))


def least_risk(records: Records, loss: Loss) -> float:
    """The mean loss of the best increasing curve without privacy."""
    n, runs = records.cells.size, Runs.of(records)
    if loss.by_means:
        low, high = (float(end) for end in loss.values(UNIT))
        y = records.levels / FINE
        fitted = pool_adjacent_violators(y, np.ones(n))
        return float(np.mean(loss.evaluate(np.clip(fitted, low, high), y)))
    out = np.zeros(runs.point.size + 1, dtype=np.int64)
    if isinstance(loss, (Absolute, Pinball)):
        rule, heap = loss.slopes(FINE, Fraction(1)), np.empty((2, n + 1), dtype=np.int64)
        add_linear_losses(
            records.levels, records.weights, runs.start, 0, runs.point.size, 1, 0, FINE, rule.above, rule.below,
            heap[0], heap[1], out,
        )  # fmt: skip
        return int(out[-1]) * loss.unit(FINE, FINE, Fraction(1)) / n
    # the loss itself and not its integer table, whose parameters may be rounded: nothing private is here
    grid = np.arange(OPTIMUM_VALUES + 1) / OPTIMUM_VALUES
    table = np.rint(loss.evaluate(grid[None, :], grid[:, None]) * OPTIMUM_UNIT).astype(np.int64)
    least = np.empty(OPTIMUM_VALUES + 1, dtype=np.int64)
    add_table_losses(
        records.rows(table), records.weights, runs.start, 0, runs.point.size, 1, 0,
        OPTIMUM_VALUES, table, least, out,
    )  # fmt: skip
    return int(out[-1]) / OPTIMUM_UNIT / n
