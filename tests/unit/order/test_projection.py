"""Least squares onto the monotone functions on an order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.isotonic import (
    minimax_projection,
    optimality_gap,
    quadratic_program,
    sparse_poset,
)
from tests.support.posets import all_posets

from isotone.errors import InputError
from isotone.noise.simulate import Simulated
from isotone.order import Poset, project
from isotone.order.isotonic import merge_up_the_forest, pool_adjacent_violators, project_convex_sets


def random_forest(size: int, rng: np.random.Generator) -> Poset:
    return Poset(range(size), [(x, int(rng.integers(x))) for x in range(1, size) if rng.random() < 0.9])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_it_is_the_minimax_mean_on_every_small_order(size: int) -> None:
    rng = np.random.default_rng(size)
    for P in all_posets(size):
        for values in (rng.normal(size=size), rng.integers(0, 3, size).astype(float)):
            weights = rng.integers(1, 5, size).astype(float)
            expected = [float(x) for x in minimax_projection(P, values.tolist(), weights.tolist())]
            np.testing.assert_allclose(project(P, values, weights), expected, rtol=0, atol=1e-13)


def test_it_is_the_minimax_mean_on_a_sample_of_orders_of_five() -> None:
    rng = np.random.default_rng(5)
    for P in all_posets(5)[::2]:
        values = rng.integers(0, 4, 5).astype(float)
        expected = [float(x) for x in minimax_projection(P, values.tolist(), [1.0] * 5)]
        np.testing.assert_allclose(project(P, values), expected, rtol=0, atol=1e-13)


def test_it_meets_the_optimality_conditions_on_every_order_of_five() -> None:
    rng = np.random.default_rng(50)
    for P in all_posets(5):
        values = rng.normal(size=5)
        fitted = project(P, values)
        assert optimality_gap(P, fitted, fitted - values, 1e-12) < 1e-11


def test_weights_of_very_different_size_keep_their_meaning() -> None:
    rng = np.random.default_rng(7)
    for P in all_posets(4):
        values = rng.normal(size=4)
        weights = 10.0 ** rng.uniform(-4, 4, 4)
        expected = [float(x) for x in minimax_projection(P, values.tolist(), weights.tolist())]
        np.testing.assert_allclose(project(P, values, weights), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_a_general_quadratic_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = sparse_poset(25, 0.12, rng)
    values, weights = rng.normal(size=25), np.exp(rng.normal(size=25))
    np.testing.assert_allclose(
        project(P, values, weights), quadratic_program(P, values, np.diag(weights)), rtol=0, atol=2e-6
    )


@pytest.mark.parametrize("kind", ["forest", "upside-down forest", "sparse", "dense", "plane"])
def test_it_meets_the_optimality_conditions_on_larger_orders(kind: str) -> None:
    rng = np.random.default_rng(11)
    size = 200
    points = rng.random((size, 2))
    P = {
        "forest": lambda: random_forest(size, rng),
        "upside-down forest": lambda: random_forest(size, rng).dual(),
        "sparse": lambda: sparse_poset(size, 2 / size, rng),
        "dense": lambda: sparse_poset(size, 0.2, rng),
        "plane": lambda: Poset.from_matrix(np.all(points[:, None] <= points, axis=2)),
    }[kind]()
    values = rng.normal(size=size) + 0.01 * np.argsort(P.linear_order)
    weights = np.exp(rng.normal(size=size))
    fitted = project(P, values, weights)
    assert optimality_gap(P, fitted, weights * (fitted - values), 1e-12) < 1e-9
    wrong = fitted.copy()
    wrong[P.linear_order[-1]] += 0.01  # still monotone, no longer optimal
    assert optimality_gap(P, wrong, weights * (wrong - values), 1e-12) > 1e-4


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_the_three_methods_agree_on_a_chain(values: list[float], seed: int) -> None:
    y = np.array(values)
    w = np.random.default_rng(seed).uniform(0.1, 10, y.size)
    n = y.size
    pooled = pool_adjacent_violators(y, w)
    merged = merge_up_the_forest(np.append(np.arange(1, n), -1), np.arange(n), y, w)
    np.testing.assert_allclose(merged, pooled, rtol=0, atol=1e-8)
    covers = np.column_stack((np.arange(n - 1), np.arange(1, n)))
    np.testing.assert_allclose(project_convex_sets(covers, y, w), pooled, rtol=0, atol=1e-8)
    assert np.all(np.diff(pooled) >= 0)


@given(st.integers(0, 2**32), st.integers(1, 30))
@settings(max_examples=100, deadline=None)
def test_a_projection_is_monotone_idempotent_and_keeps_the_total(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    P = sparse_poset(size, 0.15, rng)
    values = rng.integers(-5, 6, size).astype(float)
    fitted = project(P, values)
    pairs = P.cover_pairs
    assert np.all(fitted[pairs[:, 0]] <= fitted[pairs[:, 1]])
    np.testing.assert_allclose(project(P, fitted), fitted, rtol=0, atol=1e-12)
    assert fitted.sum() == pytest.approx(values.sum(), abs=1e-9)
    np.testing.assert_allclose(project(P.dual(), -values), -fitted, rtol=0, atol=1e-12)


def test_forests_and_cuts_agree() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        P = random_forest(60, rng)
        top = Poset.series(P, Poset.antichain(["top", "twin"]))  # no forest, and the twins bind nothing
        values = rng.normal(size=60)
        tall = project(top, np.append(values, [1e3, 1e3]))
        np.testing.assert_allclose(tall[:60], project(P, values), rtol=0, atol=1e-9)


def test_monotone_values_come_back_unchanged() -> None:
    P = Poset("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert project(P, [0.1, 0.7, 0.3, 0.9]).tolist() == [0.1, 0.7, 0.3, 0.9]


def test_ties_stay_ties() -> None:
    P = Poset("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert project(P, [2, 2, 2, 2]).tolist() == [2, 2, 2, 2]


def test_bounds_give_the_bounded_projection() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        P = sparse_poset(6, 0.3, rng)
        values = rng.normal(size=6)
        bounded = project(P, values, lower=-0.3, upper=0.4)
        # the same with two heavy elements at the bounds, below and above everything
        walls = Poset.series(Poset.chain(["low"]), P, Poset.chain(["high"]))
        walled = project(walls, [-0.3, *values, 0.4], weights=[1e8, *[1] * 6, 1e8])
        np.testing.assert_allclose(bounded, walled[1:-1], rtol=0, atol=1e-6)


def test_a_common_offset_costs_no_digits() -> None:
    rng = np.random.default_rng(2)
    P = sparse_poset(40, 0.1, rng)
    values = rng.integers(0, 100, 40).astype(float)
    np.testing.assert_allclose(project(P, values + 2.0**40) - 2.0**40, project(P, values), rtol=0, atol=1e-3)
    np.testing.assert_allclose(project(P, values * 1e-200) * 1e200, project(P, values), rtol=0, atol=1e-9)


def test_two_thousand_elements_in_the_plane() -> None:
    rng = np.random.default_rng(4)
    points = rng.random((2000, 2))
    P = Poset.from_matrix(np.all(points[:, None] <= points, axis=2))
    truth = points.sum(axis=1)
    noisy = truth + 0.3 * rng.normal(size=2000)
    fitted = project(P, noisy)
    assert np.mean((fitted - truth) ** 2) < 0.2 * np.mean((noisy - truth) ** 2)


def test_a_simulated_array_stays_simulated() -> None:
    assert isinstance(project(Poset.chain("ab"), Simulated.wrap([2.0, 1.0])), Simulated)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1, 2]}, "one number for each of the 3"),
        ({"values": [1, 2, np.nan]}, "finite"),
        ({"values": ["x", 1, 2]}, "must be numbers"),
        ({"values": [1, 2, 3], "weights": [1, 0, 1]}, "above 0"),
        ({"values": [1, 2, 3], "weights": [1, 1e-10, 1]}, "largest weight"),
        ({"values": [1, 2, 3], "weights": [1, 1]}, "weights must hold"),
        ({"values": [1, 2, 3], "lower": 2, "upper": 1}, "must not exceed"),
    ],
)
def test_what_cannot_be_projected_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        project(Poset.chain("abc"), **arguments)  # type: ignore[arg-type]
