"""Symmetric banded systems against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.tables import smooth as bands


def dense(band: NDArray[np.float64]) -> NDArray[np.float64]:
    n = band.shape[1]
    matrix = np.zeros((n, n))
    for k in range(min(len(band), n)):
        for i in range(n - k):
            matrix[i + k, i] = matrix[i, i + k] = band[k, i]
    return matrix


def quasi_definite(n: int, width: int, seed: int) -> NDArray[np.float64]:
    """A band with a positive and a negative definite block, interleaved."""
    rng = np.random.default_rng(seed)
    band = rng.normal(size=(width + 1, n))
    band[0] = np.where(np.arange(n) % 3 == 1, -1, 1) * (2 * width + 1 + rng.random(n))
    return band


@pytest.mark.parametrize("width", [0, 1, 2, 6])
@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_solutions_determinants_and_inverses_agree_with_dense_ones(n: int, width: int) -> None:
    band = quasi_definite(n, width, seed=10 * n + width)
    matrix, right = dense(band), np.random.default_rng(n).normal(size=n)
    system = bands.factor(band)
    np.testing.assert_allclose(system.solve(right), np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-11)
    assert system.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)
    inverse, found = np.linalg.inv(matrix), system.inverse()
    for k in range(min(width + 1, n)):
        np.testing.assert_allclose(found[k, : n - k], np.diag(inverse, -k), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(bands.multiply(band, right), matrix @ right, atol=1e-12)


def test_factoring_leaves_the_matrix_as_it_was() -> None:
    band = quasi_definite(8, 2, seed=1)
    before = band.copy()
    with bands.many_systems():
        bands.factor(band).inverse()
    np.testing.assert_array_equal(band, before)
