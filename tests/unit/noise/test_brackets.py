from fractions import Fraction
from math import floor

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.untimed import untimed

from isotone.noise.bits import exp_negative, log_two, powers_of_exp

rationals = st.fractions(min_value=0, max_value=400, max_denominator=10**9) | st.builds(
    Fraction, st.integers(0, 2**80), st.integers(1, 2**80)
)


def true_power(x: Fraction, bits: int) -> mpmath.mpf:
    """``2**bits · exp(-x)``, to far more digits than any bracket under test."""
    with mpmath.workprec(bits + 400):
        return mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits


@untimed
@given(rationals, st.integers(0, 500))
def test_a_bracket_holds_the_exponential_and_is_at_most_two_wide(x, bits):
    low, high = exp_negative(x, bits)
    assert low <= true_power(x, bits) <= high
    assert high - low <= 2


@untimed
@given(st.fractions(min_value=0, max_value=100), st.integers(0, 300))
def test_brackets_of_more_bits_agree_with_brackets_of_fewer(x, bits):
    low, high = exp_negative(x, bits)
    finer_low, finer_high = exp_negative(x, bits + 64)
    assert low << 64 <= finer_high
    assert finer_low <= high << 64


def test_the_first_hundred_digits_of_one_over_e():
    low, high = exp_negative(Fraction(1), 400)
    digits = (
        "3678794411714423215955237701614608674458111310317678345078368016974614957448998033571472743459196437"
    )
    assert floor(Fraction(low, 2**400) * 10**100) == floor(Fraction(high, 2**400) * 10**100) == int(digits)


def test_the_first_hundred_digits_of_the_logarithm_of_two():
    low, high = log_two(400)
    digits = (
        "6931471805599453094172321214581765680755001343602552541206800094933936219696947156058633269964186875"
    )
    assert floor(Fraction(low, 2**400) * 10**100) == floor(Fraction(high, 2**400) * 10**100) == int(digits)


@pytest.mark.parametrize("bits", [0, 1, 2, 63, 64, 128, 192, 1000])
def test_the_logarithm_of_two_is_bracketed(bits):
    low, high = log_two(bits)
    with mpmath.workprec(bits + 200):
        assert low <= mpmath.log(2) * mpmath.mpf(2) ** bits <= high
    assert high - low <= 2


@untimed
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=50), st.integers(1, 200))
def test_powers_are_bracketed_one_by_one(x, bits):
    powers = powers_of_exp(x, 20, bits)
    assert len(powers) == 21
    for d, (low, high) in enumerate(powers):
        assert low <= true_power(d * x, bits) <= high
        assert high - low <= 2


def test_far_exponents_cost_nothing_and_stay_bracketed():
    assert exp_negative(Fraction(10**30), 128) == (0, 1)
    assert exp_negative(Fraction(0), 7) == (128, 128)
