from fractions import Fraction

import mpmath
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.untimed import untimed

from isotone.noise import bits as wide
from isotone.noise.bits import POWER_ERROR, below, exp2_negative, multiply, shift_left, shift_right

words = st.integers(0, 2**64 - 1)
wides = st.integers(0, 2**128 - 1)
LARGEST = 2**64 - 1


def split(number: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(number >> 64), np.uint64(number & LARGEST)


def joined(pair: tuple[int, int]) -> int:
    return int(pair[0]) << 64 | int(pair[1])


@untimed
@given(words, words)
@example(LARGEST, LARGEST)
def test_a_product_has_all_its_bits(a, b):
    assert joined(multiply(np.uint64(a), np.uint64(b))) == a * b


@untimed
@given(wides, st.integers(0, 200))
@example(2**128 - 1, 64)
@example(2**128 - 1, 63)
@example(2**128 - 1, 128)
def test_shifts_agree_with_integers(number, places):
    assert joined(shift_right(*split(number), places)) == number >> places
    assert joined(shift_left(*split(number), places)) == (number << places) % 2**128


@untimed
@given(wides, wides)
def test_comparison_agrees_with_integers(a, b):
    assert below(*split(a), *split(b)) == (a < b)
    assert not below(*split(a), *split(a))


def power_error(fraction: int) -> float:
    with mpmath.workprec(200):
        true = mpmath.mpf(2) ** (63 - mpmath.mpf(fraction) / mpmath.mpf(2) ** 64)
        return float(int(exp2_negative(np.uint64(fraction))) - true)


@untimed
@given(words)
@example(0)
@example(LARGEST)
@example(2**40 - 1)
@example(2**56 - 1)
def test_powers_of_two_are_within_their_error(fraction):
    assert abs(power_error(fraction)) < POWER_ERROR


def test_the_error_bound_is_met_at_every_table_entry():
    for place in (40, 48, 56):
        for entry in range(256):
            for offset in (0, 2**40 - 1):
                assert abs(power_error(min(LARGEST, (entry << place) + offset))) < POWER_ERROR


def test_the_tables_are_short_by_less_than_two():
    with mpmath.workprec(200):
        for table, step in ((wide._FIRST, 8), (wide._SECOND, 16), (wide._THIRD, 24)):
            for i in range(256):
                true = mpmath.mpf(2) ** (63 - mpmath.mpf(i) / 2**step)
                assert 0 <= true - int(table[i]) < 2
        assert 0 <= Fraction(int(wide._LOG_TWO), 2**64) <= mpmath.log(2)
