"""Mechanisms on small orders, walked through completely: no output's probability changes by more than epsilon.

Output laws are enumerated by running the code that releases. Two families of neighbouring data: all pairs with at
most two records, and pairs that differ in one record, or one heavy unit, on top of a heavy background. ``FLOOR`` is
the least share of epsilon that the worst pair must reach: the guarantee is kept, and hardly more than kept.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_cases import Weighted, largest_ratio
from tests.support.curve_outcomes import records_of, worst_ratio
from tests.support.poset_cases import MECHANISMS, ends
from tests.support.poset_outcomes import law

from isotone.curves.poset_regression import METHODS, OrderMechanism
from isotone.curves.problem import FINE, CurveSetting
from isotone.privacy.guarantee import Unit

EPSILON = Fraction(1)
ROUNDING = 1e-9
FLOOR = 0.99
HEAVY = 40
SLOW = ("two levels", "listed", "relaxed", "unrelated", "coupling, pinball", "baseline")
"""Of these, small data are looked at in one place and at both ends."""

REPLACED = dict.fromkeys(MECHANISMS, 1.0)
# At one element the fitted value passes half the interval: there the losses of 0 and 1 differ by 1 - 2v, which has the
# range 1, and the squared loss of one record has the range 3/4, which counts twice.
REPLACED["threshold, squared"] = 2 / 3


def key(values: np.ndarray) -> tuple[float, ...]:
    return tuple(np.round(values, 9).tolist())


def weighted_law(mechanism: OrderMechanism, rows: Any) -> dict[Any, float]:
    records = records_of([row for row, _ in rows], [weight for _, weight in rows])
    return law(lambda outcomes: mechanism.draw(records, outcomes), key)


def law_of(mechanism: OrderMechanism, rows: tuple[tuple[int, int], ...]) -> dict[Any, float]:
    return weighted_law(mechanism, [(row, 1) for row in rows])


def kinds(name: str, size: int) -> list[tuple[int, int]]:
    """A low, a middling and a high value at every element."""
    if any(word in name for word in SLOW):
        return [(0, 0), (0, FINE), (size // 2, FINE // 4), (size - 1, FINE)]
    return list(itertools.product(range(size), (0, FINE // 4, FINE)))


def backgrounds(size: int, weight: int) -> list[Weighted]:
    """Heavy data that make one output likely: low values everywhere, or everywhere but at the last element."""
    return [tuple(((x, last if x == size - 1 else 0), weight) for x in range(size)) for last in (0, FINE)]


def heavy_ratio(mechanism: OrderMechanism, weight: int = HEAVY, unit: int = 1, records: int = 1) -> float:
    """The worst ratio for one more unit, with its records at one element, on heavy data."""
    size, worst = mechanism.arrangement.size, 0.0
    for background in backgrounds(size, weight):
        before = weighted_law(mechanism, background)
        for record in ends(size):
            after = weighted_law(mechanism, (*background, *([(record, unit)] * records)))
            worst = max(worst, largest_ratio(before, after))
    return worst


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_output_tells_whether_a_record_is_there(name: str) -> None:
    mechanism = MECHANISMS[name](CurveSetting(EPSILON))
    small = worst_ratio(lambda rows: law_of(mechanism, rows), kinds(name, mechanism.arrangement.size), 2)
    worst = max(small, heavy_ratio(mechanism))
    assert worst <= float(EPSILON) + ROUNDING
    assert worst >= FLOOR * float(EPSILON)


@pytest.mark.parametrize("name", MECHANISMS)
def test_replacing_a_record_is_hidden_as_well(name: str) -> None:
    mechanism, worst = MECHANISMS[name](CurveSetting(EPSILON, Unit(neighbours="replace"))), 0.0
    size = mechanism.arrangement.size
    for background in backgrounds(size, 2 * HEAVY):
        laws = [weighted_law(mechanism, (*background, (record, 1))) for record in ends(size)]
        worst = max(worst, *(largest_ratio(one, other) for one, other in itertools.combinations(laws, 2)))
    assert FLOOR * REPLACED[name] <= worst <= REPLACED[name] + ROUNDING


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_unit_of_several_heavy_records_is_hidden(name: str) -> None:
    mechanism = MECHANISMS[name](CurveSetting(EPSILON, Unit(2), 3))
    worst = heavy_ratio(mechanism, 6 * HEAVY, unit=3, records=2)
    assert FLOOR * float(EPSILON) <= worst <= float(EPSILON) + ROUNDING


def test_every_method_is_walked_through() -> None:
    named = {name.split(",")[0] for name in MECHANISMS}
    ways = {"forest", "series-parallel", "prime", "grid", "listed", "grids", "relaxed"}
    assert named == ways | {"measured"} | (set(METHODS) - {"additive", "auto"})


def test_the_check_notices_a_rate_that_is_too_high() -> None:
    mechanism = MECHANISMS["forest, absolute"](CurveSetting(EPSILON))
    loud = replace(mechanism, setting=replace(mechanism.setting, epsilon=EPSILON * Fraction(11, 10)))
    assert heavy_ratio(loud) > float(EPSILON)


def test_the_sum_of_both_slopes_is_too_small_for_unrelated_elements() -> None:
    """On a chain a replaced record moves scores of one level by the sum of both slopes; here by twice the larger."""
    mechanism = MECHANISMS["prime, pinball"](CurveSetting(EPSILON, Unit(neighbours="replace")))
    background: Weighted = tuple(((x, FINE if x == 1 else 0), 2 * HEAVY) for x in range(4))
    old, new = (weighted_law(mechanism, (*background, ((x, FINE), 1))) for x in (0, 1))
    assert largest_ratio(old, new) > 0.99 > 2 / 3


def test_an_element_without_records_is_cut_like_any_other() -> None:
    """Without any records every sequence of cuts is possible, and all ideals are equally likely."""
    factory = MECHANISMS["forest, two levels"]
    shares = law_of(factory(CurveSetting(EPSILON)), ())
    assert len(shares) == len(law_of(factory(CurveSetting(EPSILON)), ((0, 0), (1, FINE), (2, 0))))
    one = MECHANISMS["forest, absolute"](CurveSetting(EPSILON))
    assert list(law_of(one, ()).values()) == pytest.approx([1 / 5] * 5)
