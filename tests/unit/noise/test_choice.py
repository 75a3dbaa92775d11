from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tape import follow_all_paths
from tests.support.untimed import untimed

from isotone.errors import InputError
from isotone.noise import choose_integer, shuffle

SOURCE = ["isotone.noise.bits.random_below"]


@pytest.mark.parametrize("size", range(6))
def test_every_order_is_equally_likely_on_every_path(size, monkeypatch):
    law = follow_all_paths(lambda: tuple(shuffle(range(size))), monkeypatch, SOURCE)
    orders = list(permutations(range(size)))
    assert law.reached == {order: Fraction(1, len(orders)) for order in orders}


@pytest.mark.parametrize("weights", [[1], [1, 1], [3, 0, 5, 2], [0, 0, 7], [10, 1]])
def test_integer_weights_are_met_exactly_on_every_path(weights, monkeypatch):
    law = follow_all_paths(lambda: choose_integer(weights), monkeypatch, SOURCE)
    expected = {i: Fraction(weight, sum(weights)) for i, weight in enumerate(weights) if weight}
    assert law.reached == expected


@untimed
@given(st.lists(st.integers(0, 2**200), min_size=1, max_size=20).filter(any))
def test_a_weight_of_zero_is_never_chosen(weights):
    assert weights[choose_integer(weights)] > 0


@untimed
@given(st.lists(st.integers()))
def test_a_shuffle_keeps_the_items_and_leaves_the_input(items):
    before = list(items)
    assert sorted(shuffle(items)) == sorted(before)
    assert items == before


@pytest.mark.parametrize("weights", [[], [0], [0, 0], [1, -1], [5, -1]])
def test_weights_without_a_choice_are_refused(weights):
    with pytest.raises(InputError, match="0 or above, at least one of them above 0"):
        choose_integer(weights)
