"""The two-stage mechanism: what it promises, how it spends, what it accepts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise import Simulated
from isotone.privacy.draws import SeededDraws
from isotone.tables import TwoStageMechanism
from isotone.tables.distribution.privatize import simulate_distribution

TABLE = np.random.default_rng(0).poisson(4, 300)
REMAPS = ("auto", "rows", "table")


class Tape(SeededDraws):
    """Draws that lead from any table to the same two measurements."""

    def __init__(
        self, cumulative: NDArray[np.int64], noisy: NDArray[np.int64], table: NDArray[np.int64]
    ) -> None:
        super().__init__(np.random.default_rng(7))
        own = np.cumsum(np.bincount(table, minlength=len(cumulative) + 1))[:-1]
        self.noise = [cumulative - own, noisy - table]

    def choice(self, scores: NDArray[np.int64], rate: Fraction) -> int:
        return 0

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        return self.noise.pop(0)


@pytest.mark.parametrize("remap", REMAPS)
def test_what_is_published_depends_on_the_table_only_through_the_two_measurements(remap: Any) -> None:
    rng = np.random.default_rng(3)
    noisy, other = rng.integers(0, 9, 300), rng.integers(0, 9, 300)
    cumulative = np.cumsum(np.bincount(noisy, minlength=9))[:-1] + rng.integers(-5, 6, 8)
    mechanism = TwoStageMechanism(upper=8, epsilon=1, remap=remap)
    one, two = (
        mechanism.run(table, Tape(cumulative, noisy, table)) for table in (np.minimum(TABLE, 8), other)
    )
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    assert (one.method, one.model) == (two.method, two.model)


@settings(max_examples=80, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 100), 20),
    split=st.one_of(st.none(), st.fractions(Fraction(1, 100), Fraction(99, 100))),
    percentile=st.one_of(st.none(), st.integers(1, 100)),
    remap=st.sampled_from(REMAPS),
    size=st.integers(0, 10**7),
)
def test_the_stages_add_up_to_epsilon_exactly(
    epsilon: Fraction, split: Fraction | None, percentile: int | None, remap: Any, size: int
) -> None:
    stages = TwoStageMechanism(9, epsilon, split, remap, percentile=percentile).stages(size)
    assert stages.bound + stages.distribution + stages.counts == epsilon
    assert stages.distribution > 0
    assert stages.counts > 0
    assert (stages.bound > 0) == (percentile is not None)


def test_the_default_splits_are_the_rule_of_thumb_and_the_rule_of_the_whole_table() -> None:
    assert TwoStageMechanism(9, 1, remap="rows").stages(500).distribution == Fraction("0.1362")
    assert TwoStageMechanism(9, 1, remap="table").stages(500).distribution == Fraction("0.1109")


def test_few_counts_are_split_by_the_published_rule_under_every_remap() -> None:
    splits = {
        TwoStageMechanism(5, 1, remap=remap).stages(500).distribution for remap in ("auto", "rows", "table")
    }
    assert splits == {Fraction("0.1362")}


def test_the_split_rule_sees_epsilon_per_step() -> None:
    thrice = TwoStageMechanism(9, 3, remap="rows", contributions=3).stages(500)
    assert thrice.distribution / 3 == TwoStageMechanism(9, 1, remap="rows").stages(500).distribution


def test_auto_takes_rows_where_public_numbers_leave_nothing_to_estimate() -> None:
    assert TwoStageMechanism(5, 1).stages(3).remap == "rows"
    assert TwoStageMechanism(5, 1).stages(5).remap == "auto"
    assert TwoStageMechanism(15, 1).stages(3).remap == "rows"
    assert TwoStageMechanism(16, 1).stages(3).remap == "auto"
    assert TwoStageMechanism(1, 1).stages(1000).remap == "rows"
    assert TwoStageMechanism(9, 1, remap="table").stages(3).remap == "table"


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


@pytest.mark.parametrize("remap", REMAPS)
def test_a_release_has_one_count_between_zero_and_upper_for_each_category(remap: Any) -> None:
    published = TwoStageMechanism(6, 1, remap=remap).release(TABLE)
    assert published.dtype == np.int64
    assert published.shape == TABLE.shape
    assert published.min() >= 0
    assert published.max() <= 6


@pytest.mark.parametrize("remap", REMAPS)
@pytest.mark.parametrize("upper", [0, 1, 2, 30])
@pytest.mark.parametrize("counts", [[], [0], [5], [3, 10**30]])
def test_tiny_tables_and_bounds_are_released_like_any_other(
    remap: Any, upper: int, counts: list[int]
) -> None:
    published = TwoStageMechanism(upper, 1, remap=remap).release(counts)
    assert len(published) == len(counts)
    assert all(0 <= value <= upper for value in published)


@pytest.mark.parametrize("remap", REMAPS)
@pytest.mark.parametrize("epsilon", [500, 10**5])
def test_with_next_to_no_privacy_the_table_comes_out_as_it_went_in(remap: Any, epsilon: int) -> None:
    published = TwoStageMechanism(12, epsilon, remap=remap).release(TABLE)
    np.testing.assert_array_equal(published, np.minimum(TABLE, 12))


def test_a_private_bound_top_codes_what_is_published() -> None:
    m = TwoStageMechanism(1000, 40, percentile=95, upper_share="0.5")
    full = m.release_in_full(np.random.default_rng(1).poisson(20, 3000))
    assert 24 <= full.upper <= 32
    assert full.values.max() <= full.upper
    assert len(full.probabilities) == full.upper + 1
    assert full.guarantee.epsilon == 40


def test_all_parts_of_a_release_fit_together() -> None:
    full = TwoStageMechanism(12, 2).release_in_full(TABLE)
    assert full.method == "table"
    assert full.probabilities.sum() == pytest.approx(1)
    assert len(full.noisy_cumulative) == 12
    assert full.noisy_counts.shape == TABLE.shape
    low, high = full.interval(0.9)
    assert np.all((low >= 0) & (low <= high) & (high <= 12))
    wide_low, wide_high = full.interval(0.99)
    assert np.all((wide_low <= low) & (high <= wide_high))
    assert np.all(full.deviation() >= 0)


def test_intervals_hold_about_as_often_as_they_say() -> None:
    counts = np.random.default_rng(2).binomial(20, 0.4, 4000)
    full = TwoStageMechanism(20, 1).release_in_full(counts)
    low, high = full.interval(0.9)
    assert 0.87 < np.mean((low <= counts) & (counts <= high)) < 0.97
    claimed, true = np.mean(full.deviation() ** 2), np.mean((full.values - counts) ** 2)
    assert claimed == pytest.approx(true, rel=0.15)


def test_a_seed_gives_the_same_simulation_again_and_its_result_is_not_releasable() -> None:
    m = TwoStageMechanism(12, 1)
    one, two = (m.simulate(TABLE, np.random.default_rng(5)) for _ in range(2))
    assert isinstance(one, Simulated)
    np.testing.assert_array_equal(one, two)
    with pytest.raises(InputError, match="simulate"):
        m.release(one)


def test_the_error_without_data_is_that_of_the_noisy_counts() -> None:
    error = TwoStageMechanism(40, 1, split="0.5").error()
    a = np.exp(-0.5)
    assert error.variance[20] == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-3)
    assert "before post-processing" in error.method


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"upper": -1}, "upper"),
        ({"upper": 2.5}, "upper"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "a lot"}, "epsilon"),
        ({"split": 0}, "split"),
        ({"split": 1}, "split"),
        ({"remap": "columns"}, "remap"),
        ({"price": 0}, "price"),
        ({"percentile": 0}, "percentile"),
        ({"percentile": 101}, "percentile"),
        ({"percentile": 99, "upper_share": 1}, "upper_share"),
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


def test_rows_are_the_fixed_point_mechanism_of_the_private_distribution() -> None:
    counts = np.repeat(np.arange(6), [300, 200, 150, 100, 50, 20])
    m = TwoStageMechanism(5, 4, "0.5", "rows")
    full = m.release_in_full(counts)
    assert full.method == "rows"
    z = simulate_distribution(counts, 5, 10**6, rng=np.random.default_rng(0)).probabilities
    np.testing.assert_allclose(full.probabilities, z, atol=0.02)
    published = np.bincount(full.values, minlength=6) / len(counts)
    np.testing.assert_allclose(published, full.probabilities, atol=0.06)


def test_the_intervals_of_a_tiny_table_hold():
    """False alarm below 1e-6 (Hoeffding, 200 releases, mean 0.95). Without doubt in the distribution 12 % held."""
    mechanism, counts = TwoStageMechanism(60, 1, remap="rows"), np.array([3, 27])
    held = 0.0
    for _ in range(200):
        low, high = mechanism.release_in_full(counts).interval(0.95)
        held += float(np.mean((low <= counts) & (counts <= high))) / 200
    assert held > 0.95 - np.sqrt(np.log(1e6) / (2 * 200))


def test_a_tiny_table_with_a_long_range_is_near_the_truth():
    """Row by row its mean error was 10. False alarm below 1e-9: the noise of 24 counts at this ε stays far below."""
    mechanism, counts = TwoStageMechanism(60, 1), np.array([3, 27])
    assert np.mean([np.abs(mechanism.release(counts) - counts).mean() for _ in range(12)]) < 4
