"""The compiled parts of the search for a relaxed order, against plain enumeration."""

import math

import numpy as np
import pytest
from tests.support.posets import all_posets

from isotone.counts.relaxation import LogCount, put_back, try_pairs
from isotone.counts.relaxation_tree import fits, fits_with, grow, new_tree, rows_of, split_module
from isotone.order import Poset
from isotone.order.bipartitions import counting as bipartitions
from isotone.order.bipartitions.steps import steps


def matrix(P: Poset) -> np.ndarray:
    strict = P.leq_matrix() & ~np.eye(len(P), dtype=bool)
    return strict.astype(np.int8) + 2 * strict.T.astype(np.int8)


def poset(M: np.ndarray) -> Poset:
    return Poset(range(len(M)), np.argwhere(M == 1).tolist())


def random_order(n: int, seed: int) -> Poset:
    rng = np.random.default_rng(seed)
    return Poset(range(n), np.argwhere(np.triu(rng.random((n, n)) < 2.5 / n, k=1)).tolist())


def test_the_logarithm_of_the_count_is_that_of_the_exact_number():
    log_count = LogCount()  # one for all, so that tables of equal modules are taken again
    for P in [P for n in (1, 2, 3, 4, 5) for P in all_posets(n)] + [random_order(14, s) for s in range(12)]:
        exact = math.log(bipartitions.count(P))
        assert log_count(matrix(P)) == pytest.approx(exact, abs=1e-9)
        assert log_count(matrix(P)) == LogCount()(matrix(P))


def test_large_orders_stay_within_the_range_of_floats():
    chain, points = Poset.chain(range(300)), Poset.antichain(range(300))
    assert LogCount()(matrix(chain)) == pytest.approx(300 * math.log(2))
    assert LogCount()(matrix(points)) == pytest.approx(math.lgamma(302))


@pytest.mark.parametrize("reach", [512, 4096])
def test_a_block_fits_exactly_if_its_states_are_within_reach(reach):
    seen = set()
    for seed in range(40):
        P = random_order(13, seed)
        M, whole = matrix(P), steps(P).within(reach)
        up, down = rows_of.plain(M)
        assert all(fits.plain(up, down, w, math.log2(reach)) for w in range(13)) == whole
        seen.add(whole)
    assert seen == {True, False}


def test_a_prime_block_inside_another_is_looked_at():
    """Eight elements up and down, all above one more, which are a chain of two blocks: the upper one is out of reach."""
    fence = [(min(k, k + 1, key=lambda x: x % 2), max(k, k + 1, key=lambda x: x % 2)) for k in range(7)]
    P = Poset(range(9), [*fence, *((8, k) for k in range(8))])
    up, down = rows_of.plain(matrix(P))
    for reach in (64, 1024):
        whole = steps(P).within(reach)
        assert whole == (reach == 1024)
        assert fits.plain(up, down, 0, math.log2(reach)) == whole


@pytest.mark.parametrize("reach", [4, 16, 64])
def test_one_more_relation_is_judged_alike_from_the_tree_and_from_the_whole_order(reach):
    seen = set()
    for seed in range(60):
        P = random_order(9, seed)
        if not steps(P).within(reach):
            continue
        up, down = rows_of.plain(matrix(P))
        tree = new_tree.plain(9)
        grow.plain(up, down, tree)
        for x, y in np.argwhere(matrix(P) == 0).tolist():
            if x != y:
                larger = steps(Poset(range(9), [*P.covers, (x, y)])).within(reach)
                assert fits_with.plain(up, down, tree, x, y, math.log2(reach)) == larger
                seen.add(larger)
    assert seen == {True, False}


def test_relations_are_put_back_until_none_fits_and_stay_transitive():
    for seed in range(3):
        goal = matrix(random_order(14, 100 + seed))
        found, placed, order = np.zeros_like(goal), np.zeros(14, bool), np.random.default_rng(seed)
        put_back.plain(goal, found, placed, order.permutation(14).astype(np.int64), 5.0, seed % 3)
        pairs = np.argwhere((goal == 1) & (found == 0))
        try_pairs.plain(found, pairs, 5.0)
        assert np.array_equal(found, matrix(poset(found)))
        assert np.all((found == 0) | (found == goal))
        assert steps(poset(found)).within(32)
        for x, y in np.argwhere((goal == 1) & (found == 0)).tolist():
            larger = Poset(range(14), [*np.argwhere(found == 1).tolist(), (x, y)])
            assert not steps(larger).within(32)


def test_the_children_of_a_module_are_its_largest_parts_however_it_is_listed():
    """Every module of a prime order lies within one child; elsewhere one part is split off, which is a module."""
    n, primes = 6, 0
    subsets = [np.array([k >> x & 1 for x in range(n)], bool) for k in range(1, 2**n - 1)]
    for seed in range(250):
        M, label = matrix(random_order(n, seed)), np.zeros(n, np.int64)
        part = np.random.default_rng(seed).permutation(n).astype(np.int64)
        count, prime = split_module.plain(M, part, label)
        children = {tuple(label == c) for c in range(count)}
        modules = {
            tuple(s) for s in subsets if all(len(set(M[x][s].tolist())) == 1 for x in np.flatnonzero(~s))
        }
        assert tuple(label == 0) in modules
        if prime:
            primes += 1
            assert children <= modules
            assert all(any(np.all(np.array(m) <= c) for c in children) for m in modules)
    assert primes > 20
