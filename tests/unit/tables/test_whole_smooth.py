"""Smooth intensities: penalties, modes and evidence against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.tables.matrices.geometric import push_through
from isotone.tables.smooth import Fit, Penalty, Views, first_guess, fit, noise_precision, roughness


def dense(band: NDArray[np.float64]) -> NDArray[np.float64]:
    n = band.shape[1]
    matrix = np.diag(band[0])
    for k in range(1, min(len(band), n)):
        matrix += np.diag(band[k, : n - k], k) + np.diag(band[k, : n - k], -k)
    return matrix


def views_of(truth: NDArray[np.float64], first: float, second: float, seed: int) -> tuple[Views, Fit]:
    rng = np.random.default_rng(seed)
    table = np.repeat(np.arange(len(truth)), truth.astype(int))

    def noise(epsilon: float, size: int) -> NDArray[np.int64]:
        success = -np.expm1(-epsilon)
        return rng.geometric(success, size) - rng.geometric(success, size)

    cumulative = np.cumsum(truth).astype(int)[:-1] + noise(first, len(truth) - 1)
    noisy = np.clip(table + noise(second, len(table)), 0, len(truth) - 1)
    observed = np.bincount(noisy, minlength=len(truth))
    return Views.of(cumulative, noisy, noise_precision(first), second), Fit.start(first_guess(observed))


def minus_log(
    views: Views,
    penalty: Penalty,
    dispersion: NDArray[np.float64],
    logs: NDArray[np.float64],
    h: NDArray[np.float64],
) -> float:
    scatter = np.sum((h * (np.log(h) - logs) - h + np.exp(logs)) / dispersion)
    bent = 0.5 * logs @ dense(penalty.band) @ logs
    return views.misfit(np.cumsum(h)[:-1])[0] + float(scatter + bent)


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize(("n", "order"), [(2, 1), (3, 1), (3, 2), (4, 2), (12, 1), (12, 2)])
def test_a_penalty_is_the_sum_of_squared_differences(n: int, order: int, falling: bool) -> None:
    penalty, theta = roughness(n, order, 0.2, falling), np.random.default_rng(n).normal(size=n)
    scale = 0.2 / (1.0 + np.arange(n - order)) ** falling
    scale[[0, -1]] = 3.0
    expected = np.sum((np.diff(theta, n=order) / scale) ** 2)
    if order == 2:
        expected += np.sum(np.diff(theta) ** 2) / (0.25 * (n - 1))
    assert theta @ dense(penalty.band) @ theta == pytest.approx(float(expected))
    np.testing.assert_allclose(dense(penalty.band) @ np.ones(n), 0.0, atol=1e-9)
    minor = dense(penalty.band)[1:, 1:]
    assert penalty.log_determinant == pytest.approx(np.linalg.slogdet(minor)[1], abs=1e-8)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "dispersion", [np.ones(8), np.full(8, 30.0), np.array([1.0, 1, 1, 1e4, 1, 1, 10, 1])]
)
def test_no_histogram_near_the_mode_is_more_plausible(order: int, dispersion: NDArray[np.float64]) -> None:
    truth = np.array([40.0, 30, 22, 10, 9, 5, 2, 1])
    views, start = views_of(truth, 0.3, 0.8, seed=order)
    penalty = roughness(8, order, 0.5)
    mode = fit(views, penalty, dispersion, start)
    least = minus_log(views, penalty, dispersion, mode.logs, mode.histogram)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(30):
            change = size * np.sqrt(mode.histogram) * rng.normal(size=8)
            h = np.maximum(mode.histogram + change - change.mean(), 1e-9)
            h *= mode.histogram.sum() / h.sum()
            logs = mode.logs + size * rng.normal(size=8)
            assert minus_log(views, penalty, dispersion, logs, h) >= least - 2e-3


@pytest.mark.parametrize("order", [1, 2])
def test_evidence_is_that_of_the_dense_laplace_approximation(order: int) -> None:
    truth = np.array([30.0, 25, 20, 14, 10, 6])
    views, start = views_of(truth, 0.4, 1.0, seed=5)
    penalty, dispersion = roughness(6, order, 0.3), np.array([3.0, 1.0, 50.0, 3.0, 2.0, 7.0])
    mode = fit(views, penalty, dispersion, start)
    h, g = mode.histogram, np.exp(mode.logs)
    step = np.diff(
        np.vstack([np.zeros(5), np.eye(5), np.zeros(5)]), axis=0
    )  # histogram = step @ F + constant
    covariance = dense(views.covariance)
    held, pull = np.diag(1 / (dispersion * np.minimum(h, g))), np.diag(1 / dispersion)
    precision = np.linalg.inv(covariance) + views.precision * np.eye(5) + step.T @ held @ step
    curvature = np.block(
        [
            [precision, -step.T @ pull],
            [-pull @ step, np.diag(g / dispersion) + dense(penalty.band)],
        ]
    )
    evidence = (
        -minus_log(views, penalty, dispersion, mode.logs, h)
        - 0.5 * np.linalg.slogdet(curvature)[1]
        - 0.5 * np.linalg.slogdet(covariance)[1]  # the view's own density, up to the power of 2π
        + 0.5 * penalty.log_determinant
        + 0.5 * np.linalg.slogdet(held)[1]
    )
    assert mode.evidence == pytest.approx(float(evidence), abs=1e-6)


def test_a_smooth_table_is_found_again_from_views_without_noise() -> None:
    truth = 1000 * np.exp(-0.5 * ((np.arange(12) - 6) / 2.5) ** 2)
    exact = np.cumsum(truth)[:-1]
    quiet = np.zeros((2, 11))
    quiet[0] = 1e-3
    views = Views(exact, np.full(11, 1e3), exact, quiet, int(truth.sum()), np.ones(11), truth)
    found = fit(views, roughness(12, 2, 0.3), np.ones(12), Fit.start(push_through(truth, 0.5)))
    np.testing.assert_allclose(np.cumsum(found.histogram)[:-1], exact, atol=0.2)


def test_a_smaller_scale_gives_a_smoother_histogram() -> None:
    truth = np.array([50.0, 5, 60, 4, 55, 6, 52, 7])
    views, start = views_of(truth, 0.1, 0.3, seed=2)
    rough, smooth = (fit(views, roughness(8, 1, scale), np.ones(8), start).histogram for scale in (5.0, 0.01))
    assert np.abs(np.diff(smooth[1:-1])).sum() < 0.5 * np.abs(np.diff(rough[1:-1])).sum()
