"""Noise on nodes and least squares: against dense algebra, and what one unit can change."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.support.count_plans import plan

from isotone.counts import TreeGaussianMechanism, TreeLaplaceMechanism, relative_to
from isotone.counts.consistency import consistent
from isotone.counts.hierarchy import exact_shares, gaussian_shares, project_tree, require_hierarchy
from isotone.counts.mechanism import care_weights
from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares, round_tree
from isotone.order import Poset

TREE = Poset.from_mapping({"a": "all", "b": "all", "a1": "a", "a2": "a"}, children="partition")
EXCLUSIVE = Poset.from_mapping({"a": "all", "b": "all", "a1": "a"}, children="exclusive")
SEVERAL = Poset.from_mapping({"a": "x", "b": "x", "y": None}, children="partition")


def _random_tree(rng: np.random.Generator, n: int) -> Hierarchy:
    depth, parent = [0], [-1]
    while len(parent) < n:
        x = int(rng.integers(0, len(parent))) if rng.random() > 0.1 else -1
        parent.append(x)
        depth.append(0 if x < 0 else depth[x] + 1)
    order = sorted(range(n), key=lambda x: depth[x])
    for _ in range(n):  # level by level, and those of one parent side by side
        place = {x: i for i, x in enumerate(order)}
        order = sorted(range(n), key=lambda x: (depth[x], place.get(parent[x], -1)))
    place = {x: i for i, x in enumerate(order)}
    return Hierarchy(np.array([place.get(parent[x], -1) for x in order], np.int64), np.arange(n))


def _paths(tree: Hierarchy) -> np.ndarray:
    """Which leaves are below each node."""
    leaves = np.flatnonzero(tree.leaf)
    return np.array([tree.sums(row) for row in np.eye(len(tree), dtype=np.int64)[leaves]]).T.astype(float)


TREES = [_random_tree(np.random.default_rng(seed), n) for seed, n in enumerate((2, 3, 5, 8, 13, 20))]


def test_least_squares_are_those_of_dense_algebra() -> None:
    rng = np.random.default_rng(1)
    for tree in TREES:
        precision = np.where(tree.leaf, 1.0, rng.random(len(tree)) > 0.4) * rng.uniform(0.2, 2, len(tree))
        A, fit = _paths(tree), TreeLeastSquares.of(tree, precision)
        inverse = np.linalg.inv(A.T @ (precision[:, None] * A))
        assert np.allclose(fit.variance, np.diag(A @ inverse @ A.T), rtol=1e-10)
        measured = rng.normal(size=(3, len(tree)))
        assert np.allclose(fit.estimate(measured), measured @ (precision[:, None] * A) @ inverse @ A.T)


def test_derivatives_are_those_of_small_steps() -> None:
    rng = np.random.default_rng(2)
    for tree in TREES:
        precision, weights = rng.uniform(0.2, 2, len(tree)), rng.random(len(tree))
        found = TreeLeastSquares.of(tree, precision).derivative(weights)
        for x in range(len(tree)):
            step = 1e-6 * (np.arange(len(tree)) == x)
            up, down = (weights @ TreeLeastSquares.of(tree, precision + s).variance for s in (step, -step))
            assert found[x] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_no_shares_are_better_than_the_gap_says() -> None:
    rng = np.random.default_rng(3)
    for tree in TREES:
        weights = rng.random(len(tree)) + 0.01
        best = gaussian_shares(tree, weights)
        assert best.gap < 1e-4
        least = weights @ TreeLeastSquares.of(tree, best.shares).variance
        for _ in range(30):
            kept, left = rng.random(len(tree)) * ~tree.leaf, np.ones(len(tree))
            for level in tree.levels[1:]:
                above = tree.parent[level]
                left[level] = left[above] * (1 - kept[above])
            other = np.where(tree.leaf, left, left * kept)
            assert weights @ TreeLeastSquares.of(tree, other).variance >= least / (1 + best.gap) * (1 - 1e-9)


@pytest.mark.parametrize(("branching", "depth"), [(2, 4), (3, 3), (5, 2)])
def test_the_closed_form_of_uniform_trees_is_the_bound_for_every_gaussian(branching: int, depth: int) -> None:
    names = {"r": None}
    level = ["r"]
    for _ in range(depth):
        below = {f"{x}{i}": x for x in level for i in range(branching)}
        names |= below
        level = list(below)
    P = Poset.from_mapping(names, children="partition")
    tree = require_hierarchy(P)
    for care in ("nodes", "levels"):
        weights = np.bincount(tree.node, care_weights(P, care), len(tree)).astype(float)
        best = gaussian_shares(tree, weights)
        assert abs(best.gap) < 1e-9
        A = _paths(tree) * np.sqrt(weights)[:, None]
        bound = np.linalg.svd(A, compute_uv=False).sum() ** 2 / A.shape[1]
        assert weights @ TreeLeastSquares.of(tree, best.shares).variance == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_exact_shares_add_up_to_one_on_every_way(power: float) -> None:
    rng = np.random.default_rng(4)
    for tree in TREES:
        for shares in (rng.random(len(tree)), gaussian_shares(tree, np.ones(len(tree))).shares):
            used = exact_shares(tree, shares, power)
            assert all(share >= 0 for share in used)
            for leaf in np.flatnonzero(tree.leaf).tolist():
                total, x = Fraction(0), leaf
                while x >= 0:
                    total, x = total + used[x], int(tree.parent[x])
                assert used[leaf] > 0
                assert total == 1


def _units(P: Poset, k: int) -> list[np.ndarray]:
    tree = require_hierarchy(P)
    rows = [*np.eye(len(tree), dtype=np.int64)[np.flatnonzero(tree.leaf)], np.zeros(len(tree), np.int64)]
    return [
        tree.sums(sum(chosen, np.zeros(len(tree), np.int64)))
        for chosen in combinations_with_replacement(rows, k)
    ]


@pytest.mark.parametrize("P", [TREE, EXCLUSIVE, SEVERAL])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_unit_moves_the_nodes_further_than_the_noise_covers(P: Poset, k: int, neighbours: Any) -> None:
    units = _units(P, k)
    others = units if neighbours == "replace" else [np.zeros_like(units[0])]
    moves = [one - other for one in units for other in others]
    gaussian = TreeGaussianMechanism(P, rho="1/2", neighbours=neighbours, contributions=k)
    lost = max(
        sum(
            share * int(d) ** 2 / (2 * gaussian.variance)
            for share, d in zip(gaussian.strategy.shares, move, strict=True)
        )
        for move in moves
    )
    assert Fraction(2, 5) < lost <= Fraction(1, 2)
    laplace = TreeLaplaceMechanism(P, 1, neighbours, contributions=k)
    lost = max(
        sum(
            laplace.rate * share * abs(int(d)) for share, d in zip(laplace.strategy.shares, move, strict=True)
        )
        for move in moves
    )
    assert Fraction(9, 10) < lost <= 1


def test_a_large_share_of_the_root_does_not_make_dropping_cheaper() -> None:
    shares = {"all": "9/10", "a": "1/20", "b": "1/10", "a1": "1/20", "a2": "1/20"}
    assert TreeGaussianMechanism(TREE, rho=1, neighbours="replace", shares=shares).strategy.sensitivity == 1
    assert TreeGaussianMechanism(SEVERAL, rho=1, neighbours="replace").strategy.sensitivity == 2


@pytest.mark.parametrize("P", [TREE, EXCLUSIVE, SEVERAL])
def test_released_integers_add_up_with_the_stated_errors(P: Poset) -> None:
    for m in (
        TreeGaussianMechanism(P, rho="1/50"),
        TreeLaplaceMechanism(P, "1/5"),
        TreeGaussianMechanism(P, "1/2", "1e-5"),
    ):
        drawn = np.array([m.release(np.zeros(len(P), int)) for _ in range(120)])
        nodes = m.tree.leaves_of(drawn)
        assert np.array_equal(m.tree.sums(nodes)[:, m.tree.node], drawn)
        squares = drawn.astype(float) ** 2
        spread = squares.std(axis=0) / math.sqrt(len(drawn))
        assert np.all(np.abs(squares.mean(axis=0) - m.error().variance) < 6 * spread + 1)
        simulated = np.asarray(m.simulate(20_000, np.random.default_rng(0))) ** 2
        assert np.allclose(simulated.mean(axis=0), m.error().variance, rtol=0.1)


def test_the_plan_of_a_hierarchy_compares_what_adds_up() -> None:
    found = plan(TREE, epsilon=1, care="levels")
    assert [row.name for row in found.rows].count("TreeFieldMechanism") == 2
    assert {row.name for row in found.rows} == {"TreeFieldMechanism", "TreeLaplaceMechanism"}
    errors = [care_weights(TREE, "levels") @ row.mechanism.error().variance for row in found.rows]
    assert errors == sorted(errors)
    assert "TreeGaussianMechanism" in {row.name for row in plan(TREE, rho=1).rows}
    assert "DifferenceBodyMechanism" in {row.name for row in plan(TREE, epsilon=1, neighbours="replace").rows}


def test_weights_decide_whose_error_is_small() -> None:
    top, leaf = (plan(TREE, epsilon=1, care={x: 1}).best.error() for x in ("all", "a1"))
    assert max(top.worst, leaf.worst) < 2_000  # what has no weight is published too
    place = {x: i for i, x in enumerate(TREE.elements)}
    assert top.sd[place["all"]] < leaf.sd[place["all"]]
    assert top.sd[place["a1"]] > leaf.sd[place["a1"]]
    relative = plan(TREE, epsilon=1, care=relative_to({"all": 1000, "a": 500, "b": 500, "a1": 10, "a2": 490}))
    assert relative.best.error().sd[place["a1"]] < top.sd[place["a1"]]


def test_the_projection_is_bounded_least_squares_over_leaves() -> None:
    rng = np.random.default_rng(5)
    for tree in TREES:
        A = _paths(tree)
        for _ in range(5):
            values, weights = 3 * rng.normal(size=len(tree)), rng.uniform(0.2, 3, len(tree))
            root = np.sqrt(weights)
            by_hand = lsq_linear(root[:, None] * A, root * values, bounds=(0, np.inf), tol=1e-12).x
            fitted = project_tree(tree, values, weights)
            assert np.allclose(fitted, A @ by_hand, atol=1e-6)
            if tree.roots == 1:
                upper = fitted[0] / 2
                pulled = np.vstack(
                    [root[:, None] * A, 1e4 * A[:1]]
                )  # a heavy row holds the root at the bound
                by_hand = lsq_linear(pulled, [*(root * values), 1e4 * upper], bounds=(0, np.inf), tol=1e-14).x
                assert np.allclose(project_tree(tree, values, weights, upper), A @ by_hand, atol=1e-5)
                assert np.array_equal(project_tree(tree, values, weights, fitted[0] + 1), fitted)


def test_consistent_counts_are_not_negative_and_add_up() -> None:
    rng = np.random.default_rng(6)
    for P in (TREE, EXCLUSIVE, SEVERAL):
        tree = require_hierarchy(P)
        for integers in (False, True):
            values = consistent(P, rng.normal(scale=5, size=len(P)), integers=integers)
            nodes: Any = tree.leaves_of(cast(Any, np.asarray(values)))
            assert nodes.min() >= -1e-9
            assert np.allclose(tree.sums(nodes)[tree.node] if integers else values, values)
    survey = Poset.from_mapping(
        {"a": "q", "b": "q", "c": "r", "d": "r"}, children={"q": "partition", "r": "exclusive"}
    )
    place = {x: i for i, x in enumerate(survey.elements)}
    for _ in range(20):
        out = consistent(survey, rng.normal(scale=5, size=6), integers=True)
        assert out.min() >= 0
        assert out[place["a"]] + out[place["b"]] == out[place["q"]]
        assert out[place["c"]] + out[place["d"]] <= out[place["r"]]


def test_rounding_keeps_sums_and_stays_close() -> None:
    rng = np.random.default_rng(7)
    for tree in TREES:
        leaves = np.where(tree.leaf, rng.normal(scale=4, size=len(tree)), 0.0)
        values = leaves.copy()
        for level in reversed(tree.levels[1:]):
            values += tree.below(values[level], level)
        rounded = round_tree(tree, values)
        assert np.array_equal(tree.sums(rounded), rounded)
        assert np.all(np.abs(rounded - values) <= tree.depth + 0.5 + 1e-9)


def test_rows_are_rounded_each_by_itself() -> None:
    rng = np.random.default_rng(8)
    for tree in TREES:
        leaves: Any = rng.integers(-30, 30, (20, len(tree))) / 4 * tree.leaf
        rows: Any = tree.sums(leaves)
        ties = rng.integers(0, 3, rows.shape, np.uint64)
        alone = [round_tree(tree, *pair) for pair in zip(rows, ties, strict=True)]
        assert np.array_equal(round_tree(tree, rows, ties), alone)


def test_rounding_favours_no_side_where_fractions_are_equal() -> None:
    """Over all sequences of ties: values and their negatives are rounded alike, whatever whole counts are added."""
    tree = require_hierarchy(Poset.from_mapping(dict.fromkeys("abc", "all"), children="partition"))
    whole = tree.sums(np.array([0, 5, -2, 1], np.int64))
    for leaves in product((0, 1 / 3, 1 / 2, 2 / 3), repeat=3):
        values = np.array([sum(leaves), *leaves])
        sequences = [np.array([0, *ties], np.uint64) for ties in permutations(range(3))]
        up, down, moved = (
            np.array([round_tree(tree, given, ties) for ties in sequences])
            for given in (values, -values, values + whole.astype(float))
        )
        assert np.array_equal(up.sum(axis=0), -down.sum(axis=0))
        # the root goes to the even number from a half
        assert np.array_equal(moved - whole, up) or abs(sum(leaves) % 1 - 0.5) < 1e-9


def test_a_release_breaks_ties_by_random_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    P = Poset.from_mapping({"a": "all", "b": "all"}, children="partition")
    m = TreeGaussianMechanism(P, rho=1, shares=dict.fromkeys(P.elements, "1/2"))
    # the root is 9 in place of 8: nearer to 9 than to 8, and as near for both children
    monkeypatch.setattr(type(m.noise), "integers", lambda self, draws, size: np.array([1, 0, 0]))
    rows = [m.release({"a": 4, "b": 4, "all": 8}) for _ in range(60)]
    assert {int(row[P.index("a")] - row[P.index("b")]) for row in rows} == {-1, 1}  # false alarm: 2**-59


def test_values_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="one number for each"):
        consistent(TREE, [1.0, 2.0])
