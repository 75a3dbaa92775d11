from fractions import Fraction

import pytest
from tests.support.tape import Law, follow_all_paths

from isotone import noise
from isotone.errors import InputError
from isotone.noise.bits import exp_negative

SOURCES = [
    "isotone.noise.bits.random_below",
    "isotone.noise.laplace.random_below",
    "isotone.noise.laplace.random_bits",
]


def exp_of(x: Fraction) -> Fraction:
    return Fraction(exp_negative(x, 300)[0], 2**300)


def geometric_law(x: Fraction, k: int) -> Fraction:
    return (1 - exp_of(x)) * exp_of(x * k)


def two_sided_law(x: Fraction, k: int) -> Fraction:
    return (1 - exp_of(x)) / (1 + exp_of(x)) * exp_of(x * abs(k))


def consistent(law: Law, formula, x: Fraction, outcomes: range) -> bool:
    return all(law.allows(k, formula(x, k)) for k in outcomes)


@pytest.mark.parametrize("x", [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2), Fraction(5)])
def test_every_outcome_of_the_geometric_has_the_rational_formula(x, monkeypatch):
    law = follow_all_paths(lambda: noise.geometric(x), monkeypatch, SOURCES, Fraction(1, 10**6))
    assert law.unexplored < Fraction(1, 50)
    assert min(law.reached) == 0
    assert consistent(law, geometric_law, x, range(12))
    assert not consistent(law, geometric_law, x * Fraction(11, 10), range(12))
    assert not consistent(law, geometric_law, x * Fraction(10, 11), range(12))


@pytest.mark.parametrize("x", [Fraction(1), Fraction(2), Fraction(1, 2)])
def test_every_outcome_of_the_two_sided_geometric_has_the_rational_formula(x, monkeypatch):
    law = follow_all_paths(lambda: noise.two_sided_geometric(x), monkeypatch, SOURCES, Fraction(1, 10**5))
    assert law.unexplored < Fraction(1, 8)
    assert consistent(law, two_sided_law, x, range(-9, 10))
    assert not consistent(law, two_sided_law, x * Fraction(3, 2), range(-9, 10))
    for k in range(1, 10):
        assert law.reached.get(k, 0) == law.reached.get(-k, 0)


def test_rates_may_be_as_extreme_as_one_likes():
    assert noise.two_sided_geometric(Fraction(10**9)) == 0  # false alarm: 2·exp(-1e9)
    assert abs(noise.two_sided_geometric(Fraction(1, 10**30))) > 10**20  # false alarm: 1e-10
    assert noise.discrete_laplace is noise.two_sided_geometric


@pytest.mark.parametrize("x", [Fraction(0), Fraction(-1, 3)])
def test_a_rate_that_is_not_positive_is_refused(x):
    with pytest.raises(InputError, match="above 0"):
        noise.geometric(x)
    with pytest.raises(InputError, match="above 0"):
        noise.two_sided_geometric(x)
