"""From public parameters to a mechanism. Nothing here has seen a record.

The number of records enters as ``n``: public, or noisy. The rules for depths and sizes were chosen by the experiment
in docs/reproduction/curves_quality, and their promises do not depend on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from isotone.curves.chain.additive import AdditiveScore
from isotone.curves.chain.bins import QuantileBins
from isotone.curves.chain.halving import HalvingScore
from isotone.curves.chain.histogram_fit import HistogramFit
from isotone.curves.chain.imbalance import Imbalance
from isotone.curves.chain.line_fit import LineFit, LineShares
from isotone.curves.chain.tree_mechanisms import MeasuredTree, TreeMechanism
from isotone.curves.choices import Choices
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import FINE, LEVELS, Grid
from isotone.curves.losses import Loss, Squared
from isotone.curves.privacy import Setting
from isotone.curves.records import Records
from isotone.curves.shapes.curve_draws import BinnedDraw, CurveDraw, PieceDraw
from isotone.curves.shapes.graphs import (
    CurveGraph,
    constant_graph,
    convex_graph,
    lipschitz_graph,
    monotone_graph,
)
from isotone.curves.shapes.linear_graph import LinearGraph, linear_graph, spread_knots
from isotone.curves.shapes.shape import Shape
from isotone.errors import InputError
from isotone.published.curves.constant_splits import ConstantSplitter
from isotone.published.curves.convex_splits import ConvexSplitter
from isotone.published.curves.linear_splits import LinearSplitter
from isotone.published.curves.lipschitz_splits import LipschitzSplitter
from isotone.published.curves.shape_tree import ShapeTree, Splitter
from isotone.published.curves.threshold import threshold_score

__all__ = ["METHODS", "Blueprint", "Method", "Turned"]

Method = Literal["additive", "threshold", "baseline", "bins", "auto"]
METHODS: tuple[str, ...] = get_args(Method)

ROWS = 1024
"""Levels of ``y`` in loss tables."""
TREE_POINTS = 4096
CUTTING = Fraction(1, 10)
"""The share of epsilon for cuts, when the values are measured as means."""
GROWTH = Fraction(23, 20)
"""How much more a level of the additive tree spends than the one before."""
FEW = 30
"""Below this product of epsilon and records a curve has a few bins: ``auto`` means bins for losses that are fitted by
means, and ``additive`` draws a curve on bins for others."""
FEW_VALUES = 4
FAINT, FAINT_OF_MANY = 12, 7
"""Epsilon times the records, over the records to the power 2/3: below this, the noise of the mechanism is larger than
what a curve can gain by following the noise of the records, and losses without means are fitted by lines. The first
holds against a tree, the second against what there is for many."""
AMPLE = 2
"""Epsilon times the records, over the records: from this on histograms find values better than one draw of them does, and
earlier for quantiles far from the median."""
CERTAIN = 500
"""From this product of epsilon and records on, lines go through bins that hold equally many records."""
MANY = 5_000
"""From this product of epsilon and records on, losses without means are not fitted by a tree: if they are not by lines,
then by steps with private boundaries, whose values come from one draw or from histograms."""
MOST_HISTOGRAMS = 4096
MOST_BINS = 1 << 20
"""Limits of memory, which only an epsilon without meaning can reach."""


@dataclass(frozen=True)
class HistogramSize:
    """Sizes of histograms while epsilon times the number of records is ``below`` a limit; ``bins`` is for its root."""

    below: float
    values: int
    halvings: int
    bins: float
    coarse_cells: int
    fine_cells: int
    margin: float


HISTOGRAMS = (
    HistogramSize(30_000, 256, 3, 1.0, 12, 4, 0.05),
    HistogramSize(200_000, 512, 4, 1.2, 16, 5, 0.03),
    HistogramSize(math.inf, 1024, 5, 1.2, 24, 8, 0.02),
)


@dataclass(frozen=True)
class Turned(CurveMechanism):
    """A mechanism for increasing curves, applied with ``x`` or ``y`` or both running the other way."""

    inner: CurveMechanism
    mirror: bool
    upside_down: bool

    def draw(self, records: Records, choices: Choices) -> Curve:
        """The inner curve, turned back."""
        if self.upside_down:
            records = records.upside_down(FINE)
        if self.mirror:
            records = records.mirrored(self.points)
        curve = self.inner.draw(records, choices)
        if self.upside_down:
            curve = curve.upside_down()
        return curve.mirrored() if self.mirror else curve

    def error(self) -> RiskBound:
        """That of the inner mechanism."""
        return self.inner.error()


@dataclass(frozen=True)
class Blueprint:
    """Public parameters, checked. ``mechanism(n, setting)`` is the mechanism they describe."""

    loss: Loss
    y_range: tuple[Fraction, Fraction]
    grid: Grid
    method: str = "additive"
    shape: Shape | None = None
    levels: Any = None
    value_levels: Any = None
    increasing: bool = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"There is no method {self.method!r}. Use one of {', '.join(METHODS)}.")
        if self.levels is not None and not (isinstance(self.levels, int) and 1 <= self.levels <= LEVELS):
            raise InputError(
                f"levels must be a whole number from 1 to {LEVELS}, or None, not {self.levels!r}: y has {FINE:,} steps."
            )
        size = self.value_levels
        if size is not None and not (isinstance(size, int) and 2 <= size <= ROWS and size & (size - 1) == 0):
            raise InputError(f"value_levels must be a power of two from 2 to {ROWS}, or None, not {size!r}.")
        if self.shape is not None and self.method == "bins":
            raise InputError(
                "Bins have no shape but rising. Use method='auto' for the draw from all curves of the shape, or "
                "'threshold' for the published tree."
            )
        if self.shape is not None and not self.grid.even:
            raise InputError("Shapes need evenly spaced points: give x_grid as a number, not as a list.")
        self.loss.values(self.y_range)

    @property
    def span(self) -> Fraction:
        """The width of ``y_range``."""
        return self.y_range[1] - self.y_range[0]

    @property
    def predictions(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction."""
        return self.loss.values(self.y_range)

    def method_used(self, n: int, setting: Setting) -> str:
        """The method that ``auto`` stands for with about ``n`` records, and the one that a shape allows."""
        if self.shape is not None:
            return "threshold" if self.method == "threshold" else "baseline"
        if self.method != "auto":
            return self.method
        # cuts that find nothing but noise do harm
        faint = self.loss.by_means and _strength(n, setting) < FEW
        return "bins" if faint and self.levels is None else "additive"

    def mechanism(self, n: int, setting: Setting) -> CurveMechanism:
        """The mechanism for about ``n`` records."""
        concave = self.shape is not None and self.shape.kind == "concave"
        mirror = concave == self.increasing
        plan = replace(self, loss=self.loss.flipped()) if concave else self
        inner = plan._upward(self.method_used(n, setting), n, setting)
        if not mirror and not concave:
            return inner
        return Turned(setting, self.grid.points, inner, mirror, concave)

    def _upward(self, method: str, n: int, setting: Setting) -> CurveMechanism:
        """The mechanism for increasing curves."""
        strength = _strength(n, setting)
        if self.shape is None and method == "baseline":
            return self._draw(Shape("any"), setting, strength)
        if self.shape is not None:
            build = self._tree if method == "threshold" else self._draw
            return build(self.shape, setting, strength)
        if method == "threshold":
            score, deepest = threshold_score(self.loss, self.span)
            levels = self.levels or max(1, math.ceil(math.log2(max(2.0, strength))))
            return TreeMechanism(setting, self.grid.points, score, min(levels, deepest), self._steepest)
        if method == "bins":
            return self._bins(strength, setting)
        if self.loss.by_means:
            levels = self.levels or (1 if strength < 2_000 else 2 if strength < 50_000 else 3)
            return self._measured(levels, CUTTING, strength, setting)
        if self.levels is None:
            return self._without_means(n, strength, setting)
        return self._additive_tree(self.levels, setting)

    def _without_means(self, n: int, strength: float, setting: Setting) -> CurveMechanism:
        """``additive`` for losses that no sum determines: by how much there is to see."""
        slopes = self.loss.slopes(FINE, self.span)
        # a quantile far from the median has few records on one side
        even = 2 * min(slopes.above, slopes.below) / (slopes.above + slopes.below)
        if strength < FEW:
            bins = min(self.grid.points, round(3 + 3 * even))
            inner = self._curve_draw(bins, Shape("any"), setting, FEW_VALUES)
            return BinnedDraw(setting, self.grid.points, inner)
        faint = FAINT if strength < MANY else FAINT_OF_MANY
        if even * strength < faint * max(1, n) ** (2 / 3):
            return self._lines(strength, even * strength >= CERTAIN, setting)
        if strength < MANY:
            return self._additive_tree(max(2, round(math.log2(strength) / 2)), setting)
        if strength < AMPLE * even**2 * n:
            return self._steps(strength, setting)
        return self._histograms(strength, setting)

    def _additive_tree(self, levels: int, setting: Setting) -> TreeMechanism:
        score = AdditiveScore(self.loss.slopes(FINE, self.span))
        return TreeMechanism(
            setting, self.grid.points, score, min(levels, LEVELS), self._steepest, growth=GROWTH
        )

    def _lines(self, strength: float, certain: bool, setting: Setting) -> LineFit:
        slopes, points = self.loss.slopes(FINE, self.span), self.grid.points
        bins = min(points, MOST_HISTOGRAMS, max(2, round(1.6 * strength ** (1 / 3))))
        if not certain:
            shares = LineShares(Fraction(1, 2), Fraction(1, 2))
            cuts, score = AdditiveScore(slopes), Imbalance(slopes, 64)
            return LineFit(
                setting,
                points,
                cuts,
                2,
                bins,
                score,
                shares,
                margin=Fraction(1, 2),
                steepest=self._steepest,
                even=self.grid.even,
            )
        halving = Fraction(15, 100) if strength < MANY else Fraction(8, 100)
        values = Fraction(45, 100) if strength < MANY else Fraction(50, 100)
        return LineFit(
            setting,
            points,
            HalvingScore(),
            3,
            bins,
            Imbalance(slopes),
            LineShares(halving, values, 1 - halving - values),
            table=self.loss.table(ROWS, 256, self.span),
            steepest=self._steepest,
            even=self.grid.even,
        )

    def _steps(self, strength: float, setting: Setting) -> LineFit:
        values = 256 if strength < 30_000 else 512
        return LineFit(
            setting,
            self.grid.points,
            HalvingScore(),
            3,
            min(self.grid.points, MOST_HISTOGRAMS, round(math.sqrt(strength))),
            Imbalance(self.loss.slopes(FINE, self.span), values),
            LineShares(Fraction(3, 100), Fraction(40, 100), Fraction(57, 100)),
            table=self.loss.table(ROWS, values, self.span),
            steepest=self._steepest,
            steps=True,
        )

    def _histograms(self, strength: float, setting: Setting) -> HistogramFit:
        root, points = math.sqrt(strength), self.grid.points
        size = next(size for size in HISTOGRAMS if strength < size.below)
        return HistogramFit(
            setting,
            points,
            self.loss.table(ROWS, size.values, self.span),
            reach=self.loss.slopes(ROWS, self.span).cap,
            halvings=size.halvings,
            coarse_bins=min(points, MOST_HISTOGRAMS, round(0.3 * root)),
            fine_bins=min(points, MOST_HISTOGRAMS, round(size.bins * root)),
            coarse_cells=size.coarse_cells,
            fine_cells=size.fine_cells,
            margin=size.margin,
            unit=self.loss.unit(ROWS, size.values, self.span),
        )

    def _measured(self, levels: int, share: Fraction, strength: float, setting: Setting) -> MeasuredTree:
        bins = min(self.grid.points, MOST_BINS, max(2, round(1.4 * math.sqrt(float(1 - share) * strength))))
        low, high = (Fraction(end - self.y_range[0]) / self.span for end in self.predictions)
        return MeasuredTree(
            setting,
            self.grid.points,
            AdditiveScore(self.loss.slopes(FINE, self.span)),
            levels,
            share,
            bins,
            low,
            high,
            by_width=0.5 if strength < MANY else 0.0,
            squared=isinstance(self.loss, Squared),
        )

    def _bins(self, strength: float, setting: Setting) -> CurveMechanism:
        if self.loss.by_means:
            return self._measured(0, Fraction(0), strength, setting)
        bins = min(self.grid.points, MOST_HISTOGRAMS, max(2, round(0.6 * math.sqrt(strength))))
        score = Imbalance(self.loss.slopes(FINE, self.span))
        return QuantileBins(setting, self.grid.points, score, bins, self._steepest)

    @property
    def _steepest(self) -> float:
        """The largest slope of the loss per step from the lowest to the highest prediction."""
        low, high = self.predictions
        return self.loss.steepest(self.span) * float(high - low)

    def _values(self, shape: Shape, strength: float) -> int:
        """Steps of the grid of values."""
        if self.value_levels is not None:
            return self.value_levels
        if shape.kind != "any":
            return shape.values
        size = math.sqrt(max(1.0, strength) / math.log(self.grid.points + 1))
        return 1 << min(7, max(1, round(math.log2(max(2.0, size)))))

    def _rise(self, shape: Shape, values: int) -> int:
        """How many values a Lipschitz curve may rise from a point to the next."""
        low, high = self.predictions
        rise = shape.slope * self.grid.step / ((high - low) / values)
        if rise < 1:
            fewer = int((self.grid.points - 1) * rise) + 1
            finer = 1 << math.ceil(math.log2(float(values / rise)))
            repairs = [f"at most {fewer} points (x_grid)"] * (fewer > 1)
            repairs += [f"at least {finer} steps of values (value_levels)"] * (finer <= ROWS)
            raise InputError(
                f"On {self.grid.points} points and {values} steps of values a curve of slope at most "
                f"{float(shape.slope):g} cannot rise at all. Take {' or '.join(repairs) or 'a larger slope'}."
            )
        return int(rise)

    def _draw(self, shape: Shape, setting: Setting, strength: float) -> CurveMechanism:
        """One draw from all curves of the shape."""
        points, values = self.grid.points, self._values(shape, strength)
        if shape.kind == "linear":
            knots = spread_knots(points, min(shape.knots, points) - 1)
            table = self.loss.table(ROWS, ROWS, self.span)
            unit = self.loss.unit(ROWS, ROWS, self.span)
            pieces = _linear_graph(knots.size, values + 1, shape.pieces)
            return PieceDraw(setting, points, pieces, knots, values + 1, table, unit, self._steepest)
        rise = self._rise(shape, values) if shape.kind == "lipschitz" else 0
        return self._curve_draw(points, shape, setting, values, rise)

    def _curve_draw(
        self, points: int, shape: Shape, setting: Setting, values: int, rise: int = 0
    ) -> CurveDraw:
        graph = _graph(shape, points, values + 1, rise)
        table = self.loss.table(ROWS, values, self.span)
        unit = self.loss.unit(ROWS, values, self.span)
        return CurveDraw(setting, points, graph, table, unit, self._steepest, shape.interpolated)

    def _tree(self, shape: Shape, setting: Setting, strength: float) -> CurveMechanism:
        """The published tree for the shape."""
        points, values = self.grid.points, self._values(shape, strength)
        columns = ROWS if shape.kind == "linear" else values
        rise = self._rise(shape, values) if shape.kind == "lipschitz" else 0
        splitter = _splitter(shape, points, values + 1, rise)
        levels = self.levels or max(1, math.ceil(math.log2(max(2.0, strength))))
        return ShapeTree(
            setting,
            points,
            splitter,
            min(levels, values.bit_length() - 1),
            values + 1,
            self.loss.table(ROWS, columns, self.span),
            shape.interpolated,
            self.loss.unit(ROWS, columns, self.span),
            self._steepest,
        )


def _strength(n: int, setting: Setting) -> float:
    """Epsilon times the number of privacy units, as far as public numbers tell."""
    return max(1.0, float(setting.epsilon * setting.weight_steps * n / setting.factor))


@lru_cache(maxsize=8)
def _graph(shape: Shape, points: int, values: int, rise: int) -> CurveGraph:
    if shape.kind == "constant":
        return constant_graph(points, values, shape.pieces)
    if shape.kind == "lipschitz":
        return lipschitz_graph(points, values, rise)
    if shape.kind in ("convex", "concave"):
        return convex_graph(points, values, values - 1)
    return monotone_graph(points, values)


@lru_cache(maxsize=4)
def _linear_graph(knots: int, values: int, pieces: int) -> LinearGraph:
    return linear_graph(knots, values, pieces)


def _splitter(shape: Shape, points: int, values: int, rise: int) -> Splitter:
    if shape.kind == "constant":
        return ConstantSplitter(points, values, shape.pieces)
    if shape.kind == "lipschitz":
        return LipschitzSplitter(points, values, rise)
    if shape.kind == "linear":
        knots = spread_knots(points, min(shape.knots, points) - 1)
        return LinearSplitter(points, values, shape.pieces, np.asarray(knots))
    return ConvexSplitter(points, values, values - 1)
