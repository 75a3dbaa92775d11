"""Tables with Gaussian noise: what a unit can change, what is drawn, and what is made of it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.privacy.calibration import discrete_sigma_squared, largest_pure, largest_rho
from isotone.privacy.draws import SeededDraws
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables.smooth import BINNED, DenseSystem, GaussianViews
from isotone.tables.two_stage import (
    GaussianTableMechanism,
    TwoStageMechanism,
    change,
    measurement_for,
    noises,
    table_mechanism,
)

WEIGHTS = [(1, 1), (Fraction(1, 10), 1), (1, Fraction(1, 10)), (0, 1)]


def additions(k, once, categories):
    """How many times a unit is counted in each category."""
    most = 1 if once else k
    return [m for m in itertools.product(range(most + 1), repeat=categories) if sum(m) <= k]


def below(table, places):
    return [sum(count <= t for count in table) for t in range(places)]


def squared(first, second, places, cumulative, counts):
    moved = sum((a - b) ** 2 for a, b in zip(below(first, places), below(second, places), strict=True))
    return cumulative * moved + counts * sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize(("cumulative", "counts"), WEIGHTS)
def test_a_unit_changes_no_more_than_the_conjugate_partition_says(once, cumulative, counts):
    for k in (1, 2, 3):
        bound = change(Unit(k), once, Fraction(cumulative), Fraction(counts))
        worst = 0
        for base in itertools.product(range(3), repeat=k):
            for added in additions(k, once, k):
                after = tuple(b + a for b, a in zip(base, added, strict=True))
                worst = max(worst, squared(base, after, 8, cumulative, counts))
        assert worst == bound


@pytest.mark.parametrize("once", [True, False])
def test_replacing_a_unit_doubles_the_change_and_no_more(once):
    for k, (cumulative, counts) in itertools.product((1, 2), WEIGHTS):
        bound = change(Unit(k, "replace"), once, Fraction(cumulative), Fraction(counts))
        assert bound == 2 * change(Unit(k), once, Fraction(cumulative), Fraction(counts))
        worst = 0
        for base in itertools.product(range(3), repeat=3):
            sides = [
                tuple(b + a for b, a in zip(base, added, strict=True)) for added in additions(k, once, 3)
            ]
            for first, second in itertools.combinations(sides, 2):
                worst = max(worst, squared(first, second, 6, cumulative, counts))
        assert worst <= bound
        if k == 1:
            assert worst == bound


@pytest.mark.parametrize("emphasis", [None, *(Fraction(tenths, 10) for tenths in range(11))])
def test_both_measurements_cost_rho_exactly(emphasis):
    rho = Fraction(1, 7)
    for k, once, neighbours, size in itertools.product(
        (1, 2, 30), (True, False), ("add-remove", "replace"), (10, 100)
    ):
        unit = Unit(k, neighbours)
        made = measurement_for(emphasis, 9, rho, unit, once, size)
        first = 0 if made.cumulative is None else 1 / made.cumulative
        assert (made.cumulative is None) == (size < 50)
        assert change(unit, once, Fraction(first), 1 / made.counts) / 2 == rho


def test_the_discrete_gaussian_costs_what_its_square_says():
    """Rényi divergences of noisy neighbours, coordinate by coordinate, from the probabilities themselves."""
    made = measurement_for(Fraction(1, 10), 2, Fraction(1, 2), Unit(), True, 60)
    x = np.arange(-200, 201)

    def log_law(variance, shift):
        logs = -((x - shift) ** 2.0) / (2 * float(variance))
        return logs - np.logaddexp.reduce(logs)

    assert made.cumulative is not None
    for order in (1.01, 2.0, 10.0):
        total = 0.0
        for variance in (made.cumulative, made.counts):  # one step moves one number of each by one
            p, q = log_law(variance, 0), log_law(variance, 1)
            total += np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1)
        assert 0.8 * order / 2 < total <= order / 2 + 1e-9


class Scripted(SeededDraws):
    """Draws whose Gaussian noise is given, and what was asked for."""

    def __init__(self, noise: list[Any]) -> None:
        super().__init__(np.random.default_rng(0))
        self.noise, self.asked = noise, []

    def discrete_gaussians(self, variance: Fraction, size: int) -> Any:
        self.asked.append((variance, size))
        return np.asarray(self.noise.pop(0))

    def words(self, size: int) -> Any:
        return np.arange(size, dtype=np.uint64)


def test_only_the_two_measurements_read_the_table():
    mechanism = GaussianTableMechanism(6, Guarantee.zcdp("1/20"))
    first = np.random.default_rng(1).integers(0, 7, 80)
    second = first.copy()
    second[3] = (second[3] + 4) % 7
    target = np.random.default_rng(2).normal(0, 3, 80).astype(np.int64) + first
    cumulative = np.cumsum(np.bincount(first, minlength=7))[:-1] + 2
    published = []
    for table in (first, second):
        true = np.cumsum(np.bincount(table, minlength=7))[:-1]
        draws = Scripted([cumulative - true, target - table])
        published.append(mechanism.run(table, draws))
        made = mechanism.measurement(80)
        assert draws.asked == [(made.cumulative, 6), (made.counts, 80)]
    one, other = published
    for name in ("values", "estimates", "noisy", "deviation", "noisy_counts", "probabilities"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.interval(), other.interval())


def test_a_few_categories_get_the_exact_noise_for_one_count():
    made = GaussianTableMechanism(9, Guarantee.approximate(1, "1e-6")).measurement(10)
    assert made.counts == discrete_sigma_squared(Fraction(1), Fraction(1, 10**6), 1)
    assert GaussianTableMechanism(9, Guarantee.approximate(1, "1e-6")).rho == largest_rho(
        Fraction(1), Fraction(1, 10**6)
    )
    replaced = GaussianTableMechanism(9, Guarantee.approximate(1, "1e-6", neighbours="replace")).measurement(
        10
    )
    assert replaced.counts == 1 / largest_rho(Fraction(1), Fraction(1, 10**6))  # two counts may move
    with pytest.raises(InputError, match="no pure"):
        GaussianTableMechanism(9, Guarantee.pure(1))


def test_the_misfit_has_the_slope_and_the_curvature_that_it_says():
    rng = np.random.default_rng(0)
    truth = rng.poisson(3, 300).clip(0, 9)
    noisy = truth + rng.normal(0, 4, 300).round().astype(np.int64)
    direct = np.cumsum(np.bincount(truth, minlength=10))[:-1] + 3
    views = GaussianViews.of(direct, noisy, 0.02, 16.0, 9)
    assert views.channel.sum(axis=1) == pytest.approx(np.ones(10))
    assert views.observed.sum() == 300
    at = np.linspace(20, 290, 9)
    _, slope = views.misfit(at)
    for i, step in enumerate(np.eye(9) * 1e-3):
        up, down = views.misfit(at + step), views.misfit(at - step)
        assert (up[0] - down[0]) / 2e-3 == pytest.approx(slope[i], rel=1e-6, abs=1e-6)
        assert (up[1] - down[1]) / 2e-3 == pytest.approx(views.curvature[i], rel=1e-6, abs=1e-6)


def test_the_dense_system_solves_what_it_says():
    rng = np.random.default_rng(0)
    views = GaussianViews.of(np.arange(20, 200, 60), rng.integers(0, 4, 200), 0.1, 4.0, 3)
    band = np.zeros((3, 4))
    band[0], band[1, :-1] = 3.0, -1.0
    system = DenseSystem(views, band, np.full(4, 2.0), np.full(4, 50.0), np.full(4, 0.01))
    columns = np.array([system.solve(row) for row in np.eye(10)])
    inverse = columns[np.ix_([0, 3, 6, 9, 2, 5, 8], [0, 3, 6, 9, 2, 5, 8])]
    assert inverse == pytest.approx(inverse.T)
    assert np.linalg.slogdet(inverse)[1] == pytest.approx(-system.log_determinant)
    matrix = np.linalg.inv(inverse)  # the blocks of the docstring
    assert matrix[:4, :4] == pytest.approx(
        np.diag(band[0] + 25) + np.diag(band[1, :3], 1) + np.diag(band[1, :3], -1)
    )
    differences = np.diff(np.eye(4)[:, :3], axis=0, prepend=0)
    assert matrix[:4, 4:] == pytest.approx(-0.5 * differences)
    assert matrix[4:, 4:] == pytest.approx(views.curvature + 0.01 * differences.T @ differences)


def test_estimates_beat_the_noise_and_intervals_hold():
    rng = np.random.default_rng(5)
    table = np.minimum(rng.geometric(0.25, 2000) - 1, 20)
    made = GaussianTableMechanism(20, Guarantee.zcdp("0.05")).simulate_in_full(table, rng)
    noisy = np.clip(made.noisy_counts, 0, 20)
    low, high = made.interval()
    values = made.values.view(np.ndarray)

    def distance(counts):
        return np.abs(np.cumsum(np.bincount(counts, minlength=21) - np.bincount(table, minlength=21))).sum()

    assert 0.93 < np.mean((low <= table) & (table <= high)) < 0.995
    assert distance(values) < 0.2 * distance(noisy)
    assert np.mean((made.estimates - table) ** 2) < 0.8 * np.mean((noisy - table) ** 2)


def test_a_wide_table_uses_the_direct_view_alone():
    rng = np.random.default_rng(6)
    table = np.minimum(rng.geometric(0.02, 400), BINNED + 50)
    made = GaussianTableMechanism(BINNED + 50, Guarantee.zcdp("0.5")).simulate_in_full(table, rng)
    gap = np.cumsum(np.bincount(made.values.view(np.ndarray), minlength=BINNED + 51))
    assert np.abs(gap - np.cumsum(np.bincount(table, minlength=BINNED + 51))).max() < 60


def test_a_table_whose_noise_is_never_seen_is_published_as_it_is():
    """Bins that are known must be believed, or a value goes to a neighbour in rank, which is far away in a sparse table."""
    mechanism = GaussianTableMechanism(50, Guarantee.zcdp(40))
    for seed in range(12):
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 51, 60)
        published = mechanism.simulate_in_full(counts, rng)
        assert np.array_equal(published.noisy, counts)
        assert np.array_equal(np.asarray(published.values), counts)


def test_strata_are_measured_each_with_all_of_rho():
    draws = Scripted([np.zeros(size, np.int64) for size in (3, 60, 5)])
    table = np.arange(65) % 4
    GaussianTableMechanism(3, Guarantee.zcdp(1)).run(table, draws, [np.arange(60), np.arange(60, 65)])
    large, small = (
        GaussianTableMechanism(3, Guarantee.zcdp(1)).measurement(60),
        GaussianTableMechanism(3, Guarantee.zcdp(1)).measurement(5),
    )
    assert draws.asked == [(large.cumulative, 3), (large.counts, 60), (small.counts, 5)]


def test_delta_buys_nothing_for_one_contribution_and_something_from_about_ten():
    guarantee = Guarantee.approximate(1, "1e-6")
    better = [k for k in range(1, 31) if noises(guarantee, k, True)[1] < noises(guarantee, k, True)[0]]
    assert better == list(range(11, 31))
    assert isinstance(table_mechanism(9, guarantee, contributions=10), TwoStageMechanism)
    assert isinstance(table_mechanism(9, guarantee, contributions=11), GaussianTableMechanism)
    assert isinstance(table_mechanism(9, guarantee, contributions=30, once=False), TwoStageMechanism)
    assert isinstance(table_mechanism(9, Guarantee.zcdp("0.1")), GaussianTableMechanism)
    assert isinstance(table_mechanism(9, Guarantee.pure(1), contributions=30), TwoStageMechanism)
    assert largest_pure(Guarantee.zcdp("1/3")) ** 2 <= Fraction(2, 3)
