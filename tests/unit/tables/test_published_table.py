"""Estimates and intervals of a published table, against sums over all true counts."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.noise import UnevenLine
from isotone.privacy.guarantee import Guarantee
from isotone.tables.estimate import (
    content,
    deviation_bound,
    is_shortest,
    largest_deviation,
    shortest,
    unbiased,
)
from isotone.tables.published_table import PublishedTable, Stratum, from_noise
from isotone.tables.thresholds import SMALL, Thresholds, thresholds_for
from isotone.tables.two_stage import GaussianMeasurement, TwoStageMechanism

UPPER = 6
SHARES = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])
NOISY = np.array([-2, 3, 3, 9, 1])
VALUES = np.array([1, 2, 3, 6, 0])
THRESHOLDS = Thresholds(UPPER, Fraction(7, 10), (0, 3), Fraction(1, 2))
RATES = [0.35, 0.7, 0.7, 0.35, 0.7, 0.7]


def table(method: Any = "table"):
    stratum = Stratum(np.arange(5), NOISY, np.zeros(2, np.int64), THRESHOLDS, SHARES, "a model", method)
    return PublishedTable(VALUES, UPPER, (stratum,), Guarantee.pure(1))


def believed(k, doubt=1):
    """P(true = i | noisy = k): thirty categories spread evenly and forty one count off are added to those believed in."""
    k = min(max(k, 0), UPPER)
    prior = [len(NOISY) * share + 30 * doubt / (UPPER + 1) for share in SHARES]
    for i, share in enumerate(SHARES):
        for other in (max(i - 1, 0), min(i + 1, UPPER)):
            prior[other] += 20 * doubt * share
    weights = [p * exp(-sum(RATES[min(i, k) : max(i, k)])) for i, p in enumerate(prior)]
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize("k", range(UPPER + 1))
def test_a_posterior_is_the_shares_times_the_noise(k):
    assert table().strata[0].beliefs.posterior(k) == pytest.approx(believed(k), rel=1e-12)


def test_an_estimate_is_the_posterior_mean_without_doubt():
    wanted = [believed(k, doubt=0) @ np.arange(UPPER + 1) for k in NOISY]
    assert table().estimates == pytest.approx(wanted, rel=1e-12)
    assert table("noise").estimates.tolist() == [0, 3, 3, 6, 1]


def all_intervals(law):
    """Every interval of whole numbers with its content, the shortest first and of these the likeliest."""
    ends = combinations_with_replacement(range(len(law)), 2)
    return sorted((b - a, -float(law[a : b + 1].sum()), a, b) for a, b in ends)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_an_interval_is_the_shortest_with_its_content(level):
    low, high = table().interval(level)
    for k, *found in zip(NOISY, low, high, strict=True):
        wide = [(a, b) for _, held, a, b in all_intervals(believed(k)) if -held >= content(level, len(NOISY))]
        assert tuple(found) == wide[0]


@pytest.mark.parametrize("size", [200, 250, 300, 400, 600])
def test_four_standard_deviations_of_chance_leave_92_in_100(size):
    share = content(0.95, size)
    assert share - 4 * sqrt(share * (1 - share) / size) == pytest.approx(0.92, abs=1e-12)
    assert content(0.8, size) == pytest.approx(1 - 4 * (1 - share))
    assert content(0.95, 5) == content(0.95, 200) < 0.97
    assert content(0.95, 900) == pytest.approx(0.95, abs=1e-12)


def test_intervals_have_more_where_noise_leaves_the_distribution_open():
    """A thousand categories tell as much as 200 at an ε of a tenth, and as much as a thousand from 0.23 on."""
    even = np.full(UPPER + 1, 1 / (UPPER + 1))
    told = [
        thresholds_for(Fraction(1, 20), UPPER, Fraction(step), 1000).beliefs(even, 1000).content(0.95)
        for step in ("0.1", "0.23", "1")
    ]
    assert told == [content(0.95, 200), content(0.95, 1000), content(0.95, 1000)]


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_an_interval_that_drops_its_likelier_end_or_can_spare_one_is_not_the_shortest(level):
    """All laws of four counts in steps of a tenth, and all intervals. The law may be off by less than half a step."""
    for weights in product(range(1, 8), repeat=4):
        if sum(weights) != 10:
            continue
        law = np.array(weights) / 10
        wide = [each for each in all_intervals(law) if -each[1] >= level - 1e-9]
        alike = {(a, b) for w, held, a, b in wide if w == wide[0][0] and held <= wide[0][1] + 1e-9}
        assert shortest(law, level - 1e-9) in alike
        for _, _, a, b in all_intervals(law):
            assert is_shortest(law, a, b, level - 0.01, 0.001) == ((a, b) in alike)
    assert not is_shortest(np.array([0.03, 0.92, 0.05]), 0, 1, 0.95, 1e-5)  # [1, 2] has more
    assert is_shortest(np.array([0.025, 0.95 - 4e-6, 0.025]), 1, 1, 0.95, 1e-5)  # rounded


@pytest.mark.parametrize("level", [1e-17, 1e-300])
def test_an_interval_of_hardly_any_confidence_has_a_count(level):
    assert shortest(np.array([0.5, 0.3, 0.2]), level) == (0, 0)
    assert shortest(np.array([1.0]), level) == (0, 0)
    assert shortest(np.full(4, 0.25), level)[0] >= 0
    low, high = table().interval(level)
    assert np.all((low >= 0) & (low <= high))


def test_an_interval_of_all_confidence_has_all_counts():
    assert shortest(np.array([0.5, 0.25, 0.25 - 1e-9]), 1.0) == (0, 2)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(
    "measured",
    [TwoStageMechanism(50, epsilon).measurement(SMALL - 1) for epsilon in ("0.1", "0.3", "1", "2")]
    + [TwoStageMechanism(7, "0.7").measurement(SMALL - 1)]
    + [GaussianMeasurement(50, None, Fraction(variance)) for variance in (1, 9, 400)],
)
def test_intervals_of_few_categories_hold_for_every_count(measured, level):
    """Exactly, by the law of the noise. A shorter reach would not do for a count in the middle."""
    for count in range(measured.upper + 1):
        errors, law = measured.errors(count)
        low, high = from_noise(count + errors, measured, level)
        assert law @ ((low <= count) & (count <= high)) >= level - 1e-9
        assert np.all((low >= 0) & (low <= high) & (high <= measured.upper))
    errors, law = measured.errors(0)
    low, _ = from_noise(errors, measured, level)
    far = errors[low == 0].max()  # the largest noise that leaves 0 inside
    assert law[np.abs(errors) < far].sum() < level


def test_a_stratum_of_few_categories_has_the_intervals_of_its_noise():
    alone = Thresholds(UPPER, Fraction(2), (), Fraction(0))
    stratum = Stratum(np.arange(5), NOISY, np.zeros(0, np.int64), alone, SHARES, "none", "noise")
    low, high = stratum.intervals(0.95)  # noise of more than 1 has a probability of 0.032
    assert low.tolist() == [0, 2, 2, 6, 0]
    assert high.tolist() == [0, 4, 4, 6, 2]


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, "x"])
def test_an_impossible_confidence_is_refused(level):
    with pytest.raises(InputError):
        table().interval(level)


def far_out(line, room=400):
    """The matrix of the noise on the line and far beyond its ends, and the counts of its columns."""
    edge = np.full(room, float(line.unit) * line.outside)
    rates = np.concatenate([edge, line.rates, edge])
    place = np.concatenate([[0.0], np.cumsum(rates)])
    a = np.concatenate([[0.0], np.exp(-rates), [0.0]])
    weights = (1 - a[:-1] * a[1:]) / ((1 + a[:-1]) * (1 + a[1:]))
    law = weights * np.exp(-np.abs(place[:, None] - place[None, :]))
    return law[room : room + len(line.weights) + 1], np.arange(-room, len(line.weights) + room + 1)


@pytest.mark.parametrize(
    "line",
    [
        UnevenLine(Fraction(1, 10), (1, 3, 3, 1, 3), 3),
        UnevenLine(Fraction(3, 10), (1, 1), 2),
        UnevenLine(Fraction(1, 2), (1,) * 4, 1),
        UnevenLine(Fraction(1, 5), (), 2),
    ],
)
def test_the_unbiased_column_is_unbiased_and_its_deviation_is_the_largest(line):
    law, counts = far_out(line)
    says = unbiased(counts, line)
    true = np.arange(len(line.weights) + 1)
    assert law @ says == pytest.approx(true, abs=1e-8)
    spread = np.sqrt(law @ says**2 - true**2)
    a = exp(-float(line.unit) * line.outside)
    far = np.sqrt(2 * a) / (1 - a)  # of a count far beyond the line
    assert largest_deviation(line) == pytest.approx(max(far, spread.max()), rel=1e-8)
    parts = np.array([variance_part(line, count) for count in counts.tolist()])
    assert law @ parts == pytest.approx(spread**2, rel=1e-8)
    assert deviation_bound(line, line) == pytest.approx(sqrt(parts[400:-400].max()), rel=1e-12)


def variance_part(line, count):
    """What a noisy count adds to the variance of its unbiased estimate, from the two steps beside it."""
    weights = [line.weights[at] if 0 <= at < len(line.weights) else line.outside for at in (count - 1, count)]
    below, above = (exp(-float(line.unit) * weight) for weight in weights)
    column = (1 - below * above) / ((1 + below) * (1 + above))
    down, up = (a / (1 - a * a) / column for a in (below, above))
    return down + up + (down - up) ** 2
