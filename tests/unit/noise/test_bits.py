from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tape import follow_all_paths
from tests.support.untimed import untimed

from isotone.errors import InputError
from isotone.noise import bits


@untimed
@given(st.integers(0, 300))
def test_random_bits_stay_below_their_power_of_two(count):
    assert 0 <= bits.random_bits(count) < 1 << count


def test_every_bit_of_random_bits_takes_both_values():
    draws = [bits.random_bits(13) for _ in range(200)]  # false alarm: 26 · 2**-200
    for place in range(13):
        assert {draw >> place & 1 for draw in draws} == {0, 1}


@untimed
@given(st.integers(1, 2**130))
def test_random_below_stays_below(bound):
    assert 0 <= bits.random_below(bound) < bound


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 8, 11])
def test_random_below_is_uniform_on_every_path(bound, monkeypatch):
    law = follow_all_paths(
        lambda: bits.random_below(bound), monkeypatch, ["isotone.noise.bits.random_bits"], Fraction(1, 2**20)
    )
    assert set(law.reached) == set(range(bound))
    assert len(set(law.reached.values())) == 1  # as much mass reaches every outcome
    assert law.unexplored < Fraction(1, 100)


def test_random_words_are_fresh_every_time():
    assert bits.random_words(0).size == 0
    first, second = bits.random_words(1000), bits.random_words(1000)
    assert first.dtype == np.uint64
    assert np.unique(np.concatenate([first, second])).size == 2000  # false alarm: 2e6 / 2**64


def test_salts_have_128_fresh_bits():
    salts = [bits.random_salt() for _ in range(200)]
    assert {len(salt) for salt in salts} == {16}
    assert len(set(salts)) == 200
    together = np.frombuffer(b"".join(salts), dtype=np.uint8).reshape(200, 16)
    ones = np.unpackbits(together, axis=1).sum(axis=0)
    assert ((ones > 0) & (ones < 200)).all()  # false alarm: 256 / 2**200


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: bits.random_bits(-1), "at least 0, not -1"),
        (lambda: bits.random_words(-2), "at least 0, not -2"),
        (lambda: bits.random_below(0), "at least 1, not 0"),
    ],
)
def test_impossible_requests_are_refused_with_their_reason(draw, message):
    with pytest.raises(InputError, match=message):
        draw()
