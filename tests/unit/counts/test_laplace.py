import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.support.filters import changes
from tests.support.posets import all_posets

from isotone.counts.independent import DiscreteLaplaceMechanism, LaplaceMechanism
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

BOTH = pytest.mark.parametrize("kind", [LaplaceMechanism, DiscreteLaplaceMechanism])


@BOTH
def test_they_have_the_shape_of_a_mechanism(kind):
    m = kind(Poset.chain("abc"), epsilon="0.5")
    assert m.guarantee == Guarantee.pure("1/2")
    assert m.simulate(4, np.random.default_rng(0)).shape == (4, 3)
    assert isinstance(m.simulate(1, np.random.default_rng(0)), Simulated)
    assert m == kind(Poset.chain("abc"), epsilon=0.5)
    with pytest.raises(AttributeError):
        m.max_size = 2
    assert isinstance(m, Mechanism)


@BOTH
def test_a_release_is_integers_and_accepts_names(kind):
    P = Poset(["hyp", "twice"], [("twice", "hyp")])
    released = kind(P, epsilon=10**6).release({"twice": 80, "hyp": 120})
    assert released.dtype == np.int64
    assert released.tolist() == [120, 80]


def test_the_rate_is_epsilon_over_the_largest_record():
    P = Poset.antichain(range(10))
    assert LaplaceMechanism(P, 1).rate == Fraction(1, 10)
    assert LaplaceMechanism(P, 1, max_size=3).rate == Fraction(1, 3)
    assert LaplaceMechanism(P, 1, max_size=3, contributions=4).rate == Fraction(1, 12)
    assert LaplaceMechanism(P, 1, neighbours="replace").rate == Fraction(1, 10)
    assert LaplaceMechanism(P, 1, neighbours="replace", max_size=3).rate == Fraction(1, 6)


@BOTH
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_every_released_integer_is_private_on_every_small_order(kind, neighbours):
    outputs = np.array(list(product(range(-4, 5), repeat=3)))
    worst = 0.0
    for P in all_posets(3):
        for contributions, max_size in ((1, None), (1, 2), (2, 1)):
            m = kind(P, "3/2", neighbours, contributions, max_size)
            moves = sorted(changes(P, neighbours, contributions, max_size))
            worst = max(
                float(np.max(np.abs(m.log_probability(outputs) - m.log_probability(outputs - move))))
                for move in np.array(moves)
            )
            assert worst <= 1.5 + 1e-12
    assert worst > 1.4  # and the budget is used


@BOTH
def test_the_probabilities_of_all_integers_add_up_to_one(kind):
    m = kind(Poset.chain("a"), epsilon="0.7")
    law = m.probability(np.arange(-80, 81)[:, None])
    assert math.isclose(law.sum(), 1, rel_tol=1e-12)


def test_the_laplace_density_adds_up_to_one_and_its_cells_are_the_probabilities():
    m = LaplaceMechanism(Poset.chain("a"), epsilon="0.7")
    grid = (np.arange(-40_000, 40_000) + 0.5) / 1000
    density = np.exp(m.log_density(grid[:, None])) / 1000
    assert math.isclose(density.sum(), 1, rel_tol=1e-6)
    near_three = density[(grid >= 2.5) & (grid < 3.5)].sum()
    assert math.isclose(near_three, math.exp(m.log_probability([3.0])), rel_tol=1e-6)


@BOTH
def test_log_probability_of_an_output_is_that_of_its_noise(kind):
    m = kind(Poset.chain("ab"), epsilon=1)
    assert m.log_probability([4, 9], [3, 7]) == m.log_probability([1, 2])


@BOTH
def test_quantiles_are_those_of_the_law(kind):
    m = kind(Poset.chain("abc"), epsilon=1)
    low, middle, high = m.quantiles([0.025, 0.5, 0.975])
    assert middle.tolist() == [0, 0, 0]
    assert low == pytest.approx(-high)
    assert high == pytest.approx(m.unrounded_half_widths(0.95))
    draws = np.abs(np.asarray(m.simulate(200_000, np.random.default_rng(1))))
    assert np.all(np.mean(draws <= m.unrounded_half_widths(0.9), axis=0) > 0.897)
    assert np.all(np.mean(draws < m.unrounded_half_widths(0.9), axis=0) < 0.903)
    width = m.unrounded_simultaneous_half_width(0.9)
    assert np.mean(np.all(draws <= width, axis=1)) > 0.897
    assert np.mean(np.all(draws < width, axis=1)) < 0.903


def test_error_is_the_variance_of_the_law():
    m = DiscreteLaplaceMechanism(Poset.chain("a"), epsilon="0.7")
    k = np.arange(-80, 81)
    assert math.isclose(m.error().variance[0], np.sum(k**2 * np.exp(m.log_probability(k[:, None]))))
    assert (
        LaplaceMechanism(Poset.antichain(range(5)), "0.5", max_size=2).error().variance.tolist() == [32.0] * 5
    )


@BOTH
@pytest.mark.parametrize("epsilon", [0, -1, "x", float("nan")])
def test_an_epsilon_that_guarantees_nothing_is_refused(kind, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        kind(Poset.chain("ab"), epsilon)


@BOTH
def test_simulated_counts_cannot_be_released(kind):
    m = kind(Poset.chain("ab"), 1)
    with pytest.raises(InputError, match="simulate"):
        m.release(m.simulate(1, np.random.default_rng(0))[0])


@pytest.mark.parametrize("confidence", [0, 1, 2, -0.5, float("nan")])
def test_a_confidence_outside_zero_to_one_is_refused(confidence):
    with pytest.raises(InputError, match="confidence"):
        LaplaceMechanism(Poset.chain("ab"), 1).simultaneous_half_width(confidence)


def test_probabilities_outside_zero_to_one_are_refused():
    with pytest.raises(InputError, match="Probabilities"):
        LaplaceMechanism(Poset.chain("ab"), 1).quantiles([0.5, 1.0])


def test_outputs_of_another_length_are_refused():
    with pytest.raises(InputError, match="last axis"):
        LaplaceMechanism(Poset.chain("ab"), 1).log_density([1.0, 2.0, 3.0])
