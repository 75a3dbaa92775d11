"""Monotone projection in the norm of a covariance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.isotonic import optimality_gap, quadratic_program, sparse_poset
from tests.support.posets import all_posets

from isotone.errors import InputError
from isotone.noise.simulate import Simulated
from isotone.order import Poset, project, project_covariance


def random_covariance(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    root = rng.normal(size=(size, size + 3))
    return root @ root.T / size


def test_it_meets_the_optimality_conditions_on_every_small_order() -> None:
    rng = np.random.default_rng(0)
    for P in [P for size in (1, 2, 3, 4) for P in all_posets(size)]:
        covariance = random_covariance(len(P), rng)
        for values in (rng.normal(size=len(P)), rng.integers(0, 3, len(P)).astype(float)):
            fitted = project_covariance(P, values, covariance)
            gradient = np.linalg.solve(covariance, fitted - values)
            assert optimality_gap(P, fitted, gradient, 1e-9) < 1e-8


@pytest.mark.parametrize("seed", range(10))
def test_it_agrees_with_a_general_quadratic_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = sparse_poset(20, 0.15, rng)
    values, covariance = 3 * rng.normal(size=20), random_covariance(20, rng) + 0.1 * np.eye(20)
    precision = np.linalg.inv(covariance)
    fitted = project_covariance(P, values, covariance)
    np.testing.assert_allclose(fitted, quadratic_program(P, values, precision), rtol=0, atol=1e-5)
    np.testing.assert_allclose(fitted, project_covariance(P, values, precision=precision), rtol=0, atol=1e-9)


def test_a_diagonal_covariance_is_weighted_least_squares() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        P = sparse_poset(30, 0.1, rng)
        values, variances = rng.normal(size=30), np.exp(rng.normal(size=30))
        expected = project(P, values, 1 / variances)
        np.testing.assert_allclose(
            project_covariance(P, values, np.diag(variances)), expected, rtol=0, atol=1e-10
        )


def test_it_is_optimal_on_a_hundred_elements() -> None:
    rng = np.random.default_rng(2)
    P = sparse_poset(100, 0.06, rng)
    values, covariance = rng.normal(size=100), random_covariance(100, rng) + np.eye(100)
    fitted = project_covariance(P, values, covariance)
    gradient = np.linalg.solve(covariance, fitted - values)
    assert optimality_gap(P, fitted, gradient, 1e-9) < 1e-8


def test_bounds_are_part_of_the_problem() -> None:
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    bounded = project_covariance(Poset.antichain("ab"), [-1.0, 0.5], covariance, lower=0.0)
    # the first is 1 too low, so most of the second's noise is known too: E = 0.5 + 0.9 * 1
    np.testing.assert_allclose(bounded, [0.0, 1.4], atol=1e-12)
    both = project_covariance(Poset.antichain("ab"), [-1.0, 0.5], covariance, lower=0.0, upper=1.0)
    np.testing.assert_allclose(both, [0.0, 1.0], atol=1e-12)


def test_bounds_that_leave_one_point_give_that_point() -> None:
    fitted = project_covariance(Poset.chain("abc"), [3, 1, -2], np.eye(3), lower=2, upper=2)
    assert fitted.tolist() == [2, 2, 2]


def test_monotone_values_come_back_unchanged() -> None:
    covariance = random_covariance(3, np.random.default_rng(3))
    assert project_covariance(Poset.chain("abc"), [1, 2, 2], covariance).tolist() == [1, 2, 2]


def test_a_simulated_array_stays_simulated() -> None:
    noisy = Simulated.wrap([2.0, 1.0])
    assert isinstance(project_covariance(Poset.chain("ab"), noisy, np.eye(2)), Simulated)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ({}, "either covariance or precision"),
        ({"covariance": np.eye(2), "precision": np.eye(2)}, "not both"),
        ({"covariance": np.eye(3)}, "2 × 2"),
        ({"covariance": [[1, 0.5], [0, 1]]}, "symmetric"),
        ({"precision": [[1, 1], [1, 1]]}, "positive definite"),
        ({"covariance": [[1, np.nan], [np.nan, 1]]}, "finite"),
    ],
)
def test_what_is_no_covariance_is_refused(matrices: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        project_covariance(Poset.chain("ab"), [1, 2], **matrices)  # type: ignore[arg-type]
