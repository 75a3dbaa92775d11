"""Monotone projection in the norm of a known covariance.

Definition: given ``y = f + noise`` with noise of covariance Σ, the monotone ``f`` that minimises
``(f − y)' Σ⁻¹ (f − y)``: generalised least squares and consistency with the order in one step. Exact by the
dual active-set method: start from the unconstrained optimum ``y``, add the most violated cover, and let go of
covers whose multiplier reaches zero. The dual objective grows with every step, so no active set comes back.
Complexity: O(n·a) per step for ``a`` active covers. Reference: Goldfarb and Idnani 1983.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError, IsotoneError
from isotone.kernels import kernel
from isotone.order.projection.least_squares import check_bounds, like, one_per_element, project

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["project_covariance"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_FEASIBLE = 1e-12  # a violation counts if it is above this, in standard deviations of the constraint
_DEPENDENT = 1e-11  # squared distance, relative, below which a constraint depends on the active ones


def project_covariance(
    P: Poset,
    values: ArrayLike,
    covariance: ArrayLike | None = None,
    *,
    precision: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> NDArray[np.float64]:
    """The monotone function on ``P`` closest to ``values`` in the norm of their covariance.

    Give either the ``covariance`` of the values or its inverse, the ``precision``: symmetric, positive
    definite, one row per element in the order of ``P.elements``. A diagonal covariance is the same as
    :func:`project` with weights. ``lower`` and ``upper`` bound every value of the result; unlike there,
    they are part of the problem (clipping afterwards would not be optimal). For some hundreds of elements.

    >>> from isotone.order import Poset, project_covariance
    >>> project_covariance(Poset.chain("ab"), [1, 0], [[1, 0.5], [0.5, 1]])
    array([0.5, 0.5])
    """
    y = one_per_element(values, len(P), "values")
    bounds = check_bounds(lower, upper)
    sigma = _covariance(covariance, precision, len(P))
    plus, minus, floors = _constraints(P, *bounds)
    padded = np.zeros((len(P) + 1, len(P) + 1))  # the last coordinate is the constant 0 of the bounds
    padded[:-1, :-1] = sigma
    pull = padded[plus] - padded[minus]
    scale = np.sqrt(_differences(plus, minus, pull))  # standard deviation of each constraint
    start = np.append(y, 0.0)
    slack = (start[plus] - start[minus] - floors) / scale
    steps = 50 * (len(P) + len(plus))
    done, active, multipliers = _dual_active_set(plus, minus, scale, pull / scale[:, None], slack, steps)
    if not done:
        raise IsotoneError(
            "The projection did not converge: the covariance is too close to singular for floating point. "
            "Give a better conditioned one, or use project() with weights."
        )
    fitted = y + (multipliers / scale[active]) @ pull[active, :-1]
    return like(values, project(P, fitted, lower=lower, upper=upper))  # removes rounding, nothing else


def _differences(plus: _Ints, minus: _Ints, vectors: _Floats) -> _Floats:
    """``vectors[k][plus[k]] − vectors[k][minus[k]]`` for every k."""
    rows = np.arange(len(plus))
    return vectors[rows, plus] - vectors[rows, minus]


def _constraints(P: Poset, low: float, high: float) -> tuple[_Ints, _Ints, _Floats]:
    """Every constraint as ``f[plus] − f[minus] ≥ floor``.

    Position n stands for the constant 0.
    """
    pairs = P.cover_pairs
    size = len(P)
    minimal = (
        np.flatnonzero(np.bincount(pairs[:, 1], minlength=size) == 0) if np.isfinite(low) else pairs[:0, 0]
    )
    maximal = (
        np.flatnonzero(np.bincount(pairs[:, 0], minlength=size) == 0) if np.isfinite(high) else pairs[:0, 0]
    )
    plus = np.concatenate((pairs[:, 1], minimal, np.full(len(maximal), size)))
    minus = np.concatenate((pairs[:, 0], np.full(len(minimal), size), maximal))
    floors = np.concatenate((np.zeros(len(pairs)), np.full(len(minimal), low), np.full(len(maximal), -high)))
    return plus, minus, floors


def _covariance(covariance: ArrayLike | None, precision: ArrayLike | None, size: int) -> _Floats:
    """The covariance as a checked matrix, from whichever of the two was given."""
    if (covariance is None) == (precision is None):
        raise InputError("Give either covariance or precision, and not both.")
    name, given = ("covariance", covariance) if precision is None else ("precision", precision)
    matrix = np.array(given, dtype=np.float64, subok=False)
    if matrix.shape != (size, size) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"{name} must be a {size} × {size} matrix of finite numbers; its shape is {matrix.shape}."
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * float(np.max(np.abs(matrix)))):
        raise InputError(f"{name} must be symmetric.")
    try:
        factor = np.linalg.cholesky((matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        raise InputError(f"{name} must be positive definite.") from None
    if precision is None:
        return (matrix + matrix.T) / 2
    inverse = np.linalg.inv(factor)
    return inverse.T @ inverse


@kernel
def _solve_lower(factor: _Floats, size: int, right: _Floats) -> _Floats:
    """``x`` with ``L x = right``, L the leading lower triangle of ``factor``."""
    x = right.copy()
    for i in range(size):
        x[i] = (x[i] - np.dot(factor[i, :i], x[:i])) / factor[i, i]
    return x


@kernel
def _solve_upper(factor: _Floats, size: int, right: _Floats) -> _Floats:
    """``x`` with ``L' x = right``."""
    x = right.copy()
    for i in range(size - 1, -1, -1):
        x[i] /= factor[i, i]
        x[:i] -= x[i] * factor[i, :i]
    return x


@kernel
def _delete_row(factor: _Floats, size: int, gone: int) -> None:
    """Remove one row and column of the matrix that ``factor`` is the Cholesky factor of, by rotations."""
    for i in range(gone, size - 1):
        factor[i, : i + 2] = factor[i + 1, : i + 2]
    for k in range(gone, size - 1):  # entry (k, k+1) sticks out above the diagonal
        a, b = factor[k, k], factor[k, k + 1]
        length = np.hypot(a, b)
        c, s = a / length, b / length
        for i in range(k, size - 1):
            left, right = factor[i, k], factor[i, k + 1]
            factor[i, k] = c * left + s * right
            factor[i, k + 1] = c * right - s * left


@kernel(steps=lambda plus, minus, scale, pull, slack, steps: plus.size * pull.shape[1])
def _dual_active_set(
    plus: _Ints, minus: _Ints, scale: _Floats, pull: _Floats, slack: _Floats, steps: int
) -> tuple[bool, _Ints, _Floats]:
    """The active constraints at the optimum and their multipliers.

    The first value is False if ``steps`` were not enough.

    Constraint k reads ``(f[plus] − f[minus]) / scale ≥ …``; row k of ``pull`` is Σ times its coefficients,
    and ``slack`` is by how much the starting point satisfies it. The factor is that of the covariance of
    the active constraints, which have unit variance.
    """
    n = pull.shape[1]
    active = np.zeros(n, np.int64)
    multipliers = np.zeros(n)
    factor = np.zeros((n, n))
    start = slack.copy()
    allowed = -_FEASIBLE * (1.0 + np.max(np.abs(start))) if start.size else 0.0
    size = 0
    for _ in range(steps):
        worst = np.argmin(slack) if slack.size else -1
        if worst < 0 or slack[worst] >= allowed:
            # the equations of the active set, solved afresh: the rounding of the steps is forgotten
            half = _solve_lower(factor, size, -start[active[:size]])
            return True, active[:size].copy(), _solve_upper(factor, size, half)
        weight, entered = 0.0, False
        while not entered:
            chosen = active[:size]
            against = (pull[worst][plus[chosen]] - pull[worst][minus[chosen]]) / scale[chosen]
            half = _solve_lower(factor, size, against)
            give = _solve_upper(factor, size, half)
            curvature = 1.0 - np.dot(half, half)
            independent = curvature > _DEPENDENT
            step, leaving = (-slack[worst] / curvature if independent else np.inf), -1
            for k in range(size):
                if give[k] > 0 and multipliers[k] < step * give[k]:
                    step, leaving = multipliers[k] / give[k], k
            if step == np.inf:
                return False, active[:0].copy(), multipliers[:0].copy()
            multipliers[:size] -= step * give
            weight += step
            if independent:
                direction = pull[worst].copy()
                for k in range(size):
                    direction -= give[k] * pull[active[k]]
                slack += step * (direction[plus] - direction[minus]) / scale
            entered = leaving < 0
            if entered:
                factor[size, :size] = half
                factor[size, size] = np.sqrt(curvature)
                active[size], multipliers[size] = worst, weight
                slack[worst] = 0.0
                size += 1
            else:
                _delete_row(factor, size, leaving)
                active[leaving : size - 1] = active[leaving + 1 : size].copy()
                multipliers[leaving : size - 1] = multipliers[leaving + 1 : size].copy()
                size -= 1
    return False, active[:0].copy(), multipliers[:0].copy()
