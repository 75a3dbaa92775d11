"""Isotonic fits by trying everything: the reference for the fast algorithms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["least_loss", "monotone", "shaped"]


def monotone(points: int, low: int, high: int) -> Iterator[tuple[int, ...]]:
    """All increasing sequences of ``points`` values between ``low`` and ``high``."""
    return itertools.combinations_with_replacement(range(low, high + 1), points)


def shaped(points: int, values: int, kind: str, size: int = 0) -> list[tuple[int, ...]]:
    """All increasing curves of a shape."""
    curves = list(monotone(points, 0, values - 1))
    if kind == "constant":
        return [curve for curve in curves if len(set(curve)) <= size]
    if kind == "lipschitz":
        return [curve for curve in curves if max(np.diff(curve), default=0) <= size]
    if kind == "convex":
        return [curve for curve in curves if min(np.diff(curve, 2), default=0) >= 0]
    return curves


def least_loss(
    rows: Sequence[tuple[int, int, int]],
    loss: Callable[[int, int], Any],
    low: int,
    high: int,
    points: int,
) -> Any:
    """The least total loss of an increasing curve through records ``(point, level, weight)``."""
    return min(
        sum((weight * loss(curve[point], level) for point, level, weight in rows), 0)
        for curve in monotone(points, low, high)
    )
