"""The heaviest filter of weighted elements, against all filters."""

import numpy as np
from tests.support.filters import filters
from tests.support.posets import all_posets

from isotone.order import Poset
from isotone.order.closure import heaviest_filter


def test_it_is_the_heaviest_of_all_filters_of_every_small_order():
    rng = np.random.default_rng(1)
    for P in [*all_posets(3), *all_posets(4), *all_posets(5)]:
        every = np.array(filters(P))
        for weights in rng.integers(-5, 6, (3, len(P))):
            gain, chosen = heaviest_filter(weights, P.cover_pairs.copy())
            assert gain == (every @ weights).max() == weights[chosen].sum()
            assert chosen.astype(int).tolist() in every.tolist()


def test_weights_of_one_sign_take_nothing_or_everything():
    P = Poset.chain(range(6))
    covers = P.cover_pairs.copy()
    assert heaviest_filter(np.full(6, 3), covers)[0] == 18
    gain, chosen = heaviest_filter(np.full(6, -3), covers)
    assert (gain, chosen.any()) == (0, False)
    assert heaviest_filter(np.zeros(6, np.int64), covers)[0] == 0


def test_a_heavy_element_pulls_in_what_it_implies_and_no_more():
    P = Poset("abcd", [("a", "b"), ("c", "d")])
    gain, chosen = heaviest_filter(np.array([5, -4, 5, -6]), P.cover_pairs.copy())
    assert (gain, chosen.tolist()) == (1, [True, True, False, False])
    assert heaviest_filter(np.array([2**58, -(2**58) + 1, 0, 0]), P.cover_pairs.copy())[0] == 1
