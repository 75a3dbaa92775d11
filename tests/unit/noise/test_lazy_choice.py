from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.untimed import untimed

from isotone.errors import InputError
from isotone.noise import bits as lazy_choice
from isotone.noise import choose_lazily
from isotone.noise.bits import OPEN, REJECTED, exp_negative, locate

weight_lists = st.lists(st.fractions(0, 10), min_size=1, max_size=6).filter(any)


def exact(weights):
    return lambda bits: ([int(w * 2**bits) for w in weights], [-int(-w * 2**bits // 1) for w in weights])


@untimed
@given(weight_lists, st.integers(0, 2**20), st.integers(0, 40))
def test_a_located_number_is_where_the_true_weights_put_it(weights, uniform, bits):
    """Whatever the brackets say must hold for every number in the cell [uniform, uniform + 1)."""
    place = locate(uniform, *exact(weights)(bits))
    scaled = [weight * 2**bits for weight in weights]
    if place == REJECTED:
        assert sum(scaled) <= uniform
    elif place != OPEN:
        assert sum(scaled[:place]) <= uniform
        assert uniform + 1 <= sum(scaled[: place + 1])


def test_a_number_in_the_bracket_of_a_boundary_stays_open():
    brackets = [3, 5], [4, 6]  # the first weight ends between 3 and 4, the second between 8 and 10
    places = [locate(uniform, *brackets) for uniform in range(11)]
    assert places == [0, 0, 0, OPEN, 1, 1, 1, 1, OPEN, OPEN, REJECTED]


def one_to_e(bits: int) -> tuple[list[int], list[int]]:
    """Two weights in the ratio 1 : e."""
    low, high = exp_negative(Fraction(1), bits)
    return [low, 1 << bits], [high, 1 << bits]


@pytest.mark.parametrize("side", [-1, 1])
def test_a_uniform_inside_a_bracket_is_read_on(side, monkeypatch):
    boundary = exp_negative(Fraction(1), 256)[0] + side  # agrees with the true one in 255 bits
    words = iter([boundary >> 64 * i & (2**64 - 1) for i in range(3, -1, -1)])
    monkeypatch.setattr(lazy_choice, "random_bits", lambda count: next(words))
    assert choose_lazily(one_to_e) == (0 if side < 0 else 1)
    assert next(words, None) is None


def test_a_uniform_above_the_total_is_drawn_again(monkeypatch):
    draws = iter([2**65 - 1, 0])
    monkeypatch.setattr(lazy_choice, "random_bits", lambda count: next(draws))
    assert choose_lazily(one_to_e) == 0


@untimed
@given(weight_lists)
def test_a_weight_of_zero_is_never_chosen_lazily(weights):
    assert weights[choose_lazily(exact(weights))] > 0


def test_tiny_weights_are_first_made_visible():
    asked = []

    def weights(bits):
        asked.append(bits)
        return ([max(0, (3 << bits) >> 300), 0], [((3 << bits) >> 300) + 1, 0])

    assert choose_lazily(weights) == 0
    assert asked[:4] == [64, 128, 256, 512]


@pytest.mark.parametrize("none", [([], []), ([0, 0], [0, 0])])
def test_a_choice_without_weight_is_refused(none):
    with pytest.raises(InputError, match="at least one candidate"):
        choose_lazily(lambda bits: none)
