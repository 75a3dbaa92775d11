"""Queries, against brute force on every small order and on random relations."""

import copy
import pickle
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.posets import LABELLED, UNLABELLED, all_labelled_orders, all_orders, all_posets

from isotone.errors import OrderError
from isotone.order import Poset

SMALL = [P for n in range(1, 6) for P in all_posets(n)]


def subsets(n):
    return [set(c) for k in range(n + 1) for c in combinations(range(n), k)]


def warshall(n, pairs):
    leq = np.eye(n, dtype=bool)
    for a, b in pairs:
        leq[a, b] = True
    for k in range(n):
        leq |= leq[:, [k]] & leq[[k], :]
    return leq


@st.composite
def relations(draw, acyclic):
    n = draw(st.integers(1, 9))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    if acyclic:
        names = draw(st.permutations(range(n)))
        pairs = [(names[min(a, b)], names[max(a, b)]) for a, b in pairs]
    return n, pairs


def test_there_are_as_many_small_orders_as_there_should_be():
    assert {n: len(all_orders(n)) for n in range(1, 6)} == {n: UNLABELLED[n] for n in range(1, 6)}
    assert {n: len(all_labelled_orders(n)) for n in LABELLED} == LABELLED


@pytest.mark.parametrize("n", LABELLED)
def test_closure_covers_and_linear_extension_of_every_labelled_order(n):
    for order in all_labelled_orders(n):
        P = Poset(range(n), sorted(order))
        assert set(map(tuple, np.argwhere(P.leq_matrix() & ~np.eye(n, dtype=bool)).tolist())) == order
        covers = {(a, c) for a, c in order if not any((a, b) in order and (b, c) in order for b in range(n))}
        assert P.covers == tuple(sorted(covers))
        assert P.cover_pairs.tolist() == [list(pair) for pair in P.covers]
        position = {name: k for k, name in enumerate(P.linear_extension())}
        assert set(position) == set(range(n))
        assert all(position[a] < position[b] for a, b in order)
        assert Poset(range(n), sorted(covers)) == P


@pytest.mark.parametrize("P", [P for P in SMALL if len(P) <= 4], ids=repr)
def test_the_sequence_of_relations_and_what_follows_from_them_do_not_show(P):
    strict = [(a, b) for a, b in permutations(P.elements, 2) if P.leq(a, b)]
    for names in permutations(P.elements):
        shown = [
            (Q.covers, Q.linear_extension())
            for Q in (Poset(names, said) for said in (P.covers, P.covers[::-1], strict, strict[::-1]))
        ]
        assert shown == shown[:1] * 4


LOW_COVER_LAST = Poset(range(4), [(0, 1), (1, 3), (2, 3)])  # 2 is below 3 and minimal, and comes after 1


@pytest.mark.parametrize("P", [*SMALL, LOW_COVER_LAST], ids=repr)
def test_height_width_levels_and_ends(P):
    n = len(P)
    chains = [s for s in subsets(n) if all(P.leq(a, b) or P.leq(b, a) for a, b in combinations(s, 2))]
    antichains = [s for s in subsets(n) if not any(P.leq(a, b) for a, b in permutations(s, 2))]
    assert P.height == max(map(len, chains))
    assert P.width == max(map(len, antichains))
    assert P.levels.tolist() == [max(len(c) for c in chains if c <= P.down_set(x)) - 1 for x in range(n)]
    assert P.minimal == tuple(x for x in range(n) if P.down_set(x) == {x})
    assert P.maximal == tuple(x for x in range(n) if P.up_set(x) == {x})
    for x in range(n):
        assert P.up_set(x) == {y for y in range(n) if P.leq(x, y)}
        assert P.down_set(x) == {y for y in range(n) if P.leq(y, x)}


@pytest.mark.parametrize("P", SMALL, ids=repr)
def test_a_forest_is_an_order_whose_elements_have_at_most_one_upper_cover(P):
    above = [[b for a, b in P.covers if a == x] for x in P.elements]
    assert P.is_forest == all(len(parents) <= 1 for parents in above)
    if P.is_forest:
        assert P.parents.tolist() == [parents[0] if parents else -1 for parents in above]
    else:
        with pytest.raises(OrderError, match="two upper covers"):
            P.parents


@given(relations(acyclic=True))
def test_any_relations_are_closed(given_relations):
    n, pairs = given_relations
    P = Poset(range(n), pairs)
    leq = warshall(n, pairs)
    assert np.array_equal(P.leq_matrix(), leq)
    assert np.array_equal(warshall(n, P.covers), leq)
    for cover in P.covers:
        assert not np.array_equal(warshall(n, [pair for pair in P.covers if pair != cover]), leq)
    assert Poset.from_matrix(leq) == P
    antichains = [s for s in subsets(n) if not any(leq[a, b] for a, b in permutations(s, 2))]
    assert P.width == max(map(len, antichains))


@given(relations(acyclic=False))
def test_relations_are_refused_exactly_when_they_go_round(given_relations):
    n, pairs = given_relations
    leq = warshall(n, pairs)
    if (leq & leq.T).sum() > n:
        with pytest.raises(OrderError, match="form a cycle") as caught:
            Poset(range(n), pairs)
        circle = str(caught.value).split(": ")[1].split(". ")[0].split(" ≤ ")
        assert circle[0] == circle[-1]
        assert all((int(a), int(b)) in pairs for a, b in pairwise(circle))
    else:
        assert np.array_equal(Poset(range(n), pairs).leq_matrix(), leq)


def test_elements_given_in_a_linear_order_are_the_linear_extension():
    for n in range(1, 6):
        for P in all_posets(n):
            assert P.linear_extension() == P.elements
            assert P.linear_order.tolist() == list(range(n))


def test_equality_and_hash_are_by_order_and_not_by_description():
    P = Poset("abc", [("a", "b"), ("b", "c")])
    same = Poset("cab", [("a", "b"), ("b", "c"), ("a", "c"), ("a", "a"), ("a", "b")])
    assert same == P
    assert hash(P) == hash(same)
    assert Poset("abc", [("a", "b")]) != P
    assert Poset("abc", [("b", "a"), ("c", "b")]) != P
    assert Poset("cab", [("b", "a"), ("c", "b")]) != P
    assert Poset("abd", [("a", "b"), ("b", "d")]) != P
    assert P != "abc"
    assert len({P, same, P.dual()}) == 2


def test_a_poset_cannot_be_changed():
    P = Poset.chain("abc")
    with pytest.raises(AttributeError, match="immutable"):
        P.covers = ()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="immutable"):
        del P.elements
    for array in (P.cover_pairs, P.linear_order, P.levels, P.parents):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    P.leq_matrix()[:] = True
    assert not P.leq("b", "a")


def test_a_poset_survives_pickling_and_copying():
    P = Poset(["a", ("b", 1), None], [("a", None)])
    assert P.width == 2
    for again in (pickle.loads(pickle.dumps(P)), copy.copy(P), copy.deepcopy(P)):
        assert again == P
        assert again.elements == P.elements
        assert hash(again) == hash(P)


def test_a_small_poset_prints_as_it_is_built_and_a_large_one_as_a_summary():
    P = Poset(["hyp", "twice"], [("twice", "hyp")])
    assert repr(P) == "Poset(['hyp', 'twice'], [('twice', 'hyp')])"
    assert repr(Poset.chain(range(100))) == "<Poset of 100 elements, 99 covers, height 100: 0, 1, 2, …>"


def test_a_poset_is_a_collection_of_its_elements():
    P = Poset.antichain(["x", 2])
    assert list(P) == ["x", 2]
    assert len(P) == 2
    assert "x" in P
    assert "y" not in P
    assert P.index(2) == 1


def test_asking_for_an_unknown_name_proposes_the_nearest():
    P = Poset(["HYPEV_A", "HYPMED_A"])
    with pytest.raises(OrderError, match=r"'HYPMED' is not an element.*Did you mean 'HYPMED_A'\?"):
        P.leq("HYPMED", "HYPEV_A")
    with pytest.raises(OrderError, match="not hashable"):
        P.up_set(["HYPEV_A"])  # pyright: ignore[reportArgumentType]
