"""Choices against their weights (false-alarm rate 1e-8), and against weights that are off."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, assert_tells, chi_square_p, observe
from tests.support.effort import draws, off

from isotone import noise
from isotone.noise.bits import exp_negative

SCORES = np.array([3, 0, 7, 1, 1, 12])
COUNTS = np.array([4, 1, 30, 0, 2, 1000])
RATE = Fraction(1, 2)


def weights(rate: float, scores=SCORES, counts=COUNTS):
    w = counts * np.exp(-rate * (scores - scores.min()))
    return w / w.sum()


def test_segments_have_the_weights_of_the_exponential_mechanism():
    size = 100_000
    offsets = np.arange(size + 1) * SCORES.size
    picks = noise.choose_exponential_segments(np.tile(SCORES, size), offsets, RATE, np.tile(COUNTS, size))
    seen = np.bincount(picks, minlength=SCORES.size)
    assert_tells(seen, weights(0.5), weights(0.55), weights(0.45))


def test_segments_without_multiplicities_and_with_their_own_rates():
    size = 100_000
    scores, offsets = np.tile([0, 2, 5], 2 * size), np.arange(2 * size + 1) * 3
    picks = noise.choose_exponential_segments(scores, offsets, [Fraction(1), Fraction(2, 5)] * size)
    for start, rate in ((0, 1.0), (1, 0.4)):
        seen = np.bincount(picks[start::2], minlength=3)
        law = [weights(rate * factor, np.array([0, 2, 5]), np.ones(3)) for factor in (1, 0.9, 1.1)]
        assert_tells(seen, *law)


@pytest.mark.parametrize("shift", [0, 2**80])
def test_single_choices_near_zero_and_beyond_64_bits(shift):
    scores = [int(score) + shift for score in SCORES]
    picks = [noise.choose_exponential(scores, RATE, COUNTS) for _ in range(draws(10_000, 0.5))]
    assert_tells(np.bincount(picks, minlength=6), weights(0.5), weights(0.5 * (1 + off(0.5))))


def test_a_large_choice_is_right_in_bulk():
    """20,000 candidates in ten groups of equal score; which group wins has a known law."""
    scores = np.repeat(np.arange(10), 2000) * 10**15
    picks = [noise.choose_exponential(scores, Fraction(1, 3 * 10**15)) // 2000 for _ in range(1000)]
    seen = np.bincount(picks, minlength=10)
    assert chi_square_p(seen, weights(1 / 3, np.arange(10), np.ones(10))) > FALSE_ALARM
    assert chi_square_p(seen, weights(2 / 3, np.arange(10), np.ones(10))) < FALSE_ALARM


def coarse(bits: int) -> tuple[list[int], list[int]]:
    """Weights 1, e**-1 and e**-2, known to an eighth of the bits asked for: many uniforms are read on."""
    known = bits // 8
    pairs = [exp_negative(Fraction(i), known) for i in range(3)]
    return [low << bits - known for low, _ in pairs], [high << bits - known for _, high in pairs]


def test_a_choice_with_coarse_brackets_is_still_exact():
    seen = np.bincount([noise.choose_lazily(coarse) for _ in range(draws(20_000, 0.2))], minlength=3)
    assert_tells(seen, *(weights(rate, np.arange(3), np.ones(3)) for rate in (1.0, 1 + off(0.2))))


def test_integer_weights_and_shuffles():
    big = [10**40, 3 * 10**40, 10**41]
    seen = np.bincount([noise.choose_integer(big) for _ in range(30_000)], minlength=3)
    assert chi_square_p(seen, [1 / 14, 3 / 14, 10 / 14]) > FALSE_ALARM
    assert chi_square_p(seen, [1 / 14, 3.6 / 14, 9.4 / 14]) < FALSE_ALARM
    orders = [tuple(noise.shuffle(range(4))) for _ in range(24_000)]
    assert len(set(orders)) == factorial(4)
    assert chi_square_p(*observe(orders, sorted(set(orders)))) > FALSE_ALARM


def test_coins():
    many, fewer = draws(30_000, 0.2), draws(20_000, 0.2)
    fair = sum(noise.bernoulli(Fraction(1, 3)) for _ in range(many))
    much = 1 + off(0.2)
    assert_tells([fair, many - fair], [1 / 3, 2 / 3], [1 / 3 * much, 1 - 1 / 3 * much])
    heads = sum(noise.bernoulli_exp(Fraction(3, 2)) for _ in range(many))
    lazy = sum(
        noise.bernoulli_exp_lazily((Fraction(3, 2) - Fraction(1, 2**i), Fraction(3, 2)) for i in range(2, 99))
        for _ in range(fewer)
    )
    right, wrong = np.exp(-1.5), np.exp(-1.5 * much)
    for count, size in ((heads, many), (lazy, fewer)):
        assert_tells([count, size - count], [right, 1 - right], [wrong, 1 - wrong])
