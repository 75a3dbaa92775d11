"""Geometric numbers and exponential coins without tables: the same law as those that were proved before."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, chi_square_p

from isotone import noise
from isotone.errors import InputError
from isotone.noise import laplace as lazy_arrays
from isotone.noise.laplace import (
    LEAST_RATE,
    bernoulli_exps,
    lazy_geometrics,
    lazy_two_sided_geometrics,
)

RATES = [Fraction(1, 50), Fraction(1, 3), Fraction(7, 10), Fraction(3)]


def _chi_square(values: np.ndarray, rate: float) -> float:
    """The probability of so large a deviation from a geometric law."""
    most = max(1, math.floor(math.log(len(values) / 20) / rate))
    seen = np.bincount(np.minimum(values, most), minlength=most + 1)
    chance = np.exp(-rate * np.arange(most + 1)) * -np.expm1(-rate)
    chance[-1] = math.exp(-rate * most)
    return chi_square_p(seen, chance)


@pytest.mark.parametrize("rate", RATES)
def test_geometric_numbers_have_their_law_and_no_other(rate: Fraction) -> None:
    drawn = lazy_geometrics(rate, 100_000)
    assert _chi_square(drawn, float(rate)) > FALSE_ALARM
    assert _chi_square(drawn, float(rate) * 1.1) < FALSE_ALARM


@pytest.mark.parametrize("rate", RATES)
def test_two_sided_numbers_are_symmetric_and_have_one_zero(rate: Fraction) -> None:
    drawn = lazy_two_sided_geometrics(rate, 100_000)
    zero = math.tanh(float(rate) / 2)
    assert abs(np.mean(drawn == 0) - zero) < 5.8 * math.sqrt(zero * (1 - zero) / 1e5)
    assert abs(np.mean(drawn > 0) - np.mean(drawn < 0)) < 5.8 / math.sqrt(1e5)
    variance = 0.5 / math.sinh(float(rate) / 2) ** 2
    assert abs(np.var(drawn) - variance) < 6 * variance * math.sqrt(5 / 1e5) + 0.01


def test_coins_have_the_probability_that_they_name() -> None:
    for m in range(5):
        seen = np.mean(bernoulli_exps(Fraction(1, 3), np.full(50_000, m)))
        chance = math.exp(-m / 3)
        assert abs(seen - chance) <= 5.8 * math.sqrt(chance * (1 - chance) / 5e4)


@pytest.mark.parametrize("margin", [1e-12, 1.0])
def test_what_floats_leave_open_is_settled_by_exact_comparison(
    monkeypatch: pytest.MonkeyPatch, margin: float
) -> None:
    # words on both sides of exp(-rate·k), so close that no float tells them apart
    rate, k = Fraction(2, 3), 5
    low, high = lazy_arrays.exp_negative(rate * k, 64)
    words = np.array([low - 1, high + 1], np.uint64)
    monkeypatch.setattr(lazy_arrays, "_MARGIN", margin)
    monkeypatch.setattr(lazy_arrays, "random_words", lambda count: words[:count])
    assert lazy_geometrics(rate, 2).tolist() == [k, k - 1]
    assert bernoulli_exps(rate, np.full(2, k)).tolist() == [True, False]


def test_further_bits_decide_where_the_first_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = Fraction(1)
    low, _ = lazy_arrays.exp_negative(rate, 64)
    exact, _ = lazy_arrays.exp_negative(rate, 128)
    monkeypatch.setattr(lazy_arrays, "random_words", lambda count: np.full(count, low, np.uint64))
    for further, expected in (((exact & (2**64 - 1)) - 2, 1), ((exact & (2**64 - 1)) + 3, 0)):
        monkeypatch.setattr(lazy_arrays, "random_bits", lambda _, bits=further: bits)
        assert lazy_geometrics(rate, 1).tolist() == [expected]
        assert bernoulli_exps(rate, np.ones(1, np.int64)).tolist() == [bool(expected)]


def test_the_smallest_words_give_the_largest_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_arrays, "random_words", lambda count: np.zeros(count, np.uint64))
    bits = iter([0, 0, 1 << 63])
    monkeypatch.setattr(lazy_arrays, "random_bits", lambda _: next(bits))
    drawn = lazy_geometrics(Fraction(1), 1)[0]
    assert drawn == math.floor(193 * math.log(2))


def test_rates_that_floats_cannot_tell_are_refused() -> None:
    with pytest.raises(InputError, match="at least"):
        lazy_geometrics(LEAST_RATE / 2, 1)
    with pytest.raises(InputError, match="at or above 0"):
        noise.bernoulli_exps(Fraction(1), np.array([-1]))
