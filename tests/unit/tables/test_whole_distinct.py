"""Tables with few distinct counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from isotone.tables.estimate import few_distinct, fit_on, unsmoothed
from isotone.tables.smooth import Views, noise_precision


def views_of(counts: list[int], n: int, first: float, second: float, seed: int) -> Views:
    rng = np.random.default_rng(seed)
    table = np.array(counts)

    def noise(epsilon: float, size: int) -> NDArray[np.int64]:
        success = -np.expm1(-epsilon)
        return rng.geometric(success, size) - rng.geometric(success, size)

    cumulative = np.cumsum(np.bincount(table, minlength=n))[:-1] + noise(first, n - 1)
    return Views.of(
        cumulative, np.clip(table + noise(second, len(table)), 0, n - 1), noise_precision(first), second
    )


@pytest.mark.parametrize(
    "counts", [[7] * 800, [0] * 800, [19] * 800, [3] * 500 + [11] * 300, [0, 9, 19] * 250]
)
def test_the_counts_that_occur_are_found_and_all_others_are_empty(counts: list[int]) -> None:
    truth = np.asarray(np.bincount(counts, minlength=20), np.float64)
    found = few_distinct(views_of(counts, 20, 0.5, 2.5, seed=0).given(truth + 0.5))
    np.testing.assert_array_equal(np.flatnonzero(found.histogram), sorted(set(counts)))
    assert found.histogram.sum() == pytest.approx(len(counts))


def test_a_fit_on_a_support_is_the_least_misfit_of_all_histograms_on_it() -> None:
    views = views_of([1] * 30 + [4] * 20 + [5] * 10, 7, 0.5, 1.0, seed=4)
    support = np.isin(np.arange(7), [1, 4, 5])

    def misfit(free: NDArray[np.float64]) -> float:
        histogram = np.zeros(7)
        histogram[[1, 4, 5]] = [*free, views.size - free.sum()]
        return views.misfit(np.cumsum(histogram)[:-1])[0]

    best = minimize(misfit, np.array([25.0, 25.0]), tol=1e-12)
    found, spread, _ = fit_on(views, support)
    np.testing.assert_allclose(found[[1, 4]], best.x, atol=1e-3)
    corner = np.array([[misfit(best.x + np.array([a, b])) for b in (-1, 0, 1)] for a in (-1, 0, 1)])
    mixed = (corner[2, 2] - corner[2, 0] - corner[0, 2] + corner[0, 0]) / 4  # exact: the misfit is quadratic
    curvature = np.array(
        [
            [corner[2, 1] - 2 * corner[1, 1] + corner[0, 1], mixed],
            [mixed, corner[1, 2] - 2 * corner[1, 1] + corner[1, 0]],
        ]
    )
    np.testing.assert_allclose(spread[[1, 4]], np.sqrt(np.diag(np.linalg.inv(curvature))), rtol=1e-3)
    assert np.all(found[~support] == 0)


@pytest.mark.parametrize("seed", range(6))
def test_elimination_finds_the_most_plausible_of_all_supports_or_one_nearly_as_plausible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.choice(rng.choice(6, 2, replace=False), 300).tolist()
    views = views_of(counts, 6, 0.5, 1.0, seed=seed)
    plausible = [
        fit_on(views, np.isin(np.arange(6), kept))
        for size in range(1, 7)
        for kept in itertools.combinations(range(6), size)
    ]
    best = max(fitted.evidence for histogram, _, fitted in plausible if np.all(histogram >= 0))
    assert few_distinct(views).evidence >= best - 0.5


def test_a_single_count_is_always_possible() -> None:
    found = few_distinct(views_of([1], 3, 0.01, 0.01, seed=0))
    assert np.sum(found.histogram > 0) >= 1
    assert np.isfinite(found.evidence)


@pytest.mark.parametrize("seed", range(6))
def test_a_fit_without_a_model_is_the_least_misfit_of_all_histograms(seed: int) -> None:
    """Within a hundredth of that of non-negative least squares, which no fit can undercut."""
    rng = np.random.default_rng(seed)
    views = views_of((2 * rng.integers(0, 6, 400)).tolist(), 12, 0.2, 0.5, seed)
    found = unsmoothed(views)
    assert np.all(found >= 0)
    assert found.sum() == pytest.approx(400)
    below = np.tril(np.ones((11, 12)))

    def misfit(histogram: NDArray[np.float64]) -> float:
        return views.misfit(below @ histogram)[0]

    total = {"type": "eq", "fun": lambda h: h.sum() - 400}
    best = minimize(
        misfit,
        np.full(12, 400 / 12),
        jac=lambda h: below.T @ views.misfit(below @ h)[1],
        bounds=[(0, None)] * 12,
        constraints=[total],
        options={"maxiter": 2000, "ftol": 1e-12},
    )
    assert misfit(found) <= best.fun + 0.01 * abs(best.fun) + 0.05
