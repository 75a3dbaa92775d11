"""Each of the three splits of a module, against its definition on every small order."""

from itertools import combinations

import numpy as np
import pytest
from tests.support.posets import all_labelled_posets, all_posets

from isotone.order import Poset, closure
from isotone.order.decomposition import PrimeSplits, parallel_labels, series_labels

SMALL = [P for n in (1, 2, 3, 4) for P in all_labelled_posets(n)]
N = Poset(range(4), [(0, 2), (1, 2), (1, 3)])


def bits(P: Poset):
    lower, upper = P.cover_pairs.T.copy()
    uppers = closure.ends_by_start(len(P), lower, upper)
    lowers = closure.ends_by_start(len(P), upper, lower)
    line = P.linear_order.copy()
    return closure.closure(line, *uppers), closure.closure(line[::-1].copy(), *lowers), uppers, lowers


def blocks(labels) -> list[list[int]]:
    return sorted(np.flatnonzero(labels == k).tolist() for k in set(labels.tolist()))


def is_module(leq, members) -> bool:
    def seen(x, y):
        return int(leq[x, y]) - int(leq[y, x])

    return all(len({seen(x, y) for y in members}) == 1 for x in set(range(len(leq))) - set(members))


def test_series_blocks_are_the_finest_that_lie_on_top_of_each_other():
    for P in SMALL:
        leq = P.leq_matrix()
        labels = series_labels(leq.sum(axis=0) - leq.sum(axis=1))
        cuts = 0
        for size in range(1, len(P)):
            for low in combinations(range(len(P)), size):
                high = [x for x in range(len(P)) if x not in low]
                if leq[np.ix_(low, high)].all():
                    cuts += 1
                    assert max(labels[list(low)]) < min(labels[high])
        assert labels.max() == cuts
        assert sorted(set(labels.tolist())) == list(range(cuts + 1))


@pytest.mark.parametrize("first", [0, 2])
def test_parallel_blocks_are_the_components_numbered_by_the_first_member_met(first):
    for P in SMALL:
        leq = P.leq_matrix()
        linked = leq | leq.T
        for _ in range(len(P)):
            linked = (linked.astype(int) @ linked.astype(int)) > 0
        _, _, uppers, lowers = bits(P)
        members = P.linear_order.copy()
        place = np.empty(len(P), np.int64)
        place[members] = first + np.arange(len(P))
        labels = parallel_labels(members, place, first, *uppers, *lowers)
        for i in range(len(P)):
            for j in range(len(P)):
                assert (labels[i] == labels[j]) == linked[members[i], members[j]]
        assert list(dict.fromkeys(labels.tolist())) == list(range(labels.max() + 1))


def test_covers_that_leave_the_module_join_nothing():
    _, _, uppers, lowers = bits(Poset.chain(range(3)))
    labels = parallel_labels(np.array([0]), np.array([5, 6, 7]), 5, *uppers, *lowers)
    assert labels.tolist() == [0]


def test_the_children_of_a_prime_module_are_its_largest_proper_modules():
    found = 0
    for n in (4, 5):
        for P in all_posets(n):
            leq = P.leq_matrix()
            proper = [set(s) for k in range(1, n) for s in combinations(range(n), k) if is_module(leq, s)]
            largest = [m for m in proper if not any(m < other for other in proper)]
            if any(a & b for a, b in combinations(largest, 2)) or len(largest) < 4:
                continue  # series or parallel at the top
            found += 1
            up, down, *_ = bits(P)
            for shift in range(n):  # whichever member comes first
                members = np.roll(np.arange(n), shift)
                labels = PrimeSplits(up, down).labels(members)
                children = [{int(members[i]) for i in block} for block in blocks(labels)]
                assert sorted(map(sorted, children)) == sorted(map(sorted, largest))
                assert list(dict.fromkeys(labels.tolist())) == list(range(len(largest)))
    assert found >= 5


def test_a_search_of_a_larger_module_serves_the_smaller_one_inside_it():
    """An N in whose first element another N is put: the second split uses what the first one found."""
    inner = [(0, 2), (1, 2), (1, 3)]
    P = Poset(range(7), [*inner, *((x, 5) for x in range(4)), (4, 5), (4, 6)])
    up, down, *_ = bits(P)
    splits = PrimeSplits(up, down)
    outer = splits.labels(np.arange(7))
    assert blocks(outer) == [[0, 1, 2, 3], [4], [5], [6]]
    assert blocks(splits.labels(np.arange(4))) == [[0], [1], [2], [3]]
