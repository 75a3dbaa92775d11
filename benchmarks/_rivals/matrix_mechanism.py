"""The matrix mechanism with strategies found by gradient: p-Identity, after McKenna, Miklau, Hay and Machanavajjhala 2018.

A strategy measures ``A = [I; Θ]·D`` with independent noise, where ``Θ ≥ 0`` has p rows and the diagonal ``D`` gives
every column length 1, in ℓ1 for Laplace noise and in ℓ2 for Gaussian noise. The workload ``W`` is answered by least squares. Its total
squared error at noise of variance 1 is ``tr(W (AᵀA)⁻¹ Wᵀ)``.
"""
# pyright: reportConstantRedefinition=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = [
    "FEW_STARTS",
    "RESTARTS",
    "Found",
    "error_and_slope",
    "p_identity",
    "split",
    "strategy",
    "sums_and_slope",
    "sums_of_counts",
    "workload",
]

Floats = NDArray[np.float64]
Norm = Literal[1, 2]
RESTARTS, MOST_ROWS = 3, 40
"""Random starts of each search, for each number of rows, and the most rows of a search."""


@dataclass(frozen=True)
class Found:
    """The best strategy of several starts, whose longest record has length 1 but for p-Identity, which keeps Θ, and its total squared error at noise of variance 1."""

    theta: Floats
    error: float


def error_and_slope(theta: Floats, W: Floats, norm: Norm) -> tuple[float, Floats]:
    """The total squared error of a strategy and its derivative by Θ, in O(N·p·(p + queries))."""
    length = 1 + theta.sum(axis=0) if norm == 1 else np.sqrt(1 + np.square(theta).sum(axis=0))
    B = W * length
    small = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    Y = B - (B @ theta.T) @ small @ theta  # W·D⁻¹·(I + ΘᵀΘ)⁻¹, by Woodbury
    error = float(np.sum(Y * B))
    by_length = 2 * np.sum(W * Y, axis=0)
    slope = -2 * (theta @ Y.T) @ Y
    slope += by_length if norm == 1 else by_length * theta / length
    return error, slope


def strategy(theta: Floats, norm: Norm) -> Floats:
    """The measured queries, one per row: every column has length 1."""
    A = np.vstack([np.eye(theta.shape[1]), theta])
    return A / np.linalg.norm(A, ord=norm, axis=0)


def p_identity(
    W: Floats, norm: Norm, rows: Sequence[int] = (), restarts: int = RESTARTS, seed: int = 0
) -> Found:
    """The best of ``restarts`` searches for each number of rows of Θ.

    The default numbers are a sixteenth of the cells, which is the authors' rule, once and three times the number of queries,
    where these are at most as many as cells, and at most 40.
    """
    rng = np.random.default_rng(seed)
    cells = W.shape[1]
    usual = {len(W), 3 * len(W), max(1, cells // 16)}
    sizes = rows or sorted(size for size in usual if size <= min(cells, MOST_ROWS)) or [1]
    best: Found | None = None
    for p in sizes:
        for _ in range(restarts):
            found = _search(W, norm, rng.random((p, cells)))
            if best is None or found.error < best.error:
                best = found
    assert best is not None
    return best


def _search(W: Floats, norm: Norm, start: Floats) -> Found:
    def value(flat: Floats) -> tuple[float, Floats]:
        error, slope = error_and_slope(flat.reshape(start.shape), W, norm)
        return error, slope.ravel()

    bounds = [(0, None)] * start.size
    limits = {"maxiter": 500, "ftol": 1e-7}
    done = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
    return Found(done.x.reshape(start.shape), float(done.fun))


def sums_of_counts(filters: NDArray[np.bool_], steps: Floats, restarts: int = 0, seed: int = 0) -> Found:
    """Sums of the *counts* with Laplace noise, over any weights, with the least total squared error for noise of variance 1.

    It minimises ``tr((AᵀA)⁻¹)·max over records of ‖Af‖₁²``, with a maximum that is smoothed ever less, from the counts themselves, from
    the ``steps`` between them, and from random weights, each with a few sums beside; then ``restarts`` times from any of these with other numbers,
    and as often from near the best. Of few records many starts are affordable, and are taken.
    """
    rng, n = np.random.default_rng(seed), filters.shape[1]
    records = filters.astype(float)
    starts: list[Floats] = [rng.normal(size=(rows, n)) for rows in (n, 2 * n)]
    wanted = [(base, rows, 0.05, 0.3) for base in (steps, np.eye(n)) for rows in sorted({2, n // 2 + 1, n})]
    more = restarts or min(max(NUMBERS // filters.size, FEW_STARTS), MANY_STARTS)
    for number in range(more):
        wanted.append(
            (wanted[number % 6][0], int(rng.integers(1, n + 1)), rng.choice(SCATTERS), rng.choice(SUMS))
        )
    for base, rows, scatter, weight in wanted:
        sums = weight * rng.random((rows, n)) @ steps
        starts.append(np.vstack([base + scatter * rng.normal(size=(n, n)), sums]))
    best = min((_search_sums(records, start) for start in starts), key=lambda found: found.error)
    for _ in range(more):
        apart = rng.choice(SCATTERS) * np.abs(best.theta).mean() * rng.normal(size=best.theta.shape)
        best = min(best, _search_sums(records, best.theta + apart), key=lambda found: found.error)
    return best


MANY_STARTS, FEW_STARTS, NUMBERS = 100, 12, 2_000_000
"""The most and the fewest further starts; between them there are as many as these numbers of records times counts allow."""
SCATTERS, SUMS = (0.02, 0.05, 0.15, 0.3), (0.1, 0.3, 0.6)
SHARPNESS, SUM_STEPS = (20.0, 100.0, 500.0, 2000.0), 150


def _search_sums(records: Floats, start: Floats) -> Found:
    A = start
    for sharp in SHARPNESS:
        A = A / np.abs(records @ A.T).sum(axis=1).max()

        def value(flat: Floats, sharp: float = sharp) -> tuple[float, Floats]:
            found, slope = sums_and_slope(flat.reshape(start.shape), records, sharp)
            return found, slope.ravel()

        limits = {"maxiter": SUM_STEPS, "maxfun": 2 * SUM_STEPS, "ftol": 1e-10}
        done = minimize(value, A.ravel(), jac=True, method="L-BFGS-B", options=limits)
        A = done.x.reshape(start.shape)
    A /= np.abs(records @ A.T).sum(axis=1).max()
    return Found(A, float(np.trace(np.linalg.inv(A.T @ A))))


def sums_and_slope(A: Floats, records: Floats, sharp: float) -> tuple[float, Floats]:
    """The logarithm of the error of sums with a smooth maximum and smooth absolute values, and its derivative."""
    inverse = np.linalg.inv(A.T @ A + 1e-12 * np.eye(A.shape[1]))
    trace = float(np.trace(inverse))
    moved = records @ A.T
    long = np.sqrt(np.square(moved) + 1e-4 / sharp)
    length = long.sum(axis=1)
    logs = sharp * np.log(length)
    weight = np.exp(logs - logs.max())
    each = 2 * weight / (weight.sum() * length)
    slope = (each[:, None] * moved / long).T @ records - 2 * A @ inverse @ inverse / trace
    return float(np.log(trace) + 2 * (logs.max() + np.log(weight.sum())) / sharp), slope


def split(errors: Sequence[float], norm: Norm) -> float:
    """The total squared error of groups of queries that share the budget, with the best shares.

    A group with a share ``w`` of the budget has its error divided by ``w²`` with Laplace noise, and by ``w`` with
    Gaussian noise, where the shares of ρ add up.
    """
    power = 1 / 3 if norm == 1 else 1 / 2
    return float(np.sum(np.power(errors, power)) ** (1 / power))


def workload(filters: NDArray[np.bool_]) -> Floats:
    """The counts as queries over the records that are possible, one column for each."""
    return filters.T.astype(float)
