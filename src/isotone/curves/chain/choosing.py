"""Which mechanism fits a curve. A table of public conditions and classes.

Nothing here has seen a record. The limits were chosen by the experiment in docs/reproduction/curves_quality, and no
guarantee depends on them. A new mechanism is a class with ``of(problem)``, and a rule in the table.
"""

from __future__ import annotations

from dataclasses import replace

from isotone.curves.chain.additive_tree import TreeMechanism
from isotone.curves.chain.bins import MeanBins, QuantileBins
from isotone.curves.chain.drawn_values import StepFit
from isotone.curves.chain.histograms.histogram_fit import HistogramFit
from isotone.curves.chain.lines.line_fit import LineFit, RefinedLineFit
from isotone.curves.chain.posterior_fit import Law, PossibleSums, PosteriorFit, possible_sums
from isotone.curves.chain.problem import MANY, ChainProblem
from isotone.curves.chain.turned import TurnedMechanism
from isotone.curves.curve import CurveMechanism, MechanismRule
from isotone.curves.shapes.convex import Convex
from isotone.curves.shapes.curve_draws import BinnedDraw, CurveDraw
from isotone.curves.shapes.lipschitz import Lipschitz
from isotone.curves.shapes.nearest import NearestOfShape
from isotone.curves.shapes.posterior_of_shape import PosteriorOfShape

__all__ = ["TABLE", "mechanism_for", "rule_for", "sums_for"]

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


def _faint(problem: ChainProblem) -> bool:
    limit = FAINT if problem.strength < MANY else FAINT_OF_MANY
    return problem.evenness * problem.strength < limit * max(1, problem.n) ** (2 / 3)


def _certain(problem: ChainProblem) -> bool:
    return problem.evenness * problem.strength >= (
        CERTAIN if problem.evenness >= FAR_OUT else CERTAIN_FAR_OUT
    )


def _chain_fits(problem: ChainProblem) -> bool:
    carried = isinstance(problem.shape, Convex | Lipschitz)
    return carried and problem.loss.by_means and problem.output == "population"


def _one_draw(problem: ChainProblem) -> CurveMechanism:
    return CurveDraw.of(problem) if problem.shape is None else problem.shape.drawn(problem)


def _published_tree(problem: ChainProblem) -> CurveMechanism:
    from isotone.published.curves.threshold import threshold_tree

    return threshold_tree(problem)


def _published_shape(problem: ChainProblem) -> CurveMechanism:
    from isotone.published.curves.splitters import shape_tree

    return shape_tree(problem)


Row = MechanismRule[ChainProblem, CurveMechanism]

TABLE = (
    Row("threshold", ("threshold",), lambda problem: problem.shape is not None, _published_shape),
    Row("threshold", ("threshold",), lambda problem: True, _published_tree),
    Row("baseline", ("baseline",), lambda problem: True, _one_draw),
    Row("bins", ("bins",), lambda problem: problem.loss.by_means, MeanBins.of),
    Row("bins", ("bins",), lambda problem: True, QuantileBins.of),
    Row("baseline", ("additive",), lambda problem: problem.shape is not None, _one_draw),
    Row("additive", ("additive",), lambda problem: True, TreeMechanism.of),
    Row("posterior of the shape", ("auto",), _chain_fits, PosteriorOfShape.of),
    Row(
        "nearest of the shape",
        ("auto",),
        lambda problem: problem.shape is not None and problem.loss.by_means,
        NearestOfShape.of,
    ),
    Row("baseline", ("auto",), lambda problem: problem.shape is not None, _one_draw),
    Row("additive", ("auto",), lambda problem: problem.levels is not None, TreeMechanism.of),
    Row("posterior", ("auto",), lambda problem: problem.loss.by_means, PosteriorFit.of),
    Row(
        "few bins", ("auto",), lambda problem: problem.strength < FEW and problem.evenness < 1, BinnedDraw.of
    ),
    Row("lines", ("auto",), lambda problem: _faint(problem) and not _certain(problem), LineFit.of),
    Row("refined lines", ("auto",), _faint, RefinedLineFit.of),
    Row(
        "steps",
        ("auto",),
        lambda problem: MANY <= problem.strength < AMPLE * problem.evenness**2 * problem.n,
        StepFit.of,
    ),
    Row("histograms", ("auto",), lambda problem: True, HistogramFit.of),
)


def rule_for(problem: ChainProblem) -> Row:
    """The first row of the table that applies."""
    return next(row for row in TABLE if problem.method in row.methods and row.when(problem))


def mechanism_for(problem: ChainProblem) -> CurveMechanism:
    """The mechanism for a problem. Its records are turned so that curves rise, and convex ones bend upward."""
    upside_down = problem.shape is not None and problem.shape.upside_down
    seen = replace(problem, loss=problem.loss.flipped()) if upside_down else problem
    inner = rule_for(seen).build(seen)
    mirror = upside_down == problem.increasing
    if not mirror and not upside_down:
        return inner
    return TurnedMechanism(problem.setting, problem.points, inner, mirror, upside_down)


def sums_for(problem: ChainProblem) -> dict[Law, PossibleSums]:
    """The sums that the curve may be made of, by the law of their noise; none for a curve that is not of means."""
    if rule_for(problem).name != "posterior":
        return {}
    return possible_sums(problem, problem.budget.public_n is not None)
