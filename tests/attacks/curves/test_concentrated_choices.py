"""ρ-zCDP by choices of bounded range: Rényi divergences over all outputs, for all small neighbouring data sets.

Output laws are enumerated by running the code that releases. Mechanisms that also add noise are looked at through their
choices alone: noise has its own test (test_concentrated_sums.py, and the rate below).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from tests.support.curve_cases import MECHANISMS, ends, law_of
from tests.support.curve_outcomes import datasets, neighbours_of

from isotone.curves.problem import ConcentratedSetting, CurveSetting, root_below
from isotone.privacy.guarantee import Neighbours, Unit

RHO = Fraction(1, 2)
ORDERS = (1.01, 2.0, 6.0)


def divergence(p: dict[Any, float], q: dict[Any, float], order: float) -> float:
    return math.log(sum(p[key] ** order * q[key] ** (1 - order) for key in p)) / (order - 1)


CHOICES = (
    "additive absolute, two levels",
    "threshold squared",
    "one draw of quantiles",
    "mostly value cuts, then lines",
    "baseline absolute",
    "linear pieces, drawn",
)
"""Some of each kind. All others that draw nothing but choices were walked through once, with the same result."""


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_output_law_is_further_than_rho_allows(relation: Neighbours) -> None:
    setting, worst = ConcentratedSetting.of(RHO, Unit(neighbours=relation)), 0.0
    for name in CHOICES:
        mechanism = MECHANISMS[name](setting)
        kinds = list(ends(mechanism.points))
        laws = {rows: law_of(mechanism, rows) for rows in datasets(kinds, 1)}
        for rows, one in laws.items():
            for other in neighbours_of(rows, kinds, relation):
                if other in laws:
                    for order in ORDERS:
                        found = max(divergence(one, laws[other], order), divergence(laws[other], one, order))
                        worst = max(worst, found / (order * float(RHO)))
    assert 0.2 < worst <= 1 + 1e-9


def test_rates_cost_their_share_of_rho_and_no_more() -> None:
    for rho, unit, steps in ((RHO, Unit(), 1), (Fraction(1, 3), Unit(3, "replace"), 64)):
        setting = ConcentratedSetting.of(rho, unit, steps)
        for share in (Fraction(1), Fraction(1, 50)):
            length = setting.rate(share, 7) * 7 * setting.factor
            loss = setting.noise_rate(share, 7) * 7 * setting.factor
            assert 0.999999 < length**2 / 8 / (share * rho) <= 1
            assert 0.999999 < loss**2 / 2 / (share * rho) <= 1
    assert CurveSetting(Fraction(2)).rate(Fraction(1, 2), 5) == Fraction(1, 5)


def test_a_root_is_rounded_down() -> None:
    for square in (Fraction(1, 3), Fraction(10**40), Fraction(7, 10**40), Fraction(2)):
        root = root_below(square)
        assert root**2 <= square < (root * (1 + Fraction(1, 2**26))) ** 2
