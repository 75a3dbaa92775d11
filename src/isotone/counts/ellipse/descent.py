"""Minimising a smooth convex function that is defined on an open set only.

L-BFGS (Nocedal 1980) with a backtracking line search that also steps back from points outside the set. No
clock is read: the result depends on the arguments alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from isotone.array_types import Floats
from isotone.kernels import kernel
from isotone.mechanism import Progress, no_progress

__all__ = ["descend"]

Objective = Callable[[Floats], tuple[float, Floats] | None]
"""The value and the gradient at a point, or None where the function is not defined."""

_MEMORY = 20
_LOOK_BACK = 10


def descend(
    objective: Objective,
    start: Floats,
    *,
    steps: int,
    tolerance: float,
    progress: Progress = no_progress,
    what: str = "optimising",
) -> Floats:
    """The best point found from ``start``, which must be inside the set.

    Stops when ten steps together lower the value by less than ``tolerance``, or after ``steps`` steps.
    """
    x = start
    first = objective(x)
    if first is None:
        raise ValueError("the starting point is outside the set")
    value, gradient = first
    moves: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    history = [value]
    for step in range(steps):
        progress(step / steps, what)
        direction = _direction(gradient, moves)
        slope = _dot(gradient, direction)
        if slope >= 0:
            if not moves:
                break
            moves.clear()
            continue
        found = _line_search(objective, x, value, direction, slope)
        if found is None:
            if not moves:
                break
            moves.clear()
            continue
        point, value, new_gradient = found
        move, change = point - x, new_gradient - gradient
        curvature = _dot(move, change)
        if curvature > 1e-14 * math.sqrt(_dot(move, move) * _dot(change, change)):
            moves.append((move, change, curvature))
        x, gradient = point, new_gradient
        history.append(value)
        if len(history) > _LOOK_BACK and history[-1 - _LOOK_BACK] - value < tolerance:
            break
    progress(1.0, what)
    return x


def _direction(gradient: Floats, moves: deque[tuple[Floats, Floats, float]]) -> Floats:
    """The quasi-Newton direction.

    It is minus the gradient, corrected by the curvature of past moves.
    """
    if not moves:
        return -gradient * min(1.0, 0.1 / (float(np.linalg.norm(gradient)) + 1e-300))
    q = gradient.copy()
    shares: list[float] = []
    for move, change, curvature in reversed(moves):
        share = _dot(move, q) / curvature
        _add(q, -share, change)
        shares.append(share)
    _, change, curvature = moves[-1]
    q *= curvature / _dot(change, change)
    for (move, change, curvature), share in zip(moves, reversed(shares), strict=True):
        _add(q, share - _dot(change, q) / curvature, move)
    return np.negative(q, out=q)


# Compiled, not numpy: products in fresh memory cost more than the sums, and BLAS would wake its threads each time.
@kernel(fastmath=True, steps=lambda a, b: 16 * a.size)
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(steps=lambda a, factor, b: 16 * a.size)
def _add(a: Floats, factor: float, b: Floats) -> None:
    for i in range(a.size):
        a[i] += factor * b[i]


def _line_search(
    objective: Objective, x: Floats, value: float, direction: Floats, slope: float
) -> tuple[Floats, float, Floats] | None:
    """A point along ``direction`` that is inside and lower by a fair share of what the slope predicts."""
    length = 1.0
    while length > 1e-12:
        point = x + length * direction
        found = objective(point)
        if found is not None and found[0] <= value + 1e-4 * length * slope:
            return point, found[0], found[1]
        length *= 0.5 if found is not None else 0.3
    return None
