"""Statements of the paper on target distributions, on its own example and others of three counts."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.published.tables.lp import (
    fixed_polytope,
    fixed_representation,
    unfixed_polytope,
    unfixed_representation,
)
from isotone.published.tables.scales import is_scale, scales
from isotone.tables import fixed_point

HALF, EPSILON = Fraction(1, 2), float(np.log(2))
UNIFORM = (Fraction(1, 3),) * 3
SKEWED = (Fraction(3, 4), Fraction(0), Fraction(1, 4))
PSI = scales(3, EPSILON)
Matrices = list[NDArray[np.float64]]


def as_matrices(vertices: list[tuple[Fraction, ...]], rows: int) -> Matrices:
    return [np.array([float(x) for x in v]).reshape(rows, 3) for v in vertices]


@cache
def representations(z: tuple[Fraction, ...] | None) -> Matrices:
    """The extreme points of R_F, or of R_U without a fixed point."""
    polytope = unfixed_representation(3, HALF) if z is None else fixed_representation(z, HALF)
    return as_matrices(list(polytope.vertices()), 4)


@cache
def mechanisms(z: tuple[Fraction, ...] | None) -> Matrices:
    """The extreme points of F, or of U without a fixed point."""
    polytope = unfixed_polytope(3, HALF) if z is None else fixed_polytope(z, HALF)
    return as_matrices(list(polytope.vertices()), 3)


def is_affinely_simplified(B: NDArray[np.float64], z: NDArray[np.float64]) -> bool:
    """Definition 8: weighted differences of the scales in each column are independent, all columns together."""
    weighted = PSI / (z @ PSI)
    differences = [
        weighted[:, u] - weighted[:, used[0]]
        for used in (np.flatnonzero(column > 1e-12) for column in B.T)
        for u in used[1:]
    ]
    return not differences or np.linalg.matrix_rank(np.array(differences), tol=1e-9) == len(differences)


@pytest.mark.parametrize("z", [UNIFORM, SKEWED], ids=["uniform", "skewed"])
def test_extreme_representations_are_affinely_simplified_and_short(z: tuple[Fraction, ...]) -> None:
    """Theorem 4 and Corollary 2; the middle of two extreme points is neither."""
    points, probabilities = representations(z), np.array([float(x) for x in z])
    positive = sum(x > 0 for x in z)
    for B in points:
        assert is_affinely_simplified(B, probabilities)
        assert positive <= np.sum(B > 1e-12) <= positive + 2
    for one, other in pairwise(points):
        assert not is_affinely_simplified((one + other) / 2, probabilities)


def test_extreme_representations_without_a_fixed_point_are_linearly_simplified() -> None:
    """Theorem 11 and Corollary 5."""
    for B in representations(None):
        used = [PSI[:, u] for column in B.T for u in np.flatnonzero(column > 1e-12)]
        assert 1 <= len(used) <= 3
        assert np.linalg.matrix_rank(np.array(used), tol=1e-9) == len(used)
        assert np.all(np.sum(B > 1e-12, axis=1) <= 1)


def test_positive_extreme_mechanisms_have_independent_scales_as_columns() -> None:
    """Theorem 2."""
    positive = [T for T in mechanisms(None) if np.all(T > 1e-12)]
    assert positive
    for T in positive:
        assert all(is_scale(column / column.sum(), EPSILON) for column in T.T)
        assert np.linalg.matrix_rank(T, tol=1e-9) == 3


def tight_directions(T: NDArray[np.float64]) -> NDArray[np.float64]:
    """A linear function that is largest at T among all private matrices, and elsewhere only where T is tight."""
    W = np.zeros((3, 3))
    for i, j in np.ndindex(2, 3):
        for low, high in ((i, i + 1), (i + 1, i)):
            if abs(0.5 * T[low, j] - T[high, j]) < 1e-12:  # half of one is the other: no more is allowed
                W[low, j] += 0.5
                W[high, j] -= 1
    return W


@pytest.mark.parametrize("z", [UNIFORM, None], ids=["fixed point", "without"])
def test_a_representation_is_above_an_extreme_mechanism_iff_one_function_says_so(
    z: tuple[Fraction, ...] | None,
) -> None:
    """Corollaries 3 and 4 (Theorem 9), with D = Ψᵀ W."""
    points = representations(z)
    images = np.array([(PSI @ B).ravel() for B in points])
    vertices = np.array([T.ravel() for T in mechanisms(z)])
    seen = {True: 0, False: 0}
    for B, image in zip(points, images, strict=True):
        extreme = bool(np.any(np.all(np.abs(vertices - image) < 1e-9, axis=1)))
        D = PSI.T @ tight_directions(image.reshape(3, 3))
        values = np.array([np.sum(D * other) for other in points])
        assert np.sum(D * B) == pytest.approx(values.max(), abs=1e-9)
        best = images[values > values.max() - 1e-9]
        assert bool(np.all(np.abs(best - image) < 1e-9)) == extreme
        seen[extreme] += 1
    assert min(seen.values()) > 0


def test_the_variance_of_the_published_distribution_is_that_of_the_first_footnote() -> None:
    """Var(ẑ_j) = (ζ_j − Σ_l ζ_l t_lj²)/N, against the sum over categories, and by simulation."""
    counts = np.repeat([0, 1, 2, 3], [5, 2, 2, 1])
    N, zeta = len(counts), np.bincount(counts) / len(counts)
    mechanism = fixed_point(zeta, 1)
    T = mechanism.matrix()
    stated = (zeta - zeta @ T**2) / N
    assert stated == pytest.approx((T * (1 - T))[counts].sum(axis=0) / N**2, abs=1e-15)
    rng = np.random.default_rng(1)
    draws = (
        np.array(
            [np.bincount(np.asarray(mechanism.simulate(counts, rng)), minlength=4) for _ in range(4_000)]
        )
        / N
    )
    assert draws.var(axis=0) == pytest.approx(stated, rel=0.2)  # nine standard errors
    assert draws.mean(axis=0) == pytest.approx(zeta, abs=0.02)
