"""Released curves, what a mechanism on a chain is asked for, and mechanisms by draws, bins and cuts; reference data for plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import CurveDraws, SeededCurveDraws, exact_draws
from isotone.curves.losses import (
    Absolute,
    Loss,
    Pinball,
    Slopes,
    Squared,
    WeightedLevels,
    add_linear_losses,
    add_table_losses,
)
from isotone.curves.posterior import (
    NoisySums,
    equal_bins,
    even_starts,
    middles,
    noisy_means,
    pooled,
    rescaled,
)
from isotone.curves.problem import FINE, LEVELS, CurveSetting, Grid, Records, RegressionProblem
from isotone.curves.shapes import CurveShape, Monotone, monotone_graph
from isotone.curves.tree import (
    AdditiveScore,
    HalvingScore,
    Parts,
    Runs,
    Score,
    StepValues,
    grow,
    move_boundaries,
)
from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.order.isotonic import pool_adjacent_violators
from isotone.privacy.checks import one_of
from isotone.privacy.guarantee import Guarantee
from isotone.reading.contributions import UnitKey
from isotone.reading.grids import PointSource

# A released curve. Values at the points of a public grid, and nothing else.

Fit = TypeVar("Fit")
Parameters = TypeVar("Parameters")
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
class MechanismRule(Generic[Parameters, Built]):
    """A row of a table of mechanisms. It has a name, the methods it stands for, when it applies, and what it builds."""

    name: str
    methods: tuple[str, ...]
    when: Callable[[Parameters], bool]
    build: Callable[[Parameters], Built]


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
    out, span = np.zeros(runs.point.size + 1, dtype=np.int64), (0, runs.point.size, 1)
    if isinstance(loss, (Absolute, Pinball)):
        rule, heap = loss.slopes(FINE, Fraction(1)), np.empty((2, n + 1), dtype=np.int64)
        weighted = WeightedLevels(records.levels, records.weights, runs.start)
        add_linear_losses(weighted, span, (0, FINE), (rule.above, rule.below), (heap[0], heap[1]), out)
        return int(out[-1]) * loss.unit(FINE, FINE, Fraction(1)) / n
    # the loss itself and not its integer table, whose parameters may be rounded: nothing private is here
    grid = np.arange(OPTIMUM_VALUES + 1) / OPTIMUM_VALUES
    table = np.rint(loss.evaluate(grid[None, :], grid[:, None]) * OPTIMUM_UNIT).astype(np.int64)
    least = np.empty(OPTIMUM_VALUES + 1, dtype=np.int64)
    weighted = WeightedLevels(records.rows(table), records.weights, runs.start)
    add_table_losses(weighted, span, (0, OPTIMUM_VALUES), table, least, out)
    return int(out[-1]) / OPTIMUM_UNIT / n


# Curves from cuts of a chain and noisy values between them.

# What is public about one fit on a chain.

METHODS = ("auto", "additive", "threshold", "baseline", "bins")
OUTPUTS = ("population", "records")
MANY = 5_000
"""From this product of epsilon and records on there is much to be found: sizes and shares follow it."""
MOST_BINS = 4096
"""A limit of memory for bins with many values each, which only an epsilon without meaning can reach."""
TREE_POINTS = 4096
"""Points of ``x`` when the user gives no grid, but for the baseline and for shapes."""


def usual_points(method: str, shape: CurveShape | None = None) -> int:
    """The number of points of ``x`` when the user gives none."""
    if shape is not None:
        return shape.points
    return Monotone.points if method == "baseline" else TREE_POINTS


@dataclass(frozen=True)
class ChainProblem(RegressionProblem):
    """A monotone curve on the points of ``grid``, of a ``shape`` if that is given.

    ``output`` is what means are to estimate.
    """

    methods: ClassVar[tuple[str, ...]] = METHODS

    grid: Grid
    shape: CurveShape | None = field(default=None, kw_only=True)
    output: str = field(default="population", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output not in OUTPUTS:
            one_of(self.output, "output", OUTPUTS)
        if self.shape is not None and self.method == "bins":
            raise InputError(
                "Bins have no shape but rising. Use method='auto', which knows the shape, or 'threshold' for the published tree."
            )
        if self.shape is not None and not self.grid.even:
            raise InputError("Shapes need evenly spaced points: give x_grid as a number, not as a list.")

    @property
    def points(self) -> int:
        """The number of points of ``x``."""
        return self.grid.points

    def bins(self, number: float, most: int = MOST_BINS) -> int:
        """A number of bins near the one wanted. At least 2, and no more than there are points."""
        return min(self.points, most, max(2, round(number)))

    @property
    def evenness(self) -> float:
        """How evenly the loss treats both sides.

        One for losses that treat both sides alike. A quantile far from the median has few records on one
        side.
        """
        slopes = self.slopes
        return 2 * min(slopes.above, slopes.below) / (slopes.above + slopes.below)


# One draw of the increasing values of all bins, which lines and steps have in common.
#
# Values are drawn by how unbalanced the derivatives in a bin are around them, which is zero at the best value and steep
# beside it. The loss of a value near the best one grows with the square of the distance; the sum of the derivatives grows
# with the distance itself, so a choice that goes by it finds the best value far more closely (docs/theory/curves.md,
# section 12).


@dataclass(frozen=True)
class Imbalance:
    """By how much the derivatives miss 0, for every bin and every one of ``values + 1`` evenly spaced values.

    They are summed half a step below the value and half a step above it: a sum above 0 below the value, or below 0 above
    it, is by how much. So a value that many records share is found, though no derivatives cancel *at* any value then.
    """

    slopes: Slopes
    values: int = 256

    @property
    def _between(self) -> Ints:
        """Half a step below every value, and above the last, which are ``values + 2`` places."""
        step = FINE // self.values
        return np.arange(self.values + 2, dtype=np.int64) * step - step // 2

    @cached_property
    def range(self) -> int:
        """How far apart one record of weight 1 can move the scores of two values, up or down by its derivative."""
        return 2 * max(self.slopes.bound(place, FINE) for place in self._between.tolist())

    def of(self, records: Records, starts: Ints) -> Ints:
        """The scores by bin and value. Bins begin at ``starts``."""
        sums = self._sums(records.bins(starts), records.levels, records.weights, starts.size)
        return np.maximum(0, np.maximum(sums[:, :-1], -sums[:, 1:]))

    def _sums(self, which: Ints, levels: Ints, weights: Ints, bins: int) -> Ints:
        """Sums of derivatives by bin and place.

        Along the places, which are evenly spaced, a derivative is flat, then a line, from its zero on another line, and
        flat again: each record changes the constants and the slopes of these pieces where they begin.
        """
        rule, at = self.slopes, self.slopes.offset + self.slopes.scale * self._between
        zero, cap, above, below = rule.step * levels, rule.cap, rule.above, rule.below

        def first_above(mark: Ints) -> Ints:
            return np.clip((mark - at[0]) // (at[1] - at[0]) + 1, 0, at.size)

        flat, steep = np.zeros((2, bins, at.size + 1), np.int64)
        np.add.at(flat[:, 0], which, -weights * cap * below)
        # the first places above the lower end, above the zero, and not below the upper end
        for place, constant, slope in (
            (first_above(zero - cap), (cap - zero) * below, below),
            (first_above(zero), zero * (below - above), above - below),
            (first_above(zero + cap - 1), (zero + cap) * above, -above),
        ):
            np.add.at(flat, (which, place), weights * constant)
            np.add.at(steep, (which, place), weights * slope)
        return (np.cumsum(flat, axis=1) + np.cumsum(steep, axis=1) * np.append(at, 0))[:, :-1]


@dataclass(frozen=True)
class DrawShares:
    """What cuts, values and a second look may spend of epsilon, together at most 1."""

    cuts: Fraction
    values: Fraction
    last: Fraction = Fraction(0)


@dataclass(frozen=True)
class DrawnValues(CurveMechanism):
    """Cut the domain by a score, and draw increasing values of its bins at once.

    1. ``levels`` levels of cuts by the score ``cuts``; every part has the same number of bins.
    2. One draw from all increasing values of the bins, by how unbalanced the derivatives are.

    What becomes of the values is the subclass's.
    """

    cuts: Score
    levels: int
    bins: int
    score: Imbalance
    shares: DrawShares
    steepest: float = field(default=1.0, kw_only=True)

    smoothness: ClassVar[int] = 2
    """What the curve misses within a bin is this power of the bin's width, if the truth is smooth."""

    def _cut(self, records: Records, draws: CurveDraws) -> tuple[Parts, Ints]:
        """The parts, and the first points of their bins."""
        levels = [self.shares.cuts / max(1, self.levels)] * self.levels
        parts = grow(records, self.points, levels, self.cuts, self.setting, draws)
        return parts, equal_bins(parts.low, parts.high, self.bins)

    def _values(self, costs: Ints, share: Fraction, draws: CurveDraws) -> Ints:
        """Increasing values of all bins, in one draw."""
        graph = monotone_graph(*costs.shape)
        return graph.curve(
            draws.select(graph.graph, graph.costs(costs), self.setting.rate(share, self.score.range))
        )

    def error(self) -> RiskBound:
        """An estimate of what finding the cuts and the rank of every bin's best value costs if the curve is smooth."""
        epsilon = float(self.setting.epsilon) / self.setting.factor
        spread = self.bins * math.log(self.score.values + 1) / (epsilon * float(self.shares.values))
        if self.levels:
            cut = self.levels**2 * math.log(self.points + 1) / (2 * epsilon * float(self.shares.cuts))
            spread += cut / self.bins
        return RiskBound(self.steepest * spread, self.steepest / self.bins**self.smoothness, proved=False)


@dataclass(frozen=True)
class StepFit(DrawnValues):
    """Steps with drawn values, whose boundaries are drawn again.

    For losses without means where the noise of the records is worth following. ``table`` has the loss of every value
    (column) for every ``y`` (row).

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 12).
    Error: ``error()`` is an estimate for smooth curves, not a bound.
    Cost: O(n·levels) after sorting, and O(bins·values).
    """

    table: Ints = field(repr=False, kw_only=True)

    smoothness = 1

    @classmethod
    def of(cls, problem: ChainProblem) -> StepFit:
        """The mechanism with sizes for a problem."""
        values = 256 if problem.strength < 30_000 else 512
        return cls(
            problem.setting,
            problem.points,
            HalvingScore(),
            3,
            problem.bins(math.sqrt(problem.strength)),
            Imbalance(problem.slopes, values),
            DrawShares(Fraction(3, 100), Fraction(40, 100), Fraction(57, 100)),
            table=problem.table(values),
            steepest=problem.steepest,
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        _, starts = self._cut(records, draws)
        values = self._values(self.score.of(records, starts), self.shares.values, draws)
        steps = StepValues(starts, values, self.points)
        starts, values = move_boundaries(records, steps, self.table, self.setting, self.shares.last, draws)
        return Curve(starts, values / self.score.values, self.points)


# Noisy means or quantiles of equal bins, pooled, as a careful analyst would try first.

COUNTING = Fraction(1, 10)
MOST_FLAT_BINS = 1 << 20
"""A limit of memory, which only an epsilon without meaning can reach."""


@dataclass(frozen=True)
class MeanBins(CurveMechanism):
    """The noisy mean of every bin, pooled with noisy counts as weights.

    For losses that are fitted by means. ``ends`` are those of the predictions, as shares of ``y_range``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 8).
    Error: ``error()`` is proved for the squared loss and an estimate for others.
    """

    bins: int
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    squared: bool = True

    @classmethod
    def of(cls, problem: ChainProblem) -> MeanBins:
        """The mechanism with sizes for a problem."""
        bins = problem.bins(1.4 * math.sqrt(problem.strength), MOST_FLAT_BINS)
        return cls(problem.setting, problem.points, bins, problem.ends, isinstance(problem.loss, Squared))

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        starts = even_starts(self.points, self.bins)
        mean, count = noisy_means(records, starts, self.setting, Fraction(1), draws)
        return Curve(starts, rescaled(pooled(mean, count), self.ends), self.points)

    def error(self) -> RiskBound:
        """Three times the noise of a sum for each bin, and a quarter a record, for the squared loss (section 8)."""
        rest = float(self.setting.epsilon) / self.setting.factor
        return RiskBound(3.0 * self.bins / rest, 0.25, proved=self.squared)


@dataclass(frozen=True)
class QuantileBins(CurveMechanism):
    """In every bin a value drawn by the exponential mechanism, pooled with noisy counts as weights.

    The score of a value is by how much the derivatives beside it miss a change of sign (:class:`Imbalance`): not at all
    at the best value. One record moves it up or down by at most its largest derivative. A tenth of epsilon counts the
    records.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 8).
    Error: ``error()`` is an estimate, not a bound.
    """

    score: Imbalance
    bins: int
    steepest: float = 1.0

    @classmethod
    def of(cls, problem: ChainProblem) -> QuantileBins:
        """The mechanism with sizes for a problem."""
        score = Imbalance(problem.slopes)
        return cls(
            problem.setting,
            problem.points,
            score,
            problem.bins(0.6 * math.sqrt(problem.strength)),
            problem.steepest,
        )

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most one step for each bin."""
        starts = even_starts(self.points, self.bins)
        scores = self.score.of(records, starts)
        rate = self.setting.rate(1 - COUNTING, self.score.range)
        offsets = np.arange(starts.size + 1, dtype=np.int64) * scores.shape[1]
        chosen = draws.segments(scores.ravel(), offsets, [rate] * starts.size, np.ones_like(scores).ravel())
        counts = self._counts(records, starts, draws)
        return Curve(starts, pooled(chosen / self.score.values, counts), self.points)

    def _counts(self, records: Records, starts: Ints, draws: CurveDraws) -> NDArray[np.float64]:
        rate = self.setting.noise_rate(COUNTING, 1)
        exact = np.bincount(records.bins(starts), weights=records.weights, minlength=starts.size).astype(
            np.int64
        )
        return np.maximum(draws.perturb(exact, rate) / self.setting.weight_steps, 1.0)

    def error(self) -> RiskBound:
        """An estimate from the exponential mechanism's bound for each bin and half a record's loss. Pooling has no bound."""
        rest = float(self.setting.epsilon * (1 - COUNTING)) / self.setting.factor
        noise = 2 * self.steepest * self.bins * float(np.log(self.score.values + 1)) / rest
        return RiskBound(noise, self.steepest / 2, proved=False)


# The tree of cuts of Ghazi, Kamath, Kumar and Manurangsi 2022 with the additive score, on its own terms.

GROWTH = Fraction(23, 20)
"""How much more a level of the additive tree spends than the one before."""


@dataclass(frozen=True)
class TreeMechanism(CurveMechanism):
    """A tree of cuts. Each leaf has the middle of its interval of values.

    Each level spends ``growth`` times as much as the one before.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves.md, section 4).
    Error: ``error()`` bounds the excess loss; ``steepest`` is the largest slope of the loss over the range.
    Cost: O(n·levels) after sorting with the additive score; a factor log n more with the threshold score.
    """

    score: Score
    levels: int
    steepest: float = 1.0
    growth: Fraction = Fraction(1)

    @classmethod
    def of(cls, problem: ChainProblem) -> TreeMechanism:
        """The mechanism with the additive score and a depth for a problem."""
        levels = problem.levels or max(2, round(math.log2(problem.strength) / 2))
        score = AdditiveScore(problem.slopes)
        return cls(
            problem.setting, problem.points, score, min(levels, LEVELS), problem.steepest, growth=GROWTH
        )

    @property
    def shares(self) -> list[Fraction]:
        """What each level spends of epsilon."""
        sizes = [self.growth**level for level in range(self.levels)]
        return [size / sum(sizes) for size in sizes]

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A step curve with at most ``2**levels`` steps."""
        parts = grow(records, self.points, self.shares, self.score, self.setting, draws)
        return Curve(parts.low, middles(parts.floor, parts.width), self.points)

    def error(self) -> RiskBound:
        """Section 4, with as many cuts as there are places for one."""
        return RiskBound.of_cuts(self.setting, self.shares, math.log(self.points + 1), self.steepest)


# Mechanisms for increasing curves, applied with an axis running the other way.


@dataclass(frozen=True)
class TurnedMechanism(CurveMechanism):
    """A mechanism for increasing curves, applied with ``x`` or ``y`` or both running the other way.

    Guarantee: that of the inner mechanism, as turning changes record by record.
    """

    inner: CurveMechanism
    mirror: bool
    upside_down: bool

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """The inner curve, turned back."""
        if self.upside_down:
            records = records.upside_down(FINE)
        if self.mirror:
            records = records.mirrored(self.points)
        curve = self.inner.draw(records, draws)
        if self.upside_down:
            curve = curve.upside_down()
        return curve.mirrored() if self.mirror else curve

    def error(self) -> RiskBound:
        """That of the inner mechanism."""
        return self.inner.error()


# Fits to records that were counted where the data are, and each unit bounded there.


def point_source(data: Any, x: str, y: str, problem: ChainProblem, unit: UnitKey) -> PointSource:
    """How the records of a curve are counted, on the grids of the problem."""
    grid = problem.grid
    return PointSource(
        data,
        x,
        y,
        (grid.low, grid.high),
        problem.y_range,
        grid.points - 1,
        FINE,
        unit,
        problem.budget.whole.unit.contributions,
        grid.listed,
        problem.labels,
    )


def fit_counted(
    estimator: Any, x: Floats, levels: Ints, count: Ints, y_range: tuple[Fraction, Fraction]
) -> Any:
    """Fit to ``count`` records at each ``x`` and level of ``y``.

    Each record is a unit of its own, as all units are bounded already. The noise is still that for ``contributions`` records.
    """
    (low, high), share = map(float, y_range), levels / FINE
    y = (1.0 - share) * low + share * high  # exact at both ends
    rows = np.repeat(np.arange(levels.size), count)
    return estimator.fit(x[rows], y[rows], groups=np.arange(rows.size))
