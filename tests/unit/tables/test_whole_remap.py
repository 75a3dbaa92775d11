"""From noisy counts to published ones by thresholds."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from isotone.tables.estimate.remap import assign, thresholds
from isotone.tables.matrices.geometric import geometric_matrix


def cost(
    t: int,
    m: int,
    observed: NDArray[np.int64],
    histogram: NDArray[np.float64],
    deviation: float,
    epsilon: float,
    price: float,
) -> float:
    """Expected count error at threshold t plus price times expected distribution error, from first principles."""
    n = len(observed)
    joint = histogram[:, None] * geometric_matrix(n, epsilon)
    below = joint[: t + 1].sum(axis=0) / joint.sum(axis=0)
    ranked = np.repeat(below, observed)  # P(count <= t) of the categories, smallest noisy counts first
    wrong = np.sum(1 - ranked[:m]) + np.sum(ranked[m:])
    apart = m - float(np.sum(histogram[: t + 1]))
    z = apart / deviation
    return float(wrong + price * (apart * (2 * norm.cdf(z) - 1) + 2 * deviation * norm.pdf(z)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 3.0, 20.0]), st.sampled_from([0.2, 1.0, 3.0]))
def test_every_threshold_is_where_the_expected_cost_is_least_unless_an_earlier_one_is_higher(
    seed: int, price: float, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(2, 6)), int(rng.integers(1, 25))
    observed = rng.multinomial(size, rng.dirichlet(np.ones(n)))
    histogram = rng.dirichlet(np.ones(n)) * size
    deviation = rng.uniform(0.3, 3.0, n - 1)
    cuts = thresholds(observed, histogram, deviation, epsilon, price)
    best = 0
    for t in range(n - 1):
        costs = [cost(t, m, observed, histogram, deviation[t], epsilon, price) for m in range(size + 1)]
        best = max(best, int(np.argmin(costs)))  # cuts never fall
        # a cut is a real minimiser rounded: within one category of the best, or as good
        assert abs(int(cuts[t]) - best) <= 1 or costs[int(cuts[t])] <= costs[best] + 1e-9


def test_an_infinite_price_publishes_the_believed_histogram() -> None:
    observed, believed = np.array([5, 1, 0, 4]), np.array([2.0, 4.0, 3.0, 1.0])
    cuts = thresholds(observed, believed, np.ones(3), 0.5, math.inf)
    noisy = np.repeat(np.arange(4), observed)
    published = assign(noisy, cuts, np.arange(10, dtype=np.uint64))
    np.testing.assert_array_equal(np.bincount(published, minlength=4), believed)


def test_a_larger_price_comes_nearer_to_the_believed_histogram() -> None:
    rng = np.random.default_rng(8)
    believed = np.array([100.0, 300, 400, 150, 50])
    table = np.repeat(np.arange(5), believed.astype(int))
    noisy = np.clip(table + rng.geometric(0.5, 1000) - rng.geometric(0.5, 1000), 0, 4)
    observed = np.bincount(noisy, minlength=5)
    apart = [
        int(
            np.abs(
                thresholds(observed, believed, np.full(4, 5.0), math.log(2), price) - np.cumsum(believed)[:-1]
            ).sum()
        )
        for price in (0.1, 1.0, 3.0, math.inf)
    ]
    assert apart == sorted(apart, reverse=True)
    assert apart[0] > 100 > apart[-1] == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=30), st.lists(st.integers(0, 30), min_size=4, max_size=4)
)
def test_assignment_keeps_the_order_of_noisy_counts_and_meets_the_cuts(
    noisy: list[int], raw: list[int]
) -> None:
    values = np.array(noisy)
    cuts = np.minimum(np.sort(raw), len(noisy))
    ties = np.random.default_rng(1).integers(0, 1 << 64, len(noisy), np.uint64)
    published = assign(values, cuts, ties)
    np.testing.assert_array_equal(np.cumsum(np.bincount(published, minlength=5))[:-1], cuts)
    groups = [published[values == k] for k in np.unique(values)]
    assert all(a.max() <= b.min() for a, b in itertools.pairwise(groups))


def test_equal_noisy_counts_are_ordered_by_chance_alone() -> None:
    noisy, cuts = np.zeros(4, np.int64), np.array([2])
    ties = np.array([9, 1, 7, 3], np.uint64) << np.uint64(60)
    np.testing.assert_array_equal(assign(noisy, cuts, ties), [1, 0, 1, 0])
    permuted = [2, 0, 3, 1]
    np.testing.assert_array_equal(assign(noisy, cuts, ties[permuted]), assign(noisy, cuts, ties)[permuted])


def test_certainty_and_indifference_do_not_divide_by_zero() -> None:
    cuts = thresholds(np.array([3, 3]), np.array([6.0, 0.0]), np.zeros(1), 1.0, 3.0)
    assert cuts.tolist() == [6]
    assert thresholds(np.array([0, 4]), np.array([0.0, 4.0]), np.full(1, 1e-6), 0.1, 0.2).tolist() == [0]
