"""Bands: their parts against plain loops and sums, and what the estimator says about them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.estimators import grouped

from isotone.curves import PrivateIsotonicRegression
from isotone.curves.bands import (
    COUNT,
    ROUNDING,
    TESTED,
    VALUES,
    LineBand,
    MeasuredSums,
    StepBand,
    TurnedBand,
    credible_band,
    cumulant,
    log_threshold,
    population_band,
    reach,
    records_band,
    tilts,
)
from isotone.curves.posterior import CurvePosterior, NoisySums, pooled
from isotone.errors import InputError
from isotone.noise import simulate


def sums_of(ones: Any, zeros: Any, rate: Any = Fraction(1), unit: int = 1, variance: Any = None) -> NoisySums:
    size = len(ones)
    starts = np.array([0, 2, 3, 7, 8, 11, 15, 16][:size])
    return NoisySums(
        starts, np.array(ones, np.int64), np.array(zeros, np.int64), unit, rate, 20, variance=variance
    )


LAWS = [
    (Fraction(1, 2), 1, None),
    (Fraction(9, 10), 1, None),
    (Fraction(3), 1, None),
    (Fraction(1, 5), 4, None),
    (None, 1, Fraction(1, 10)),
    (None, 1, Fraction(7)),
    (None, 4, Fraction(300)),
]


def chances(rate: Fraction | None, variance: Fraction | None, k: Any) -> Any:
    """The law of one noise in whole numbers, written down."""
    if rate is not None:
        return math.tanh(rate / 2) * np.exp(-float(rate) * np.abs(k))
    assert variance is not None
    scale = math.sqrt(2 * variance)
    return np.array([(math.erf((at + 0.5) / scale) - math.erf((at - 0.5) / scale)) / 2 for at in k.tolist()])


@pytest.mark.parametrize(("rate", "unit", "variance"), LAWS)
def test_an_e_value_has_mean_one_at_the_value_and_less_above(
    rate: Fraction | None, unit: int, variance: Fraction | None
) -> None:
    """Over all noises of both sums and both labels of a record, for all tilts of some values."""
    sums = sums_of([0], [0], rate, unit, variance)
    thetas, etas = tilts(sums)
    assert thetas.shape == (VALUES.size - 2, COUNT)
    assert max(thetas.max(), etas.max()) < 0.86 * reach(sums)
    k = np.arange(-700, 701)
    law = chances(rate, variance, k)
    k, law = k[law > 1e-300], law[law > 1e-300]
    for place in (1, 40, 300, 400, 700, 799):
        v, theta, eta = VALUES[place], thetas[place - 1], etas[place - 1]
        seen = v * np.exp(-theta) + (1 - v) * np.exp(eta)
        np.testing.assert_allclose(seen, 1.0, atol=1e-13)
        assert np.all((v + 1e-3) * np.exp(-theta) + (1 - v - 1e-3) * np.exp(eta) < 1)
        for t in (theta, eta):
            summed = (law * np.exp(-t[:, None] * k / unit)).sum(axis=1)
            np.testing.assert_allclose(np.log(summed), cumulant(sums, t), atol=2e-6)


def test_wide_gaussian_noise_has_a_bound_above_its_law() -> None:
    sums = sums_of([0], [0], None, 1, Fraction(80**2))
    t, k = np.array([0.001, 0.02, 0.1]), np.arange(-3000, 3001)
    law = chances(None, Fraction(80**2), k)
    summed = np.log((law * np.exp(t[:, None] * k)).sum(axis=1))
    assert np.all(summed <= cumulant(sums, t))
    np.testing.assert_allclose(summed, cumulant(sums, t), rtol=0.1, atol=2e-3)


@pytest.mark.parametrize(("points", "confidence"), [(2, 0.5), (4096, 0.95), (1 << 40, 0.999)])
def test_the_threshold_shares_what_may_go_wrong(points: int, confidence: float) -> None:
    x = log_threshold(points, confidence)
    assert 2 * points * COUNT * (1 + x) * math.exp(-x) == pytest.approx(1 - confidence, rel=1e-6)
    # two independent numbers that reach e^t with probability e^-t at most: their product
    steps = np.linspace(0, x, 200_001)
    product = math.exp(-x) + np.trapezoid(np.exp(-steps) * np.exp(-(x - steps)), steps)
    assert (1 + x) * math.exp(-x) == pytest.approx(product, rel=1e-6)


def plain_highs(sums: NoisySums, log_limit: float) -> list[float]:
    """For every bin: one step above the largest tested value that no run of bins from there on rejects."""
    ones, zeros = (part.tolist() for part in sums.in_records)
    thetas, etas = tilts(sums)
    noises = cumulant(sums, thetas) + cumulant(sums, etas)
    found: list[float] = []
    for first in range(sums.starts.size):
        kept = 0
        for place in range(1, VALUES.size - 1):
            rejected = False
            for theta, eta, noise in np.stack([thetas, etas, noises], axis=2)[place - 1].tolist():
                log_e = 0.0
                for b in range(first, sums.starts.size):
                    log_e += -theta * ones[b] + eta * zeros[b] - noise
                    rejected = rejected or log_e >= log_limit
            kept = kept if rejected else place
        found.append(float(VALUES[kept + 1]))
    return found


def test_the_population_band_is_that_of_all_runs_of_bins() -> None:
    sums = sums_of([2, 40, 900], [700, 90, -3], Fraction(1, 2))
    band = population_band(sums, 0.9)
    limit = log_threshold(20, 0.9)
    highs, lows = plain_highs(sums, limit), plain_highs(sums.mirrored().upside_down(), limit)[::-1]
    assert min(highs) < 0.1
    assert min(lows) < 0.1
    low, high = band.at(np.arange(20))
    for g in range(20):
        assert high[g] == min([1.0, *(highs[b] for b, start in enumerate((0, 2, 3)) if start >= g)])
        assert low[g] == pytest.approx(
            max([0.0, *(1 - lows[b] for b, end in enumerate((1, 2, 19)) if end <= g)])
        )


def test_an_upper_end_comes_from_bins_at_or_after_the_point_and_a_lower_end_from_those_before() -> None:
    band = population_band(sums_of([0, 0, 0], [900, 900, 900]), 0.95)
    low, high = band.at(np.arange(20))
    assert np.all(low == 0)
    assert np.all(high[:4] < 0.05)
    assert np.all(high[4:] == 1)
    band = population_band(sums_of([900, 900, 900], [0, 0, 0]), 0.95)
    low, high = band.at(np.arange(20))
    assert np.all(high == 1)
    assert low[0] == 0
    assert np.all(low[1:] > 0.95)


def test_more_confidence_and_less_privacy_loss_make_bands_wider() -> None:
    wide: dict[str, list[float]] = {"population": [], "records": []}
    for rate, confidence in ((Fraction(1), 0.9), (Fraction(1), 0.999), (Fraction(1, 10), 0.999)):
        sums = sums_of([10, 200, 500], [400, 200, 20], rate)
        for kind, band in (("population", population_band), ("records", records_band)):
            low, high = band(sums, confidence).at(np.arange(20))
            wide[kind].append(float(np.mean(high - low)))
    for widths in wide.values():
        assert widths == sorted(widths)
        assert widths[0] < widths[-1]


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_all_means_bracket_the_pooled_fit(seed: int) -> None:
    """Against a plain search through means of all runs; and the true fit is inside, with noise as drawn."""
    rng = np.random.default_rng(seed)
    ones, zeros = rng.integers(0, 60, (2, 5))
    rate = Fraction(1, 2)
    noise = np.asarray(simulate.two_sided_geometrics(rng, rate, 10)).reshape(2, 5)
    sums = sums_of(ones + noise[0], zeros + noise[1], rate)
    low, high = records_band(sums, 0.9).at(sums.starts)
    fit = pooled(ones / (ones + zeros), (ones + zeros).astype(float))
    assert np.all(low <= fit)
    assert np.all(fit <= high)
    v, limits = np.linspace(0, 1, 4001), dict[tuple[int, int], tuple[float, float]]()
    t = np.linspace(0.002, 0.98, 400)[:, None] * 0.5
    each = cumulant(sums, t * (1 - v)) + cumulant(sums, t * v)
    for i, j in itertools.combinations_with_replacement(range(5), 2):
        a, c = sums.ones[i : j + 1].sum(), sums.zeros[i : j + 1].sum()
        moved = ((math.log(5 * 6 / 0.1) + (j + 1 - i) * each) / t).min(axis=0)
        kept = v[np.abs((1 - v) * a - v * c) <= moved]
        limits[i, j] = (kept.min(), kept.max()) if kept.size else (0.0, 1.0)
    cell = float(np.diff(TESTED).max())
    for k in range(5):
        least = max(min(limits[i, j][0] for j in range(k, 5)) for i in range(k + 1))
        most = min(max(limits[i, j][1] for i in range(k + 1)) for j in range(k, 5))
        assert least - 5 * cell <= low[k] <= least + 1e-9
        assert most - 1e-9 <= high[k] <= most + 5 * cell


def test_without_noise_the_records_band_is_the_fit() -> None:
    ones, zeros = np.array([5, 30, 20, 80]), np.array([95, 70, 80, 20])
    sums = sums_of(1000 * ones, 1000 * zeros, Fraction(20))
    low, high = records_band(sums, 0.95).at(sums.starts)
    fit = pooled(ones / 100, np.full(4, 100.0))
    assert np.all(low <= fit)
    assert np.all(fit <= high)
    assert np.all(high - low < 0.02)


def test_sums_that_noise_made_negative_say_nothing() -> None:
    low, high = records_band(sums_of([-8, 3], [1, 4], Fraction(5)), 0.5).at(np.arange(3))
    assert low[0] == 0
    assert high[0] == 1


def test_the_ends_of_a_credible_band_are_in_order_where_bins_are_rounded_apart() -> None:
    """Straight log odds between two values of the grid: the first bin is rounded up and the second down."""
    sums = NoisySums(np.array([0, 2]), np.array([2000, 1880]), np.array([8000, 8120]), 1, Fraction(1), 4)
    low, high = MeasuredSums(sums, True, True, 51).band(0.95, "credible").at(np.arange(4))
    assert np.all((low < 0.194) & (high > 0.194))


def test_a_credible_band_is_the_middle_of_the_posterior() -> None:
    chances = np.array([[0.5, 0.3, 0.2, 0.0], [0.02, 0.48, 0.48, 0.02], [0.0, 0.0, 0.1, 0.9]])
    none = np.zeros(3)
    posterior = CurvePosterior(np.array([0.0, 0.2, 0.6, 1.0]), chances, none, none, none, none)
    sums = sums_of([0, 0, 0], [0, 0, 0])
    band = credible_band(sums, posterior, 0.9)
    np.testing.assert_allclose(band.middles, [0.5, 2.0, 11.0])
    np.testing.assert_allclose(band.lows, [0.0, 0.2, 0.6])
    np.testing.assert_allclose(band.highs, [0.6, 0.6, 1.0])
    np.testing.assert_allclose(band.at(np.array([0, 2, 19])), [[0.0, 0.2, 0.6], [0.6, 0.6, 1.0]])
    np.testing.assert_allclose(credible_band(sums, posterior, 0.999).highs[1], 1.0)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("levels", [21, 101])
def test_a_credible_band_leaves_out_half_of_what_is_left_on_either_side(
    levels: int, confidence: float
) -> None:
    """Of a posterior with many values: no more lies outside than stated, and with one value less at either end more does."""
    values = np.linspace(0, 1, levels)
    chances = np.exp(-0.5 * ((values - 0.5) / 0.2) ** 2)[None].repeat(3, axis=0)
    chances /= chances.sum(axis=1, keepdims=True)
    none = np.zeros(3)
    band = credible_band(
        sums_of([0, 0, 0], [0, 0, 0]), CurvePosterior(values, chances, none, none, none, none), confidence
    )
    low, high = (int(np.argmin(np.abs(values - end))) for end in (band.lows[0], band.highs[0]))
    outside = chances[0, :low].sum(), chances[0, high + 1 :].sum()
    assert max(outside) <= (1 - confidence) / 2 + 1e-12
    assert chances[0, : low + 1].sum() > (1 - confidence) / 2
    assert chances[0, high:].sum() > (1 - confidence) / 2
    assert low + high == levels - 1


def test_bands_at_points() -> None:
    band = StepBand(np.array([2, 5]), np.array([0.1, 0.3]), np.array([0, 4]), np.array([0.5, 0.7]), 8)
    low, high = band.at(np.arange(8))
    assert low.tolist() == [0, 0, 0.1, 0.1, 0.1, 0.3, 0.3, 0.3]
    assert high.tolist() == [0.5, 0.7, 0.7, 0.7, 0.7, 1, 1, 1]
    assert band.corners.tolist() == [0, 1, 2, 4, 5, 7]
    turned = TurnedBand(band, 8)
    assert turned.at(np.arange(8)).low.tolist() == low[::-1].tolist()
    assert turned.corners.tolist() == [0, 2, 3, 5, 6, 7]
    crossing = StepBand(np.array([0]), np.array([0.8]), np.array([7]), np.array([0.3]), 8)
    assert crossing.at(np.array([4])) == (0.3, 0.8)  # sums that contradict a rising curve: no empty band
    wide = band.widened(0.2)
    assert wide.lows.tolist() == [0.0, pytest.approx(0.1)]
    assert wide.highs.tolist() == [
        0.7,
        pytest.approx(0.9),
    ]
    line = LineBand(np.array([1.5, 4.0]), np.array([0.0, 0.5]), np.array([1.0, 1.0]), 6)
    assert line.corners.tolist() == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("kind", ["population", "records"])
def test_bands_cover_and_a_fifth_of_the_width_does_not(kind: str) -> None:
    """Seeded draws of the two sums, a curve of three values: 50 % is guaranteed, and far more is kept."""
    rng = np.random.default_rng(5)
    f, n = np.array([0.2, 0.5, 0.9]), np.array([60, 200, 80])
    missed, missed_by_fifth = 0, 0
    for _ in range(60):
        ones = rng.binomial(n, f)
        noise = np.asarray(simulate.two_sided_geometrics(rng, 1, 6)).reshape(2, 3)
        sums = sums_of(ones + noise[0], n - ones + noise[1])
        if kind == "population":
            truth, band = f, population_band(sums, 0.5)
        else:
            truth, band = pooled(ones / n, n.astype(float)), records_band(sums, 0.5)
        low, high = band.at(np.array([0, 2, 3]))
        missed += bool(np.any(truth < low) or np.any(truth > high))
        low, high = (3 * low + 2 * high) / 5, (2 * low + 3 * high) / 5
        missed_by_fifth += bool(np.any(truth < low) or np.any(truth > high))
    assert missed <= 3
    assert missed_by_fifth >= 15


def fitted(rounds: int = 60, **given: Any) -> PrivateIsotonicRegression:
    """A fit to labels whose mean rises from 0 to 1 over 50 whole numbers, so many records at each."""
    x = np.arange(50 * rounds) % 50
    y = (np.arange(50 * rounds) // 50 * 37 % rounds < x * rounds / 49) * 1.0
    every: dict[str, Any] = {"epsilon": 2, "bounds": (0, 49), "y_values": (0, 1), "x_grid": "integers"}
    groups = np.arange(x.size) // 2 if given.get("contributions", 1) > 1 else None
    model = PrivateIsotonicRegression(**grouped(**{**every, **given}))
    return model.fit(x, y if given.get("increasing") is not False else 1 - y, groups=groups)


def test_the_estimator_gives_three_bands_of_its_own_sums() -> None:
    model = fitted()
    x = [0, 10, 25, 49, None, 1e9]
    for kind in ("population", "records", "credible"):
        low, high = model.band(x, kind=kind)
        assert np.isnan(low[4])
        assert np.isnan(high[4])
        assert low[5] == low[3]
        assert np.all(np.diff(low[:4]) >= 0)
        assert np.all(np.diff(high[:4]) >= 0)
        assert np.all(low[:4] <= high[:4])
    assert model.band(x).low.tolist()[:4] == model.band(x, 0.95, "population").low.tolist()[:4]


def test_falling_curves_have_the_band_of_the_rising_one_turned() -> None:
    model = fitted(increasing=False)
    measured = model.measured_
    assert measured is not None
    points = np.arange(50)
    for kind in ("population", "records", "credible"):
        mirror = MeasuredSums(measured.sums.mirrored(), True, True, measured.levels).band(0.95, kind)
        low, high = model.band(points, kind=kind)
        np.testing.assert_allclose(low, mirror.at(49 - points).low)
        np.testing.assert_allclose(high, mirror.at(49 - points).high)
        assert low[0] >= low[-1]


def test_bands_are_in_units_of_y_and_allow_for_its_rounding() -> None:
    model = fitted(y_values=None, y_range=(-1, 3))
    measured = model.measured_
    assert measured is not None
    for band, kind in ((population_band, "population"), (records_band, "records")):
        low, high = band(measured.sums, 0.95).at(np.arange(50))
        found = model.band(np.arange(50), kind=kind)
        np.testing.assert_allclose(found.low, -1 + 4 * np.maximum(low - ROUNDING, 0))
        np.testing.assert_allclose(found.high, -1 + 4 * np.minimum(high + ROUNDING, 1))


@pytest.mark.parametrize(
    ("given", "kind", "reason"),
    [
        ({"contributions": 2}, "population", "not independent"),
        ({"increasing": "auto"}, "population", "direction is found"),
        ({"loss": "absolute"}, "records", "has no band"),
        ({"method": "bins"}, "credible", "has no band"),
        ({}, "other", "kind"),
    ],
)
def test_bands_that_do_not_hold_are_refused(given: dict[str, Any], kind: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        fitted(4, **given).band([1], kind=kind)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, "much", True, None])
def test_a_confidence_is_a_share(confidence: Any) -> None:
    with pytest.raises(InputError, match="confidence"):
        fitted(4).band([1], confidence=confidence)


def test_units_with_several_records_keep_the_band_of_the_records() -> None:
    low, high = fitted(contributions=2).band(np.arange(50), kind="records")
    assert np.all(low <= high)
