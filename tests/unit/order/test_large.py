"""Large orders: right answers, no recursion, no dense detours. Times are measured in benchmarks/order.py."""

import csv
from pathlib import Path

import numpy as np
import pytest

from isotone.order import Leaf, Parallel, Poset, Prime, Series

ORDERS = Path(__file__).parents[3] / "data" / "orders"


def read(name):
    with (ORDERS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def check_decomposition(P):
    """Nodes partition their elements, relate their children as they say, and hold as many pairs as P."""
    leq = P.leq_matrix()
    pairs = len(P)
    for node in P.decomposition().walk():
        if isinstance(node, Leaf):
            continue
        assert sum(child.size for child in node.children) == node.size
        assert np.array_equal(np.concatenate([child.indices for child in node.children]), node.indices)
        sizes = np.array([child.size for child in node.children])
        if isinstance(node, Parallel):
            assert len(node.children) >= 2
            assert not any(isinstance(child, Parallel) for child in node.children)
        elif isinstance(node, Series):
            assert not any(isinstance(child, Series) for child in node.children)
            for lower, upper in zip(node.children, node.children[1:], strict=False):
                assert leq[np.ix_(lower.indices, upper.indices)].all()
            pairs += (sizes.sum() ** 2 - (sizes**2).sum()) // 2
        else:
            assert isinstance(node, Prime)
            for i, j in node.quotient.cover_pairs:
                assert leq[np.ix_(node.children[i].indices, node.children[j].indices)].all()
            strict = node.quotient.leq_matrix() & ~np.eye(len(sizes), dtype=bool)
            pairs += sizes @ strict.astype(np.int64) @ sizes
    assert pairs == leq.sum()


def test_a_chain_of_five_thousand():
    P = Poset.chain(range(5000))
    tree = P.decomposition()
    assert (P.height, P.width) == (5000, 1)
    assert isinstance(tree, Series)
    assert [child.index for child in tree.children if isinstance(child, Leaf)] == list(range(5000))


def test_an_antichain_of_five_thousand():
    P = Poset.antichain(range(5000))
    tree = P.decomposition()
    assert (P.height, P.width) == (1, 5000)
    assert isinstance(tree, Parallel)
    assert len(tree.children) == 5000


def test_a_forest_that_is_very_deep_and_never_a_chain():
    spine = [(2 * k, 2 * k + 2) for k in range(1000)]
    P = Poset(range(2002), [*spine, *((2 * k + 1, 2 * k + 2) for k in range(1000))])
    tree = P.decomposition()
    assert P.height == 1001
    assert P.width == len(P.minimal) == 1002
    assert sum(1 for _ in tree.walk()) == 2002 + 1 + 2 * 1000
    check_decomposition(P)
    repr(tree)
    hash(tree)


def test_prime_nodes_nested_hundreds_deep():
    inner, relations = [0], []
    for k in range(1, 900, 3):
        relations += [*((x, k) for x in inner), (k + 1, k), (k + 1, k + 2)]
        inner += [k, k + 1, k + 2]
    P = Poset(inner, relations)
    kinds = [type(node) for node in P.decomposition().walk()]
    assert kinds.count(Prime) == 300
    assert kinds.count(Leaf) == 901
    check_decomposition(P)


def test_the_classification_of_industries():
    rows = read("naics.csv")
    P = Poset.from_mapping({row["code"]: row["parent"] or None for row in rows})
    assert len(P) == 2125
    assert P.is_forest
    assert P.width == len(P.minimal)
    assert not any(isinstance(node, Prime) for node in P.decomposition().walk())
    check_decomposition(P)


@pytest.mark.parametrize(
    ("name", "lower", "upper", "size"),
    [
        ("debian_top200_covers.csv", "package", "requires", 200),
        ("course_prerequisites.csv", "course", "prereq", 1272),
    ],
)
def test_real_orders_with_prime_parts(name, lower, upper, size):
    rows = read(name)
    P = Poset(
        dict.fromkeys(x for row in rows for x in row.values()), [(row[lower], row[upper]) for row in rows]
    )
    assert len(P) == size
    assert any(isinstance(node, Prime) for node in P.decomposition().walk())
    check_decomposition(P)


def test_ten_thousand_elements_and_fifty_thousand_relations():
    rng = np.random.default_rng(5)
    names = rng.permutation(10_000)
    pairs = np.sort(rng.integers(10_000, size=(50_000, 2)), axis=1)
    P = Poset(range(10_000), names[pairs].tolist())
    position = np.empty(10_000, np.int64)
    position[P.linear_order] = np.arange(10_000)
    strict = names[pairs[pairs[:, 0] < pairs[:, 1]]]
    assert (position[strict[:, 0]] < position[strict[:, 1]]).all()
    assert P._closure.nbytes < 13e6
    covers = {tuple(pair) for pair in P.cover_pairs.tolist()}
    assert covers <= {tuple(pair) for pair in strict.tolist()}
    assert (P.levels[P.cover_pairs[:, 1]] > P.levels[P.cover_pairs[:, 0]]).all()
    some = int(names[5000])
    assert P.down_set(some) == {x for x in range(10_000) if P.leq(x, some)}


def test_the_width_of_dense_random_orders_is_that_of_a_longest_decreasing_run():
    rng = np.random.default_rng(6)
    heights = rng.permutation(1500)
    leq = (np.arange(1500)[:, None] <= np.arange(1500)) & (heights[:, None] <= heights)
    ends: list[int] = []  # patience sorting: the longest decreasing subsequence of heights
    for height in heights[::-1].tolist():
        k = int(np.searchsorted(ends, height))
        ends[k : k + 1] = [height]
    assert Poset.from_matrix(leq).width == len(ends)
