import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.counts import DiscreteLaplaceMechanism, HierarchicalMechanism, LaplaceMechanism
from isotone.counts.consistency import consistent
from isotone.errors import InputError
from isotone.noise.simulate import Simulated
from isotone.order import Poset


@pytest.fixture
def survey() -> Poset:
    return Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])


def test_possible_counts_are_left_alone(survey):
    assert consistent(survey, [120, 80, 33]).tolist() == [120, 80, 33]
    assert consistent(survey, [120, 80, 33], integers=True).dtype == np.int64


def test_impossible_counts_become_the_closest_possible_ones(survey):
    assert consistent(survey, [10, 17, -2]).tolist() == [13.5, 13.5, 0.0]
    assert consistent(survey, [10, 16, 0], weights=[1, 2, 1]).tolist() == [14.0, 14.0, 0.0]
    assert consistent(survey, [-5, -3, -4]).tolist() == [0, 0, 0]


def test_a_public_bound_is_kept(survey):
    assert consistent(survey, [120, 80, 33], upper=100).tolist() == [100, 80, 33]
    assert consistent(survey, [120, 80, 33], upper=99.5, integers=True).tolist() == [99, 80, 33]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14), st.integers(0, 2**32))
def test_the_result_is_possible_closer_to_every_possible_vector_and_rounding_keeps_it_so(n, seed):
    rng = np.random.default_rng(seed)
    P = Poset.random_dag(n, rng)
    lower, upper = P.cover_pairs.T
    truth = P.close_all(rng.random((30, n)) < 0.2).sum(axis=0)
    noisy = truth + rng.normal(scale=6, size=n)
    weights = rng.uniform(0.1, 3, size=n)
    fitted = consistent(P, noisy, weights)
    for result in (fitted, consistent(P, noisy, weights, integers=True)):
        assert np.all(result >= 0)
        assert np.all(result[lower] <= result[upper])
    assert np.sum(weights * (fitted - truth) ** 2) <= np.sum(weights * (noisy - truth) ** 2) + 1e-9


def test_rounding_may_move_away_from_the_truth_by_at_most_a_half_each():
    P = Poset.chain("ab")
    release, truth = np.array([1, 0]), np.array([1, 1])
    fitted, rounded = consistent(P, release), consistent(P, release, integers=True)
    assert fitted.tolist() == [0.5, 0.5]
    assert np.abs(rounded - fitted).max() <= 0.5
    assert np.sum((fitted - truth) ** 2) < np.sum((release - truth) ** 2) < np.sum((rounded - truth) ** 2)


def test_a_bound_below_the_true_counts_may_move_away_from_them():
    P, truth = Poset.chain("ab"), np.array([5, 9])
    assert np.sum((consistent(P, truth, upper=7) - truth) ** 2) > 0


def test_a_mechanism_trusts_each_count_by_its_variance(survey):
    m = HierarchicalMechanism(Poset.chain("abc"), 1)
    variance = m.error().variance
    assert len(set(variance.round(9))) > 1
    noisy = [30, 20, 10]
    assert m.consistent(noisy) == pytest.approx(consistent(m.P, noisy, 1 / variance))
    assert m.consistent(noisy, upper=15, integers=True).tolist() == [15, 15, 15]
    equal = LaplaceMechanism(survey, 1)
    assert equal.consistent([10, 17, -2]).tolist() == [13.5, 13.5, 0.0]
    sure = DiscreteLaplaceMechanism(survey, 10**5)  # its variance is 0 in floats
    assert sure.consistent([10, 17, -2]).tolist() == [13.5, 13.5, 0.0]


def test_what_was_simulated_stays_simulated(survey):
    noisy = Simulated.wrap(np.array([10.0, 17.0, -2.0]))
    assert isinstance(consistent(survey, noisy), Simulated)
    assert isinstance(consistent(survey, noisy, integers=True), Simulated)


def test_another_number_of_values_is_refused(survey):
    with pytest.raises(InputError, match="one number for each of the 3"):
        consistent(survey, [1, 2])
