"""The posterior of a rising curve against plain sums and enumerations, and the mechanism around it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of
from tests.support.estimators import grouped

from isotone.curves import PrivateIsotonicRegression
from isotone.curves import posterior as hidden_chain
from isotone.curves import posterior as straight_odds
from isotone.curves.bands import PosteriorFit, curve_of, placed_starts
from isotone.curves.cuts import TurnedMechanism
from isotone.curves.posterior import (
    CountTable,
    GaussianNoise,
    GeometricNoise,
    NoisySums,
    Prior,
    Rates,
    bin_values,
    curve_posterior,
    even_starts,
    evidence_of_nothing,
    noisy_count,
    noisy_sums,
    noisy_total,
    pooled,
    posterior_of,
    priors,
    rates_of,
    without_clashes,
)
from isotone.curves.problem import FINE, CurveSetting, Records
from isotone.errors import InputError

FAR = 1e12


def log_poisson(k: Any, mean: float) -> Any:
    return k * math.log(mean) - mean - np.array([math.lgamma(each + 1) for each in k.tolist()])


CASES = [
    (rate, mean, seen)
    for rate in (0.02, 0.3, 1.0, 4.0)
    for mean in (0.05, 1.0, 12.0, 150.0)
    for seen in (-7, 0, 1, 5, 13, 160, 260)
]


@pytest.mark.parametrize(("rate", "mean", "seen"), CASES)
def test_the_law_of_a_noisy_count_is_the_sum_over_all_counts(rate: float, mean: float, seen: int) -> None:
    k = np.arange(700.0)
    apart, shrink = np.abs(seen - k), math.exp(-rate)
    peak = math.log((1 - shrink) / (1 + shrink))
    terms = log_poisson(k, mean) - rate * apart
    top = terms.max()
    total = top + math.log(np.exp(terms - top).sum())
    log_p, expected = noisy_count(np.array([float(seen)]), np.array([mean]), rate)
    assert log_p[0] == pytest.approx(total + peak, abs=1e-8)
    assert expected[0] == pytest.approx(float((np.exp(terms - total) * k).sum()), rel=1e-7, abs=1e-9)
    # two noises: the convolution of one with the other
    both = terms + np.log(apart + (1 + shrink**2) / (1 - shrink**2))
    top = both.max()
    wanted = top + math.log(np.exp(both - top).sum()) + 2 * peak
    assert noisy_total(np.array([float(seen)]), np.array([mean]), rate)[0] == pytest.approx(wanted, abs=1e-5)


def test_the_law_of_two_noises_is_that_of_their_sum() -> None:
    rate, noise = 0.7, np.arange(-80, 81)
    one = np.exp(-rate * np.abs(noise)) * math.tanh(rate / 2)
    both = np.convolve(one, one)
    nobody = noisy_total(np.arange(-5.0, 6.0), np.zeros(11), rate)
    np.testing.assert_allclose(np.exp(nobody), both[155:166], rtol=1e-10)


@pytest.mark.parametrize(
    ("variance", "mean", "seen"), list(itertools.product((1.0, 30.0), (0.5, 20.0, 200.0), (0, 6, 190)))
)
def test_the_law_of_a_count_with_gaussian_noise_is_the_sum_over_all_counts(
    variance: float, mean: float, seen: int
) -> None:
    """A saddle point is not exact: within 0.1 where the logarithm is not below −50."""
    k = np.arange(700.0)
    terms = log_poisson(k, mean) - (seen - k) ** 2 / (2 * variance) - 0.5 * math.log(2 * math.pi * variance)
    top = terms.max()
    total = top + math.log(np.exp(terms - top).sum())
    log_p, expected = GaussianNoise(variance).count(np.array([float(seen)]), np.array([mean]))
    assert log_p[0] == pytest.approx(total, abs=0.1, rel=0.002)
    assert expected[0] == pytest.approx(float((np.exp(terms - total) * k).sum()), abs=0.35)


def paths(prior: Prior, member: int, likelihood: Any) -> dict[tuple[int, ...], float]:
    """The weight of every path of values, by walking through slopes, jumps and roundings one by one."""
    bins, values = likelihood.shape
    size = len(prior.slopes)
    first = np.ones(values)
    first[[0, -1]] += hidden_chain.ENDS
    first /= first.sum()
    heights = np.gradient(np.sin(np.linspace(0, math.pi / 2, values)) ** 2)
    weights: dict[tuple[int, ...], float] = {}
    for slopes in itertools.product(range(size), repeat=bins):
        turns = 1.0 / size
        for before, after in itertools.pairwise(slopes):
            redraw = prior.redraw[member]
            turns *= (1 - redraw) * (before == after) + redraw / size
        for path in itertools.combinations_with_replacement(range(values), bins):
            weight = turns * first[path[0]] * likelihood[0, path[0]]
            for b in range(1, bins):
                # the slope of the bin before decides the rise
                slope, rise = prior.slopes[slopes[b - 1]], path[b] - path[b - 1]
                low = int(slope)
                moved = (rise == low) * (1 - slope + low) + (rise == low + 1) * (slope - low)
                jump = prior.jump[member]
                weight *= (1 - jump) * moved + jump * (rise >= 1) * heights[path[b]]
                weight *= likelihood[b, path[b]]
            weights[path] = weights.get(path, 0.0) + weight
    return weights


@pytest.mark.parametrize("member", [0, 1])
def test_the_chain_adds_up_all_paths(member: int) -> None:
    prior = Prior((0.0, 0.6, 1.5), (0.1, 0.4), (0.3, 0.05))
    likelihood = np.random.default_rng(3).random((4, 5))
    evidence, chances = posterior_of(likelihood, prior)
    weights = paths(prior, member, likelihood)
    assert evidence[member] == pytest.approx(math.log(sum(weights.values())), rel=1e-12)
    wanted = np.zeros((4, 5))
    for path, weight in weights.items():
        wanted[np.arange(4), list(path)] += weight / sum(weights.values())
    np.testing.assert_allclose(chances[member], wanted, atol=1e-12)


def test_there_are_nine_priors_and_the_weight_of_their_paths_is_known() -> None:
    groups = priors(3, 4)
    assert sum(len(group.jump) for group in groups) == 9
    assert [len(group.slopes) for group in groups] == [7, 1]
    flat = np.ones((3, 4))
    for group, known in zip(groups, evidence_of_nothing(3, 4), strict=True):
        for member, value in enumerate(known):
            assert value == pytest.approx(math.log(sum(paths(group, member, flat).values())), abs=1e-12)


def test_straight_log_odds_add_up_all_curves_and_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    odds = (-2.0, 0.0, 1.0)
    monkeypatch.setattr(straight_odds, "LOG_ODDS", odds)
    likelihood, places = np.random.default_rng(4).random((3, 4)), np.array([0.1, 0.5, 0.75])
    values = [0.0, 0.25, 0.75, 1.0]
    total, chances = 0.0, np.zeros((3, 4))
    for first, last in itertools.combinations_with_replacement(odds, 2):
        line = [1 / (1 + math.exp(-(first * (1 - place) + last * place))) for place in places]
        for path in itertools.product(range(4), repeat=3):
            weight = 1 / 6  # so many pairs of ends
            for b, v in enumerate(path):
                rounded = np.interp(line[b], values, np.eye(4)[v])  # with the right mean
                weight *= rounded * likelihood[b, v]
            total += weight
            chances[np.arange(3), list(path)] += weight
    evidence, found = straight_odds.posterior_of_straight_odds(likelihood, places)
    assert evidence == pytest.approx(math.log(total), abs=1e-12)
    np.testing.assert_allclose(found, chances / total, atol=1e-12)


def test_straight_log_odds_count_where_they_are_right_and_not_at_a_step() -> None:
    share = 1 / (1 + np.exp(-np.linspace(-4, 1, 12)))
    smooth = sums_of(np.rint(200 * share).astype(int), np.rint(200 * (1 - share)).astype(int), 48)
    assert curve_posterior(smooth, 51).weights[0] > 0.5
    step = sums_of([20] * 6 + [180] * 6, [180] * 6 + [20] * 6, 48)
    assert curve_posterior(step, 51).weights[0] < 1e-3


def test_rates_are_what_the_other_bins_tell() -> None:
    rate, totals = 0.8, np.array([4.0, 30.0, -2.0])
    found = rates_of(totals, GeometricNoise(rate))
    size = found.grid.size
    own = np.exp(noisy_total(totals[:, None], found.grid, rate))
    lonely = rates_of(totals[:1], GeometricNoise(rate))
    anywhere = np.gradient(np.sqrt(found.grid + 0.5))
    anywhere = 0.5 * anywhere / anywhere.sum() + 0.5 / size
    anywhere[0] += 0.2
    anywhere /= anywhere.sum()
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    near, far = np.exp(-apart / 0.4), np.exp(-apart / 3.0)
    moves = 0.55 * near / near.sum(1, keepdims=True) + 0.3 * far / far.sum(1, keepdims=True) + 0.15 * anywhere
    law = anywhere[:, None, None] * moves[:, :, None] * moves[None, :, :]
    for b, others in enumerate(((1, 2), (0, 2), (0, 1))):
        shape = [own[o].reshape([-1 if axis == o else 1 for axis in range(3)]) for o in others]
        wanted = (law * shape[0] * shape[1]).sum(axis=others)
        np.testing.assert_allclose(found.others[b], wanted / wanted.sum(), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(lonely.others[0].sum(), 1.0)
    assert found.grid[0] == 0
    assert np.all(np.diff(found.grid) > 0)


def test_values_are_weighed_with_every_rate() -> None:
    rate, values = 0.5, np.linspace(0, 1, 5)
    ones, zeros = np.array([3.0, 0.0, 3.0]), np.array([1.0, 6.0, -1.0])
    grid = np.array([0.0, 2.0, 5.0])
    others = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [1 / 3] * 3])
    found = bin_values(ones, zeros, Rates(grid, others, np.ones((3, 3))), values, GeometricNoise(rate), 0.0)
    for b, v in itertools.product(range(3), range(5)):
        total = up = down = 0.0
        for lam, weight in zip(grid, others[b], strict=True):
            a, mean_a = noisy_count(ones[b : b + 1], np.array([lam * values[v]]), rate)
            c, mean_c = noisy_count(zeros[b : b + 1], np.array([lam * (1 - values[v])]), rate)
            p = weight * math.exp(a[0] + c[0])
            total, up, down = total + p, up + p * mean_a[0], down + p * mean_c[0]
        assert found.log_likelihood[b, v] == pytest.approx(math.log(total), abs=1e-3)
        assert found.ones[b, v] == pytest.approx(up / total, abs=3e-3)
        assert found.zeros[b, v] == pytest.approx(down / total, abs=3e-3)


@pytest.mark.parametrize(
    ("noise", "off"),
    [(GeometricNoise(rate), 1e-3) for rate in (0.1, 0.9, 6.0)]
    + [(GaussianNoise(v), 7e-3) for v in (0.5, 40.0)],
)
def test_between_the_means_where_it_is_computed_the_law_of_a_count_is_as_good_as_exact(
    noise: Any, off: float
) -> None:
    for top in (10.0, 300.0, 1e6):
        means = np.r_[0.0, np.random.default_rng(0).random(300) ** 2 * top][None]
        seen = np.rint([-5.0, 0.0, 1.0, 10.0, 0.3 * top, top])
        table = CountTable(seen, means, noise)
        for place, count in enumerate(seen):
            log_p, expected = table.at(place, np.array([0]))
            wanted, mean = noise.count(np.full(means.shape, count), means)
            likely = wanted > wanted.max() - 40
            assert np.abs(log_p - wanted)[likely].max() < off
            assert (np.abs(expected - mean) / (1 + np.sqrt(mean)))[likely].max() < 20 * off


def test_the_posterior_rises_and_is_finite_whatever_was_drawn() -> None:
    rng = np.random.default_rng(0)
    for rate in (Fraction(1, 10**9), Fraction(1, 10), Fraction(3), Fraction(10**9)):
        for scale in (1.0, 50.0, FAR):
            ones, zeros = np.rint(scale * rng.standard_normal((2, 5))).astype(np.int64)
            for spread in (1.0, 0.1):
                for law in ((rate, None), (None, 1 / rate)):
                    sums = NoisySums(np.arange(5), ones, zeros, 1, law[0], 5, law[1])
                    found = curve_posterior(sums, 11, spread)
                    for curve in (found.population, found.records):
                        assert np.all((curve >= 0) & (curve <= 1))
                        assert np.all(np.diff(curve) >= 0)


@pytest.mark.parametrize("heap", [100, 1000, 10**9])
def test_bins_that_contradict_a_rising_curve_have_their_common_mean(heap: int) -> None:
    """Labels that fall, declared to rise, with a bin before and one after that contradict nothing."""
    ones, zeros = [0, *[heap] * 8, *[0] * 8, heap], [heap, *[0] * 8, *[heap] * 8, 0]
    found = curve_posterior(sums_of(ones, zeros, 40), 101)
    np.testing.assert_allclose(found.chances.sum(axis=1), 1.0)
    for curve in (found.population, found.records):
        np.testing.assert_allclose(curve, [0.0, *[0.5] * 16, 1.0], atol=0.03)


def test_bins_that_clash_all_say_what_they_say_together() -> None:
    said = np.array([[0.0, -900, -800], [-500, -150, 0], [0, -130, -600], [-300, -50, -1]])
    evened = without_clashes(said)
    np.testing.assert_array_equal(evened[[0, 3]], said[[0, 3]])
    np.testing.assert_allclose(evened[1:3], [(said[1] + said[2]) / 2] * 2)
    np.testing.assert_array_equal(without_clashes(said / 1.5), said / 1.5)  # messages can do with that


def test_with_little_noise_records_are_the_pooled_bins() -> None:
    sums = sums_of([10, 30, 20, 55], [30, 10, 30, 5], 20, rate=25)
    ones, zeros = sums.in_records
    wanted = pooled(ones / (ones + zeros), ones + zeros)
    found = curve_posterior(sums, 401)
    np.testing.assert_allclose(found.records, wanted, atol=1e-5)
    np.testing.assert_allclose(found.population, wanted, atol=0.08)


def test_a_bin_without_records_has_the_value_of_the_curve() -> None:
    found = curve_posterior(sums_of([40, 0, 60], [60, 0, 40], 30, rate=25), 101)
    assert found.shares[1] == pytest.approx(found.population[1], abs=1e-3)
    assert 0.4 < found.shares[1] < 0.6


def sums_of(ones: Any, zeros: Any, points: int, rate: int = 1) -> NoisySums:
    starts = even_starts(points, len(ones))
    return NoisySums(starts, np.array(ones), np.array(zeros), 1, Fraction(rate), points)


def test_bins_of_the_second_round_are_finer_in_crowds_and_where_the_curve_rises() -> None:
    def starts(ones: list[int], zeros: list[int]) -> Any:
        sums = sums_of(ones, zeros, 160)
        found = curve_posterior(sums, 51)
        return placed_starts(sums, found, sum(ones) + sum(zeros), 40)

    even = starts([50] * 16, [50] * 16)
    assert even[0] == 0
    assert np.all(np.diff(even) > 0)
    assert 8 <= np.sum(even < 40) <= 12
    crowded = starts([5] * 15 + [700], [5] * 15 + [700])
    assert np.sum(crowded >= 150) > 3 * np.sum(even >= 150)
    steep = starts([0] * 8 + [100] * 8, [100] * 8 + [0] * 8)
    assert np.sum((steep >= 60) & (steep < 100)) > 1.5 * np.sum((even >= 60) & (even < 100))


def test_crowds_that_are_clear_add_bins_and_noise_does_not() -> None:
    def bins(ones: list[int], zeros: list[int], most: int | None) -> int:
        sums = sums_of(ones, zeros, 4096)
        found = curve_posterior(sums, 51)
        return placed_starts(sums, found, sum(ones) + sum(zeros), 40, most).size

    even, crowded = [50] * 16, [0] * 15 + [800]
    assert bins(even, even, 1024) == bins(crowded, crowded, None) == 40
    assert 75 <= bins(crowded, crowded, 1024) <= 80
    assert bins(crowded, crowded, 50) == 50
    # rare labels leave little to tell apart, whichever is rare; a few bins stay
    assert bins([1] * 16, [99] * 16, 1024) == bins([99] * 16, [1] * 16, 1024) < 20
    assert bins([0] * 16, [100] * 16, 1024) == 8


def test_a_second_look_sees_inside_a_crowd() -> None:
    """The bins of the last round are single points where nearly all records are, as they are not after one look."""

    class Silent:
        def perturb(self, values: Any, rate: Fraction) -> Any:
            return values

    records = records_of([(2000 + n % 8, FINE * (n % 2)) for n in range(3_000)])
    found = []
    for looks in (1, 2):
        draws: Any = Silent()
        mechanism = PosteriorFit(CurveSetting(Fraction(1)), 4096, 3_000, 32, 16, 11, True, looks=looks)
        starts = mechanism.measure(records, draws).starts
        found.append(np.sum((starts >= 2000) & (starts < 2008)))
    assert found[0] < 6
    assert found[1] == 8


@pytest.mark.parametrize("looks", [1, 2])
def test_bins_depend_on_earlier_rounds_only(looks: int) -> None:
    class Scripted:
        """Answers the coarse looks from a script, whatever the records are."""

        def __init__(self) -> None:
            self.asked: list[Any] = []

        def perturb(self, values: Any, rate: Fraction) -> Any:
            self.asked.append(values)
            script = np.arange(values.size).reshape(values.shape) * 7
            return script if len(self.asked) <= looks else values

    mechanism = PosteriorFit(CurveSetting(Fraction(1)), 64, 100, 4, 9, 11, True, looks=looks)
    found = []
    for rows in ([(0, 0)], [(63, FINE)] * 50, [(n, FINE) for n in range(64)]):
        draws: Any = Scripted()
        found.append(mechanism.measure(records_of(rows), draws).starts.tolist())
    assert found[0] == found[1] == found[2]


def test_noisy_sums_count_y_and_the_rest_in_their_bins() -> None:
    class Silent:
        def perturb(self, values: Any, rate: Fraction) -> Any:
            return values

    silent: Any = Silent()
    records = records_of([(0, FINE), (1, 0), (1, FINE // 4), (3, FINE)], [1, 2, 1, 3])
    setting = CurveSetting(Fraction(1), weight_steps=3)
    sums = noisy_sums(records, np.array([0, 2]), 4, setting, Fraction(1), silent)
    ones, zeros = sums.in_records
    np.testing.assert_allclose(ones, [1.25 / 3, 1.0])
    np.testing.assert_allclose(zeros, [2.75 / 3, 0.0])
    assert sums.noise == GeometricNoise(1.0)
    labelled = noisy_sums(records, np.array([0, 2]), 4, setting, Fraction(1), silent, 1)
    assert (labelled.ones.tolist(), labelled.zeros.tolist()) == ([1, 3], [3, 0])
    assert (labelled.unit, labelled.rate) == (3, Fraction(1, 3))
    turned = labelled.mirrored()
    assert turned.starts.tolist() == [0, 2]
    assert turned.ones.tolist() == [3, 1]
    assert labelled.upside_down().ones.tolist() == [3, 0]


def test_a_falling_curve_keeps_its_sums_in_the_order_of_x() -> None:
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 64, 3_000)
    levels = (rng.random(3_000) > cells / 64) * FINE
    records = Records(cells, levels.astype(np.int64), np.ones(3_000, np.int64)).sorted()
    setting = CurveSetting(Fraction(2))
    inner = PosteriorFit(setting, 64, 3_000, 16, 30, 51, True)
    curve = TurnedMechanism(setting, 64, inner, True, False).simulate(records, rng)
    assert curve.sums is not None
    assert curve.sums.starts[0] == 0
    ones, zeros = curve.sums.in_records
    assert ones[0] / (ones[0] + zeros[0]) > 0.7 > 0.3 > ones[-1] / (ones[-1] + zeros[-1])
    assert curve.at(np.array([0]))[0] > 0.8


def model(**params: Any) -> PrivateIsotonicRegression:
    every: dict[str, Any] = {"epsilon": 50, "bounds": (0, 100), "public_n": 2_000, "x_grid": 101}
    return PrivateIsotonicRegression(**grouped(**{**every, **params}))


def test_records_on_one_point_pull_no_line_through_the_empty_bins_beside_it() -> None:
    """Heaps on the first points of bins, with empty bins between: the records' curve is that of their bins there."""
    ones, zeros = [10, 0, 50, 0, 90, 0], [90, 0, 50, 0, 10, 0]
    sums = sums_of(ones, zeros, 60, rate=20)
    found = curve_posterior(sums, 101)
    unit = (Fraction(0), Fraction(1))
    curve = curve_of(sums, found, "records", unit, even=True).at(np.arange(60))
    assert np.abs(curve[sums.starts[::2]] - [0.1, 0.5, 0.9]).max() < 0.02
    assert np.all(np.diff(curve) >= 0)
    through = curve_of(sums, found, "population", unit, even=True).at(np.arange(60))
    assert abs(through[20] - found.population[2]) > 0.02
    # with more noise, densities are hardly known
    noisy = replace(sums, rate=Fraction(1, 10))
    through = curve_of(noisy, found, "records", unit, even=True).at(np.arange(60))
    np.testing.assert_allclose(through, np.interp(np.arange(60), sums.middles, found.records), atol=1e-12)
    # bins that are alike: lines through their middles, for both
    even = sums_of([10, 30, 50], [50, 30, 10], 60, rate=20)
    alike = curve_posterior(even, 101)
    for output in ("records", "population"):
        found_there = curve_of(even, alike, output, unit, even=True).at(np.arange(60))
        np.testing.assert_allclose(
            found_there, np.interp(np.arange(60), [9.5, 29.5, 49.5], alike.of(output)), atol=1e-12
        )


def test_declared_labels_drop_every_other_y() -> None:
    x = np.arange(2_000) % 100
    y = (x >= 50).astype(float)
    # as many records with other values, which as numbers would pull the curve down
    more_x, more_y = np.tile(x, 2), np.r_[y, np.full(2_000, 0.25)]
    found = model(y_values=(0, 1)).fit(more_x, more_y).predict([10, 90])
    assert np.abs(found - [0.0, 1.0]).max() < 0.1
    pulled = model(y_range=(0, 1)).fit(more_x, more_y).predict([90])
    assert pulled[0] < 0.8


def test_a_record_without_a_label_does_not_use_up_a_contribution() -> None:
    x, who = np.repeat(np.arange(2_000) % 100, 2), np.repeat(np.arange(2_000), 2)
    y = np.tile([0.5, 1.0], 2_000)  # the first row of every unit has no label
    found = model(y_values=(0, 1)).fit(x, y, groups=who)
    assert found.predict([50])[0] > 0.9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y_values": (1, 0)}, "reversed"),
        ({"y_values": (0, "1/3")}, "not floating-point numbers exactly"),
        ({"y_values": (0, 1), "y_range": (0, 2)}, "contradict"),
        ({"y_values": 1}, "pair"),
        ({"y_values": (0, 1), "output": "mean"}, "output must be"),
        ({}, "y_range=.* is missing"),
    ],
)
def test_impossible_labels_and_outputs_are_refused_before_the_charge(given: Any, message: str) -> None:
    class Ledger:
        def charge(self, guarantee: Any, description: str) -> None:
            raise AssertionError("charged")

    with pytest.raises(InputError, match=message):
        model(**given, ledger=Ledger()).fit([1.0], [1.0])


def test_both_outputs_follow_a_line_and_are_what_they_say() -> None:
    x = np.arange(20_000) % 100
    y = (np.arange(20_000) // 100 % 100 < x).astype(float)
    for output in ("population", "records"):
        for loss in ("squared", "logistic"):
            fitted = model(y_values=(0, 1), output=output, loss=loss, public_n=20_000).fit(x, y)
            assert fitted.method_ == "posterior"
            assert np.abs(fitted.predict([20, 50, 80]) - [0.2, 0.5, 0.8]).max() < 0.06
            assert fitted.curve_.sums is not None


def test_few_points_and_uneven_points_have_a_posterior_too() -> None:
    x = np.repeat([1.0, 2.0, 5.0, 70.0], 500)
    y = np.repeat([0.1, 0.2, 0.6, 0.9], 500)
    for grid in ([1, 2, 5, 70], 2, "integers"):
        fitted = model(y_range=(0, 1), x_grid=grid).fit(x, y)
        values = fitted.predict(np.linspace(0, 100, 400))
        assert np.all(np.diff(values) >= -1e-12)
    listed = model(y_range=(0, 1), x_grid=[1, 2, 5, 70]).fit(x, y)
    np.testing.assert_allclose(listed.predict([1, 2, 5, 70]), [0.1, 0.2, 0.6, 0.9], atol=0.05)


@pytest.mark.parametrize("unit", [1, 7, 1024])
def test_gaussian_noise_in_records_has_the_variance_of_that_unit(unit: int) -> None:
    """Sums in units have noise whose standard deviation, in records, is that over the unit."""
    sums = NoisySums(np.array([0]), np.array([5]), np.array([5]), unit, None, 4, Fraction(9))
    noise = sums.noise
    assert isinstance(noise, GaussianNoise)
    assert noise.variance == pytest.approx(9 / unit**2)
    assert GaussianNoise(9.0).over(unit).variance == pytest.approx(9 / unit**2)
    geometric = NoisySums(np.array([0]), np.array([5]), np.array([5]), unit, Fraction(1, 3), 4).noise
    assert geometric == GeometricNoise(unit / 3)
