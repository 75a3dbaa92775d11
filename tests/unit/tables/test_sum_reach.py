"""Intervals of sums of noisy counts against exact laws: every table of one and two categories, and every size of plain noise."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.privacy.guarantee import Guarantee
from isotone.tables import GaussianTableMechanism, TwoStageMechanism
from isotone.tables.published_table import reach
from isotone.tables.thresholds import Emphasis, Thresholds, preset_thresholds

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def kept(laws: list[tuple[NDArray[np.float64], NDArray[np.float64]]], distance: float) -> float:
    """The probability that independent errors add up to no more than a distance, from all their combinations."""
    errors, law = reduce(
        lambda one, other: (np.add.outer(one[0], other[0]).ravel(), np.outer(one[1], other[1]).ravel()), laws
    )
    return float(law[np.abs(errors) <= distance].sum())


def plain_law(epsilon: Fraction, number: int) -> NDArray[np.float64]:
    """The law of the size of a sum of two-sided geometric noise."""
    noise = np.exp(-float(epsilon) * np.abs(np.arange(-60, 61))) * np.tanh(float(epsilon) / 2)
    total = reduce(np.convolve, [noise] * number)
    middle = len(total) // 2
    return np.append(total[middle], 2 * total[middle + 1 :])


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(4)])
@pytest.mark.parametrize("number", [1, 2, 5, 30])
def test_sums_of_plain_noise_keep_the_smallest_distance_that_does(epsilon: Fraction, number: int) -> None:
    """A normal law has 84 % in place of 95 for five counts at ε = 4, where nearly all of the noise is on 0 and 1."""
    law = np.cumsum(plain_law(epsilon, number))
    for level in LEVELS:
        found = reach([(Thresholds(9, epsilon, (), Fraction(0)), number)], level)
        assert law[round(found)] >= level
        assert found == round(found)
        assert found == 0 or law[round(found) - 1] < level


def test_one_wide_noise_keeps_its_distance_at_every_confidence() -> None:
    """Too wide to be summed up. One noise is beyond ``d`` with probability ``2·exp(−ε(d + 1))/(1 + exp(−ε))``."""
    epsilon = 1e-5
    for level in np.linspace(0.5, 0.999, 500):
        found = reach([(Thresholds(9, Fraction(1, 10**5), (), Fraction(0)), 1)], float(level))
        beyond = 2 * np.exp(-epsilon * (np.floor(found) + 1)) / (1 + np.exp(-epsilon))
        assert 1 - beyond >= level


@pytest.mark.parametrize(
    ("emphasis", "epsilon"),
    [("distribution", "0.5"), ("distribution", "0.7"), ("distribution", "2"), ("both", "3")],
)
def test_sums_keep_their_distance_whatever_the_true_counts(emphasis: Emphasis, epsilon: str) -> None:
    measured = TwoStageMechanism(4, epsilon, emphasis).measurement(60)
    assert measured.places
    laws = [measured.errors(count) for count in range(5)]
    for count, (errors, law) in enumerate(laws):
        assert law.sum() == pytest.approx(1), count
        assert law @ errors == pytest.approx(0, abs=1e-8)
    assert max(law @ errors**2 for errors, law in laws) <= measured.deviation**2 + 1e-8
    for number, level in itertools.product((1, 2), LEVELS):
        found = reach([(measured, number)], level)
        for counts in itertools.combinations_with_replacement(range(5), number):
            assert kept([laws[count] for count in counts], found) >= level, (counts, level)


def test_the_widest_law_need_not_be_that_of_the_largest_variance() -> None:
    """Of 101 counts, 51 has the largest quantile, and 69 others have larger variances."""
    places = (0, 1, 2, 4, 8, 16, 25, 36, 46, 55, 66, 76, 85, 96, 99)
    measured = Thresholds(100, Fraction(1, 10), places, Fraction(1, 2), Fraction(14, 100), (97, 98))
    found = reach([(measured, 1)], 0.99)
    assert min(kept([measured.errors(count)], found) for count in range(101)) >= 0.99


def test_a_sum_of_many_noises_that_are_small_or_huge_is_not_normal() -> None:
    """Most of these errors are below 20 or about 600. A normal law with their variance has 68 % in place of 70."""
    measured = preset_thresholds("distribution", 100, Fraction(1, 10), 3000)
    errors, law = measured.errors(8)
    grid = np.bincount(np.round(errors).astype(np.int64) % 2**17, law, 2**17)
    sums = np.fft.irfft(np.fft.rfft(grid) ** 65)
    found = int(reach([(measured, 65)], 0.7))
    assert 0.7 <= sums[: found + 1].sum() + sums[-found:].sum() < 0.715


def test_strata_and_many_categories_add_up() -> None:
    plain, gaussian = (
        TwoStageMechanism(9, 2, "counts").measurement(10),
        GaussianTableMechanism(9, Guarantee.zcdp(1)).measurement(10),
    )
    mixed: Any = [(plain, 1), (gaussian, 2), (plain, 0)]
    for level in LEVELS:
        assert kept([plain.errors(0), *[gaussian.errors(3)] * 2], reach(mixed, level)) >= level
    uneven = TwoStageMechanism(9, "0.5", "distribution").measurement(500)
    for measured in (plain, uneven):
        sd = np.sqrt(5000) * measured.deviation
        assert reach([(measured, 5000)], 0.95) == pytest.approx(1.96 * sd, rel=0.01)
    assert reach([], 0.95) == 0
