"""Estimates and intervals of a published table, against sums over all true counts."""

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.noise import UnevenLine
from isotone.privacy.guarantee import Guarantee
from isotone.tables.estimate.beliefs import spared
from isotone.tables.estimate.unbiased import largest_deviation, unbiased
from isotone.tables.published_table import PublishedTable, Stratum
from isotone.tables.thresholds import SMALL, Thresholds
from isotone.tables.two_stage import TwoStageMechanism

UPPER = 6
SHARES = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])
NOISY = np.array([-2, 3, 3, 9, 1])
VALUES = np.array([1, 2, 3, 6, 0])
THRESHOLDS = Thresholds(UPPER, Fraction(7, 10), (0, 3), Fraction(1, 2))
RATES = [0.35, 0.7, 0.7, 0.35, 0.7, 0.7]


def table(method: Any = "table"):
    stratum = Stratum(np.arange(5), NOISY, np.zeros(2, np.int64), THRESHOLDS, SHARES, "a model", method)
    return PublishedTable(VALUES, UPPER, (stratum,), Guarantee.pure(1))


def believed(k, doubt=40):
    """P(true = i | noisy = k): forty categories spread evenly are added to those that the shares stand for."""
    k = min(max(k, 0), UPPER)
    prior = [len(NOISY) * share + Fraction(doubt, UPPER + 1) for share in map(Fraction, SHARES.tolist())]
    weights = [float(p) * exp(-sum(RATES[min(i, k) : max(i, k)])) for i, p in enumerate(prior)]
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize("k", range(UPPER + 1))
def test_a_posterior_is_the_shares_times_the_noise(k):
    assert table().strata[0].beliefs.posterior(k) == pytest.approx(believed(k), rel=1e-12)


def test_an_estimate_is_the_posterior_mean_without_doubt():
    wanted = [believed(k, doubt=0) @ np.arange(UPPER + 1) for k in NOISY]
    assert table().estimates == pytest.approx(wanted, rel=1e-12)
    assert table("noise").estimates.tolist() == [0, 3, 3, 6, 1]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_an_interval_is_the_central_one_without_an_end_that_it_can_spare(level):
    low, high = table().interval(level)
    for k, a, b in zip(NOISY, low, high, strict=True):
        law, tail = believed(k), (1 - level) / 2
        first = int(np.argmax(np.cumsum(law) >= tail))
        last = UPPER - int(np.argmax(np.cumsum(law[::-1]) >= tail))
        while law[first : last + 1].sum() - min(law[first], law[last]) >= level:
            first, last = (first + 1, last) if law[first] < law[last] else (first, last - 1)
        assert (a, b) == (first, last)
        assert law[a : b + 1].sum() >= level - 1e-9


@pytest.mark.parametrize("level", [1e-17, 1e-300])
def test_an_interval_of_hardly_any_confidence_has_a_count(level):
    assert spared(np.array([0.5, 0.3, 0.2]), level) == (0, 0)
    assert spared(np.array([1.0]), level) == (0, 0)
    assert spared(np.full(4, 0.25), level)[0] >= 0
    low, high = table().interval(level)
    assert np.all((low >= 0) & (low <= high))


@pytest.mark.parametrize(
    ("epsilon", "least"), [("0.1", 0.8069), ("0.3", 0.9297), ("1", 0.9272), ("2", 0.9677)]
)
def test_intervals_of_few_categories_hold_on_average_over_all_counts(epsilon, least):
    """Exactly, by the law of the clamped noise. Counts at the ends of the range have less: the theory page says so."""
    thresholds, counts = TwoStageMechanism(50, epsilon).measurement(SMALL - 1), np.arange(51)
    low, high = thresholds.beliefs(np.full(51, 1 / 51), SMALL - 1).intervals(counts, 0.95)
    inside = (low <= counts[:, None]) & (counts[:, None] <= high)
    kept = np.sum(thresholds.channel() * inside, axis=1)
    assert kept.mean() >= 0.95
    assert kept.min() == pytest.approx(least, abs=1e-4)


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
