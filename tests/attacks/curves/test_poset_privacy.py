"""Mechanisms on small orders, walked through completely: no output's probability changes by more than epsilon.

Output laws are enumerated by running the code that releases. Two families of neighbouring data: all pairs with at
most two records, and pairs that differ in one record on top of a heavy background. ``FLOOR`` is the least share of
epsilon that the worst pair must reach: the promise is kept, and hardly more than kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of, worst_ratio
from tests.support.poset_outcomes import law

from isotone.curves.grids import FINE
from isotone.curves.losses import parse_loss
from isotone.curves.poset_blueprint import PosetBlueprint
from isotone.curves.poset_mechanisms import OrderMechanism
from isotone.curves.poset_product import ProductOrder
from isotone.curves.privacy import Setting
from isotone.order import Poset

EPSILON = Fraction(1)
ROUNDING = 1e-9
FLOOR = 0.99
ONE = (Fraction(0), Fraction(1))
Factory = Callable[[Setting], OrderMechanism]

WEDGE = Poset("abc", [("a", "c"), ("b", "c")])
N_SHAPE = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
CHAIN = Poset.chain("ab")
SQUARE = ProductOrder((2, 2))


def made(
    order: Any, loss: Any, method: str = "additive", levels: int = 1, values: int | None = None
) -> Factory:
    plan = PosetBlueprint(order, parse_loss(loss), ONE, method, levels, values)
    return lambda setting: plan.mechanism(10, setting)


MECHANISMS: dict[str, Factory] = {
    "forest, absolute": made(WEDGE, "absolute"),
    "forest, two levels": made(WEDGE, "absolute", levels=2),
    "prime, pinball": made(N_SHAPE, "pinball(0.75)"),
    "grid, huber": made(SQUARE, "huber"),
    "grid, two levels": made(SQUARE, "absolute", levels=2),
    "measured, squared": made(CHAIN, "squared"),
    "measured, logistic": made(CHAIN, "logistic"),
    "threshold, absolute": made(WEDGE, "absolute", "threshold"),
    "threshold, squared": made(N_SHAPE, "squared", "threshold"),
    "threshold, two levels": made(WEDGE, "absolute", "threshold", levels=2),
    "baseline, absolute": made(WEDGE, "absolute", "baseline", values=4),
    "baseline, squared": made(Poset("abc", [("a", "b"), ("a", "c")]), "squared", "baseline", values=4),
}


def key(values: np.ndarray) -> tuple[float, ...]:
    return tuple(np.round(values, 9).tolist())


def law_of(mechanism: OrderMechanism, rows: tuple[tuple[int, int], ...]) -> dict[Any, float]:
    records = records_of(rows)
    return law(lambda outcomes: mechanism.draw(records, outcomes), key)


def kinds(size: int) -> list[tuple[int, int]]:
    return [(0, 0), (0, FINE), (size // 2, FINE // 4), (size - 1, FINE)]


def heavy_ratio(mechanism: OrderMechanism) -> float:
    """One more record of an extreme value anywhere, on backgrounds that make one output likely."""
    size, worst = mechanism.arrangement.size, 0.0
    for level, other in [(0, 0), (FINE, FINE), (0, FINE), (FINE, 0)]:
        background = tuple((x, level if x < size - 1 else other) for x in range(size) for _ in range(40))
        before = law_of(mechanism, background)
        for record in [(x, end) for x in (0, size - 1) for end in (0, FINE)]:
            after = law_of(mechanism, (*background, record))
            assert before.keys() == after.keys()
            worst = max(worst, *(abs(math.log(before[k] / after[k])) for k in before))
    return worst


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_output_tells_whether_a_record_is_there(name: str) -> None:
    mechanism = MECHANISMS[name](Setting(EPSILON))
    small = worst_ratio(lambda rows: law_of(mechanism, rows), kinds(mechanism.arrangement.size), 2)
    worst = max(small, heavy_ratio(mechanism))
    assert worst <= float(EPSILON) + ROUNDING
    assert worst >= FLOOR * float(EPSILON)


@pytest.mark.parametrize(
    "name", ["forest, two levels", "grid, two levels", "threshold, squared", "baseline, absolute"]
)
def test_replacing_a_record_is_hidden_as_well(name: str) -> None:
    mechanism = MECHANISMS[name](Setting(EPSILON, "replace"))
    worst = worst_ratio(
        lambda rows: law_of(mechanism, rows), kinds(mechanism.arrangement.size), 2, relation="replace"
    )
    assert 0.2 * float(EPSILON) <= worst <= float(EPSILON) + ROUNDING


def test_the_check_notices_a_rate_that_is_too_high() -> None:
    factory = MECHANISMS["forest, absolute"]
    mechanism = factory(Setting(EPSILON))
    loud = replace(mechanism, setting=replace(mechanism.setting, epsilon=EPSILON * Fraction(11, 10)))
    assert heavy_ratio(loud) > float(EPSILON)


def test_an_element_without_records_is_cut_like_any_other() -> None:
    """Without any records every sequence of cuts is possible, and all ideals are equally likely."""
    factory = MECHANISMS["forest, two levels"]
    shares = law_of(factory(Setting(EPSILON)), ())
    assert len(shares) == len(law_of(factory(Setting(EPSILON)), ((0, 0), (1, FINE), (2, 0))))
    one = MECHANISMS["forest, absolute"](Setting(EPSILON))
    assert list(law_of(one, ()).values()) == pytest.approx([1 / 5] * 5)
