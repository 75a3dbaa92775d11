"""Exact audits of transition matrices.

Every output and every pair of neighbouring rows is examined.

A matrix says with which probability a true count (a row) is published as another (a column); rows that lie next to each
other are one step apart. Its privacy loss is the largest log ratio of two entries of a column in neighbouring rows. A zero
beside a positive entry is an infinite loss: seeing that output rules one of the two counts out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError

__all__ = ["matrix_loss"]

Floats = NDArray[np.float64]

_TINY = 1e-280  # below, a float has lost digits, and the mechanism is asked for the logarithm
_ROUNDING = 1e-6  # what a solver may leave behind in a row that should sum to 1, or below 0


def matrix_loss(matrix: ArrayLike, mechanism: Any = None) -> tuple[float, int, int]:
    """The largest loss over one step, and where it is.

    Returns the loss, the row before the step, and the column.

    >>> matrix_loss([[0.75, 0.25], [0.25, 0.75]])  # ln 3
    (1.09861228866810..., 0, 0)
    >>> matrix_loss([[1.0, 0.0], [0.5, 0.5]])
    (inf, 0, 1)
    """
    T = np.asarray(matrix, dtype=float)
    if T.ndim != 2 or not T.size or not np.isfinite(T).all():
        raise InputError("A transition matrix has one row of finite probabilities for each true count.")
    off = float(np.abs(T.sum(axis=1) - 1).max())
    if off > _ROUNDING or T.min() < -_ROUNDING:
        raise InputError("The rows of a transition matrix are probabilities, which sum to 1.")
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(T, 0.0))
    if hasattr(mechanism, "log_probability"):
        for i, j in np.argwhere(T < _TINY):
            logs[i, j] = mechanism.log_probability(int(j), int(i))
    if len(T) == 1:
        return 0.0, 0, 0
    with np.errstate(invalid="ignore"):
        losses = np.nan_to_num(
            np.abs(np.diff(logs, axis=0)), nan=0.0, posinf=np.inf
        )  # 0 beside 0 tells nothing
    row, column = np.unravel_index(int(np.argmax(losses)), losses.shape)
    return float(losses[row, column]), int(row), int(column)
