"""Guarantees: exact numbers, composition, conversion."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, exact, positive

epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=50)


@pytest.mark.parametrize(
    ("given_as", "meant"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        ("0.25", Fraction(1, 4)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.7"), Fraction(7, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (1e-300, Fraction(1, 10**300)),
    ],
)
def test_a_number_means_what_it_prints(given_as, meant):
    assert exact(given_as) == meant


@pytest.mark.parametrize("bad", ["one", "", math.nan, math.inf, True, None, [1], "1/0", 1j])
def test_what_is_not_a_finite_number_is_refused_by_name(bad):
    with pytest.raises(InputError, match="epsilon must be a"):
        exact(bad, "epsilon")


@pytest.mark.parametrize("bad", [0, -1, "-0.5", 0.0])
def test_a_guarantee_needs_a_positive_number(bad):
    with pytest.raises(InputError, match="above 0"):
        positive(bad, "epsilon")


@given(epsilons, epsilons)
def test_pure_guarantees_add_exactly(a, b):
    assert (Guarantee.pure(a) + Guarantee.pure(b)).epsilon == a + b


@given(epsilons, epsilons)
def test_parallel_takes_the_larger_and_is_refused_where_a_unit_may_move(a, b):
    assert Guarantee.pure(a).parallel(Guarantee.pure(b)).epsilon == max(a, b)
    with pytest.raises(InputError, match="may move from one part to the other"):
        Guarantee.pure(a, neighbours="replace").parallel(Guarantee.pure(b, neighbours="replace"))


@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee.pure("0.7", neighbours="replace"),
        Guarantee.zcdp("0.3", neighbours="replace", unit="person"),
        Guarantee.approximate(3, "1e-6", neighbours="replace"),
        Guarantee.approximate(100, "1e-6", neighbours="replace"),
    ],
)
def test_replacing_undoes_what_was_taken_for_it(guarantee):
    part = guarantee.of_one_unit()
    assert part.neighbours == "add-remove"
    assert part.replacing() == guarantee
    with pytest.raises(InputError):
        guarantee.replacing()
    assert part.of_one_unit() == part


def test_a_guarantee_about_replaced_units_says_nothing_of_one_that_disappears():
    with pytest.raises(InputError, match="starts from"):
        Guarantee.pure(1, neighbours="replace").for_neighbours("add-remove")
    with pytest.raises(InputError, match="starts from"):
        Guarantee.pure(1, neighbours="replace").replacing()


def test_replacing_is_a_group_of_two():
    assert Guarantee.pure(1).replacing().epsilon == 2
    assert Guarantee.zcdp(1).replacing().rho == 4
    both = Guarantee.approximate(2, "1e-6").replacing()
    assert both.epsilon == 4
    assert 1e-6 * (1 + math.exp(2)) < both.delta < 1e-6 * (1 + math.exp(2)) * (1 + 1e-11)
    with pytest.raises(InputError, match="above 1"):
        Guarantee.approximate(20, "1e-6").replacing()
    with pytest.raises(InputError, match="use pure"):
        Guarantee.approximate(1000, "1e-6").replacing()


def test_zero_concentrated_guarantees_add_and_absorb_pure_ones():
    both = Guarantee.zcdp("0.1") + Guarantee.pure(1)
    assert both.kind == "zcdp"
    assert both.rho == Fraction(1, 10) + Fraction(1, 2)
    assert (Guarantee.pure(3) + Guarantee.zcdp("0.1")).rho == Fraction(1, 10) + Fraction(9, 2)


def test_an_approximate_guarantee_is_not_added_to_a_concentrated_one():
    with pytest.raises(InputError, match="no exact sum"):
        _ = Guarantee.zcdp("0.1") + Guarantee.approximate(1, "1e-6")


def test_deltas_that_add_up_to_one_guarantee_nothing():
    with pytest.raises(InputError, match="guarantee nothing"):
        _ = Guarantee.approximate(1, "0.5") + Guarantee.approximate(1, "0.5")


def test_guarantees_about_different_units_do_not_combine():
    with pytest.raises(InputError, match="different neighbours or units"):
        _ = Guarantee.pure(1, unit="person") + Guarantee.pure(1, unit="household")
    with pytest.raises(InputError, match="different neighbours or units"):
        _ = Guarantee.pure(1, neighbours="add-remove") + Guarantee.pure(1, neighbours="replace")


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=20), st.integers(1, 300))
def test_conversion_of_zcdp_never_understates_epsilon(rho, power):
    delta = Fraction(1, 10**power)
    claimed = Guarantee.zcdp(rho).to_approximate(delta).epsilon
    with mpmath.workdps(60):
        r = mpmath.mpf(rho.numerator) / rho.denominator
        true = r + 2 * mpmath.sqrt(r * mpmath.log(mpmath.mpf(10) ** power))
        stated = mpmath.mpf(claimed.numerator) / claimed.denominator
        assert true <= stated <= true * (1 + mpmath.mpf("1e-8"))


def test_within_compares_like_with_like():
    budget = Guarantee.pure(2)
    assert Guarantee.pure(2).within(budget)
    assert not Guarantee.pure("2.0000001").within(budget)
    assert not Guarantee.approximate(1, "1e-9").within(budget)
    assert not Guarantee.zcdp("0.0001").within(budget)
    assert Guarantee.pure(1).within(Guarantee.zcdp("0.5"))
    assert not Guarantee.approximate(1, "1e-9").within(Guarantee.zcdp(1))


def test_delta_zero_is_pure():
    assert Guarantee.approximate(1, 0) == Guarantee.pure(1)


def test_it_says_what_it_guarantees():
    text = str(Guarantee.approximate(1, "1e-6", unit="person"))
    assert text == "(ε, δ)-DP with ε = 1, δ = 1e-06, add-remove one person"


WITH_DELTA = [
    Guarantee.approximate("1/2", "1/100"),
    Guarantee.approximate("1/3", "1/50"),
    Guarantee.zcdp("1/4", "1/100"),
    Guarantee.zcdp("1/5", "1/50"),
]


@pytest.mark.parametrize("one", [*WITH_DELTA, Guarantee.pure("1/3"), Guarantee.zcdp("1/4")], ids=str)
def test_many_releases_cost_as_many_times_every_number(one):
    many = one.times(7)
    assert (many.epsilon, many.delta, many.rho) == (7 * one.epsilon, 7 * one.delta, 7 * one.rho)
    assert many == one + one + one + one + one + one + one


@pytest.mark.parametrize("releases", [1, 2, 3])
def test_losses_of_several_choices_lie_in_no_interval_of_that_length(releases):
    one = Guarantee.bounded_range("1/2")
    several = [one] * releases
    assert one.times(releases) == (one if releases == 1 else sum(several[1:], several[0]))
    assert one.times(releases).kind == ("bounded-range" if releases == 1 else "pure")


@pytest.mark.parametrize("one", WITH_DELTA, ids=str)
@pytest.mark.parametrize("other", WITH_DELTA, ids=str)
def test_disjoint_releases_cost_the_larger_of_every_number(one, other):
    if one.kind != other.kind:
        with pytest.raises(InputError, match="one kind"):
            one.parallel(other)
        return
    both = one.parallel(other)
    for name in ("epsilon", "delta", "rho"):
        assert getattr(both, name) == max(getattr(one, name), getattr(other, name))
    assert one.within(both)
    assert other.within(both)
    assert both == other.parallel(one)


@pytest.mark.parametrize("one", WITH_DELTA, ids=str)
@pytest.mark.parametrize("name", ["epsilon", "delta", "rho"])
def test_a_guarantee_is_within_a_budget_only_if_no_number_is_larger(one, name):
    if not getattr(one, name):
        return
    less = replace(one, **{name: getattr(one, name) * Fraction(99, 100)})
    assert less.within(one)
    assert one.within(one)
    assert not one.within(less)
