import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.support.bipartitions import extended_bipartitions
from tests.support.cones import cone
from tests.support.filters import filters
from tests.support.posets import all_posets

from isotone.counts.sampler import MANY, difference_norms, norms
from isotone.errors import InputError
from isotone.order import Poset

SMALL = [P for n in range(1, 6) for P in all_posets(n)]


def norm_by_lp(P, y):
    """The least total weight of signed filters that add up to y."""
    sides = np.array(filters(P)[1:], dtype=float).T
    answer = linprog(np.ones(2 * sides.shape[1]), A_eq=np.hstack((sides, -sides)), b_eq=y, method="highs")
    return answer.fun


def norm_by_chains(P, y):
    """The largest total variation along a chain from 0, with the best value above everything."""
    less = P.leq_matrix()
    V = np.zeros(len(P))
    for x in P.linear_order:
        below = [w for w in range(len(P)) if less[w, x] and w != x]
        V[x] = max([abs(y[x]), *(V[w] + abs(y[x] - y[w]) for w in below)])
    return (max(V - y) + max(V + y)) / 2


def generators(P, A, B):
    """The rows of a cone: the filters of the ends of A, and minus those of the ends of B."""
    less = P.leq_matrix()
    rows = [
        sign * less[list(side[k:])].any(axis=0) for side, sign in ((A, 1), (B, -1)) for k in range(len(side))
    ]
    return np.array(rows, dtype=float).reshape(-1, len(P))


def test_the_norm_is_that_of_a_linear_program_over_all_filters_on_every_small_order():
    rng = np.random.default_rng(0)
    for P in SMALL:
        for y in (rng.normal(size=len(P)), rng.integers(-2, 3, size=len(P)).astype(float)):
            assert norms(P, y) == pytest.approx(norm_by_lp(P, y), abs=1e-9)


@given(st.integers(0, len(SMALL) - 1), st.data())
@settings(deadline=None)
def test_the_norm_is_the_largest_variation_along_a_chain(k, data):
    P = SMALL[k]
    y = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=len(P), max_size=len(P))), float)
    assert norms(P, y) == norm_by_chains(P, y)


def test_records_have_norm_one_and_differences_of_records_at_most_two():
    for P in SMALL:
        records = np.array(filters(P), dtype=float)
        assert np.all(norms(P, records[1:]) == 1)
        assert np.all(norms(P, -records[1:]) == 1)
        apart = norms(P, records[:, None, :] - records[None, :, :])
        assert apart.max() == (2 if len(P) > 1 else 1)


@given(st.integers(0, len(SMALL) - 1), st.data())
@settings(deadline=None)
def test_a_vector_is_rebuilt_from_its_cone(k, data):
    P = SMALL[k]
    y = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=len(P), max_size=len(P))), float)
    c = cone(P, y)
    steps = np.concatenate((c.up, c.down))
    assert np.all(steps >= 0)
    assert np.array_equal(steps @ generators(P, c.A, c.B), y)
    assert c.norm == norms(P, y)
    assert (tuple(c.A), tuple(c.B)) in set(extended_bipartitions(P))


def test_every_cone_is_unimodular_and_found_again_from_its_inside():
    rng = np.random.default_rng(1)
    for P in [P for n in range(1, 5) for P in all_posets(n)]:
        for A, B in extended_bipartitions(P):
            rows = generators(P, A, B)
            assert abs(round(np.linalg.det(rows))) == 1
            steps = rng.exponential(size=len(P)) + 0.01
            found = cone(P, steps @ rows)
            assert (tuple(found.A), tuple(found.B)) == (A, B)
            assert np.concatenate((found.up, found.down)) == pytest.approx(steps)


def test_rows_keep_their_shape_and_wrong_lengths_are_refused():
    P = Poset.chain("abc")
    assert norms(P, np.zeros((2, 5, 3))).shape == (2, 5)
    assert norms(P, np.zeros(3)).shape == ()
    with pytest.raises(InputError, match="3 elements"):
        norms(P, np.zeros(4))


def test_many_rows_at_once_have_the_norms_of_single_rows():
    rng = np.random.default_rng(2)
    for P in all_posets(4):
        rows = rng.integers(-4, 5, (MANY, 4)).astype(float)
        for norm in (norms, difference_norms):
            assert np.array_equal(norm(P, rows), [norm(P, row) for row in rows])
