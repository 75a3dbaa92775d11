"""Which mechanism fits a curve. A table of public conditions and classes.

Nothing here has seen a record. The limits were chosen by the experiment in docs/reproduction/curves_quality, and no
guarantee depends on them. A new mechanism is a class with ``of(case)``, and a rule in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from isotone.curves.case import check_sizes
from isotone.curves.chain.additive_tree import TreeMechanism
from isotone.curves.chain.bins import MeanBins, QuantileBins
from isotone.curves.chain.case import MANY, ChainCase
from isotone.curves.chain.drawn_values import StepFit
from isotone.curves.chain.histograms.histogram_fit import HistogramFit
from isotone.curves.chain.lines.line_fit import LineFit, RefinedLineFit
from isotone.curves.chain.posterior_fit import OUTPUTS, Law, PossibleSums, PosteriorFit, possible_sums
from isotone.curves.chain.turned import TurnedMechanism
from isotone.curves.curve import CurveMechanism
from isotone.curves.grids import LEVELS, Grid
from isotone.curves.losses.known_losses import Loss
from isotone.curves.setting import CurveSetting
from isotone.curves.shapes.curve_draws import BinnedDraw, CurveDraw
from isotone.curves.shapes.monotone import Monotone
from isotone.curves.shapes.nearest import NearestOfShape
from isotone.curves.shapes.shape import CurveShape
from isotone.errors import InputError
from isotone.privacy.checks import one_of

__all__ = ["METHODS", "TABLE", "ChainProblem", "Method", "usual_points"]

Method = Literal["auto", "additive", "threshold", "baseline", "bins"]
METHODS: tuple[str, ...] = get_args(Method)

TREE_POINTS = 4096
"""Points of ``x`` when the user gives no grid, but for the baseline and for shapes."""
FEW = 30
"""Below this product of epsilon and records quantiles off the middle have a few bins: cuts that find nothing but noise
do harm to them."""
FAINT, FAINT_OF_MANY = 12, 7
"""Epsilon times the records, over the records to the power 2/3: below this, the noise of the mechanism is larger than
what a curve can gain by following the noise of the records, and losses without means are fitted by lines. The first
holds below ``MANY``, the second from there on."""
AMPLE = 2
"""Epsilon times the records, over the records: from this on histograms find values better than one draw of them does, and
earlier for quantiles far from the median."""
CERTAIN, CERTAIN_FAR_OUT, FAR_OUT = 500, 1000, 0.3
"""From this product of evenness, epsilon and records on, lines go through bins that hold equally many records: later for
quantiles far from the median, those with less than the last evenness."""


def _faint(case: ChainCase) -> bool:
    limit = FAINT if case.strength < MANY else FAINT_OF_MANY
    return case.evenness * case.strength < limit * max(1, case.n) ** (2 / 3)


def _certain(case: ChainCase) -> bool:
    return case.evenness * case.strength >= (CERTAIN if case.evenness >= FAR_OUT else CERTAIN_FAR_OUT)


def _one_draw(case: ChainCase) -> CurveMechanism:
    return CurveDraw.of(case) if case.shape is None else case.shape.drawn(case)


def _published_tree(case: ChainCase) -> CurveMechanism:
    from isotone.published.curves.threshold import threshold_tree

    return threshold_tree(case)


def _published_shape(case: ChainCase) -> CurveMechanism:
    from isotone.published.curves.splitters import shape_tree

    return shape_tree(case)


@dataclass(frozen=True)
class ChainRule:
    """A mechanism with its name, the method it stands for, and when. The first row that applies is taken."""

    name: str
    method: str
    when: Callable[[ChainCase], bool]
    build: Callable[[ChainCase], CurveMechanism]


TABLE = (
    ChainRule("threshold", "threshold", lambda case: case.shape is not None, _published_shape),
    ChainRule("threshold", "threshold", lambda case: True, _published_tree),
    ChainRule("baseline", "baseline", lambda case: True, _one_draw),
    ChainRule("bins", "bins", lambda case: case.loss.by_means, MeanBins.of),
    ChainRule("bins", "bins", lambda case: True, QuantileBins.of),
    ChainRule("baseline", "additive", lambda case: case.shape is not None, _one_draw),
    ChainRule("additive", "additive", lambda case: True, TreeMechanism.of),
    ChainRule(
        "nearest of the shape",
        "auto",
        lambda case: case.shape is not None and case.loss.by_means,
        NearestOfShape.of,
    ),
    ChainRule("baseline", "auto", lambda case: case.shape is not None, _one_draw),
    ChainRule("additive", "auto", lambda case: case.levels is not None, TreeMechanism.of),
    ChainRule("posterior", "auto", lambda case: case.loss.by_means, PosteriorFit.of),
    ChainRule("few bins", "auto", lambda case: case.strength < FEW and case.evenness < 1, BinnedDraw.of),
    ChainRule("lines", "auto", lambda case: _faint(case) and not _certain(case), LineFit.of),
    ChainRule("refined lines", "auto", _faint, RefinedLineFit.of),
    ChainRule(
        "steps", "auto", lambda case: MANY <= case.strength < AMPLE * case.evenness**2 * case.n, StepFit.of
    ),
    ChainRule("histograms", "auto", lambda case: True, HistogramFit.of),
)


def usual_points(method: str, shape: CurveShape | None = None) -> int:
    """The number of points of ``x`` when the user gives none."""
    if shape is not None:
        return shape.points
    return Monotone.points if method == "baseline" else TREE_POINTS


@dataclass(frozen=True)
class ChainProblem:
    """Public parameters of a fit on a chain, checked. ``mechanism(n, setting)`` is what they ask for."""

    loss: Loss
    y_range: tuple[Fraction, Fraction]
    grid: Grid
    method: str = "auto"
    shape: CurveShape | None = None
    levels: int | None = None
    value_levels: int | None = None
    increasing: bool = True
    labels: bool = False
    output: str = "population"

    def __post_init__(self) -> None:
        check_sizes(self, METHODS, LEVELS)
        one_of(self.output, "output", OUTPUTS)
        if self.shape is not None and self.method == "bins":
            raise InputError(
                "Bins have no shape but rising. Use method='auto', which knows the shape, or 'threshold' for the published tree."
            )
        if self.shape is not None and not self.grid.even:
            raise InputError("Shapes need evenly spaced points: give x_grid as a number, not as a list.")
        self.loss.values(self.y_range)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction, as shares of ``y_range``."""
        return self._case(1, CurveSetting(Fraction(1))).ends

    def method_used(self, n: int, setting: CurveSetting) -> str:
        """The name of the mechanism that the method stands for with about ``n`` records."""
        return self._row(self._case(n, setting)).name

    def values_used(self, n: int, setting: CurveSetting) -> int:
        """How many values the posterior of a curve of means has."""
        return PosteriorFit.of(self._case(n, setting)).levels

    def possible_sums(self, public_n: int | None, setting: CurveSetting) -> dict[Law, PossibleSums]:
        """The sums that the curve may be made of, by the law of their noise; none for a curve that is not of means."""
        case = self._case(public_n or 1, setting)
        return possible_sums(case, public_n is not None) if self._row(case).name == "posterior" else {}

    def mechanism(self, n: int, setting: CurveSetting) -> CurveMechanism:
        """The mechanism for about ``n`` records."""
        case = self._case(n, setting)
        inner = self._row(case).build(case)
        upside_down = self.shape is not None and self.shape.upside_down
        mirror = upside_down == self.increasing
        if not mirror and not upside_down:
            return inner
        return TurnedMechanism(setting, self.grid.points, inner, mirror, upside_down)

    def _row(self, case: ChainCase) -> ChainRule:
        return next(row for row in TABLE if row.method == self.method and row.when(case))

    def _case(self, n: int, setting: CurveSetting) -> ChainCase:
        """What the mechanism for increasing curves sees."""
        loss = self.loss.flipped() if self.shape is not None and self.shape.upside_down else self.loss
        return ChainCase(
            loss,
            self.y_range,
            setting,
            n,
            self.levels,
            self.value_levels,
            self.grid,
            self.shape,
            self.labels,
            self.output,
        )
