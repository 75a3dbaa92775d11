"""Constructors, combinations, and everything that is refused."""

import networkx as nx
import numpy as np
import pytest
from tests.support.posets import all_posets

from isotone.errors import InputError, OrderError
from isotone.order import Poset

SMALL = [P for n in range(1, 6) for P in all_posets(n)]
TINY = [P for n in range(1, 4) for P in all_posets(n)]


def test_chain_and_antichain():
    assert Poset.chain("abc") == Poset("abc", [("a", "b"), ("b", "c")])
    assert Poset.antichain("abc") == Poset("abc", [])
    assert Poset.chain("a") == Poset.antichain("a") == Poset("a")


@pytest.mark.parametrize("P", SMALL, ids=repr)
def test_every_description_gives_the_same_order(P):
    leq = P.leq_matrix()
    assert Poset.from_matrix(leq) == P
    assert Poset.from_matrix(leq.astype(float), P.elements) == P
    assert Poset.from_networkx(P.to_networkx()) == P
    assert Poset.from_mapping({x: [b for a, b in P.covers if a == x] for x in P.elements}) == P
    assert P.dual() == Poset(P.elements, [(b, a) for a, b in P.covers])
    assert P.dual().dual() == P
    assert P.rename({0: "zero"}).rename(lambda x: 0 if x == "zero" else x) == P


@pytest.mark.parametrize("P", SMALL, ids=repr)
def test_an_induced_order_is_the_order_restricted(P):
    n = len(P)
    for mask in range(1, 2**n):
        names = [x for x in range(n) if mask >> x & 1]
        Q = P.induced(reversed(names))
        assert Q.elements == tuple(names)
        assert np.array_equal(Q.leq_matrix(), P.leq_matrix()[np.ix_(names, names)])


def test_disjoint_union_and_series_of_small_orders():
    for P in TINY:
        for Q in [R.rename(lambda x: x + 10) for R in TINY]:
            beside = Poset.disjoint_union(P, Q)
            stacked = Poset.series(P, Q)
            assert beside.elements == stacked.elements == P.elements + Q.elements
            for a in beside:
                for b in beside:
                    within = (a in P and b in P and P.leq(a, b)) or (a in Q and b in Q and Q.leq(a, b))
                    assert beside.leq(a, b) == within
                    assert stacked.leq(a, b) == (within or (a in P and b in Q))


def test_several_orders_combine_at_once():
    parts = [Poset.antichain(pair) for pair in ("ab", "cd", "ef")]
    assert Poset.series(*parts).height == 3
    assert Poset.series(*parts) == Poset.series(Poset.series(*parts[:2]), parts[2])
    assert Poset.disjoint_union(*parts).width == 6


def test_a_mapping_may_give_one_parent_several_or_none_and_parents_that_are_no_keys():
    P = Poset.from_mapping({"c": ["a", "b"], "d": "c", ("e", 1): None, "f": {"a"}, "g": ("e", 1)})
    assert P.elements == ("c", "d", ("e", 1), "f", "g", "a", "b")
    assert set(P.covers) == {("c", "a"), ("c", "b"), ("d", "c"), ("f", "a"), ("g", ("e", 1))}


def test_a_graph_may_have_loops_and_parallel_edges():
    graph = nx.MultiDiGraph([("a", "b"), ("a", "b"), ("b", "b")])
    assert Poset.from_networkx(graph) == Poset.chain("ab")


def test_what_relates_a_name_to_itself_is_ignored():
    assert Poset("ab", [("a", "a"), ("a", "b"), ("b", "b")]) == Poset.chain("ab")


def test_a_cycle_is_printed_in_names():
    with pytest.raises(OrderError, match="'x' ≤ 'y' ≤ 'z' ≤ 'x'") as caught:
        Poset(["w", "z", "y", "x"], [("w", "z"), ("x", "y"), ("y", "z"), ("z", "x")])
    assert "drop one of these relations" in str(caught.value)


def test_a_long_cycle_is_abridged():
    with pytest.raises(OrderError, match=r"989 more") as caught:
        Poset(range(1000), [(i, (i + 1) % 1000) for i in range(1000)])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Poset([]), "at least one element"),
        (lambda: Poset.chain([]), "at least one element"),
        (lambda: Poset.antichain(()), "at least one element"),
        (lambda: Poset.from_mapping({}), "at least one element"),
        (lambda: Poset.from_networkx(nx.DiGraph()), "at least one element"),
        (lambda: Poset.disjoint_union(), "at least one"),
        (lambda: Poset.series(), "at least one"),
        (lambda: Poset.chain("ab").induced([]), "at least one element"),
        (lambda: Poset(["a", "b", "a"]), r"'a' is given twice \(positions 0 and 2\)"),
        (lambda: Poset([1, True]), "True is given twice"),
        (lambda: Poset([["a"], "b"]), "A list is not hashable"),  # pyright: ignore[reportArgumentType]
        (lambda: Poset("ab", [("a", "c")]), "'c' is not an element"),
        (lambda: Poset(["alpha", "beta"], [("alpha", "betta")]), "Did you mean 'beta'"),
        (lambda: Poset("ab", [(["a"], "b")]), "not hashable"),
        (lambda: Poset("ab", ["ab"]), "must be a pair"),
        (lambda: Poset("ab", [{"a", "b"}]), "must be a pair"),
        (lambda: Poset("ab", [("a",)]), "must be a pair"),
        (lambda: Poset("abc", [("a", "b", "c")]), "must be a pair"),
        (lambda: Poset([1, 2], [1]), "must be a pair"),
        (lambda: Poset.from_mapping({"a": ("b", "c"), "b": None}), "Pass a list"),
        (lambda: Poset.from_mapping({"a": [["b"]]}), "not hashable"),
        (lambda: Poset.from_mapping({"a": {"b": 1}}), "not hashable"),
        (lambda: Poset.from_mapping({"a": "b", "b": "a"}), "'a' ≤ 'b' ≤ 'a'|'b' ≤ 'a' ≤ 'b'"),
        (lambda: Poset.from_networkx(nx.Graph([("a", "b")])), "directed"),
        (lambda: Poset.from_matrix([1, 0]), "square"),
        (lambda: Poset.from_matrix([[1, 0]]), "square"),
        (lambda: Poset.from_matrix(np.zeros((0, 0))), "at least one element"),
        (lambda: Poset.from_matrix([[1, 2], [0, 1]]), "only 0 and 1"),
        (lambda: Poset.from_matrix([["1", "0"], ["0", "1"]]), "only 0 and 1"),
        (lambda: Poset.from_matrix([[1, 0], [0, 0]]), "1 is not related to itself.*diagonal"),
        (lambda: Poset.from_matrix([[1, 1], [1, 1]]), "0 ≤ 1 and 1 ≤ 0"),
        (lambda: Poset.from_matrix(np.eye(2), "abc"), "2 rows needs as many elements, not 3"),
        (
            lambda: Poset.from_matrix([[1, 1, 0], [0, 1, 1], [0, 0, 1]], "abc"),
            "'a' ≤ 'b' ≤ 'c', but 'a' ≤ 'c' is missing",
        ),
        (lambda: Poset.from_matrix([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), "not transitive|form a cycle"),
        (lambda: Poset.disjoint_union(Poset.chain("ab"), Poset.chain("bc")), r"'b'.*rename\(\)"),
        (lambda: Poset.series(Poset.chain("ab"), Poset.chain("bc")), r"'b'.*rename\(\)"),
        (lambda: Poset.chain("ab").rename({"a": "b"}), "'b' is given twice"),
        (lambda: Poset.chain("ab").induced("ac"), "'c' is not an element"),
    ],
)
def test_bad_descriptions_are_refused_with_a_repair(build, message):
    with pytest.raises(OrderError, match=message):
        build()


def test_bad_sizes_of_random_orders_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="at least one element"):
        Poset.random_dag(0, rng)
    with pytest.raises(InputError, match="steps must be at least 0"):
        Poset.random_dag(3, rng, steps=-1)
