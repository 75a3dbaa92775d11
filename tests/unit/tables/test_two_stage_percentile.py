"""The private bound for top-coding: private by exact enumeration, and sensible."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.privacy.draws import ExactDraws
from isotone.tables.two_stage import bounds_to_choose_from, choose_upper, wanted_categories


class Recorder(ExactDraws):
    """Keeps the law of the choice instead of drawing from it."""

    def choice(self, scores: NDArray[np.int64], rate: Fraction) -> int:
        logs = -float(rate) * scores
        self.law = logs - np.logaddexp.reduce(logs)
        return 0


def law(table: tuple[int, ...], limit: int, epsilon: Fraction) -> Any:
    draws = Recorder()
    choose_upper(np.array(table), limit, Fraction(80), epsilon, draws)
    return draws.law


def test_neighbouring_tables_choose_alike_by_exact_enumeration() -> None:
    epsilon, limit, worst = Fraction(1, 2), 3, 0.0
    for table in itertools.product(range(limit + 1), repeat=4):
        for category in range(4):
            if table[category] < limit:
                neighbour = (*table[:category], table[category] + 1, *table[category + 1 :])
                gap = law(table, limit, epsilon) - law(neighbour, limit, epsilon)
                worst = max(worst, float(np.max(np.abs(gap))))
    assert worst <= float(epsilon) + 1e-12
    assert worst > 0.6 * float(epsilon)  # a rate larger by so much would be caught


@pytest.mark.parametrize("limit", [0, 1, 2, 9, 100, 10**6])
def test_bounds_rise_to_the_limit_and_are_few(limit: int) -> None:
    bounds = bounds_to_choose_from(limit)
    assert bounds[-1] == limit
    assert np.all(np.diff(bounds) > 0)
    assert len(bounds) <= 15 + 8 * np.log(limit + 2)


def test_bounds_far_above_all_counts_do_not_win_by_their_number() -> None:
    table = np.random.default_rng(0).poisson(5, 20_000)
    chosen = {choose_upper(table, 10**5, Fraction(99), Fraction(1, 20), ExactDraws()) for _ in range(20)}
    assert max(chosen) <= 14
    assert min(chosen) >= 9


def test_the_aim_is_the_percentile_less_a_little_and_never_below_nine_tenths_of_it() -> None:
    assert wanted_categories(10**6, Fraction(99), 50, Fraction(1)) == 989_997
    assert wanted_categories(100, Fraction(90), 50, Fraction(1, 100)) == 81
