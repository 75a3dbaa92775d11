from fractions import Fraction

import numpy as np
import pytest
from tests.support.tape import Script

from isotone import noise
from isotone.errors import InputError
from isotone.noise import laplace as bulk
from isotone.noise import laplace as digits
from isotone.noise.laplace import digits_below, geometric_digits

ONES = 2**64 - 1


@pytest.fixture
def scripted(monkeypatch):
    """Draw from given 64-bit words instead of random ones."""

    def draw(words, table, size=1, *, two_sided=False, after=0):
        script = Script(list(words), after)
        monkeypatch.setattr(bulk, "random_words", script.random_words)
        return bulk.draw_digits(table, size, two_sided=two_sided).tolist()

    return draw


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 40), Fraction(7, 2)])
def test_every_boundary_of_the_leading_digit_is_where_it_should_be(rate, scripted):
    """The kernel is monotone between thresholds: its law is right if both sides of each threshold are."""
    table = geometric_digits(rate)
    assert len(table.rates) == 1
    thresholds = [int(threshold) for threshold in table.thresholds[0, :255]]
    for digit, threshold in enumerate(thresholds, start=1):
        if threshold + 1 in thresholds or threshold - 1 in thresholds or thresholds.count(threshold) > 1:
            continue  # probabilities below 2**-62: the next test
        assert scripted([(threshold - 1) << 1], table) == [digit - 1]
        assert scripted([(threshold + 1) << 1], table) == [digit]


@pytest.mark.parametrize("row", [0, 1])
def test_every_boundary_of_a_lower_digit_is_where_it_should_be(row, scripted):
    table = digits_below(Fraction(1, 5000), 2)
    for digit in range(1, 256):
        threshold = int(table.thresholds[row, digit - 1])
        for word, expected in (((threshold - 1) << 1, digit - 1), ((threshold + 1) << 1, digit)):
            words = [word, 0] if row == 0 else [0, word]
            assert scripted(words, table) == [expected << 8 * row]


def test_a_word_on_a_threshold_is_settled_by_further_bits(scripted, monkeypatch):
    table = geometric_digits(Fraction(1))
    word = int(table.thresholds[0, 2]) << 1
    monkeypatch.setattr(digits, "random_bits", lambda count: 0)
    assert scripted([word, 0], table, 2) == [2, 0]
    monkeypatch.setattr(digits, "random_bits", lambda count: (1 << count) - 1)
    assert scripted([word, 0], table, 2) == [3, 0]
    assert scripted([word | 1, 0], table, 2, two_sided=True) == [-3, 0]


def test_values_that_no_word_can_hold_are_still_reached(scripted, monkeypatch):
    """At rate 200 the value 1 has probability exp(-200); 300 ones and then zeros give it."""
    further = Script([ONES] * 4)
    monkeypatch.setattr(digits, "random_bits", further.random_bits)
    assert scripted([ONES], geometric_digits(Fraction(200))) == [1]
    assert further.used == 5


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 3000), Fraction(1, 10**8)])
@pytest.mark.parametrize("two_sided", [False, True])
def test_stopping_for_more_words_changes_nothing(rate, two_sided, scripted, monkeypatch):
    words = np.random.default_rng(1).integers(0, 2**64, 3000, dtype=np.uint64).tolist()
    table = geometric_digits(rate)
    whole = scripted(words, table, 300, two_sided=two_sided)
    for block in (1, 2, 7):
        monkeypatch.setattr(bulk, "_expected_words", lambda *_, block=block: block)
        assert scripted(words, table, 300, two_sided=two_sided) == whole


def test_the_lowest_bit_is_the_sign_and_minus_zero_is_drawn_again(scripted):
    table = geometric_digits(Fraction(1))
    two = (int(table.thresholds[0, 1]) + 1) << 1
    assert scripted([two | 1, two, 1, 1, 0], table, 3, two_sided=True) == [-2, 2, 0]
    assert scripted([1, 1, two], table, two_sided=True) == [2]  # a zero with the sign is no zero
    assert scripted([two | 1, 1], table, 2) == [2, 0]


def test_the_excess_over_the_leading_table_is_drawn_afresh(scripted):
    table = geometric_digits(Fraction(1, 40))
    beyond = (int(table.thresholds[0, 254]) + 1) << 1
    three = (int(table.thresholds[0, 2]) + 1) << 1
    assert scripted([beyond, beyond, three | 1], table, two_sided=True) == [-513]


def test_a_value_beyond_64_bits_raises_instead_of_wrapping(scripted):
    with pytest.raises(OverflowError, match="exceeded 64 bits"):
        scripted([], geometric_digits(bulk.SMALLEST_RATE), after=ONES)


def test_arrays_have_the_size_asked_for():
    assert noise.two_sided_geometrics(Fraction(1), 0).shape == (0,)
    draws = noise.geometrics(Fraction(1, 10), 1000)
    assert draws.dtype == np.int64
    assert draws.size == 1000
    assert draws.min() >= 0


@pytest.mark.parametrize("draw", [noise.geometrics, noise.two_sided_geometrics])
def test_rates_and_sizes_out_of_range_are_refused(draw):
    with pytest.raises(InputError, match="at least 2\\*\\*-45"):
        draw(Fraction(1, 2**46), 1)
    with pytest.raises(InputError, match="at least 2\\*\\*-45"):
        draw(Fraction(0), 1)
    with pytest.raises(InputError, match="at least 0, not -3"):
        draw(Fraction(1), -3)
