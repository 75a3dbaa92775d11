"""Every mechanism on orders at a size at which all its outputs can be walked through."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.ideals import CompositionNode, OrderComposition
from isotone.curves.losses import parse_loss
from isotone.curves.poset_regression import MeasuredElements, OrderMechanism, PosetProblem, mechanism_for
from isotone.curves.problem import FINE, CurveSetting
from isotone.curves.surface import Arrangement, GridRegion, ProductOrder, arrange
from isotone.order import Poset
from tests.support.coupling_law import SolvedRegion

__all__ = ["CHAIN", "MECHANISMS", "Factory", "ends", "made"]

ONE = (Fraction(0), Fraction(1))
Factory = Callable[[CurveSetting], OrderMechanism]

WEDGE = Poset("abc", [("a", "c"), ("b", "c")])
UPWARD = Poset("abc", [("a", "b"), ("a", "c")])
N_SHAPE = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
CHAIN = Poset.chain("ab")
SQUARE = ProductOrder((2, 2))
CUBE = ProductOrder((2, 2, 2))
SQUARE_AND_POINT = Poset(range(5), SQUARE.cover_pairs().tolist())


def made(
    order: Any, loss: Any, method: str = "additive", levels: int = 1, values: int | None = None
) -> Factory:
    plan = PosetProblem(parse_loss(loss), ONE, order, method=method, levels=levels, value_levels=values)
    return lambda setting: mechanism_for(plan.sized(10, setting))


def arranged(factory: Factory, arrangement: Arrangement) -> Factory:
    """Another way to cut the order: the one that larger orders of its kind get."""
    return lambda setting: replace(factory(setting), arrangement=arrangement)


def planes() -> Arrangement:
    """The cube as two squares, without the relations between them; then made monotone."""
    squares = tuple(GridRegion.whole(plane) for plane in CUBE.planes())
    return Arrangement(8, squares, CUBE.cover_pairs(), np.arange(8), "relaxed", relaxed=True)


def grids() -> Arrangement:
    regions = GridRegion.whole(np.arange(4).reshape(2, 2)), OrderComposition([CompositionNode(element=4)])
    return Arrangement(5, regions, SQUARE_AND_POINT.cover_pairs, SQUARE_AND_POINT.linear_order, "grids")


def coupled(order: Poset, loss: str, levels: int = 1) -> Factory:
    """Coupling from the past, with the law of each cut solved instead of drawn."""
    factory = made(order, loss, "coupling", levels)

    def make(setting: CurveSetting) -> OrderMechanism:
        mechanism = factory(setting)
        whole = mechanism.arrangement
        region = SolvedRegion(order.linear_order, order.cover_pairs)
        return replace(mechanism, arrangement=replace(whole, regions=(region,)))

    return make


MECHANISMS: dict[str, Factory] = {
    "forest, absolute": made(WEDGE, "absolute"),
    "forest, two levels": made(WEDGE, "absolute", levels=2),
    "series-parallel, pinball": made(UPWARD, "pinball(0.75)"),
    "prime, pinball": made(N_SHAPE, "pinball(0.75)"),
    "grid, huber": made(SQUARE, "huber"),
    "grid, two levels": made(SQUARE, "absolute", levels=2),
    "listed, absolute": made(CUBE, "absolute"),
    "grids, absolute": arranged(made(SQUARE_AND_POINT, "absolute"), grids()),
    "relaxed, absolute": arranged(made(CUBE, "absolute"), planes()),
    "measured, squared": made(CHAIN, "squared"),
    "measured, logistic": made(CHAIN, "logistic"),
    "measured, unrelated elements": made(WEDGE, "squared"),
    "measured, all elements": lambda setting: MeasuredElements(setting, arrange(CHAIN)),
    "threshold, absolute": made(WEDGE, "absolute", "threshold"),
    "threshold, squared": made(N_SHAPE, "squared", "threshold"),
    "threshold, two levels": made(WEDGE, "absolute", "threshold", levels=2),
    "baseline, absolute": made(WEDGE, "absolute", "baseline", values=4),
    "baseline, squared": made(UPWARD, "squared", "baseline", values=4),
    "coupling, pinball": coupled(N_SHAPE, "pinball(0.75)"),
    "coupling, two levels": coupled(CHAIN, "absolute", levels=2),
}


def ends(size: int) -> list[tuple[int, int]]:
    """The lowest and the highest value at the first two elements and the last."""
    return sorted(itertools.product({0, 1, size - 1}, (0, FINE)))
