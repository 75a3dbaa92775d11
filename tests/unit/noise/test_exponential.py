from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.untimed import untimed

from isotone import noise
from isotone.errors import InputError
from isotone.noise import exponential
from isotone.noise.exponential import LazyExponentials, first_places


def test_reading_on_only_adds_digits():
    terms = LazyExponentials(Fraction(1, 3), 50, 10)
    before = [terms.partial_sum(m) for m in range(51)]
    assert before == terms.first_partial_sums().tolist()
    for _ in range(3):
        terms.read_on()
        after = [terms.partial_sum(m) for m in range(51)]
        for m in range(51):
            assert before[m] << 32 <= after[m]
            assert after[m] < (before[m] + m << 32 if m else 1)
        before = after
    assert terms.places == 10 + 3 * 32


class Remembered(LazyExponentials):
    """Exponentials that can be looked up after they were used."""

    made: list[LazyExponentials]

    def __init__(self, rate, count, places):
        super().__init__(rate, count, places)
        self.made.append(self)


def nearest_integers(steps, plus, minus):
    """The rounded sums from 200 or more binary places of every term: the steps down follow those up."""
    while steps.places < 200:
        steps.read_on()
    half, turn = 1 << (steps.places - 1), int(plus.max())
    before = steps.partial_sum(turn)
    return [
        (steps.partial_sum(p) - (steps.partial_sum(turn + m) - before) + half) >> steps.places
        for p, m in zip(plus.tolist(), minus.tolist(), strict=True)
    ]


@pytest.mark.parametrize("places", [None, 1, 3, 9])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10**4), Fraction(100)])
def test_sums_are_rounded_as_all_their_digits_say(places, rate, monkeypatch):
    Remembered.made = []
    monkeypatch.setattr(exponential, "LazyExponentials", Remembered)
    if places is not None:  # so few that most roundings are open at first
        monkeypatch.setattr(exponential, "first_places", lambda *_: places)
    lengths = np.random.default_rng(5)
    plus, minus = lengths.integers(0, 40, 60), lengths.integers(0, 40, 60)
    rounded = noise.rounded_exponential_sums(rate, plus, minus)
    (steps,) = Remembered.made
    assert rounded.tolist() == nearest_integers(steps, plus, minus)


def test_equal_sums_get_equal_noise():
    plus, minus = np.array([3, 3, 0, 0]), np.array([2, 2, 0, 0])
    rounded = noise.rounded_exponential_sums(Fraction(1, 1000), plus, minus)
    assert rounded[0] == rounded[1]
    assert rounded[2] == rounded[3] == 0


def test_longer_sums_are_larger():
    up = noise.rounded_exponential_sums(Fraction(1, 50), np.arange(200), np.zeros(200, dtype=np.int64))
    assert np.all(np.diff(up) >= 0)
    down = noise.rounded_exponential_sums(Fraction(1, 50), np.zeros(200, dtype=np.int64), np.arange(200))
    assert np.all(np.diff(down) <= 0)


def test_thousands_of_terms_and_sums_at_once():
    lengths = np.arange(5000)
    for rate in (Fraction(1, 10**4), Fraction(100)):
        sums = noise.rounded_exponential_sums(rate, lengths, lengths[::-1].copy())
        assert sums.shape == (5000,)
        assert abs(sums[-1] * rate / 5000 - 1) < Fraction(1, 10)  # false alarm below 1e-11: seven deviations


def test_the_least_rate_still_fits():
    assert noise.rounded_exponential_sums(Fraction(1, 2**44), np.array([1000]), np.array([0]))[0] > 2**50


@untimed
@given(st.fractions(Fraction(1, 2**30), 10**6), st.integers(0, 10**5), st.integers(0, 10**5))
def test_the_first_places_fit_the_kernel_and_make_open_roundings_rare(rate, longest, cells):
    places = first_places(rate, longest, cells)
    assert places >= 1
    assert rate / 2**places >= Fraction(1, 2**45)
    assert longest * 2**places / rate <= 2**57
    if rate > 2**-4:
        assert longest * cells < 2 ** (places - 10) or longest > 4000


def test_no_sums_and_empty_sums():
    none = np.zeros(0, dtype=np.int64)
    assert noise.rounded_exponential_sums(Fraction(1), none, none).shape == (0,)
    assert noise.rounded_exponential_sums(
        Fraction(1), np.zeros(2, dtype=np.int64), np.zeros(2, int)
    ).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("rate", "plus", "minus", "message"),
    [
        (Fraction(1, 2**50), [1], [0], "at least 1/17592186044416, not 1/1125899906842624"),
        (Fraction(0), [1], [0], "not 0"),
        (Fraction(-1), [1], [0], "not -1"),
        (Fraction(1, 2**40), [2**20], [0], "1048576 exponential variables"),
        (Fraction(1), [1, 2], [0], "not 2 and 1"),
        (Fraction(1), [-1], [0], "plus counts terms"),
        (Fraction(1), [1], [-2], "minus counts terms"),
        (Fraction(1), [1.5], [0], "plus must be a one-dimensional array of integers"),
        (Fraction(1), [[1]], [[0]], "one-dimensional"),
    ],
)
def test_sums_that_cannot_be_drawn_are_refused_with_their_reason(rate, plus, minus, message):
    with pytest.raises(InputError, match=message):
        noise.rounded_exponential_sums(rate, np.array(plus), np.array(minus))


def test_a_sum_beyond_64_bits_raises_instead_of_wrapping(monkeypatch):
    monkeypatch.setattr(exponential, "draw_digits", lambda *_, **__: np.full(4, 2**61))
    with pytest.raises(OverflowError, match="exceeded 64 bits"):
        noise.rounded_exponential_sums(Fraction(1), np.array([4]), np.array([0]))
