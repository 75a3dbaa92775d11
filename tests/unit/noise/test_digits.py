from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.support.tape import Script

from isotone.noise import laplace as digits
from isotone.noise.laplace import BASE, WORD_BITS, digits_below, geometric_digits

RATES = [
    Fraction(1),
    Fraction(1, 10),
    Fraction(1, 1000),
    Fraction(1, 10**9),
    Fraction(355, 113),
    Fraction(20),
]


def below(rate: Fraction, digit: int, cut: int | None, bits: int) -> int:
    """``floor(2**bits · P(geometric < digit | geometric < cut))``."""
    with mpmath.workprec(bits + 300 + int(2 * rate * digit)):
        x = mpmath.mpf(rate.numerator) / rate.denominator
        whole = mpmath.mpf(1) if cut is None else -mpmath.expm1(-x * cut)
        return int(mpmath.floor(mpmath.mpf(2) ** bits * -mpmath.expm1(-x * digit) / whole))


@pytest.mark.parametrize("rate", RATES)
def test_thresholds_are_the_exact_floors(rate):
    table = geometric_digits(rate)
    for row, each in enumerate(table.rates):
        cut = None if row == len(table.rates) - 1 else BASE
        assert each == rate * BASE**row
        for digit in range(1, BASE):
            assert int(table.thresholds[row, digit - 1]) == below(each, digit, cut, WORD_BITS)


@pytest.mark.parametrize("rate", [Fraction(1, 400), Fraction(3, 10**6), Fraction(1, 50)])
def test_a_digit_is_made_of_independent_bits(rate):
    """Bit j of a geometric variable is Bernoulli(1/(1 + exp(rate·2**j))): the digits of an exponential."""
    table = digits_below(rate, 2)
    with mpmath.workprec(400 + int(2 * rate * BASE**2)):
        for row in range(2):
            x = mpmath.mpf(table.rates[row].numerator) / table.rates[row].denominator
            ones = [1 / (1 + mpmath.exp(x * 2**j)) for j in range(8)]
            total = mpmath.mpf(0)
            for digit in range(BASE - 1):
                bits = [ones[j] if digit >> j & 1 else 1 - ones[j] for j in range(8)]
                total += mpmath.fprod(bits)
                assert int(table.thresholds[row, digit]) == int(mpmath.floor(total * 2**WORD_BITS))


def test_known_digits_of_an_exponential():
    """The first fractional bit of a unit exponential is 1 with probability 1/(1 + exp(1/2)) = 0.3775406687…"""
    lowest = digits_below(Fraction(1, 256), 1)
    upper_half = 1 - int(lowest.thresholds[0, 127]) / 2**63
    assert upper_half == pytest.approx(0.37754066879814546, abs=1e-15)


@pytest.mark.parametrize("rate", RATES)
def test_guides_point_at_the_first_threshold_that_may_matter(rate):
    table = geometric_digits(rate)
    for thresholds, guides in zip(table.thresholds, table.guides, strict=True):
        for high in (0, 1, 17, 128, 254, 255):
            assert guides[high] == np.count_nonzero(thresholds < np.uint64(high << 55))


def test_the_leading_digit_is_rarely_beyond_its_table():
    for rate in RATES:
        table = geometric_digits(rate)
        assert table.unbounded
        assert table.rates[-1] * 255 >= 6
        assert len(table.rates) == 1 or table.rates[-2] * 255 < 6


@pytest.mark.parametrize("leading", [True, False])
@pytest.mark.parametrize("digit", [1, 2, 100, 255])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_word_on_a_threshold_reads_on_until_it_is_off(leading, digit, rounds, monkeypatch):
    """Bits that agree with P(digit < d) for some rounds, and then are just below or just above it."""
    rate = Fraction(1, 20)
    table = geometric_digits(rate) if leading else digits_below(rate, 1)
    bits = WORD_BITS + 64 * rounds
    exact = below(rate, digit, None if leading else BASE, bits)
    for step, expected in ((-1, digit - 1), (1, digit)):
        path = exact + step
        words = [path >> 64 * i & (2**64 - 1) for i in range(rounds - 1, -1, -1)]
        script = Script(words)
        monkeypatch.setattr(digits, "random_bits", script.random_bits)
        assert table.resolve(0, path >> 64 * rounds) == expected
        assert script.used == rounds


def test_enormous_rates_are_tabulated_at_once():
    assert set(digits_below(Fraction(10**12), 1).thresholds[0, :255].tolist()) == {2**63 - 1}
    assert set(geometric_digits(Fraction(10**12)).thresholds[0, :255].tolist()) == {2**63 - 1}


def test_tables_are_read_only_and_shared():
    table = geometric_digits(Fraction(1, 3))
    assert geometric_digits(Fraction(1, 3)) is table
    with pytest.raises(ValueError, match="read-only"):
        table.thresholds[0, 0] = 1
