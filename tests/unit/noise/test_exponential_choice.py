from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.untimed import untimed

from isotone.errors import InputError
from isotone.noise import bits as choice_kernel
from isotone.noise import bits as exponential_choice
from isotone.noise import choose_exponential, choose_exponential_segments
from isotone.noise.bits import _in_octaves, _settle, _weights

# what a type checker would refuse already
UNSIGNED: Any = np.array([2**63, 5], dtype=np.uint64)
HALVES: Any = [0.5]
SQUARE: Any = [[1]]

rates = st.builds(Fraction, st.integers(1, 2**70), st.integers(1, 2**70))
scores = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**63 - 1)
candidates = st.lists(
    st.tuples(st.integers(-50, 50) | scores, st.integers(0, 9) | counts), min_size=1, max_size=8
)


@untimed
@given(rates)
def test_a_rate_in_octaves_is_bracketed(rate):
    mantissa, places = _in_octaves(rate.numerator, rate.denominator)
    with mpmath.workprec(600):
        true = mpmath.mpf(rate.numerator) / rate.denominator / mpmath.log(2) * mpmath.mpf(2) ** places
        assert mantissa <= true < mantissa + 2
    assert 2**63 <= mantissa < 2**64


@untimed
@given(st.integers(0, 2**64 - 1), st.integers(2**63, 2**64 - 1), st.integers(-10, 260))
@example(2**64 - 1, 2**64 - 1, 64)
@example(1, 2**63, 0)
@example(0, 2**63, -5)
@example(2**64 - 1, 2**63, 192)
def test_octaves_are_the_product_cut_to_64_places(distance, mantissa, places):
    whole, fraction = choice_kernel._octaves(np.uint64(distance), np.uint64(mantissa), places)
    exact = Fraction(distance * mantissa) / Fraction(2) ** places
    if exact >= 256:
        assert whole == 256
    else:
        assert 0 <= exact - whole - Fraction(int(fraction), 2**64) < Fraction(1, 2**64)


def true_weights(values, multiplicity, rate):
    """The weights relative to the best score, to 700 bits."""
    best = min(value for value, count in zip(values, multiplicity, strict=True) if count)
    with mpmath.workprec(700):
        x = mpmath.mpf(rate.numerator) / rate.denominator
        return [
            count * mpmath.exp(-x * (value - best)) if count else mpmath.mpf(0)
            for value, count in zip(values, multiplicity, strict=True)
        ]


@untimed
@given(candidates.filter(lambda pairs: any(count for _, count in pairs)), rates)
@example([(0, 1), (1, 2**62), (700, 2**63 - 1)], Fraction(1, 7))
@example([(-(2**63), 1), (2**63 - 1, 1)], Fraction(1, 2**64))
@example([(0, 2**63 - 1)] * 8, Fraction(1))
@example([(0, 0), (700, 1)], Fraction(1))
def test_the_kernels_sums_are_bounds_of_the_true_ones(pairs, rate):
    values, multiplicity = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    mantissa, places = _in_octaves(rate.numerator, rate.denominator)
    size = len(pairs)
    found, best = choice_kernel._best_score(values, multiplicity)
    assert found
    octave = np.uint64(mantissa)
    top = choice_kernel._largest(values, multiplicity, best, octave, places)
    sums = np.empty((size, 2), dtype=np.uint64)
    choice_kernel._add_up(values, multiplicity, best, top, octave, places, sums)
    with mpmath.workprec(700):
        true, low = mpmath.mpf(0), 0
        for i, weight in enumerate(true_weights(values.tolist(), multiplicity.tolist(), rate)):
            true += weight * mpmath.mpf(2) ** (choice_kernel.TOP - top)
            low = int(sums[i, 0]) << 64 | int(sums[i, 1])
            high = choice_kernel._upper(sums[i, 0], sums[i, 1], i + 1)
            assert low <= true <= (int(high[0]) << 64 | int(high[1]))
    assert 2 ** (choice_kernel.TOP - 3) < low < 2 ** (choice_kernel.TOP + size.bit_length())


def split(number):
    return np.uint64(number >> 64), np.uint64(number & (2**64 - 1))


@untimed
@given(st.lists(st.integers(0, 2**100), min_size=1, max_size=6), st.integers(0, 2**103))
def test_a_uniform_is_placed_only_where_the_bounds_leave_no_doubt(terms, uniform):
    lows = [sum(terms[: i + 1]) for i in range(len(terms))]
    sums = np.array([split(low) for low in lows], dtype=np.uint64)
    highs = [low + (low >> 50) + 2 * (i + 1) + 1 for i, low in enumerate(lows)]
    place = choice_kernel._place(*split(uniform), sums, len(terms))
    if place == choice_kernel.ABOVE_TOTAL:
        assert uniform >= highs[-1]
    elif place == choice_kernel.BETWEEN_BOUNDS:
        assert any(low <= uniform < high for low, high in zip(lows, highs, strict=True))
    else:
        assert uniform < lows[place]
        assert place == 0 or uniform >= highs[place - 1]


@pytest.mark.parametrize("side", [-1, 1])
def test_a_uniform_between_the_bounds_is_settled_by_further_bits(side, monkeypatch):
    """The uniform agrees with the boundary between two candidates in 64 + 128 bits."""
    weights = _weights([0, 3, 1], Fraction(1, 2), [5, 7, 2])
    boundary = sum(weights(192)[0][:2]) + 4 * side
    words = iter([boundary >> 64 & (2**64 - 1), boundary & (2**64 - 1)])
    monkeypatch.setattr(exponential_choice, "random_bits", lambda count: next(words))
    assert _settle(weights, boundary >> 128, 64) == (1 if side < 0 else 2)
    assert next(words, None) is None


@pytest.fixture
def undecided(monkeypatch):
    """Bounds so loose that every uniform is undecided; the segments that were left open."""
    found = []

    def doubtful(*arguments):
        words, (chosen, _, pending, state) = arguments[-2:]
        if state[0] == chosen.size:
            return choice_kernel.DONE
        if state[1] + 2 > words.size:
            return choice_kernel.NEED_WORDS
        pending[:] = words[state[1]] >> np.uint64(64 - 2), words[state[1] + 1]
        state[1] += 2
        state[2] = 64
        found.append(int(state[0]))
        return choice_kernel.UNDECIDED

    monkeypatch.setattr(exponential_choice, "choose_segments", doubtful)
    return found


@pytest.mark.parametrize("multiplicity", [None, [1, 5, 2, 0]])
def test_an_undecided_segment_is_settled_and_the_others_go_on(multiplicity, undecided):
    """The choice comes from the exact weights alone."""
    picks = choose_exponential_segments([0, 9, 0, 9], [0, 2, 4], Fraction(100), multiplicity)
    assert picks.tolist() == [0, 0]
    assert set(undecided) == {0, 1}


def test_an_undecided_segment_is_settled_at_its_own_rate(undecided):
    """At rate 0 both candidates would be drawn: that 40 choices at rate 100 miss it has probability 2**-40."""
    rates = [Fraction(0), Fraction(100)] * 40
    picks = choose_exponential_segments([0, 9] * 80, range(0, 161, 2), rates)
    assert not picks[1::2].any()
    assert picks[::2].any()
    assert set(undecided) == set(range(80))


def test_words_that_run_out_are_fetched_and_no_segment_is_lost(monkeypatch):
    asked = []

    def few_words(count):
        asked.append(count)
        return np.full(2, 5, dtype=np.uint64)  # a uniform near 0: the first candidate

    monkeypatch.setattr(exponential_choice, "random_words", few_words)
    assert choose_exponential_segments([1] * 30, np.arange(0, 31, 3), Fraction(1)).tolist() == [0] * 10
    assert len(asked) == 10


def test_words_that_come_in_drops_give_the_same_choices_as_all_at_once(monkeypatch):
    stream = np.random.default_rng(3).integers(0, 2**64, 4_000, dtype=np.uint64)
    scores = np.random.default_rng(4).integers(0, 6, 300)

    def choices(at_once):
        place = 0

        def words(count):
            nonlocal place
            size = count if at_once else 2
            place += size
            return stream[place - size : place]

        monkeypatch.setattr(exponential_choice, "random_words", words)
        return choose_exponential_segments(scores, np.arange(0, 301, 3), Fraction(1, 2)).tolist()

    in_drops = choices(at_once=False)
    assert in_drops == choices(at_once=True)
    assert set(in_drops) == {0, 1, 2}


def test_the_best_score_wins_at_an_enormous_rate():
    for rate in (Fraction(10**6), Fraction(10**40)):
        assert choose_exponential([4, 2, 9, 3], rate) == 1
        assert choose_exponential([4, 2, 9, 3], rate, [1, 0, 1, 1]) == 3
    assert choose_exponential(np.array([2**62, -(2**62), 0]), Fraction(1)) == 1


def test_rate_zero_and_tiny_rates_ignore_the_scores():
    for rate in (Fraction(0), Fraction(1, 10**60)):
        picks = Counter(choose_exponential([0, 2**62], rate) for _ in range(200))
        assert set(picks) == {0, 1}  # false alarm: 2**-199


def test_a_multiplicity_makes_up_for_a_score():
    """exp(-43) · 2**62 is about 1: neither candidate may vanish."""
    picks = Counter(choose_exponential([0, 43], Fraction(1), [1, 2**62]) for _ in range(300))
    assert set(picks) == {0, 1}  # false alarm: below 1e-30


def test_integers_beyond_64_bits_take_the_slow_road_to_the_same_place():
    far = 10**25
    assert choose_exponential([far, 0, 2 * far], Fraction(1)) == 1
    assert choose_exponential([0, 1], Fraction(1000), [10**30, 1]) == 0
    assert choose_exponential(UNSIGNED, Fraction(1)) == 1
    picks = Counter(choose_exponential([0, far], Fraction(1, far), [2**64, 2**65]) for _ in range(200))
    assert set(picks) == {0, 1}


def test_one_rate_for_each_segment():
    picks = choose_exponential_segments([7, 0, 7, 0], [0, 2, 4], [Fraction(100), Fraction(10**9)])
    assert picks.tolist() == [1, 1]
    assert choose_exponential_segments([], [0], Fraction(1)).shape == (0,)


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda: choose_exponential([], Fraction(1)), "at least one candidate"),
        (lambda: choose_exponential([1], Fraction(-1)), "at least 0, not -1"),
        (lambda: choose_exponential([2**70], Fraction(-1)), "at least 0, not -1"),
        (lambda: choose_exponential(HALVES, Fraction(1)), "scores must be integers"),
        (lambda: choose_exponential(SQUARE, Fraction(1)), "scores must be one-dimensional"),
        (lambda: choose_exponential([1], Fraction(1), HALVES), "multiplicity must be integers"),
        (lambda: choose_exponential([1, 2], Fraction(1), [1]), "one multiplicity"),
        (lambda: choose_exponential([1, 2**70], Fraction(1), [1]), "one multiplicity"),
        (lambda: choose_exponential([1, 2], Fraction(1), [0, 0]), "multiplicity above 0"),
        (lambda: choose_exponential([1, 2**70], Fraction(1), [0, 0]), "multiplicity above 0"),
        (lambda: choose_exponential([1, 2], Fraction(1), [3, -1]), "none of multiplicity below 0"),
        (lambda: choose_exponential_segments([1, 2], [0, 1], Fraction(1)), "offsets must rise from 0"),
        (lambda: choose_exponential_segments([1, 2], [0, 0, 2], Fraction(1)), "at least one candidate"),
        (lambda: choose_exponential_segments([1, 2], [0, 2, 1, 2], Fraction(1)), "at least one candidate"),
        (lambda: choose_exponential_segments([1, 2], [0, 1, 2], [Fraction(1)]), "2 segments need one rate"),
    ],
)
def test_choices_that_cannot_be_made_are_refused_with_their_reason(choose, message):
    with pytest.raises(InputError, match=message):
        choose()
