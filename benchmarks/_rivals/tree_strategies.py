"""HDMM on hierarchies: p-Identity over the leaves of a tree (McKenna et al. 2018), whose nodes are the queries.

The search is that of ``matrix_mechanism``, with a sparse workload and a start at the sums below inner nodes. Where the worst node counts,
queries that are answered worst weigh more, round by round.
"""
# pyright: reportOptionalSubscript=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array

from benchmarks._rivals.matrix_mechanism import Norm
from isotone.mechanism import Error

__all__ = ["hdmm_error", "sparse_error_and_slope"]

Floats = NDArray[np.float64]
MOST_ROWS, STEPS, ROUNDS = 160, 80, 4
"""Sums beside the leaves, steps of a search, and rounds of new weights for the worst node."""
_PART = 0.3


def hdmm_error(
    below: csr_array, place: NDArray[np.int64], wanted: Callable[[Error], float], unit: float, norm: Norm
) -> float:
    """The least error of two starts, where ``wanted`` is the error of elements at these places, and noise has the variance ``unit``."""
    inner = np.flatnonzero(below.sum(axis=1) > 1)[:MOST_ROWS]
    rng, cells = np.random.default_rng(0), below.shape[1]
    random = rng.random((min(40, max(1, cells // 16)), cells))
    return min(
        _search(below, place, wanted, unit, norm, start) for start in (_PART * below[inner].toarray(), random)
    )


def _search(
    below: csr_array,
    place: NDArray[np.int64],
    wanted: Callable[[Error], float],
    unit: float,
    norm: Norm,
    theta: Floats,
) -> float:
    size, shape = len(place), theta.shape
    whole = wanted(Error(np.ones(size)))
    single = np.array([wanted(Error(np.eye(1, size, x)[0])) for x in range(min(size, 50))])
    linear = not np.allclose(single, whole)  # else the worst counts
    best, weights = np.inf, np.ones(size) / size
    if linear:
        weights = np.array([wanted(Error(np.eye(1, size, x)[0])) for x in range(size)]) ** 2
    for _ in range(1 if linear else ROUNDS):
        W = _weighted(below, place, weights)

        def value(flat: Floats, W: csr_array = W) -> tuple[float, Floats]:
            error, slope = sparse_error_and_slope(flat.reshape(shape), W, norm)
            return error, slope.ravel()

        done = minimize(
            value,
            theta.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * theta.size,
            options={"maxiter": STEPS, "ftol": 1e-7},
        )
        theta = done.x.reshape(shape)
        variance = unit * _variances(theta, below, norm)[place]
        best = min(best, wanted(Error(variance)))
        weights = weights * variance**2
        weights /= weights.sum()
    return best


def _weighted(below: csr_array, place: NDArray[np.int64], weights: Floats) -> csr_array:
    each = np.bincount(place, weights, below.shape[0])
    return csr_array(diags_array(np.sqrt(each)) @ below)


def sparse_error_and_slope(theta: Floats, W: csr_array, norm: Norm) -> tuple[float, Floats]:
    """The total squared error of a strategy and its derivative by Θ, without a dense workload."""
    length, small, seen = _parts(theta, W, norm)
    square = np.asarray(W.multiply(W).sum(axis=0)).ravel()
    error = float(length**2 @ square - np.sum(small * (seen.T @ seen)))
    turned = seen @ small  # B·Θᵀ·(I + ΘΘᵀ)⁻¹, so that Y = B − turned·Θ
    back = np.asarray(W.T @ turned)
    by_length = 2 * (length * square - np.sum(back.T * theta, axis=0))
    slope = -2 * (length * back.T - (turned.T @ turned) @ theta)
    slope += by_length if norm == 1 else by_length * theta / length
    return error, slope


def _parts(theta: Floats, W: csr_array, norm: Norm) -> tuple[Floats, Floats, Floats]:
    length = 1 + theta.sum(axis=0) if norm == 1 else np.sqrt(1 + np.square(theta).sum(axis=0))
    small = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    return length, small, np.asarray(W @ (length * theta).T)


def _variances(theta: Floats, W: csr_array, norm: Norm) -> Floats:
    """The variance of every query at noise of variance 1."""
    length, small, seen = _parts(theta, W, norm)
    return np.asarray(W.multiply(W) @ length**2 - np.sum((seen @ small) * seen, axis=1))
