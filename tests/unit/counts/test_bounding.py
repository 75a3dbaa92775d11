import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.filters import filters
from tests.support.posets import all_posets

from isotone.counts.mechanism import cut, cut_all
from isotone.errors import InputError
from isotone.order import Poset


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_a_cut_filter_is_a_filter_of_the_largest_size_allowed_inside_the_record(n):
    for P in all_posets(n):
        records = np.array(filters(P), dtype=bool)
        for size in range(1, n + 1):
            kept = cut_all(P, records, size)
            assert np.all(P.are_filters(kept))
            assert kept.sum(axis=1).tolist() == np.minimum(records.sum(axis=1), size).tolist()
            assert np.all(kept <= records)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 25), st.integers(1, 25), st.integers(0, 2**32))
def test_cut_records_of_random_orders_are_filters(n, size, seed):
    rng = np.random.default_rng(seed)
    P = Poset.random_dag(n, rng)
    kept = cut_all(P, P.close_all(rng.random((20, n)) < 0.3), size)
    assert np.all(P.are_filters(kept))
    assert kept.sum(axis=1).max() <= size


def test_a_record_keeps_its_form():
    P = Poset(["app", "toolkit", "libc"], [("app", "toolkit"), ("toolkit", "libc")])
    assert cut(P, {"app"}, 2) == {"toolkit", "libc"}
    assert cut(P, {"app": 1}, 1) == {"app": False, "toolkit": False, "libc": True}
    assert cut(P, [1, 1, 1], 2).tolist() == [False, True, True]
    assert cut(P, {"libc"}, 2) == {"libc"}


def test_a_record_is_cut_the_same_way_whatever_the_others_are():
    P = Poset.antichain("abcd")
    alone = cut_all(P, [[1, 0, 1, 1]], 2)[0]
    among = cut_all(P, [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1]], 2)[1]
    assert alone.tolist() == among.tolist()


@pytest.mark.parametrize("size", [0, -1, 1.5, None])
def test_a_size_that_is_no_size_is_refused(size):
    with pytest.raises(InputError, match="max_size"):
        cut_all(Poset.chain("ab"), [[0, 1]], size)


def test_records_of_another_width_are_refused():
    with pytest.raises(InputError, match="one column for each of the 2"):
        cut_all(Poset.chain("ab"), [[0, 1, 1]], 1)
