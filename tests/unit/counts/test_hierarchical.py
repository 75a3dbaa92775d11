import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.counts.independent import HierarchicalMechanism
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree
from isotone.mechanism import Mechanism
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee


def design_matrix(tree: SumTree) -> np.ndarray:
    """One row per node: which cells it sums."""
    rows = []
    for level, length in enumerate(tree.lengths):
        for node in range(length):
            row = np.zeros(tree.cells)
            row[node * tree.branching**level : (node + 1) * tree.branching**level] = 1
            rows.append(row)
    return np.array(rows)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(2, 12), st.booleans(), st.integers(0, 2**32))
def test_running_sums_and_their_variances_are_those_of_dense_least_squares(cells, branching, root, seed):
    tree = SumTree(cells, branching, root)
    A, running = design_matrix(tree), np.tril(np.ones((cells, cells)))
    y = np.random.default_rng(seed).normal(size=len(A))
    dense = running @ np.linalg.lstsq(A, y, rcond=None)[0]
    assert tree.running_sums(y) == pytest.approx(dense, abs=1e-9)
    covariance = running @ np.linalg.inv(A.T @ A) @ running.T
    assert tree.variances == pytest.approx(np.diag(covariance), abs=1e-9)


def test_every_cell_is_in_one_node_of_each_level():
    for cells, branching, root in product(range(1, 30), (2, 3, 7), (True, False)):
        tree = SumTree(cells, branching, root)
        assert design_matrix(tree).sum(axis=0).tolist() == [len(tree.lengths)] * cells
        assert (tree.lengths[-1] == 1) == (root or cells <= branching)
        exact = tree.sums(np.arange(cells))
        assert exact.tolist() == (design_matrix(tree) @ np.arange(cells)).tolist()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("root", [True, False])
def test_the_rate_spends_epsilon_on_the_nodes_a_unit_can_change(neighbours, root):
    for n in range(1, 12):
        m = HierarchicalMechanism(Poset.chain(range(n)), 1, neighbours, branching=2, root=root)
        A = design_matrix(m.strategy.trees[0])
        records = np.vstack([np.zeros(n), np.eye(n)])  # no yes at all, or a lowest yes
        others = records if neighbours == "replace" else np.zeros((1, n))
        worst = max(np.abs(A @ (one - other)).sum() for one in records for other in others)
        assert 1 / m.rate == worst
        thrice = HierarchicalMechanism(Poset.chain(range(n)), 1, neighbours, 3, branching=2, root=root)
        assert thrice.rate * 3 == m.rate


def test_it_has_the_shape_of_a_mechanism_and_releases_integers_by_name():
    P = Poset.chain("dcba")  # d is lowest
    m = HierarchicalMechanism(P, epsilon=10**6)
    assert isinstance(m, Mechanism)
    assert m.guarantee == Guarantee.pure(10**6)
    assert m.release({"a": 40, "b": 31, "c": 20, "d": 7}).tolist() == [7, 20, 31, 40]
    shuffled = Poset(["c", "a", "d", "b"], [("d", "c"), ("c", "b"), ("b", "a")])
    released = HierarchicalMechanism(shuffled, epsilon=10**6).release([20, 40, 7, 31])
    assert released.tolist() == [20, 40, 7, 31]
    assert released.dtype == np.int64


def test_errors_and_draws_belong_to_the_elements_and_not_to_their_places():
    straight = HierarchicalMechanism(Poset.chain(range(9)), 1, branching=3)
    places = [4, 0, 8, 1, 7, 2, 6, 3, 5]
    mixed = Poset(places, [(i, i + 1) for i in range(8)])
    other = HierarchicalMechanism(mixed, 1, branching=3)
    assert other.error().variance == pytest.approx(straight.error().variance[places])
    draws = (m.simulate(50, np.random.default_rng(0)) for m in (straight, other))
    first, second = map(np.asarray, draws)
    assert second == pytest.approx(first[:, places])


def test_the_best_branching_beats_the_binary_tree_and_noise_on_the_histogram():
    P = Poset.chain(range(500))
    best, binary = HierarchicalMechanism(P, 1), HierarchicalMechanism(P, 1, branching=2)
    on_histogram = 2 * np.mean(np.arange(1, 501))
    assert best.error().total / 500 < binary.error().total / 500 < on_histogram


def test_a_root_is_left_out_where_it_costs_a_level_and_kept_where_it_is_free():
    P = Poset.disjoint_union(Poset.chain(range(100)), Poset.chain(range(100, 200)))
    best, rooted = HierarchicalMechanism(P, 1), HierarchicalMechanism(P, 1, root=True)
    assert (best.root, best.strategy.trees[0].lengths) == (False, (100, 7))
    assert best.error().rmse < 0.86 * rooted.error().rmse
    assert HierarchicalMechanism(P, 1, "replace").root
    assert HierarchicalMechanism(P, 1, branching=10).root  # what a recipe without a root meant
    with pytest.raises(InputError, match="root"):
        HierarchicalMechanism(P, 1, root=0)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_chosen_tree_has_the_least_error_of_all(neighbours):
    for P in (Poset.chain(range(40)), Poset.disjoint_union(Poset.chain(range(9)), Poset.chain(range(9, 30)))):
        found = HierarchicalMechanism(P, "1/100", neighbours).error().total
        every = [
            HierarchicalMechanism(P, "1/100", neighbours, branching=branching, root=root).error().total
            for branching, root in product(range(2, 33), (True, False))
        ]
        assert min(every) <= found <= 1.04 * min(every)  # of branchings 2 to 32, eleven are tried


def test_what_is_not_a_chain_is_refused():
    with pytest.raises(InputError, match="need a chain"):
        HierarchicalMechanism(Poset("abc", [("a", "c"), ("b", "c")]), 1)


@pytest.mark.parametrize("branching", [1, 0, 2.5])
def test_a_branching_below_two_is_refused(branching):
    with pytest.raises(InputError, match="branching"):
        HierarchicalMechanism(Poset.chain("ab"), 1, branching=branching)


def test_a_chain_of_one_is_a_single_count():
    m = HierarchicalMechanism(Poset.chain("a"), 1)
    assert math.isclose(m.error().variance[0], 0.5 / math.sinh(0.5) ** 2)


def test_chains_side_by_side_have_a_tree_each():
    P = Poset("axbyc", [("a", "b"), ("b", "c"), ("x", "y")])
    m = HierarchicalMechanism(P, 10**6)
    assert m.release({"a": 1, "b": 5, "c": 9, "x": 2, "y": 7}).tolist() == [1, 2, 5, 7, 9]
    alone = HierarchicalMechanism(Poset.chain("abc"), "1/2", branching=2)
    both = HierarchicalMechanism(Poset.disjoint_union(Poset.chain("abc"), Poset.chain("xyz")), 1, branching=2)
    assert both.rate == alone.rate  # two trees of the same number of levels
    assert both.error().variance == pytest.approx(np.tile(alone.error().variance, 2))
    with pytest.raises(InputError, match="this order branches"):
        HierarchicalMechanism(Poset("abc", [("a", "c"), ("b", "c")]), 1)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("root", [True, False])
def test_the_rate_of_several_chains_covers_every_change_of_their_nodes(neighbours, root):
    for sizes in ((1, 1), (2, 1), (3, 2), (1, 2, 4)):
        names = [[(k, i) for i in range(size)] for k, size in enumerate(sizes)]
        P = Poset(
            [x for chain in names for x in chain], [pair for chain in names for pair in pairwise(chain)]
        )
        m = HierarchicalMechanism(P, 1, neighbours, branching=2, root=root)
        worst = 0.0
        for chain, tree in zip(
            m.strategy.chains, m.strategy.trees, strict=True
        ):  # chains move on their own, so the worst add up
            A, records = design_matrix(tree), np.vstack([np.zeros(len(chain)), np.eye(len(chain))])
            others = records if neighbours == "replace" else records[:1]
            worst += max(np.abs(A @ (one - other)).sum() for one in records for other in others)
        assert 1 / m.rate == worst


def test_the_noise_of_several_chains_has_the_stated_error():
    P = Poset.disjoint_union(Poset.chain("abcdefg"), Poset.chain("xyz"))
    m = HierarchicalMechanism(P, 1)
    squares = np.asarray(m.simulate(40_000, np.random.default_rng(0))) ** 2
    doubt = squares.std(axis=0) / 200
    assert np.max(np.abs(squares.mean(axis=0) - m.error().variance) / doubt) < 6
    assert np.max(np.abs(1.21 * squares.mean(axis=0) - m.error().variance) / doubt) > 6
    released = np.array([m.release([0] * 10) for _ in range(1_500)])
    spread = (released**2).mean(axis=0) / m.error().variance
    assert np.all((spread > 0.7) & (spread < 1.4))
