"""The best scale of all for one column, given prices.

Exact, in O(n) a try (docs/theory/tables.md, section 8).

With prices u for the row sums, a scale s in a column earns its place if ``s·(cost - u)`` is small against
``s·z``, its part of the column's probability. The least ratio over all ``2^(n-1)`` scales is found by
Dinkelbach's rule: for a trial ratio v, look for scales with ``s·(cost - u - v·z) < 0``, take the best ratio
among them as the next trial, and stop when there are none.

For a given row k, the best scale with ``s[k] = 1`` is made of two walks, one from either end: whatever the
best continuation beyond a row is worth for each unit there, it is entered upwards if that is negative and
downwards if it is positive. Every k is tried, because a scale that peaks far from k is seen from there
through a factor that turns rounding into a verdict.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["best_ratio"]

_TRIES = 100


@kernel
def best_ratio(
    cost: NDArray[np.float64], z: NDArray[np.float64], epsilon: float, start: float
) -> tuple[float, NDArray[np.bool_]]:
    """The least ``s·cost / s·z`` over all scales s, and where that scale rises.

    ``start`` is any ratio.
    """
    n = cost.shape[0]
    powers = np.exp(-epsilon * np.arange(n + 1))
    up, down = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    right, left = np.zeros((3, n)), np.zeros((3, n))
    trial, best, rises = start, np.inf, np.zeros(n - 1, np.bool_)
    for _ in range(_TRIES):
        gain = cost - trial * z
        _walk(gain, z, powers, 1, right, up)
        _walk(gain, z, powers, -1, left, down)
        row = _best_row(gain, z, powers, right, left)
        found = np.empty(n - 1, np.bool_)
        for i in range(
            n - 1
        ):  # up says that the walk to the right rises into row i+1; down likewise leftwards
            found[i] = up[i] if i >= row else not down[i + 1]
        ratio = _ratio(cost, z, powers, found)
        if not ratio < best:
            break
        best, rises, trial = ratio, found, ratio
    return best, rises


@kernel
def _walk(
    gain: NDArray[np.float64],
    z: NDArray[np.float64],
    powers: NDArray[np.float64],
    side: int,
    worth: NDArray[np.float64],
    enters_up: NDArray[np.bool_],
) -> None:
    """The least ``s·gain`` from each row on, for s = 1.

    It goes from the last row towards the first, or back for side -1.

    ``worth[0]`` and ``worth[1]`` are its gain and its probability, both times ``exp(ε·worth[2])``;
    ``enters_up`` says whether the next row is entered upwards.
    """
    n = gain.shape[0]
    i = n - 1 if side == 1 else 0
    worth[0, i], worth[1, i], worth[2, i] = gain[i], z[i], 0
    for _ in range(n - 1):
        before, i = i, i - side
        enters_up[i] = worth[0, before] < 0.0
        height = int(worth[2, before]) + (1 if enters_up[i] else -1)
        if height > 0:
            worth[0, i] = worth[0, before] + gain[i] * powers[height]
            worth[1, i] = worth[1, before] + z[i] * powers[height]
            worth[2, i] = height
        else:
            worth[0, i] = gain[i] + worth[0, before] * powers[-height]
            worth[1, i] = z[i] + worth[1, before] * powers[-height]
            worth[2, i] = 0


@kernel
def _best_row(
    gain: NDArray[np.float64],
    z: NDArray[np.float64],
    powers: NDArray[np.float64],
    right: NDArray[np.float64],
    left: NDArray[np.float64],
) -> int:
    """The row k whose best scale has the least gain for each unit of probability."""
    row, least = 0, np.inf
    for k in range(gain.shape[0]):
        height = int(max(right[2, k], left[2, k]))
        to_right, to_left = powers[height - int(right[2, k])], powers[height - int(left[2, k])]
        total = right[0, k] * to_right + left[0, k] * to_left - gain[k] * powers[height]
        mass = right[1, k] * to_right + left[1, k] * to_left - z[k] * powers[height]
        if mass > 0.0 and total / mass < least:
            row, least = k, total / mass
    return row


@kernel
def _ratio(
    cost: NDArray[np.float64], z: NDArray[np.float64], powers: NDArray[np.float64], rises: NDArray[np.bool_]
) -> float:
    n = cost.shape[0]
    top, height = 0, 0
    for i in range(n - 1):
        height += 1 if rises[i] else -1
        top = max(top, height)
    above, below, level = 0.0, 0.0, top
    for i in range(n):
        above += powers[level] * cost[i]
        below += powers[level] * z[i]
        if i < n - 1:
            level += -1 if rises[i] else 1
    return above / below if below > 0.0 else np.inf
