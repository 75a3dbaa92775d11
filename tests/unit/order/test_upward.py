from fractions import Fraction
from math import comb, factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.order.bipartitions import steps as upward

LEAST, END = 2**30, 2**31
TOO_MUCH = 1 + Fraction(1, 2**30)
mantissas = st.one_of(st.sampled_from([LEAST, LEAST + 1, END - 1]), st.integers(LEAST, END - 1))


def is_rounded_up(number, exact):
    return LEAST <= upward.mantissa(number) < END and exact <= upward.value(number) <= exact * TOO_MUCH


@given(mantissas, st.integers(-100, 100), st.integers(0, 31))
@settings(deadline=None)
def test_a_number_gives_back_what_it_was_packed_from(m, e, shift):
    number = upward.pack(m, e, shift)
    assert (upward.mantissa(number), upward.exponent(number), upward.shift(number)) == (m, e, shift)


@given(st.integers(LEAST, 2**62 - 2**32), st.integers(-1000, 1000))
@settings(deadline=None)
def test_a_sum_is_rounded_up_and_remembers_its_unit(total, unit):
    number = upward.sum_up(total, unit)
    assert is_rounded_up(number, total * Fraction(2) ** unit)
    assert upward.exponent(number) - upward.shift(number) == unit


@given(mantissas, mantissas)
@settings(deadline=None)
def test_a_product_is_rounded_up(m1, m2):
    number = upward.product_up(upward.pack(m1, 5, 3), upward.pack(m2, -7, 0))
    assert is_rounded_up(number, m1 * m2 * Fraction(1, 4))


@given(st.integers(1, 2**62 - 1), st.integers(0, 200))
@settings(deadline=None)
def test_a_share_is_the_number_of_units_that_cover(exact, gap):
    assert upward.share(exact, gap) == -(-exact >> gap)


@given(st.integers(-10_000, 10_000), st.sampled_from([31, 62]), st.integers(1, 2**22))
@settings(deadline=None)
def test_terms_add_up_to_between_30_and_62_bits(highest, width, terms):
    unit = upward.terms_unit(highest, width, terms)
    largest = 2**width - 1
    assert terms * upward.share(largest, unit - highest) <= 2**62 - 2**32
    assert upward.share((largest + 1) // 4 + 1, unit - highest) >= LEAST


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 33, 34, 35, 500])
def test_binomials_are_rounded_up_and_small_ones_are_exact(n):
    row = upward.binomials(n)
    assert all(is_rounded_up(row[k], comb(n, k)) for k in range(n + 1))
    exact = [upward.value(row[k]) == comb(n, k) for k in range(n + 1)]
    assert all(exact) or n > upward.EXACT_BINOMIALS
    assert not (n == 500 and all(exact))


def test_factorials_and_their_inverses_are_rounded_up():
    up, down = upward.factorials(300), upward.inverse_factorials(300)
    assert all(is_rounded_up(up[k], factorial(k)) for k in range(301))
    assert all(1 <= upward.value(down[k]) * factorial(k) <= TOO_MUCH**2 for k in range(301))
    assert upward.value(upward.ONE) == 1
