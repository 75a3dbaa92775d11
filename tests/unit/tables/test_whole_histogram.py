"""The estimate of a histogram from both views, whatever its shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from isotone.tables import estimate as whole
from isotone.tables import smooth
from isotone.tables.estimate import HistogramEstimate, stand_out
from isotone.tables.smooth import Fit, Views, noise_precision


def estimated(direct: Any, noisy: Any, precision: Any, rates: Any) -> HistogramEstimate:
    return whole.estimate_histogram(Views.of(direct, noisy, precision, rates))


def measured(
    table: NDArray[np.int64], n: int, first: float, second: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)

    def noise(epsilon: float, size: int) -> NDArray[np.int64]:
        success = -np.expm1(-epsilon)
        return rng.geometric(success, size) - rng.geometric(success, size)

    cumulative = np.cumsum(np.bincount(table, minlength=n))[:-1] + noise(first, n - 1)
    return cumulative, np.clip(table + noise(second, len(table)), 0, n - 1)


def distance(histogram: NDArray[np.float64], table: NDArray[np.int64]) -> float:
    truth = np.bincount(table, minlength=len(histogram))
    return float(np.abs(np.cumsum(histogram - truth)).sum())


SHAPES = {
    "bell": np.random.default_rng(1).binomial(30, 0.4, 4000),
    "decay": np.random.default_rng(2).geometric(0.15, 4000).clip(1, 31) - 1,
    "zeros": np.where(
        np.random.default_rng(3).random(4000) < 0.6, 0, np.random.default_rng(4).integers(0, 31, 4000)
    ),
    "atoms": np.random.default_rng(5).choice([2, 11, 29], 4000),
    "comb": 3 * np.random.default_rng(6).integers(0, 11, 4000),
}


@pytest.mark.parametrize("name", SHAPES)
def test_both_views_together_beat_the_isotonic_projection_of_the_first(name: str) -> None:
    table = SHAPES[name]
    ours, alone = 0.0, 0.0
    for seed in range(3):
        cumulative, noisy = measured(table, 31, 0.1, 0.6, seed)
        ours += distance(estimated(cumulative, noisy, noise_precision(0.1), 0.6).histogram, table)
        rising = np.clip(isotonic_regression(cumulative.astype(float)).x, 0, len(table))
        alone += distance(np.diff(rising, prepend=0.0, append=float(len(table))), table)
    assert ours < 0.95 * alone


@pytest.mark.parametrize(("n", "size"), [(2, 1), (2, 50), (3, 1), (3, 40), (4, 7), (5, 1), (150, 3)])
def test_small_tables_give_a_histogram_of_all_their_categories(n: int, size: int) -> None:
    table = np.arange(size) % n
    cumulative, noisy = measured(table, n, 0.3, 0.7, seed=size)
    found = estimated(cumulative, noisy, noise_precision(0.3), 0.7)
    assert found.histogram.shape == (n,)
    assert np.all(found.histogram >= 0)
    assert found.histogram.sum() == pytest.approx(size)


@pytest.mark.parametrize("first", [1e-4, 0.01, 3.0, 20.0])
@pytest.mark.parametrize("second", [1e-3, 0.05, 5.0, 30.0])
def test_extreme_privacy_parameters_still_give_a_histogram(first: float, second: float) -> None:
    table = SHAPES["decay"][:500]
    cumulative, noisy = measured(table, 31, first, second, seed=1)
    found = estimated(cumulative, noisy, noise_precision(first), second)
    assert np.all(np.isfinite(found.histogram))
    assert found.histogram.sum() == pytest.approx(500)
    if second >= 5:
        assert distance(found.histogram, table) < 60


def test_wild_measurements_do_not_raise() -> None:
    wild = np.array([10**6, -(10**6), 5, 0, 10**9])
    found = estimated(wild, np.array([0, 5, 5, 2]), 0.1, 0.5)
    assert np.all(np.isfinite(found.histogram))


def test_the_model_is_named_in_words() -> None:
    cumulative, noisy = measured(np.full(900, 7), 20, 0.5, 1.5, seed=0)
    assert estimated(cumulative, noisy, noise_precision(0.5), 1.5).model == "1 distinct count"
    cumulative, noisy = measured(SHAPES["bell"], 31, 0.5, 1.0, seed=0)
    assert estimated(cumulative, noisy, noise_precision(0.5), 1.0).model.startswith("differences of order 2")


def test_a_power_law_is_told_by_a_scale_that_falls() -> None:
    """Smooth in the logarithm of the count: bent at the first counts, straight further on. Seeded."""
    table = np.repeat(np.arange(60), np.round(4000.0 * np.arange(1, 61) ** -1.7).astype(int))
    cumulative, noisy = measured(table, 60, 0.05, 1.0, seed=2)
    assert "that falls" in estimated(cumulative, noisy, noise_precision(0.05), 1.0).model


def test_round_numbers_that_stand_out_are_told_from_the_ground() -> None:
    rng = np.random.default_rng(9)
    plain = rng.gamma(3, 12, 5000)
    heaped = np.where(rng.random(5000) < 0.7, 10 * np.round(plain / 10), plain).astype(int).clip(0, 79)
    cumulative, noisy = measured(heaped, 80, 0.3, 1.0, seed=1)
    out, ground = stand_out(Views.of(cumulative, noisy, noise_precision(0.3), 1.0))
    assert np.all(ground >= 0)
    round_numbers = np.arange(80) % 10 == 0
    assert np.count_nonzero(out & round_numbers) >= 5
    assert np.count_nonzero(out & ~round_numbers) <= 2
    found = estimated(cumulative, noisy, noise_precision(0.3), 1.0)
    assert "spikes" in found.model
    truth = np.bincount(heaped, minlength=80)
    assert np.all(found.histogram[10:60:10] > 0.8 * truth[10:60:10])
    assert np.all(found.histogram[15:55:10] < 0.5 * truth[10:50:10])


def test_the_top_of_a_narrow_bell_is_proposed_as_a_spike_and_not_taken_for_one() -> None:
    cumulative, noisy = measured(SHAPES["bell"], 31, 0.3, 1.0, seed=3)
    assert np.any(stand_out(Views.of(cumulative, noisy, noise_precision(0.3), 1.0))[0])
    assert "spikes" not in estimated(cumulative, noisy, noise_precision(0.3), 1.0).model


def test_counts_are_not_said_to_be_absent_where_nothing_can_be_resolved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a model is not even tried.

    With the old rule (categories times ε of 25 or more) intervals built on such a model held for a quarter of a table.
    """
    table = np.random.default_rng(8).poisson(4, 2000)
    for seed in range(4):
        _, noisy = measured(table, 31, 1.0, 0.1, seed)
        found = estimated(np.zeros(30, np.int64), noisy, 0.0, 0.1)
        assert "distinct" not in found.model
    tried: list[bool] = []
    monkeypatch.setattr(whole, "few_distinct", lambda views: tried.append(True))
    estimated(np.zeros(30, np.int64), table, 0.0, 0.1)
    assert not tried
    estimated(np.zeros(30, np.int64), table, 0.0, 1.0)
    assert tried


def test_only_measured_thresholds_speak() -> None:
    table = SHAPES["bell"]
    _, noisy = measured(table, 31, 1.0, 0.4, seed=2)
    precision = np.zeros(30)
    precision[[3, 12]] = 4.0
    direct = np.cumsum(np.bincount(table, minlength=31))[:-1]
    wild = direct.copy()
    wild[precision == 0] = -(10**7)
    one, two = (estimated(view, noisy, precision, 0.4).histogram for view in (direct, wild))
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.cumsum(one)[[3, 12]], direct[[3, 12]], atol=5)


def test_models_that_cannot_be_told_apart_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no evidence for or against any model the histogram is the plain mean of all that were tried."""
    tried: list[NDArray[np.float64]] = []
    plain = smooth.fit

    def indifferent(views: Any, penalty: Any, dispersion: Any, start: Any) -> Fit:
        found = plain(views, penalty, dispersion, start)
        tried.append(found.histogram)
        # the first search sees dispersion 1 alone, so that all of its shapes are as likely
        return replace(found, evidence=float(np.log(dispersion[0])))

    monkeypatch.setattr(smooth, "fit", indifferent)
    search = smooth.ModelSearch(
        Views.of(*measured(SHAPES["decay"][:60], 31, 0.2, 0.5, 1), 0.02, 0.5), whole._shapes(31)
    )  # pyright: ignore[reportPrivateUsage]
    found = search.blended(search.best(Fit.start(np.full(31, 60 / 31))))
    np.testing.assert_allclose(found.fit.histogram, np.mean(tried, axis=0))
    assert np.ptp([histogram[0] for histogram in tried]) > 0.1


def test_a_comb_whose_thresholds_are_all_measured_is_not_smoothed_away() -> None:
    """Nearly as close as the isotonic projection of its thresholds, which smoothing is not, and a smooth table is left smooth."""
    ours, alone, mixed = 0.0, 0.0, 0
    for seed in range(4):
        table = 2 * np.random.default_rng(seed).geometric(0.12, 10_000).clip(1, 30)
        cumulative, noisy = measured(table, 61, 0.05, 0.05, seed)
        found = estimated(cumulative, noisy, noise_precision(0.05), 0.05)
        mixed += "without a model" in found.model
        ours += distance(found.histogram, table)
        rising = np.clip(isotonic_regression(cumulative.astype(float)).x, 0, len(table))
        alone += float(np.abs(rising - np.cumsum(np.bincount(table, minlength=61))[:-1]).sum())
    assert mixed == 4
    assert ours <= 1.08 * alone
    for name in ("bell", "decay"):
        cumulative, noisy = measured(SHAPES[name], 31, 0.1, 0.1, 0)
        assert "without a model" not in estimated(cumulative, noisy, noise_precision(0.1), 0.1).model
    few = np.where(np.arange(60) % 2 == 0, noise_precision(0.05), 0.0)  # half of the thresholds
    cumulative, noisy = measured(
        2 * np.random.default_rng(0).geometric(0.12, 10_000).clip(1, 30), 61, 0.05, 0.05, 0
    )
    assert "without a model" not in estimated(cumulative, noisy, few, 0.05).model
