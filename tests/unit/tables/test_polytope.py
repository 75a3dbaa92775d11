"""Scales and polytopes: the paper's example, decompositions, membership, extreme points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from isotone.errors import InputError
from isotone.published.tables.lp import (
    fixed_polytope,
    fixed_representation,
    has_fixed_point,
    is_extreme,
    is_private,
    unfixed_polytope,
    unfixed_representation,
)
from isotone.published.tables.scales import (
    decompose,
    is_scale,
    pattern_of,
    patterns,
    representation,
    scale,
    scales,
    single_peak,
)
from isotone.tables import fixed_point, truncated_geometric

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def test_the_papers_example_has_36_78_27_and_36_extreme_points() -> None:
    fixed = fixed_polytope([THIRD] * 3, HALF).vertices()
    weights = fixed_representation([THIRD] * 3, HALF).vertices()
    assert (len(fixed), len(weights)) == (36, 78)
    unfixed = unfixed_polytope(3, HALF).vertices()
    free = unfixed_representation(3, HALF).vertices()
    assert (len(unfixed), len(free)) == (27, 36)
    z, epsilon = np.full(3, 1 / 3), float(np.log(2))
    as_matrix = [np.array([float(x) for x in v]).reshape(3, 3) for v in fixed]
    assert all(is_extreme(m, epsilon, z) for m in as_matrix)
    psi = scales(3, epsilon)
    images = {
        tuple(np.round(psi @ np.array([float(x) for x in v]).reshape(4, 3), 9).ravel()) for v in weights
    }
    assert {tuple(np.round(m, 9).ravel()) for m in as_matrix} <= images  # every vertex has one above it
    assert len(images) > 36  # and some lie above points that are no vertices


def test_scales_of_three_counts_are_those_of_the_paper() -> None:
    expected = np.array(
        [[4 / 7, 2 / 5, 1 / 4, 1 / 7], [2 / 7, 1 / 5, 1 / 2, 2 / 7], [1 / 7, 2 / 5, 1 / 4, 4 / 7]]
    )
    assert np.allclose(scales(3, float(np.log(2))), expected)


def test_patterns_and_scales_belong_together() -> None:
    for pattern in patterns(5):
        s = scale(pattern, 0.7)
        assert pattern_of(s) == pattern
        assert is_scale(s, 0.7)
        assert not is_scale(s, 0.8)
    assert not is_scale(np.array([1.0, 0.0]), 0.7)
    assert pattern_of(truncated_geometric(6, 1).matrix()[:, 2]) == single_peak(6, 2)


def test_every_private_column_is_a_sum_of_scales() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        n, epsilon = int(rng.integers(1, 9)), float(rng.choice([0.1, 1, 3]))
        column = np.exp(epsilon * np.cumsum(rng.uniform(-1, 1, n))) * rng.random()
        parts = decompose(column, epsilon)
        assert len(parts) <= n
        assert all(weight > 0 for weight, _ in parts)
        assert np.abs(sum(w * scale(p, epsilon) for w, p in parts) - column).max() <= 1e-9 * column.max()


def test_a_mechanism_is_its_representation_times_the_scales() -> None:
    z = np.random.default_rng(2).dirichlet(np.ones(7))
    t = fixed_point(z, 1).matrix()
    b = representation(t, 1.0)
    assert b.min() >= 0
    assert np.abs(scales(7, 1.0) @ b - t).max() <= 1e-12
    assert np.count_nonzero(b) <= 2 * 7 - 1


def test_columns_that_are_not_private_are_refused() -> None:
    assert decompose(np.zeros(3), 1.0) == []
    with pytest.raises(InputError, match="zero beside"):
        decompose(np.array([1.0, 0.0]), 1.0)
    with pytest.raises(InputError, match="not private"):
        decompose(np.array([1.0, 4.0]), 1.0)
    with pytest.raises(InputError, match="too many"):
        patterns(21)
    with pytest.raises(InputError, match="too many"):
        fixed_polytope([Fraction(1, 6)] * 6, HALF).vertices()


def test_membership_is_decided_by_ratios_not_by_differences() -> None:
    t = fixed_point([0.5, 0.3, 0.2], 1)
    assert is_private(t.matrix(), 1.0, 1e-12)
    assert not is_private(t.matrix(), 0.99, 1e-12)
    assert has_fixed_point(t.matrix(), np.array([0.5, 0.3, 0.2]), 1e-12)
    assert not has_fixed_point(t.matrix(), np.array([0.4, 0.4, 0.2]), 1e-3)
    spoilt = np.array([[1.0, 0.0], [1 - 1e-12, 1e-12]])  # a zero beside a positive entry, however small
    assert not is_private(spoilt, 1.0)
    assert not is_private(np.array([[0.5, 0.4], [0.5, 0.4]]), 1.0)
    assert not is_private(np.array([[1.5, -0.5], [1.5, -0.5]]), 1.0)


def test_the_middle_of_two_mechanisms_is_not_extreme() -> None:
    z = np.array([0.5, 0.3, 0.2])
    best = fixed_point(z, 1).matrix()
    assert is_extreme(best, 1.0, z)
    assert is_extreme(truncated_geometric(4, 1).matrix(), 1.0)
    assert not is_extreme((best + np.tile(z, (3, 1))) / 2, 1.0, z)
    assert not is_extreme(best, 0.5, z)
    assert not is_extreme(truncated_geometric(3, 1).matrix(), 1.0, z)
