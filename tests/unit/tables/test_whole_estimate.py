"""The two views of a cumulative histogram: unbiased, with exact covariance for the fixed table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.smooth import (
    Views,
    cumulative_covariance,
    first_guess,
    noise_precision,
    unbiased_cumulative,
)


def influence(n: int, epsilon: float) -> NDArray[np.float64]:
    """Row k: what one noisy count k adds to the unbiased cumulative histogram."""
    return np.array([unbiased_cumulative(row, epsilon) for row in np.eye(n)])


histograms = st.lists(st.integers(0, 40), min_size=2, max_size=9)
epsilons = st.floats(0.05, 6)
uneven = st.tuples(histograms, st.randoms(use_true_random=False)).map(
    lambda drawn: (drawn[0], np.array([drawn[1].uniform(0.05, 4) for _ in drawn[0][1:]]))
)


@settings(max_examples=60, deadline=None)
@given(uneven)
def test_it_is_unbiased_with_a_known_covariance_on_uneven_steps(
    drawn: tuple[list[int], NDArray[np.float64]],
) -> None:
    truth, rates = np.array(drawn[0], float), drawn[1]
    n = len(truth)
    says = np.array([unbiased_cumulative(row, rates) for row in np.eye(n)])
    g = geometric_matrix(n, rates)
    scale = max(1.0, float(np.abs(says).max()) ** 2) * max(1.0, float(truth.sum()))
    np.testing.assert_allclose(truth @ g @ says, np.cumsum(truth)[:-1], atol=1e-11 * scale)
    exact = np.zeros((n - 1, n - 1))
    for count, categories in enumerate(truth):
        mean = g[count] @ says
        exact += categories * ((says.T * g[count]) @ says - np.outer(mean, mean))
    band = cumulative_covariance(truth, rates)
    tridiagonal = np.diag(band[0]) + np.diag(band[1, :-1], 1) + np.diag(band[1, :-1], -1)
    np.testing.assert_allclose(tridiagonal, exact, atol=1e-9 * max(1.0, float(np.abs(exact).max())))


@settings(max_examples=60, deadline=None)
@given(histograms, epsilons)
def test_the_view_through_the_table_is_unbiased_for_every_table(counts: list[int], epsilon: float) -> None:
    truth = np.array(counts, float)
    expected = truth @ geometric_matrix(len(truth), epsilon)
    scale = max(1.0, float(truth.sum())) / epsilon**2
    np.testing.assert_allclose(
        unbiased_cumulative(expected, epsilon), np.cumsum(truth)[:-1], atol=1e-11 * scale
    )


@settings(max_examples=60, deadline=None)
@given(histograms, epsilons)
def test_its_covariance_is_that_of_the_noise_category_by_category(counts: list[int], epsilon: float) -> None:
    n = len(counts)
    says, g = influence(n, epsilon), geometric_matrix(n, epsilon)
    exact = np.zeros((n - 1, n - 1))
    for count, categories in enumerate(counts):
        mean = g[count] @ says
        exact += categories * ((says.T * g[count]) @ says - np.outer(mean, mean))
    band = cumulative_covariance(np.array(counts, float), epsilon)
    tridiagonal = np.diag(band[0]) + np.diag(band[1, :-1], 1) + np.diag(band[1, :-1], -1)
    np.testing.assert_allclose(tridiagonal, exact, atol=1e-10 * max(1.0, float(np.abs(exact).max())))


def test_a_table_drawn_from_a_distribution_would_seem_far_noisier_at_large_epsilon() -> None:
    truth = np.full(10, 50.0)
    g, says = geometric_matrix(10, 5.0), influence(10, 5.0)
    share = truth @ g / truth.sum()
    mean = share @ says
    drawn = truth.sum() * ((says.T * share) @ says - np.outer(mean, mean))
    assert np.min(np.diag(drawn) / cumulative_covariance(truth, 5.0)[0]) > 20


def test_the_precision_of_the_direct_view_is_that_of_geometric_noise() -> None:
    views = Views.of(np.array([1, 2]), np.array([0, 1, 2]), noise_precision(0.3), 1.0)
    k = np.arange(-400, 401)
    weights = np.exp(-0.3 * np.abs(k))
    assert 1 / views.precision[0] == pytest.approx(float((weights / weights.sum()) @ k**2), rel=1e-10)


def test_the_gradient_of_the_misfit_is_its_derivative() -> None:
    rng = np.random.default_rng(3)
    views = Views.of(
        rng.integers(0, 50, 7), rng.integers(0, 8, 50), rng.uniform(0, 0.3, 7), rng.uniform(0.2, 2, 7)
    )
    at, direction = np.sort(rng.uniform(0, 50, 7)), rng.normal(size=7)
    _, gradient = views.misfit(at)
    h = 1e-5
    slope = (views.misfit(at + h * direction)[0] - views.misfit(at - h * direction)[0]) / (2 * h)
    assert slope == pytest.approx(float(gradient @ direction), rel=1e-6)


def test_the_misfit_of_the_views_themselves_is_zero_where_they_agree() -> None:
    same, rates = np.array([3.0, 5.0]), np.ones(2)
    views = Views(same, np.full(2, 0.2), same, np.array([[2.0, 2.0], [-0.5, 0.0]]), 9, rates, np.full(3, 3.0))
    value, gradient = views.misfit(np.array([3.0, 5.0]))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


def test_the_first_guess_is_positive_and_has_all_categories() -> None:
    guess = first_guess(np.array([0, 7, 0, 3]))
    assert np.all(guess > 0)
    assert guess.sum() == pytest.approx(10)
