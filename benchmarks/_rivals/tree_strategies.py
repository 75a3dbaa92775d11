"""Strategies for hierarchies: a budget for each node, and HDMM's p-Identity over the leaves (McKenna et al. 2018), whose nodes are the queries.

Budgets are shares of what is left below a parent, found by descent with exact derivatives from several starts. The search of HDMM is that of
``matrix_mechanism``, with a sparse workload and a start at the sums below inner nodes; weights may be negative. Where the worst node counts,
budgets follow ever higher powers of the variances, and in HDMM queries that are answered worst weigh more, round by round.
"""
# pyright: reportOptionalSubscript=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array
from scipy.special import expit

from benchmarks._rivals.matrix_mechanism import Norm
from isotone.linear.least_squares import Hierarchy, TreeLeastSquares
from isotone.mechanism import Error

__all__ = ["best_budgets", "hdmm_error", "sparse_error_and_slope"]

Floats = NDArray[np.float64]
MOST_ROWS, STEPS, ROUNDS = 160, 80, 4
"""Sums beside the leaves, steps of a search, and rounds of new weights for the worst node."""
_PART = 0.3
_POWERS = (12.0, 60.0, 300.0, 1500.0)
"""The worst node is approached by means of these powers of the variances, one after the other."""
_FIRST_STEPS, _NODE_STEPS, _CONTINUED = 60, 250, 2


def best_budgets(
    tree: Hierarchy,
    weights: Floats,
    worst: bool,
    precision: Callable[[Floats], tuple[Floats, Floats]],
    error: Callable[[Floats], float],
    starts: Sequence[Floats],
) -> float:
    """The least error of a budget for each node and least squares, from the shares of several starts: the best of them after a short descent go on.

    ``precision`` tells the precision of a share and its derivative, and ``error`` what the variances of all nodes are worth.
    """
    inner, best = ~tree.leaf, np.inf

    def objective(logits: Floats, power: float) -> tuple[float, Floats]:
        shares, left, kept = _shares_of(tree, logits)
        seen, slope = precision(shares)
        fit = TreeLeastSquares.of(tree, seen)
        each = weights * fit.variance
        largest = float(each.max())
        scaled = (each / largest) ** power
        value = np.log(largest) + np.log(scaled.sum()) / power
        outer = weights * (each / largest) ** (power - 1) / (largest * scaled.sum())
        return float(value), _by_logit(tree, fit.derivative(outer) * slope, left, kept)[inner]

    def descend(logits: Floats, power: float, steps: int) -> Floats:
        nonlocal best
        limits = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-12, "gtol": 1e-9}
        bounds = [(-25, 25)] * logits.size
        result = minimize(
            objective, logits, args=(power,), jac=True, method="L-BFGS-B", bounds=bounds, options=limits
        )
        for each in (logits, result.x):
            best = min(
                best, error(TreeLeastSquares.of(tree, precision(_shares_of(tree, each)[0])[0]).variance)
            )
        return np.asarray(result.x, np.float64)

    powers = _POWERS if worst else (1.0,)
    begun = [descend(_logits_of(tree, start), powers[0], _FIRST_STEPS) for start in starts]
    for logits in sorted(begun, key=lambda each: objective(each, powers[0])[0])[:_CONTINUED]:
        for power in powers:
            logits = descend(logits, power, _NODE_STEPS)
    return best


def _shares_of(tree: Hierarchy, logits: Floats) -> tuple[Floats, Floats, Floats]:
    """The share of each node, what is left to it and all below, and the part of that which it keeps. A leaf keeps all."""
    kept = np.ones(len(tree))
    kept[~tree.leaf] = expit(logits)
    left = np.ones(len(tree))
    for level in tree.levels[1:]:
        above = tree.parent[level]
        left[level] = left[above] * (1 - kept[above])
    return left * kept, left, kept


def _logits_of(tree: Hierarchy, shares: Floats) -> Floats:
    left = np.ones(len(tree))
    for level in tree.levels[1:]:
        above = tree.parent[level]
        left[level] = left[above] - shares[above]
    kept = np.clip(shares / np.maximum(left, 1e-12), 1e-5, 1 - 1e-5)[~tree.leaf]
    return np.asarray(np.log(kept / (1 - kept)), np.float64)


def _by_logit(tree: Hierarchy, by_share: Floats, left: Floats, kept: Floats) -> Floats:
    """The derivative by the logit of what each node keeps, given that by its share."""
    from_below, result = np.zeros(len(tree)), np.zeros(len(tree))
    for level in reversed(tree.levels):
        passed = from_below[level]
        result[level] = (by_share[level] - passed) * left[level] * kept[level] * (1 - kept[level])
        if level.start:
            from_below += tree.below(by_share[level] * kept[level] + passed * (1 - kept[level]), level)
    return result


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
