"""From noisy counts to published ones by ranks."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.tables.two_stage import assign, cuts_of


def test_the_published_table_has_the_believed_histogram() -> None:
    believed = np.array([2.0, 4.0, 3.0, 1.0])
    noisy = np.repeat(np.arange(4), [5, 1, 0, 4])
    published = assign(noisy, cuts_of(believed, 10), np.arange(10, dtype=np.uint64))
    np.testing.assert_array_equal(np.bincount(published, minlength=4), believed)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 9), min_size=2, max_size=8), st.integers(1, 40))
def test_cuts_rise_and_are_the_rounded_cumulative_histogram(raw: list[float], size: int) -> None:
    histogram = np.array(raw) + 0.01
    histogram *= size / histogram.sum()
    cuts = cuts_of(histogram, size)
    assert np.all(np.diff(cuts) >= 0)
    assert np.all(np.abs(cuts - np.cumsum(histogram)[:-1]) <= 0.5 + 1e-9)


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
