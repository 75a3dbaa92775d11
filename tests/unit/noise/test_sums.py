"""Sums of geometric numbers: exact brackets of their law, and draws that follow it to the last bit."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import mpmath
import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, chi_square_p

from isotone.errors import InputError
from isotone.noise import bits, geometric_sums
from isotone.noise import laplace as sums

CASES = [(Fraction(1, 32), 64), (Fraction(1, 3), 5), (Fraction(2), 1), (Fraction(700), 3)]


def cumulated(rate: Fraction, terms: int, k: int, places: int) -> int:
    """``floor(2**places · P(sum <= k))``, by the negative binomial law."""
    with mpmath.workprec(places + 1500):
        q = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        law = mpmath.fsum(mpmath.binomial(j + terms - 1, j) * q**j for j in range(k + 1))
        return int(mpmath.floor(mpmath.mpf(2) ** places * law * (1 - q) ** terms))


@pytest.mark.parametrize(("rate", "terms"), CASES)
@pytest.mark.parametrize("places", [64, 128])
def test_the_law_is_bracketed_closely(rate: Fraction, terms: int, places: int) -> None:
    for k, (low, high) in enumerate(islice(sums._cumulated(rate, terms, places), 12)):
        exact = cumulated(rate, terms, k, places)
        assert low <= exact < high
        assert high - low <= 2


@pytest.mark.parametrize(("rate", "terms"), CASES[:3])
def test_words_beside_a_bracket_give_the_sums_beside_it(
    monkeypatch: pytest.MonkeyPatch, rate: Fraction, terms: int
) -> None:
    low, high = sums._sum_table(rate, terms)
    for k in (len(low) // 4, len(low) // 2, len(low) - 2):  # the last is the end of the table
        words = np.array([int(low[k]) - 1, int(high[k])], np.uint64)
        monkeypatch.setattr(sums, "random_words", lambda count, words=words: words[:count])
        assert geometric_sums(rate, terms, 2).tolist() == [k, k + 1]


def test_further_bits_decide_where_the_first_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, terms, k = Fraction(1, 3), 5, 7
    exact = cumulated(rate, terms, k, 128)
    monkeypatch.setattr(sums, "random_words", lambda count: np.full(count, exact >> 64, np.uint64))
    for beyond, expected in ((-3, k), (3, k + 1)):
        further = (exact & (2**64 - 1)) + beyond
        monkeypatch.setattr(sums, "random_bits", lambda _, further=further: further)
        assert geometric_sums(rate, terms, 1).tolist() == [expected]


def test_the_largest_words_give_sums_beyond_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "random_words", lambda count: np.full(count, 2**64 - 1, np.uint64))
    monkeypatch.setattr(sums, "random_bits", lambda _: 0)
    (found,) = geometric_sums(Fraction(1), 2, 1).tolist()
    word = (2**64 - 1) << 64
    assert cumulated(Fraction(1), 2, found - 1, 128) < word <= cumulated(Fraction(1), 2, found, 128)


def test_sums_have_their_law_and_no_other() -> None:
    """False alarm as stated; at a rate a tenth off the expected χ² is above 400 on 30 degrees of freedom."""
    drawn = geometric_sums(Fraction(1, 2), 8, 40_000)
    edges = np.bincount(np.minimum(drawn, 35), minlength=36)

    def p_value(rate: Fraction) -> float:
        below = np.array([cumulated(rate, 8, k, 60) for k in range(35)]) / 2.0**60
        return chi_square_p(edges, np.diff(np.concatenate([[0.0], below, [1.0]])))

    assert p_value(Fraction(1, 2)) > FALSE_ALARM
    assert p_value(Fraction(11, 20)) < FALSE_ALARM


def test_what_needs_long_tables_is_refused() -> None:
    for rate, terms in ((Fraction(1, 33), 2), (Fraction(1), 0), (Fraction(1), 65)):
        with pytest.raises(InputError, match="terms"):
            geometric_sums(rate, terms, 1)


def test_uniform_numbers_of_several_bounds_come_from_whole_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    words = iter([[0, 2**64 - 1, 5], [7]])  # 2**64 is 1 modulo 3 and 5: the word 0 is drawn again
    monkeypatch.setattr(bits, "random_words", lambda count: np.array(next(words)[:count], np.uint64))
    assert bits.random_belows(np.array([3, 5, 4])).tolist() == [7 % 3, (2**64 - 1) % 5, 1]
    with pytest.raises(InputError, match="at least 1"):
        bits.random_belows(np.array([0]))
