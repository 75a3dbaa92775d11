import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.support.filters import changes
from tests.support.posets import all_posets

from isotone.counts.count_plan import Setting, choose_mechanism
from isotone.counts.independent import LaplaceMechanism
from isotone.counts.knorm import LInfinityMechanism
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise.exponential import rounded_cube
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.published.counts import L2Mechanism, LpMechanism, squared_norm_of_ball


def test_they_have_the_shape_of_a_mechanism():
    P = Poset.chain("abc")
    for m in (LInfinityMechanism(P, "0.5"), L2Mechanism(P, "0.5"), LpMechanism(P, "0.5", p=3)):
        assert isinstance(m, Mechanism)
        assert m.guarantee == Guarantee.pure("1/2")
        assert m.simulate(4, np.random.default_rng(0)).shape == (4, 3)


def test_the_unit_ball_holds_every_change_and_some_change_is_on_its_boundary():
    for P in all_posets(3):
        for contributions, max_size in ((1, None), (2, 2)):
            moves = np.array(sorted(changes(P, "add-remove", contributions, max_size)))
            for m in (
                LpMechanism(P, 1, "1.5", contributions=contributions, max_size=max_size),
                L2Mechanism(P, 1, contributions=contributions, max_size=max_size),
                LInfinityMechanism(P, 1, contributions=contributions, max_size=max_size),
            ):
                assert math.isclose(np.max(m.norm(moves)), 1)


def test_p_one_is_the_laplace_mechanism():
    P = Poset.antichain(range(4))
    y = np.random.default_rng(0).normal(size=(7, 4)) * 5
    one, laplace = LpMechanism(P, "0.3", p=1), LaplaceMechanism(P, "0.3")
    assert one.log_density(y) == pytest.approx(laplace.log_density(y))
    assert one.error().variance == pytest.approx(laplace.error().variance)


def test_a_large_p_is_nearly_the_cube():
    P = Poset.antichain(range(6))
    y = np.random.default_rng(0).normal(size=(7, 6)) * 5
    large, cube = LpMechanism(P, 1, p=10**7), LInfinityMechanism(P, 1)
    assert large.log_density(y) == pytest.approx(cube.log_density(y), abs=1e-4)
    assert large.error().variance == pytest.approx(cube.error().variance, rel=1e-5)
    draws = large.simulate(1000, np.random.default_rng(0))
    assert np.all(np.isfinite(draws))


@pytest.mark.parametrize("p", [1, 1.5, 2, 5])
def test_the_density_adds_up_to_one_in_two_dimensions(p):
    m = LpMechanism(Poset.chain("ab"), 2, p)
    side = (np.arange(-600, 600) + 0.5) / 30
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    assert math.isclose(np.exp(m.log_density(grid)).sum() / 900, 1, rel_tol=1e-3)


def test_the_expected_squared_norms_of_balls_are_the_known_ones():
    for n in (1, 2, 5, 50):
        assert math.isclose(squared_norm_of_ball(n, 2), n / (n + 2))  # E r² of the Euclidean ball
        assert math.isclose(squared_norm_of_ball(n, 1), 2 * n / ((n + 1) * (n + 2)))
        assert math.isclose(squared_norm_of_ball(n, math.inf), n / 3)


@pytest.mark.parametrize("p", ["0.9", 0, -1])
def test_a_ball_that_is_not_convex_is_refused(p):
    with pytest.raises(InputError, match="at least 1"):
        LpMechanism(Poset.chain("ab"), 1, p)


@pytest.mark.parametrize("m", [L2Mechanism(Poset.chain("ab"), 1), LpMechanism(Poset.chain("ab"), 1, 3)])
def test_what_has_no_exact_sampler_does_not_release(m):
    with pytest.raises(InputError, match="cannot release"):
        m.release([2, 2])


def test_the_cube_releases_integers():
    P = Poset.antichain(range(4))
    released = LInfinityMechanism(P, epsilon=10**6).release([5, 6, 7, 8])
    assert released.dtype == np.int64
    assert released.tolist() == [5, 6, 7, 8]


def test_the_cube_does_not_care_for_neighbours_or_sizes_but_for_contributions():
    P = Poset.antichain(range(4))
    assert LInfinityMechanism(P, 1, "replace", max_size=2).rate == 1
    assert LInfinityMechanism(P, 1, contributions=3).rate * 3 == 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_every_integer_released_by_the_cube_is_private_on_every_small_order(neighbours):
    outputs = np.array(list(product(range(-4, 5), repeat=3)))
    for P in all_posets(3):
        m = LInfinityMechanism(P, "3/2", neighbours)
        worst = max(
            float(np.max(np.abs(m.log_probability(outputs) - m.log_probability(outputs - move))))
            for move in np.array(sorted(changes(P, neighbours, 1, None)))
        )
        assert 1.4 < worst <= 1.5 + 1e-12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_probabilities_of_the_rounded_cube_add_up_to_one(n):
    m = LInfinityMechanism(Poset.antichain(range(n)), 3)
    outputs = np.array(list(product(range(-9, 10), repeat=n)))
    assert math.isclose(m.probability(outputs).sum(), 1, rel_tol=1e-6)


def test_the_probability_of_a_cell_is_the_integral_of_the_density_over_it():
    m = LInfinityMechanism(Poset.antichain("ab"), "0.8")
    side = (np.arange(200) + 0.5) / 200 - 0.5
    square = np.stack(np.meshgrid(side, side), axis=-1)
    for cell in ([0, 0], [1, 0], [1, 1], [2, -2], [3, 1]):
        integral = np.mean(np.exp(m.log_density(square + cell)))
        assert math.isclose(integral, math.exp(m.log_probability(cell)), rel_tol=1e-4)


def test_quantiles_of_the_cube_are_those_of_its_simulation():
    m = LInfinityMechanism(Poset.antichain(range(5)), "1/1000")
    draws = np.abs(np.asarray(m.simulate(200_000, np.random.default_rng(2))))
    assert np.mean(draws <= m.half_widths(0.9), axis=0) == pytest.approx(np.full(5, 0.9), abs=0.004)
    width = m.simultaneous_half_width(0.9)
    assert np.mean(np.all(draws <= width, axis=1)) == pytest.approx(0.9, abs=0.004)
    low, middle, high = m.quantiles([0.05, 0.5, 0.95])
    assert high == pytest.approx(m.unrounded_half_widths(0.9))
    assert low == pytest.approx(-high)
    assert middle == pytest.approx(np.zeros(5), abs=1e-6)
    with pytest.raises(InputError, match="Probabilities"):
        m.quantiles(0)


def test_quantiles_without_a_closed_form_come_from_a_fixed_simulation():
    m = L2Mechanism(Poset.antichain(range(5)), "1/1000")
    draws = np.abs(np.asarray(m.simulate(200_000, np.random.default_rng(3))))
    assert np.mean(draws <= m.half_widths(0.9), axis=0) == pytest.approx(np.full(5, 0.9), abs=0.01)
    assert np.mean(np.all(draws <= m.simultaneous_half_width(0.9), axis=1)) == pytest.approx(0.9, abs=0.01)
    assert m.quantiles([0.95])[0] == pytest.approx(
        m.half_widths(0.9), rel=0.04
    )  # whose rank errs on the safe side
    assert m.simultaneous_half_width(0.9) == m.simultaneous_half_width(0.9)
    with pytest.raises(InputError, match="Probabilities"):
        m.quantiles(1)


def test_a_rate_too_small_for_64_bits_is_refused():
    with pytest.raises(InputError, match="at least"):
        rounded_cube(LInfinityMechanism(Poset.chain("a"), "1e-15").rate, 1)


@pytest.mark.parametrize(("rate", "size"), [(Fraction(1, 2**44), 2**18), (Fraction(1, 2**44), 2**12)])
def test_a_cube_too_large_for_64_bits_is_refused_before_anything_is_drawn(rate, size, monkeypatch):
    monkeypatch.setattr("isotone.noise.exponential.LazyExponentials", lambda *_: pytest.fail("it drew"))
    with pytest.raises(InputError, match="at least"):
        rounded_cube(rate, size)
    with pytest.raises(InputError, match="size"):
        rounded_cube(Fraction(1), -1)


@pytest.mark.parametrize(("rate", "size"), [(Fraction(1, 2**44), 2**12 - 1), (Fraction(1, 2**21), 2**17)])
def test_the_largest_cubes_at_small_rates_can_be_drawn(rate, size):
    # with a fixed number of first places the second raised OverflowError, whatever the draw
    values = np.abs(rounded_cube(rate, size))
    assert 0 < values.max() < 4 * (size + 1) / rate


@pytest.mark.parametrize("name", ["LpMechanism", "L2Mechanism"])
def test_a_mechanism_for_comparison_is_refused_by_name_for_the_right_reason(name):
    with pytest.raises(InputError, match=f"{name} exists for comparison and has no exact sampler"):
        choose_mechanism(Setting(Poset.chain("ab")), Guarantee.pure(1), name)


@pytest.mark.parametrize("name", [{}, ["PosetMechanism"], 3])
def test_a_mechanism_is_named_by_text(name):
    with pytest.raises(InputError, match="mechanism must be"):
        choose_mechanism(Setting(Poset.chain("ab")), Guarantee.pure(1), name)
