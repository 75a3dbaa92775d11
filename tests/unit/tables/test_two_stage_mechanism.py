"""The mechanism for tables: what it guarantees, how it spends, what it accepts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.tables_exact import assert_steps_cost_epsilon

from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise import Simulated, UnevenLine
from isotone.privacy.draws import SeededDraws
from isotone.tables import TwoStageMechanism, thresholds
from isotone.tables.published_table import PublishedTable
from isotone.tables.thresholds import (
    FEW,
    POINTS,
    SMALL,
    Emphasis,
    default_emphasis,
    preset_thresholds,
    thresholds_for,
)

TABLE = np.random.default_rng(0).poisson(4, 300)
NAMES: tuple[Emphasis, ...] = tuple(POINTS)
SCALE = [Fraction(0), *POINTS.values(), Fraction(1)]


class Tape(SeededDraws):
    """Draws that lead from any table to the same measurements."""

    def __init__(self, noisy: NDArray[np.int64], cumulative: NDArray[np.int64], table: NDArray[np.int64]):
        super().__init__(np.random.default_rng(7))
        self.noisy, self.cumulative, self.table = noisy, cumulative, table
        self.asked: list[NDArray[np.int64]] = []

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        spent = TwoStageMechanism(16, "1/4", "0.2").measurement(len(self.table))
        places = spent.places
        if self.asked:  # for those that the first numbers led to
            places = spent._between(self.asked[0], len(self.table))  # pyright: ignore[reportPrivateUsage]
        self.asked.append(self.cumulative[: len(places)])
        return self.asked[-1] - np.cumsum(np.bincount(self.table, minlength=17))[list(places)]

    def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
        return self.noisy


def columns(full: PublishedTable) -> dict[str, NDArray[Any]]:
    low, high = full.interval()
    return {
        "value": full.values,
        "estimate": full.estimates,
        "low": low,
        "high": high,
        "noisy": full.noisy,
        "sd": full.deviation,
        "probabilities": full.probabilities,
    }


@pytest.mark.parametrize(("size", "rough"), [(5, False), (300, False), (300, True)])
def test_with_the_outputs_fixed_no_column_depends_on_a_true_count(size: int, rough: bool) -> None:
    rng = np.random.default_rng(3)
    noisy, cumulative = rng.integers(-3, 20, size), np.where(np.arange(17) < 4, 2, 290 if rough else 3)
    mechanism = TwoStageMechanism(upper=16, epsilon="1/4", emphasis="0.2")
    table = np.minimum(TABLE[:size], 16)
    found = mechanism.run(table, Tape(noisy, cumulative, table))
    assert bool(found.strata[0].thresholds.finer) == rough
    before = columns(found)
    for changed in (0, 3, 6, 16):
        other = table.copy()
        other[2] = changed
        after = columns(mechanism.run(other, Tape(noisy, cumulative, other)))
        for name, column in before.items():
            np.testing.assert_array_equal(column, after[name], err_msg=name)


@settings(max_examples=150, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 1000), 20, max_denominator=1000),
    emphasis=st.one_of(st.none(), st.sampled_from(SCALE), st.fractions(0, 1, max_denominator=100)),
    bound=st.booleans(),
    size=st.integers(0, 10**7),
    upper=st.integers(0, 60),
    steps=st.integers(1, 5),
    gaps=st.sets(st.integers(0, 61)),
)
def test_every_step_costs_exactly_epsilon(
    epsilon: Fraction,
    emphasis: Fraction | None,
    bound: bool,
    size: int,
    upper: int,
    steps: int,
    gaps: set[int],
) -> None:
    """A step across a threshold pays for it and for the noise of the count, any other for the noise alone.

    Whichever gaps are filled after a look at the first numbers. ``make audit`` does the same for 10,000 settings.
    """
    mechanism = TwoStageMechanism(upper if bound else None, epsilon, emphasis, contributions=steps)
    top = None if bound else thresholds.HEIGHTS[upper % 8] + 1
    assert_steps_cost_epsilon(mechanism, max(size, SMALL), gaps, top)


def test_a_threshold_that_is_not_paid_for_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    free = property(lambda self: UnevenLine(self.step, (1,) * self.upper, 1))
    monkeypatch.setattr(thresholds.Thresholds, "line", free)
    with pytest.raises(AssertionError):
        assert_steps_cost_epsilon(TwoStageMechanism(9, 1, "0.1"), 1000, set())


def test_the_thresholds_are_those_of_the_theory() -> None:
    found = preset_thresholds("counts", 50, Fraction(1, 10), 3000)
    assert found.places == (0, 1, 2, 4, 8, 15, 24, 32, 39, 48, 49)
    shares = {
        preset: [
            preset_thresholds(preset, 50, Fraction(epsilon), 3000).share
            for epsilon in ("0.1", "0.3", "1", "2")
        ]
        for preset in NAMES
    }
    hundredths = {"counts": [15, 15, 0, 0], "both": [30, 24, 12, 6], "distribution": [80, 40, 16, 8]}
    assert shares == {preset: [Fraction(each, 100) for each in row] for preset, row in hundredths.items()}
    finer = {
        preset: [
            preset_thresholds(preset, 50, Fraction(epsilon), 3000).finer_share
            for epsilon in ("0.1", "0.3", "2")
        ]
        for preset in NAMES
    }
    between = {"counts": [0, 0, 0], "both": [14, 9, 4], "distribution": [27, 18, 9]}
    assert finer == {preset: [Fraction(each, 100) for each in row] for preset, row in between.items()}
    assert (
        preset_thresholds("distribution", 9, Fraction(9, 10), 10**9).finer_share == 0
    )  # there is nothing between
    assert preset_thresholds("counts", 50, Fraction(1), 10**9).places == ()
    assert preset_thresholds("counts", 50, Fraction(99, 100), 50).places
    for name, emphasis in POINTS.items():
        few = thresholds_for(emphasis, 50, Fraction(1, 10), FEW - 1)
        assert few == preset_thresholds(name, 50, Fraction(1, 10), FEW - 1)


@pytest.mark.parametrize("size", [60, 1000, 10**6])
def test_thresholds_are_closest_where_their_noise_is_that_of_the_scatter_between_them(size: int) -> None:
    """The distance nearest to the cube root of 4·counts/(size·rate²), unless a threshold would have too much.

    Below an ε of 0.3 a threshold has up to a quarter more.
    """
    for tenths in range(1, 10):
        each = 0.08 * {1: 1.25, 2: 1.125}.get(tenths, 1)
        found = preset_thresholds("distribution", 300, Fraction(tenths, 10), size)
        wanted = (4 * 301 / (size * (each * tenths / 10) ** 2)) ** (1 / 3)
        distances = np.diff([place for place in found.places if place > 16])[
            :-1
        ]  # the last is cut off by the top
        apart = int(np.median(distances))
        assert apart == min(int(0.8 / each), max(1, round(wanted)))
        assert set(distances) == ({apart - 1, apart, apart + 1} if apart > 1 else {1})
        assert found.places[-1] == 299
        assert abs(found.share - each * apart) <= 0.005 + 1e-9


def test_the_default_is_a_function_of_epsilon_per_step() -> None:
    both, counts = POINTS["both"], POINTS["counts"]
    assert [default_emphasis(Fraction(99, 100), 9, size) for size in (50, 10**6)] == [both] * 2
    assert [default_emphasis(Fraction(1), 9, size) for size in (50, 799)] == [counts] * 2
    assert [default_emphasis(Fraction(1), 9, size) for size in (800, 10**6)] == [both] * 2
    dense = TwoStageMechanism(9, 1).measurement(3000)
    assert dense == TwoStageMechanism(9, 1, "both").measurement(3000)
    assert dense.places
    twice = TwoStageMechanism(9, 1, contributions=2).measurement(500)
    assert twice == TwoStageMechanism(9, 1, "both", contributions=2).measurement(500)
    assert twice.step == Fraction(1, 2)


@pytest.mark.parametrize("emphasis", SCALE)
def test_small_tables_are_plain_noise_at_all_of_epsilon(emphasis: Fraction) -> None:
    mechanism = TwoStageMechanism(30, "0.2", emphasis)
    stages = mechanism.measurement(SMALL - 1)
    assert (stages.places, stages.share) == ((), 0)
    full = mechanism.release_in_full(TABLE[: SMALL - 1])
    assert full.method == "noise"
    np.testing.assert_array_equal(full.values, np.clip(full.noisy_counts, 0, 30))
    np.testing.assert_array_equal(full.estimates, full.values)
    assert mechanism.release_in_full(TABLE[:SMALL]).method == "table"


def test_the_guarantee_is_pure_and_names_its_neighbours() -> None:
    m = TwoStageMechanism(9, "0.3", neighbours="replace", contributions=2)
    assert m.guarantee.epsilon == Fraction(3, 10)
    assert m.guarantee.neighbours == "replace"
    assert m.unit.steps == 4
    assert isinstance(m, Mechanism)


def test_a_mechanism_cannot_be_changed() -> None:
    m = TwoStageMechanism(9, 1)
    with pytest.raises(FrozenInstanceError):
        cast(Any, m).epsilon = 2
    assert m == TwoStageMechanism(9, 1)
    assert hash(m) == hash(TwoStageMechanism(9, 1))


@pytest.mark.parametrize("emphasis", SCALE)
def test_a_release_has_one_count_between_zero_and_upper_for_each_category(emphasis: Fraction) -> None:
    published = TwoStageMechanism(6, "0.5", emphasis).release(TABLE)
    assert published.dtype == np.int64
    assert published.shape == TABLE.shape
    assert published.min() >= 0
    assert published.max() <= 6


@pytest.mark.parametrize("upper", [0, 1, 2, 30])
@pytest.mark.parametrize("counts", [[], [0], [5], [3, 10**30], [4] * 60])
def test_tiny_tables_and_bounds_are_released_like_any_other(upper: int, counts: list[int]) -> None:
    full = TwoStageMechanism(upper, "0.5").release_in_full(counts)
    for column in columns(full).values():
        assert len(column) in (len(counts), upper + 1)
    assert all(0 <= value <= upper for value in full.values)


@pytest.mark.parametrize("epsilon", [500, 10**5])
def test_with_next_to_no_privacy_the_table_comes_out_as_it_went_in(epsilon: int) -> None:
    full = TwoStageMechanism(12, epsilon).release_in_full(TABLE)
    np.testing.assert_array_equal(full.values, np.minimum(TABLE, 12))
    np.testing.assert_allclose(full.estimates, np.minimum(TABLE, 12), atol=1e-9)
    np.testing.assert_allclose(full.noisy, np.minimum(TABLE, 12), atol=1e-9)


def test_without_a_bound_the_distribution_ends_at_a_private_count_and_noisy_counts_do_not() -> None:
    table = np.append(np.random.default_rng(1).poisson(20, 2999), 10**9)
    full = TwoStageMechanism(None, 40).release_in_full(table)
    assert full.upper == 33
    assert full.beyond == int(np.maximum(table - 33, 0).sum())
    assert full.values.max() <= full.upper
    assert len(full.probabilities) == full.upper + 1
    np.testing.assert_allclose(full.noisy, table, atol=1e-6)
    assert full.guarantee.epsilon == 40


def test_all_parts_of_a_release_fit_together() -> None:
    full = TwoStageMechanism(12, "0.8").release_in_full(TABLE)
    assert full.method == "table"
    assert full.probabilities.sum() == pytest.approx(1)
    made = full.strata[0].thresholds
    assert full.noisy_cumulative.shape == (len(made.places) + len(made.finer),)
    assert full.noisy_counts.shape == TABLE.shape
    low, high = full.interval(0.9)
    assert np.all((low >= 0) & (low <= high) & (high <= 12))
    wide_low, wide_high = full.interval(0.99)
    assert np.all(wide_high - wide_low >= high - low)
    assert len(set(full.deviation)) == 1


def test_intervals_hold_about_as_often_as_they_say() -> None:
    counts = np.random.default_rng(2).binomial(20, 0.4, 4000)
    full = TwoStageMechanism(20, 1).release_in_full(counts)
    low, high = full.interval(0.9)
    assert 0.87 < np.mean((low <= counts) & (counts <= high)) < 0.97


@pytest.mark.parametrize("emphasis", SCALE)
def test_noisy_counts_are_unbiased_and_no_noisier_than_stated(emphasis: Fraction) -> None:
    """Means within 5.5 standard errors: a false alarm in 1e-6 of runs. The noise is not clamped at 0 or at the top."""
    mechanism = TwoStageMechanism(20, "0.3", emphasis)
    for count in (0, 3, 20):
        full = mechanism.release_in_full(np.full(20_000, count))
        sd = float(full.deviation[0])
        assert abs(full.noisy.mean() - count) < 5.5 * sd / np.sqrt(20_000)
        assert full.noisy.std() < 1.04 * sd


def test_a_seed_gives_the_same_simulation_again_and_its_result_is_not_releasable() -> None:
    m = TwoStageMechanism(12, 1)
    one, two = (m.simulate(TABLE, np.random.default_rng(5)) for _ in range(2))
    assert isinstance(one, Simulated)
    np.testing.assert_array_equal(one, two)
    with pytest.raises(InputError, match="simulate"):
        m.release(one)


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_the_error_without_data_is_at_least_that_of_the_noisy_counts(epsilon: str) -> None:
    """Over all sizes, and whichever gaps are filled; where none can be it is their largest."""
    rng, mechanism = np.random.default_rng(8), TwoStageMechanism(40, epsilon)
    error = mechanism.error()
    assert "unbiased noisy counts" in error.method
    each: list[float] = []
    for size in (10, 50, 99, 100, 140, 300, 700, 3000, 13_447, 13_448, 10**5, 10**9):
        first = mechanism.measurement(size)
        each.append(first.deviation)
        ends = [-1, *first.places, 40]
        for _ in range(20 if first.finer_share else 0):
            gaps = [gap for gap in pairwise(ends) if rng.random() < 0.5]
            each.append(
                first.with_finer(tuple(at for low, high in gaps for at in range(low + 1, high))).deviation
            )
    assert 1 <= error.variance[20] / max(each) ** 2 < 20
    a = np.exp(-float(epsilon))
    assert min(each) ** 2 == pytest.approx(2 * a / (1 - a) ** 2)  # of small tables, which are plain noise


def test_where_epsilon_is_too_large_for_thresholds_none_are_measured_last() -> None:
    """At ε = 34 the share of a first threshold is rounded to 0, and that of one between them is not."""
    for size in (60, 200):
        made = TwoStageMechanism(3, 34).measurement(size)
        assert (made.places, made.share, made.finer_share) == ((), 0, 0)
    # there is noise with a probability of 1e-12
    assert TwoStageMechanism(3, 34).release([2] * 200).tolist() == [2] * 200


def test_thresholds_that_were_measured_last_fill_gaps() -> None:
    first = preset_thresholds("distribution", 20, Fraction(1, 5), 300)
    assert first.places[:6] == (0, 1, 2, 4, 8, 15)
    assert first.with_finer((3, 5, 6, 7)).finer == (3, 5, 6, 7)
    for wrong in ((5, 6), (3, 3), (7, 6, 5), (4,), (-1,), (20,), (3, 5, 6, 7, 8), (10**30,)):
        with pytest.raises(InputError, match="fill gaps"):
            first.with_finer(wrong)
    with pytest.raises(InputError, match="fill gaps"):
        preset_thresholds("counts", 20, Fraction(1, 5), 300).with_finer((3,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"upper": -1}, "upper"),
        ({"upper": 2.5}, "upper"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "a lot"}, "epsilon"),
        ({"emphasis": "rows"}, "emphasis"),
        ({"emphasis": 1.5}, "emphasis"),
        ({"emphasis": "-1/2"}, "emphasis"),
        ({"emphasis": True}, "emphasis"),
        ({"contributions": 0}, "contributions"),
        ({"neighbours": "swap"}, "neighbours"),
    ],
)
def test_public_arguments_are_checked_and_named(arguments: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"upper": 9, "epsilon": 1}
    with pytest.raises(InputError, match=message):
        TwoStageMechanism(**(usual | arguments))


@pytest.mark.parametrize("counts", [[-17], [0.25], ["many"], [[1, 2]], [float("nan")]])
def test_what_is_not_a_table_of_counts_is_refused_without_quoting_it(counts: Any) -> None:
    with pytest.raises(InputError) as refusal:
        TwoStageMechanism(9, 1).release(counts)
    assert not any(word in str(refusal.value) for word in ("17", "0.25", "many", "nan"))


def test_an_interval_needs_a_confidence_between_zero_and_one() -> None:
    with pytest.raises(InputError, match="confidence"):
        TwoStageMechanism(9, 1).release_in_full(TABLE).interval(1)


def test_strata_are_measured_apart_each_with_all_of_epsilon() -> None:
    counts = np.concatenate(
        [np.random.default_rng(4).poisson(2, 200), np.random.default_rng(5).poisson(9, 100)]
    )
    parts = [np.arange(0, 200), np.arange(200, 300), np.zeros(0, np.int64)]
    full = TwoStageMechanism(20, "0.5").release_in_full(counts, parts)
    assert [len(stratum.members) for stratum in full.strata] == [200, 100, 0]
    measured: list[Any] = [stratum.thresholds for stratum in full.strata]
    assert {each.step for each in measured} == {Fraction(1, 2)}
    assert full.strata[0].probabilities @ np.arange(21) < full.strata[1].probabilities @ np.arange(21) - 3
    assert full.values.shape == (300,)
    shuffled = np.random.default_rng(6).permutation(300)
    moved = TwoStageMechanism(20, 500).release_in_full(
        counts[shuffled], [shuffled.argsort()[part] for part in parts]
    )
    np.testing.assert_array_equal(moved.values, counts[shuffled])


@pytest.mark.parametrize("strata", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2, 3]], []])
def test_strata_hold_each_category_once(strata: Any) -> None:
    with pytest.raises(InputError, match="exactly once"):
        TwoStageMechanism(9, 1).release_in_full([1, 2, 3], [np.array(part, np.int64) for part in strata])


@pytest.mark.parametrize("epsilon", [25, 36, 50, 400])
def test_noise_that_is_never_seen_leaves_every_column_as_the_counts_are(epsilon):
    for size in (60, 300):
        table = np.random.default_rng(size).integers(0, 61, size)
        full = TwoStageMechanism(60, epsilon).simulate_in_full(table, np.random.default_rng(1))
        assert np.array_equal(full.values, table)
        assert np.allclose(full.estimates, table, atol=1e-6)
