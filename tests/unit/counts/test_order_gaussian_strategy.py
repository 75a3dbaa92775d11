"""Integer strategies: exact sensitivities against brute force, and solving back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.filters import changes, filters
from tests.support.isotonic import sparse_poset
from tests.support.posets import all_posets

from isotone.counts.ellipse_forest import nearest_integers, plain_strategy
from isotone.counts.order_gaussian import exact_gram, shape_of
from isotone.linear.strategy import Square, nearest_plane
from isotone.order import Poset
from isotone.privacy.guarantee import Neighbours

SMALL = [P for size in (1, 2, 3, 4) for P in all_posets(size)] + all_posets(5)[::3]
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace")


def matrix_of(strategy: Square) -> NDArray[np.int64]:
    """Q, from what it does to the unit vectors."""
    return np.rint(strategy.multiply(np.eye(strategy.rows)).T).astype(np.int64)


def strategy_of(P: Poset, bits: int, neighbours: Neighbours, max_size: int | None = None) -> Square | None:
    return shape_of(P, max_size, neighbours).strategy(bits)


def longest_change(P: Poset, strategy: Square, neighbours: Neighbours, max_size: int | None) -> int:
    """The largest |Qv|² by trying every pair of records."""
    active = shape_of(P, max_size, neighbours).active
    Q = matrix_of(strategy).astype(object)
    longest = 0
    for change in changes(P, neighbours, 1, max_size):
        v = np.array(change, dtype=object)[active]
        if strategy.rooted:  # one record more: its coordinate is in the change
            continue
        longest = max(longest, int(np.sum((Q @ v) ** 2)))
    if strategy.rooted:
        for J in filters(P, max_size):
            v = np.append(J[active], 1).astype(object)
            longest = max(longest, int(np.sum((Q @ v) ** 2)))
    return longest


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("bits", [4, 7, 28])
def test_the_integer_sensitivity_is_at_least_that_of_every_pair_of_records(
    neighbours: Neighbours, bits: int
) -> None:
    checked = 0
    for P in SMALL:
        for max_size in (None, 2):
            strategy = strategy_of(P, bits, neighbours, max_size)
            if strategy is None:
                continue
            longest = longest_change(P, strategy, neighbours, max_size)
            assert strategy.sensitivity_squared >= longest
            exact = max_size is None and shape_of(P, None, neighbours).method in ("forest", "chain")
            if exact:
                assert strategy.sensitivity_squared == longest
                checked += 1
    assert checked > 20


def test_at_full_precision_the_bound_of_a_general_order_is_tight() -> None:
    rng = np.random.default_rng(0)
    for _ in range(6):
        P = sparse_poset(8, 0.3, rng)
        strategy = strategy_of(P, 28, "add-remove")
        assert strategy is not None
        longest = longest_change(P, strategy, "add-remove", None)
        assert longest <= strategy.sensitivity_squared <= longest * (1 + 1e-6)


def test_for_differences_too_the_bound_of_a_general_order_is_tight() -> None:
    rng = np.random.default_rng(1)
    for _ in range(4):
        P = sparse_poset(7, 0.35, rng)
        strategy = strategy_of(P, 28, "replace")
        assert strategy is not None
        longest = longest_change(P, strategy, "replace", None)
        assert longest <= strategy.sensitivity_squared <= longest * (1 + 1e-4)


@pytest.mark.parametrize("kind", ["forest", "dense", "chain", "plain"])
def test_solving_back_undoes_the_matrix(kind: str) -> None:
    strategy = some_strategy(kind)
    Q = matrix_of(strategy).astype(float)
    noise = np.random.default_rng(2).normal(size=(3, strategy.rows)) * 1e9
    np.testing.assert_allclose(strategy.solve(noise) @ Q.T, noise, rtol=1e-9, atol=1e-3)
    inverse = np.linalg.inv(Q)
    np.testing.assert_allclose(strategy.variances(), np.sum(inverse**2, axis=1), rtol=1e-9)
    elements = strategy.rows - int(strategy.rooted)
    np.testing.assert_allclose(
        strategy.covariance(), (inverse @ inverse.T)[:elements, :elements], rtol=1e-8, atol=1e-30
    )
    np.testing.assert_allclose(np.prod(strategy.diagonal()), abs(np.linalg.det(Q)), rtol=1e-9)
    if strategy.rooted:
        np.testing.assert_array_equal(strategy.root_column(), Q[:, -1])


@pytest.mark.parametrize("kind", ["forest", "dense", "chain", "plain"])
def test_solving_in_integers_commutes_with_adding_integers_to_the_counts(kind: str) -> None:
    # this makes the release a function of Q(counts) + noise alone: post-processing of what is private
    strategy = some_strategy(kind)
    Q = matrix_of(strategy)
    rng = np.random.default_rng(3)
    for _ in range(20):
        noise = rng.integers(-(2**40), 2**40, strategy.rows)
        counts = rng.integers(-1000, 1000, strategy.rows)
        shifted = strategy.solve_integers(noise + Q @ counts)
        np.testing.assert_array_equal(shifted, strategy.solve_integers(noise) + counts)


@pytest.mark.parametrize("kind", ["forest", "dense", "chain", "plain"])
def test_solving_in_integers_is_exact_for_noise_whose_sums_exceed_64_bits(kind: str) -> None:
    """The nearest plane by definition, in Python's integers, on noise near 2**62."""
    strategy = some_strategy(kind)
    Q = matrix_of(strategy)
    rng = np.random.default_rng(5)
    for _ in range(20):
        noise = rng.integers(-(2**62), 2**62, strategy.rows)
        counts = rng.integers(-1000, 1000, strategy.rows)
        shifted = strategy.solve_integers(noise + Q @ counts)
        np.testing.assert_array_equal(shifted, strategy.solve_integers(noise) + counts)
        left = [
            int(w) - sum(int(q) * int(k) for q, k in zip(row, shifted - counts, strict=True))
            for w, row in zip(noise, Q, strict=True)
        ]
        assert max(map(abs, left)) <= np.abs(Q).sum()  # what no integer vector explains is small


@pytest.mark.parametrize("bits", [4, 20, 40, 62])
def test_the_nearest_plane_leaves_half_a_pivot_at_most(bits: int) -> None:
    """What is left is turned by floats, which are exact enough for halves of pivots alone."""
    strategy: Any = some_strategy("forest")
    rng = np.random.default_rng(bits)
    for _ in range(20):
        noise = rng.integers(-(2**bits), 2**bits, strategy.rows)
        rows = (strategy.forest, strategy.pivot, strategy.ties, strategy.rooted)
        whole, left = nearest_plane(nearest_integers, rows, noise)
        assert np.all(2 * np.abs(left) <= strategy.diagonal())
        Q = matrix_of(strategy).astype(object)
        np.testing.assert_array_equal(noise.astype(object) - Q @ whole.astype(object), left.astype(object))


@pytest.mark.parametrize("kind", ["forest", "dense", "chain", "plain"])
def test_ties_too_commute_with_adding_integers_to_the_counts(kind: str) -> None:
    strategy = some_strategy(kind)
    Q = matrix_of(strategy)
    pivots = np.rint(strategy.diagonal()).astype(np.int64)
    tied = Q.sum(axis=1) - pivots // 2  # every row with an even pivot is left at exactly half of it
    assert np.any(pivots % 2 == 0)
    rng = np.random.default_rng(7)
    for _ in range(20):
        counts = rng.integers(-3, 4, strategy.rows)
        shifted = strategy.solve_integers(tied + Q @ counts)
        np.testing.assert_array_equal(shifted, strategy.solve_integers(tied) + counts)


def test_halves_are_rounded_up_and_halves_to_even_would_break_the_proof() -> None:
    strategy = plain_strategy(1, 1, 1)
    assert matrix_of(strategy).tolist() == [[2]]
    solved = [int(strategy.solve_integers(np.array([w]))[0]) for w in range(-3, 4)]
    assert solved == [-1, -1, 0, 0, 1, 1, 2]  # one count more is two more of the noise, and one more here
    to_even = np.rint(np.arange(-3, 4) / 2)
    assert not np.array_equal(to_even[:-2] + 1, to_even[2:])


@pytest.mark.parametrize("kind", ["forest", "dense", "chain", "plain"])
def test_solving_in_integers_rounds_the_real_solution(kind: str) -> None:
    strategy = some_strategy(kind)
    noise = np.random.default_rng(4).integers(-(2**33), 2**33, strategy.rows)
    real = strategy.solve(noise[None, :].astype(float))[0]
    assert np.max(np.abs(strategy.solve_integers(noise) - real)) <= 0.5 + 1e-6


def some_strategy(kind: str) -> Square:
    if kind == "plain":
        return plain_strategy(5, 20, 3)
    P = {
        "forest": Poset(range(9), [(1, 0), (2, 1), (3, 0), (5, 4), (6, 4), (7, 6), (8, 6)]),
        "dense": sparse_poset(9, 0.3, np.random.default_rng(5)),
        "chain": Poset.chain(range(9)),
    }[kind]
    strategy = strategy_of(P, 20, "add-remove")
    assert strategy is not None
    return strategy


def test_the_gram_matrix_is_exact() -> None:
    Q = np.random.default_rng(6).integers(-(2**28), 2**28, (30, 12))
    exact = Q.astype(object).T @ Q.astype(object)
    assert np.array_equal(exact_gram(Q.astype(np.int32)).astype(object), exact)


def test_too_coarse_a_scale_gives_no_strategy() -> None:
    assert strategy_of(Poset.antichain(range(400)), 1, "add-remove") is None


def test_independent_noise_has_the_sensitivity_of_its_coordinates() -> None:
    strategy = plain_strategy(6, 10, 4)
    assert strategy.sensitivity_squared == 4 * 2**20
    assert not strategy.rooted
    np.testing.assert_allclose(strategy.covariance(), np.eye(6) / 2**20)
