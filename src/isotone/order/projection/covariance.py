"""Monotone projection in the norm of a known covariance.

Definition: given ``y = f + noise`` with noise of covariance Σ, the monotone ``f`` that minimises
``(f − y)' Σ⁻¹ (f − y)``: generalised least squares and consistency with the order in one step. In coordinates in which Σ
is the identity it is the shortest move that meets all constraints, which a problem of nonnegative least squares says.
Reference: Lawson and Hanson 1974, chapter 23 (least distance programming).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError, IsotoneError
from isotone.order.projection.least_squares import check_bounds, like, one_per_element, project

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["project_covariance"]


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
    root = np.linalg.cholesky(_covariance(covariance, precision, len(P)))
    plus, minus, floors = _constraints(P, *bounds)
    padded = np.append(
        root, np.zeros((1, len(P))), axis=0
    )  # the last coordinate is the constant 0 of the bounds
    start = np.append(y, 0.0)
    pull, missing = padded[plus] - padded[minus], floors - (start[plus] - start[minus])
    scale = np.linalg.norm(pull, axis=1)  # the standard deviation of each constraint
    fitted = y + root @ _shortest(pull / scale[:, None], missing / scale)
    return like(values, project(P, fitted, lower=lower, upper=upper))  # removes rounding, nothing else


def _shortest(G: Floats, h: Floats) -> Floats:
    """The shortest z with ``G z ≥ h``, where there is any."""
    if not np.any(h > 0):
        return np.zeros(G.shape[1])
    from scipy.optimize import nnls

    system = np.append(G, h[:, None] / np.abs(h).max(), axis=1).T
    try:
        weights, _ = nnls(system, np.append(np.zeros(G.shape[1]), 1.0), maxiter=50 * sum(G.shape))
    except RuntimeError:
        raise IsotoneError(
            "The projection did not converge: the covariance is too close to singular for floating point. "
            "Give a better conditioned one, or use project() with weights."
        ) from None
    active = weights > 0
    return np.linalg.lstsq(G[active], h[active], rcond=None)[0].astype(np.float64)


def _constraints(P: Poset, low: float, high: float) -> tuple[Ints, Ints, Floats]:
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


def _covariance(covariance: ArrayLike | None, precision: ArrayLike | None, size: int) -> Floats:
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
