"""The losses of an error in a count.

Named losses, and matrices of any shape.

``loss[i, j]`` is the cost of publishing ``j`` for a true count ``i``. A loss has the *Monge* property if
``loss[i, j] + loss[i+1, j+1] <= loss[i, j+1] + loss[i+1, j]`` for all i, j, as every convex function of
``i - j`` has; the closed-form optimum holds for these (docs/theory/tables.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from isotone.errors import InputError

__all__ = [
    "Loss",
    "LossName",
    "is_concentrating",
    "is_convex",
    "is_monge",
    "loss_matrix",
    "loss_of_difference",
    "loss_rows",
]

LossName = Literal["absolute", "squared", "zero-one"]
Loss = LossName | NDArray[np.float64] | Sequence[Sequence[float]]

_DENSE = 20_000


def loss_of_difference(loss: Loss, n: int) -> NDArray[np.float64] | None:
    """The value of a named loss at ``i - j = -(n-1) .. n-1``. None for a matrix."""
    if not isinstance(loss, str):
        return None
    difference = np.abs(np.arange(-(n - 1), n, dtype=np.float64))
    if loss == "absolute":
        return difference
    if loss == "squared":
        return difference**2
    if loss == "zero-one":
        return np.asarray(difference > 0, dtype=np.float64)
    raise InputError(
        f"loss must be one of {', '.join(map(repr, get_args(LossName)))} or an n by n matrix, not {loss!r}."
    )


def loss_rows(loss: Loss, n: int) -> NDArray[np.float64]:
    """``loss`` as n rows to be read one at a time.

    For a named loss it is a view that takes no memory.
    """
    values = loss_of_difference(loss, n)
    return loss_matrix(loss, n) if values is None else sliding_window_view(values, n)[:, ::-1]


def loss_matrix(loss: Loss, n: int) -> NDArray[np.float64]:
    """``loss`` as an n by n matrix.

    >>> loss_matrix("absolute", 3)
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    if n > _DENSE:
        raise InputError(
            f"A loss matrix for {n} counts does not fit in memory: at most {_DENSE} are handled."
        )
    values = loss_of_difference(loss, n)
    if values is not None:
        i = np.arange(n)
        return values[i[:, None] - i[None, :] + n - 1]
    matrix = np.asarray(loss, dtype=np.float64)
    if matrix.shape != (n, n) or not bool(np.all(np.isfinite(matrix))):
        raise InputError(f"loss must be an n by n matrix of finite numbers, here {n} by {n}.")
    return matrix


def is_monge(matrix: NDArray[np.float64]) -> bool:
    """Whether ``matrix`` has the Monge property, up to rounding."""
    mixed = matrix[:-1, :-1] + matrix[1:, 1:] - matrix[:-1, 1:] - matrix[1:, :-1]
    return bool(np.all(mixed <= _slack(matrix)))


def is_convex(matrix: NDArray[np.float64]) -> bool:
    """Whether each row is a convex function of the published count, up to rounding."""
    return bool(np.all(np.diff(matrix, n=2, axis=1) >= -_slack(matrix)))


def is_concentrating(matrix: NDArray[np.float64]) -> bool:
    """Whether each row is a function of the distance ``|i - j|`` that never falls as the distance grows."""
    slack = _slack(matrix)
    for i, row in enumerate(matrix):
        right, left = row[i:], row[i::-1]
        shared = min(len(right), len(left))
        longer = right if len(right) >= len(left) else left
        if np.any(np.abs(right[:shared] - left[:shared]) > slack) or np.any(np.diff(longer) < -slack):
            return False
    return True


def _slack(matrix: NDArray[np.float64]) -> float:
    return 8 * float(np.finfo(np.float64).eps) * float(np.max(np.abs(matrix), initial=0.0))
