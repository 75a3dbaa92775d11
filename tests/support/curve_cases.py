"""Every mechanism on curves at a size at which all its outputs can be walked through, and data for it.

Three points (two or four where a mechanism needs it) and few values; each mechanism is built as the estimator builds it,
or from the same parts. Heavy data are given by weights: a weight of 60 is 60 records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, ClassVar

from isotone.curves.bands import PosteriorFit, RoundShares
from isotone.curves.cuts import (
    ChainProblem,
    Curve,
    CurveMechanism,
    DrawShares,
    Imbalance,
    MeanBins,
    QuantileBins,
    TreeMechanism,
)
from isotone.curves.lines import LineFit
from isotone.curves.losses import Absolute, Huber, Logistic, Pinball, Squared, parse_loss
from isotone.curves.posterior import CurvePosterior, NoisySums
from isotone.curves.problem import FINE, CurveSetting, Grid
from isotone.curves.regression import mechanism_for
from isotone.curves.shape_posterior import (
    BinnedDraw,
    CurveDraw,
    NearestOfShape,
    PieceDraw,
    PosteriorOfShape,
    ShapedChain,
)
from isotone.curves.shapes import linear_graph, parse_shape, spread_knots
from isotone.curves.tree import AdditiveScore
from isotone.published.curves.splits import LinearSplitter
from isotone.published.curves.threshold import LinearScore, ShapeTree, SquaredScore, TableScore
from tests.support.curve_outcomes import curve_key, distribution, records_of

__all__ = [
    "BY_BALANCE",
    "COARSE",
    "HEAVY",
    "MECHANISMS",
    "Factory",
    "Weighted",
    "absolute_table",
    "backgrounds",
    "balanced",
    "ends",
    "everywhere",
    "largest_ratio",
    "law_of",
    "slopes",
    "table_score",
    "tree",
    "weighted_law",
]

Factory = Callable[[CurveSetting], CurveMechanism]
Row = tuple[int, int]
Weighted = tuple[tuple[Row, int], ...]
"""Records with their weights."""

ONE = (Fraction(0), Fraction(1))
COARSE = 16
HEAVY = 60
"""At rate 1 such a weight leaves everything but the best outputs with less than 1e-26."""


def slopes(loss: Any) -> Any:
    return loss.slopes(FINE, Fraction(1))


def tree(score: Any, levels: int = 1, points: int = 4, growth: int = 1) -> Factory:
    return lambda setting: TreeMechanism(setting, points, score, levels, growth=Fraction(growth))


def additive(loss: Any, levels: int = 1, points: int = 4) -> Factory:
    return tree(AdditiveScore(slopes(loss)), levels, points)


def table_score(loss: Any) -> TableScore:
    return TableScore(loss.table(COARSE, COARSE, Fraction(1)))


def absolute_table() -> Any:
    return Absolute().table(COARSE, COARSE, Fraction(1))


def shaped(shape: Any, method: str, *, increasing: bool = True) -> Factory:
    """Three points and five values; trees of one level, which spend all of epsilon at once."""
    grid = Grid(Fraction(0), Fraction(2), 3)
    plan = ChainProblem(
        Absolute(),
        ONE,
        grid,
        method=method,
        shape=parse_shape(shape),
        levels=1,
        value_levels=4,
        increasing=increasing,
    )
    return lambda setting: mechanism_for(plan.sized(10, setting))


def baseline(loss: Any) -> Factory:
    plan = ChainProblem(
        parse_loss(loss), ONE, Grid(Fraction(0), Fraction(2), 3), method="baseline", value_levels=4
    )
    return lambda setting: mechanism_for(plan.sized(10, setting))


def linear_draw(setting: CurveSetting) -> CurveMechanism:
    return PieceDraw(setting, 4, linear_graph(4, 3, 2), spread_knots(4, 3), 3, absolute_table())


def linear_tree(setting: CurveSetting) -> CurveMechanism:
    splitter = LinearSplitter(4, 3, 2, spread_knots(4, 3))
    return ShapeTree(setting, 4, splitter, 1, 3, absolute_table(), interpolated=True)


class Remembering(PosteriorFit):
    """The mechanism, which computes the posterior of the same noisy sums once only."""

    known: ClassVar[dict[Any, CurvePosterior]] = {}

    def posterior(self, sums: NoisySums, levels: int, keep: float = 1e-3) -> CurvePosterior:
        seen = tuple(part.tobytes() for part in (sums.starts, sums.ones, sums.zeros))
        key = (self.labels, sums.rate, levels, *seen)
        if key not in self.known:
            self.known[key] = super().posterior(sums, levels, keep)
        return self.known[key]


def two_rounds(coarse: Fraction, *, labels: bool, points: int = 3, output: str = "population") -> Factory:
    """One coarse bin, two fine ones and three values, so that all outputs can be walked through."""
    shares = RoundShares(coarse, 1 - coarse)
    return lambda setting: Remembering(setting, points, 10, 1, 2, 3, labels, output, shares=shares)


def nearest(setting: CurveSetting) -> CurveMechanism:
    """At most two constant pieces of three values, next to the posterior of two points."""
    grid = Grid(Fraction(0), Fraction(1), 2)
    problem = ChainProblem(
        Squared(), ONE, grid, method="baseline", shape=parse_shape(("constant", 2)), value_levels=2
    )
    drawn = mechanism_for(problem.sized(10, setting))
    assert isinstance(drawn, CurveDraw)
    inner = Remembering(setting, 2, 10, 1, 2, 3, True)
    return NearestOfShape(setting, 2, inner, drawn)


class RememberingStates(PosteriorOfShape):
    """The mechanism, which computes the curve of the same noisy sums once only."""

    known: ClassVar[dict[Any, Curve]] = {}

    def curve(self, sums: NoisySums) -> Curve:
        key = (sums.rate, *(part.tobytes() for part in (sums.starts, sums.ones, sums.zeros)))
        if key not in self.known:
            self.known[key] = super().curve(sums)
        return self.known[key]


def states(setting: CurveSetting) -> CurveMechanism:
    """Two points and three values, with half of the range as the largest rise."""
    inner = Remembering(setting, 2, 10, 1, 2, 3, True)
    return RememberingStates(setting, 2, inner, ShapedChain(2, 3, 0.5, upward=False))


def lines(loss: Any, shares: DrawShares, *, levels: int = 0, points: int = 3) -> Factory:
    """Two bins and three values; cuts are by value, as far as there are any."""
    cuts, score = AdditiveScore(slopes(loss)), Imbalance(slopes(loss), 2)
    return lambda setting: LineFit(setting, points, cuts, levels, 2, score, shares, Fraction(0))


BY_BALANCE = (
    "bins of medians",
    "bins of quantiles",
    "one draw of medians",
    "one draw of quantiles",
    "few value cuts, then lines",
)
"""Values drawn by their imbalance: the best value has none, so epsilon is used up only where many values are the best."""


def balanced(
    loss: Any, point: int, low: int = 0, high: int = 24, *, off: int = 0, weight: int = 100
) -> Weighted:
    """Records with two values, in 32nds: between them derivatives add up to ``off`` times that of a high record."""
    rule = slopes(loss)
    more = off * rule.below // rule.above
    levels = ((low, weight * rule.below + more), (high, weight * rule.above))
    return tuple(((point, level * FINE // 32), size) for level, size in levels)


def binned(setting: CurveSetting) -> CurveMechanism:
    inner = ChainProblem(
        Absolute(), ONE, Grid(Fraction(0), Fraction(1), 2), method="baseline", value_levels=4
    )
    drawn = mechanism_for(inner.sized(10, setting))
    assert isinstance(drawn, CurveDraw)
    return BinnedDraw(setting, 3, drawn)


MECHANISMS: dict[str, Factory] = {
    "additive absolute": additive(Absolute()),
    "additive pinball": additive(Pinball(Fraction(3, 4))),
    "additive huber": additive(Huber()),
    "additive squared": additive(Squared()),
    "additive logistic": additive(Logistic()),
    "additive absolute, two levels": additive(Absolute(), 2, 3),
    "additive pinball, growing": tree(AdditiveScore(slopes(Pinball(Fraction(3, 4)))), 2, 3, growth=19),
    "posterior of labels": two_rounds(Fraction(1, 10), labels=True),
    "posterior of values": two_rounds(Fraction(1, 2), labels=False, points=2),
    "posterior, mostly the first round": two_rounds(Fraction(9, 10), labels=True, points=2, output="records"),
    "posterior, then a shape": nearest,
    "posterior of a shape": states,
    "threshold absolute": tree(LinearScore(1, 1)),
    "threshold pinball": tree(LinearScore(1, 3)),
    "threshold pinball, growing": tree(LinearScore(1, 3), 2, 3, growth=19),
    "threshold squared": tree(SquaredScore()),
    "threshold squared, two levels": tree(SquaredScore(), 2, 3),
    "threshold logistic": tree(table_score(Logistic())),
    "threshold huber": tree(table_score(Huber())),
    "bins of means": lambda s: MeanBins(s, 2, 2),
    "bins of medians": lambda s: QuantileBins(s, 2, Imbalance(slopes(Absolute()), 2), 2),
    "bins of quantiles": lambda s: QuantileBins(s, 2, Imbalance(slopes(Pinball(Fraction(3, 4))), 2), 2),
    "one draw of medians": lines(Absolute(), DrawShares(Fraction(0), Fraction(1))),
    "one draw of quantiles": lines(Pinball(Fraction(3, 4)), DrawShares(Fraction(0), Fraction(1))),
    "mostly value cuts, then lines": lines(
        Absolute(), DrawShares(Fraction(19, 20), Fraction(1, 20)), levels=1
    ),
    "few value cuts, then lines": lines(Absolute(), DrawShares(Fraction(1, 20), Fraction(19, 20)), levels=1),
    "a few bins": binned,
    "baseline absolute": baseline("absolute"),
    "baseline squared": baseline("squared"),
    "baseline logistic": baseline("logistic"),
    "constant pieces, drawn": shaped(("constant", 2), "auto"),
    "constant pieces, tree": shaped(("constant", 2), "threshold"),
    "linear pieces, drawn": linear_draw,
    "linear pieces, tree": linear_tree,
    "lipschitz, drawn": shaped(("lipschitz", "0.25"), "auto"),
    "lipschitz, tree": shaped(("lipschitz", "0.25"), "threshold"),
    "convex, drawn": shaped("convex", "auto"),
    "convex, tree": shaped("convex", "threshold"),
    "concave, drawn": shaped("concave", "auto"),
    "concave, tree": shaped("concave", "threshold"),
    "falling convex, drawn": shaped("convex", "auto", increasing=False),
}


def law_of(mechanism: CurveMechanism, rows: tuple[Row, ...]) -> dict[Any, float]:
    """The probability of every output for these records."""
    return weighted_law(mechanism, [(row, 1) for row in rows])


def weighted_law(mechanism: CurveMechanism, rows: Iterable[tuple[Row, int]]) -> dict[Any, float]:
    """The probability of every output for records with weights."""
    listed = list(rows)
    records = records_of([row for row, _ in listed], [weight for _, weight in listed])
    return distribution(lambda outcomes: mechanism.draw(records, outcomes), curve_key)


def largest_ratio(law: dict[Any, float], other: dict[Any, float]) -> float:
    """The largest |log ratio| of an output's two probabilities."""
    assert law.keys() == other.keys(), "an output is possible with one data set only"
    return max(abs(math.log(law[key] / other[key])) for key in law)


def everywhere(points: int) -> list[Row]:
    """A low, a middling and a high value at every point."""
    return list(itertools.product(range(points), (0, FINE // 4, FINE)))


def ends(points: int) -> list[Row]:
    """The lowest and the highest value at the first, a middle and the last point."""
    return sorted(itertools.product({0, points // 2, points - 1}, (0, FINE)))


def backgrounds(points: int, weight: int) -> list[Weighted]:
    """Heavy data that leave one output likely.

    All records low; a point of low values left of more high ones, so that its value depends on the side it is on; and a
    point with divided records, whose derivatives nearly cancel.
    """
    first, middle, last = 0, points // 2, points - 1
    return [
        (((first, 0), weight), ((last, 0), weight)),
        (((middle, 0), weight), ((last, FINE), 3 * weight)),
        (((first, FINE // 2), weight), ((first, 0), weight - 10), ((last, 0), weight)),
    ]
