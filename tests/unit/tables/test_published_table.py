"""Errors and intervals of a published table, against sums over all true counts."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee
from isotone.tables.published_table import PublishedTable

UPPER, STEP = 6, 0.7
SHARES = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])
NOISY = np.array([0, 3, 3, 6, 1])
VALUES = np.array([1, 2, 3, 6, 0])


def table(values=VALUES, noisy=NOISY):
    promise = Guarantee.pure(1)
    return PublishedTable(
        values, UPPER, "rows", "isotonic", SHARES, noisy, np.zeros(UPPER, np.int64), STEP, promise
    )


def believed(k):
    """P(true = i | noisy = k): twenty categories spread evenly are added to those that the shares stand for."""
    prior = [len(NOISY) * share + Fraction(20, UPPER + 1) for share in map(Fraction, SHARES.tolist())]
    weights = [float(p) * exp(-STEP * abs(i - k)) for i, p in enumerate(prior)]
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize("k", range(UPPER + 1))
def test_a_posterior_is_the_shares_times_the_noise(k):
    assert table().posterior(k) == pytest.approx(believed(k), rel=1e-12)


def test_a_deviation_is_the_root_of_the_expected_squared_error():
    counts = np.arange(UPPER + 1)
    wanted = [np.sqrt(believed(k) @ (counts - value) ** 2) for k, value in zip(NOISY, VALUES, strict=True)]
    assert table().deviation() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_an_interval_leaves_out_half_of_the_rest_on_each_side_and_is_no_wider(level):
    low, high = table().interval(level)
    for k, a, b in zip(NOISY, low, high, strict=True):
        law, tail = believed(k), (1 - level) / 2
        assert law[:a].sum() < tail <= law[: a + 1].sum() + 1e-12
        assert law[b + 1 :].sum() <= tail + 1e-12
        assert law[b:].sum() > tail - 1e-12
        assert law[a : b + 1].sum() >= level - 1e-9


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, "x"])
def test_an_impossible_confidence_is_refused(level):
    with pytest.raises(InputError):
        table().interval(level)
