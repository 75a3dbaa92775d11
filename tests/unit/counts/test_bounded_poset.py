import math
from fractions import Fraction

import numpy as np
import pytest
from tests.support.filters import changes, filters
from tests.support.posets import all_posets

from isotone.counts import BoundedPosetMechanism, LaplaceMechanism, PosetMechanism
from isotone.counts.mechanisms.bounded_poset import _magnitude
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.order import Poset

PAIR = Poset.antichain("ab")


def test_it_has_the_shape_of_a_mechanism():
    m = BoundedPosetMechanism(PAIR, 1, max_size=1)
    assert isinstance(m, Mechanism)
    assert m == BoundedPosetMechanism(PAIR, 1, max_size=1)
    assert m != BoundedPosetMechanism(PAIR, 1, max_size=2)
    assert m.rate == 1
    assert BoundedPosetMechanism(PAIR, 1, "replace", contributions=3, max_size=1).rate == Fraction(1, 6)
    assert BoundedPosetMechanism(PAIR, 10**6, max_size=1).release([7, 5]).tolist() == [7, 5]


def test_the_bounds_of_a_magnitude_are_the_least_and_the_largest_one():
    for low in range(-4, 5):
        for high in range(low, 5):
            magnitudes = [abs(x) for x in range(low, high + 1)]
            assert _magnitude(low, high) == (min(magnitudes), max(magnitudes))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_density_is_private_for_every_change_by_short_records(neighbours):
    rng = np.random.default_rng(2)
    for P in all_posets(3):
        for max_size in (1, 2):
            m = BoundedPosetMechanism(P, "3/2", neighbours, contributions=2, max_size=max_size)
            y = rng.normal(scale=3, size=(200, len(P)))
            moves = [np.array(move) for move in sorted(changes(P, neighbours, 2, max_size))]
            worst = max(float(np.max(m.log_density(y) - m.log_density(y - move))) for move in moves)
            assert worst <= 1.5 + 1e-9
            if neighbours == "add-remove":
                assert worst > 1.4


def test_short_records_have_norm_one_and_long_ones_more():
    for P in all_posets(4):
        m = BoundedPosetMechanism(P, 1, max_size=2)
        assert np.all(m.norm(filters(P, 2)[1:]) == 1)
        assert m.norm(np.ones(4)) == 2


def test_the_acceptance_is_the_ratio_of_the_volumes():
    m = BoundedPosetMechanism(PAIR, 1, max_size=1)
    assert m.acceptance == pytest.approx(2 / 3, abs=0.02)  # a square of area 2 in a hexagon of area 3
    y = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 1.0]])
    assert m.log_density(y) == pytest.approx(LaplaceMechanism(PAIR, 1, max_size=1).log_density(y), abs=0.03)
    error = m.error()
    assert np.all(np.abs(error.variance - 2.0) <= 5 * error.standard_error)  # a fixed seed: no false alarm
    assert np.all(error.standard_error < 0.1)


def test_a_bound_that_binds_nothing_changes_nothing():
    P = Poset.chain("abc")
    m, plain = BoundedPosetMechanism(P, 1, max_size=3), PosetMechanism(P, 1)
    assert m.acceptance == 1
    y = np.random.default_rng(0).normal(size=(20, 3))
    assert m.log_density(y) == pytest.approx(plain.log_density(y))
    assert BoundedPosetMechanism(P, 1, max_size=9).norm(y) == pytest.approx(plain.norm(y))


def test_it_is_better_than_both_others_between_short_and_long_records():
    P = Poset.antichain(range(10))
    m = BoundedPosetMechanism(P, 1, max_size=3)
    others = PosetMechanism(P, 1).error().total, LaplaceMechanism(P, 1, max_size=3).error().total
    assert m.error().total < 0.8 * min(others)


def test_what_is_not_practical_is_refused_with_what_to_use_instead():
    with pytest.raises(InputError, match=r"one in 1000 draws.*LaplaceMechanism"):
        BoundedPosetMechanism(Poset.antichain(range(40)), 1, max_size=1)
    with pytest.raises(InputError, match="needs max_size"):
        BoundedPosetMechanism(PAIR, 1)
    with pytest.raises(InputError, match="BoundedPosetMechanism"):
        PosetMechanism(PAIR, 1, max_size=1)
    with pytest.raises(InputError, match="no total"):
        BoundedPosetMechanism(PAIR, 1, max_size=1).release_with_total([1, 1], 2)


def test_the_log_density_adds_up_to_one():
    m = BoundedPosetMechanism(PAIR, 1, max_size=1)
    grid = np.arange(-12, 12, 0.05) + 0.025
    cells = np.stack(np.meshgrid(grid, grid), axis=-1)
    assert math.isclose(float(np.exp(m.log_density(cells)).sum()) * 0.05**2, 1, abs_tol=0.02)
