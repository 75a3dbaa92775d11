"""Replaced records and units of several heavy records: every method and shape, all outputs on small domains.

Where a replaced record does not use up epsilon, docs/theory/curves-posets.md, section 11, says why, and the share that
it does use is computed here from the loss. Each of these cases has a sister with most of the budget at a deep level,
where the same constant is used up: it could not be made smaller.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_cases import (
    BY_BALANCE,
    HEAVY,
    MECHANISMS,
    Factory,
    Weighted,
    backgrounds,
    balanced,
    ends,
    largest_ratio,
    law_of,
    slopes,
    table_score,
    tree,
    weighted_law,
)
from tests.support.curve_outcomes import worst_ratio

from isotone.curves.cuts import DrawShares, Imbalance, TreeMechanism
from isotone.curves.lines import LineFit
from isotone.curves.losses import Absolute, Logistic, Pinball, Squared
from isotone.curves.problem import FINE, CurveSetting
from isotone.curves.tree import AdditiveScore, Parts
from isotone.privacy.guarantee import Unit
from isotone.published.curves.threshold import SquaredScore

REPLACE = CurveSetting(Fraction(1), Unit(neighbours="replace"))
HEAVY_UNITS = CurveSetting(Fraction(1), Unit(2), 3)
ROUNDING = 1e-9


def share_at_one_point(loss: Any) -> float:
    """Range of the difference of two records' losses over half the interval, by twice the range of one record's."""
    table = loss.table(16, 16, Fraction(1))
    halves = [table[:, :9], table[:, 8:]]
    alone = max(int(np.ptp(half, axis=1).max()) for half in halves)
    both = max(
        int(np.ptp(half[one] - half[other])) for half in halves for one in range(17) for other in range(17)
    )
    return both / (2 * alone)


EXPECTED = {
    # in one part of a chain a replaced record moves scores by the sum of both slopes, not by twice the larger
    "additive pinball": 2 / 3,
    # at one point the fitted value passes half the interval, and only the difference of both losses there counts
    "threshold pinball": share_at_one_point(Pinball(Fraction(3, 4))),
    "threshold squared": share_at_one_point(Squared()),
    "threshold logistic": share_at_one_point(Logistic()),
    # the same at both levels, and no record is worst at both
    "threshold squared, two levels": share_at_one_point(Squared()),
}


def replaced_ratio(factory: Factory, found: list[Weighted] | None = None) -> float:
    """The worst ratio for one record in place of another, on heavy data."""
    mechanism, worst = factory(REPLACE), 0.0
    for background in found or backgrounds(mechanism.points, 2 * HEAVY):
        laws = [weighted_law(mechanism, (*background, (record, 1))) for record in ends(mechanism.points)]
        worst = max(worst, *(largest_ratio(one, other) for one, other in itertools.combinations(laws, 2)))
    return worst


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in BY_BALANCE])
def test_no_output_reveals_that_a_record_was_replaced(name: str) -> None:
    worst, expected = replaced_ratio(MECHANISMS[name]), EXPECTED.get(name, 1.0)
    assert worst <= expected + ROUNDING
    assert worst >= 0.9 * expected


@pytest.mark.parametrize("name", BY_BALANCE)
def test_no_value_drawn_by_balance_reveals_that_a_record_was_replaced(name: str) -> None:
    assert 0.3 <= replaced_ratio(MECHANISMS[name]) <= 1 + ROUNDING


@pytest.mark.parametrize("loss", [Absolute(), Pinball(Fraction(3, 4))], ids=["medians", "quantiles"])
def test_a_replaced_record_uses_up_a_draw_of_all_values(loss: Any) -> None:
    """Many values are balanced in one bin, and in the other would be with one more high record: it spoils and mends."""
    background = (*balanced(loss, 0, 1, 12), *balanced(loss, 2, 16, 31, off=1))
    score, whole = Imbalance(slopes(loss), 32), DrawShares(Fraction(0), Fraction(1))
    mechanism = LineFit(REPLACE, 3, AdditiveScore(slopes(loss)), 0, 2, score, whole)
    one, other = (weighted_law(mechanism, (*background, ((point, FINE), 1))) for point in (0, 2))
    assert 0.9 <= largest_ratio(one, other) <= 1 + ROUNDING


@pytest.mark.parametrize(
    "name",
    [
        "additive absolute, two levels",
        "threshold squared, two levels",
        "bins of medians",
        "baseline squared",
        "constant pieces, tree",
        "linear pieces, tree",
        "lipschitz, tree",
        "convex, tree",
    ],
)
def test_replacing_one_of_two_records_is_hidden_as_well(name: str) -> None:
    """All data sets of at most two extreme records, without a background."""
    mechanism = MECHANISMS[name](REPLACE)
    worst = worst_ratio(lambda rows: law_of(mechanism, rows), ends(mechanism.points), 2, "replace")
    assert worst <= 1 + ROUNDING


def test_the_shares_that_are_used_are_those_of_the_losses() -> None:
    assert share_at_one_point(Absolute()) == 1
    assert share_at_one_point(Squared()) == pytest.approx(2 / 3)
    assert share_at_one_point(Pinball(Fraction(3, 4))) == pytest.approx(2 / 3)
    assert 0.59 < share_at_one_point(Logistic()) < 0.61


@pytest.mark.parametrize("score", [SquaredScore(), table_score(Logistic())], ids=["squared", "logistic"])
def test_at_a_deep_level_twice_the_range_is_used_up(score: Any) -> None:
    """Nearly all of epsilon at the fourth level: old and new record are in two parts, and hardly bent there."""
    high: list[Weighted] = [(((0, FINE), 2 * HEAVY), ((1, FINE), 2 * HEAVY))]
    assert 0.9 <= replaced_ratio(tree(score, 4, 2, growth=40), high) <= 1 + ROUNDING


FLOOR = {"threshold squared, two levels": 0.7} | dict.fromkeys(BY_BALANCE, 0.5)


@pytest.mark.parametrize("loss", [Absolute(), Pinball(Fraction(3, 4))], ids=["medians", "quantiles"])
def test_a_unit_of_several_heavy_records_uses_up_a_draw_by_balance(loss: Any) -> None:
    score, whole = Imbalance(slopes(loss), 64), DrawShares(Fraction(0), Fraction(1))
    mechanism = LineFit(HEAVY_UNITS, 2, AdditiveScore(slopes(loss)), 0, 1, score, whole)
    background = balanced(loss, 0, weight=6 * HEAVY)
    law = weighted_law(mechanism, background)
    unit = weighted_law(mechanism, (*background, ((0, FINE), 3), ((0, FINE), 3)))
    assert 0.9 <= largest_ratio(law, unit) <= 1 + ROUNDING


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_unit_of_several_heavy_records_is_hidden(name: str) -> None:
    """Two records of three times the weight, at one place or at two."""
    mechanism, worst = MECHANISMS[name](HEAVY_UNITS), 0.0
    first, *_, last = ends(mechanism.points)
    for background in backgrounds(mechanism.points, 6 * HEAVY):
        law = weighted_law(mechanism, background)
        for unit in [*((record, record) for record in ends(mechanism.points)), (first, last)]:
            other = weighted_law(mechanism, (*background, *((record, 3) for record in unit)))
            worst = max(worst, largest_ratio(law, other))
    assert worst <= 1 + ROUNDING
    assert worst >= FLOOR.get(name, 0.9)


def test_the_sum_of_both_slopes_is_too_small_below_the_root() -> None:
    """Under replacement, pinball loss may use the sum of its slopes at the root of a chain, and only there.

    Below the root the old record can be in one part and the new one in another, and both parts give them away.
    """

    class Sums(AdditiveScore):
        def ranges(self, parts: Parts) -> list[int]:
            # the setting doubles every range, so half of the sum makes it the sum
            return [(self.slopes.above + self.slopes.below) // 2] * parts.low.size

    rule = replace(slopes(Absolute()), above=2, below=8)
    background: Weighted = (((0, FINE * 3 // 8), 2 * HEAVY), ((2, FINE * 5 // 8), 2 * HEAVY))

    def worst(score: AdditiveScore) -> float:
        mechanism = TreeMechanism(REPLACE, 4, score, 2, growth=Fraction(9))
        law, other = (
            weighted_law(mechanism, (*background, (record, 1))) for record in ((0, FINE), (2, FINE))
        )
        return largest_ratio(law, other)

    assert 0.9 < worst(AdditiveScore(rule)) <= 1 + ROUNDING
    assert worst(Sums(rule)) > 1.4
