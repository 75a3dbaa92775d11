"""ε-scales, the vectors in which every privacy constraint is tight.

They are the building blocks of all other private vectors.

A vector is *neighbour-indistinguishable* if each entry is within a factor ``exp(ε)`` of the next; a count
mechanism is private when its columns are. These vectors form a cone whose extreme rays are the ``2^(n-1)``
scales: vectors that go up or down by exactly ``exp(ε)`` at every step (docs/theory/tables.md, section 6).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError

__all__ = [
    "decompose",
    "is_scale",
    "pattern_of",
    "patterns",
    "representation",
    "scale",
    "scales",
    "single_peak",
]

Pattern = tuple[int, ...]
"""One entry for each step between neighbouring counts: 1 up, -1 down."""

_MOST = 20


def patterns(n: int) -> list[Pattern]:
    """All patterns of scales with ``n`` entries.

    They are in the order of the columns of :func:`scales`.

    >>> patterns(3)
    [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    """
    if n > _MOST:
        raise InputError(
            f"There are 2^{n - 1} scales for {n} counts: too many to list (at most {_MOST} counts)."
        )
    return list(itertools.product((-1, 1), repeat=n - 1))


def single_peak(n: int, peak: int) -> Pattern:
    """The pattern that rises to ``peak`` and falls after it.

    >>> single_peak(4, 1)
    (1, -1, -1)
    """
    return tuple(1 if i < peak else -1 for i in range(n - 1))


def scale(pattern: Sequence[int] | NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """The scale with this pattern, summing to 1.

    >>> scale((1, -1), np.log(2))
    array([0.25, 0.5 , 0.25])
    """
    heights = np.concatenate([[0.0], np.cumsum(np.asarray(pattern, dtype=np.float64))])
    values = np.exp(epsilon * (heights - heights.max()))
    return values / values.sum()


def scales(n: int, epsilon: float) -> NDArray[np.float64]:
    """The matrix Ψ of all scales, with n rows and one scale per column."""
    return np.column_stack([scale(pattern, epsilon) for pattern in patterns(n)])


def is_scale(vector: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9) -> bool:
    """Whether a positive vector is a multiple of a scale, up to a relative tolerance."""
    if bool(np.any(vector <= 0)):
        return False
    return bool(np.all(np.abs(np.abs(np.diff(np.log(vector))) - epsilon) <= tolerance))


def pattern_of(vector: NDArray[np.float64]) -> Pattern:
    """The pattern of a scale, 1 where it rises."""
    return tuple(1 if step > 0 else -1 for step in np.diff(vector))


def decompose(
    column: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9
) -> list[tuple[float, Pattern]]:
    """A private column as a sum of at most n multiples of scales.

    Returns ``(weight, pattern)`` pairs.

    One scale after another is taken off, as large as the rest allows: each makes one more step tight, and a
    tight step stays so. Steps within ``tolerance`` of tight count as tight; steps beyond are refused.

    >>> [(round(weight, 3), pattern) for weight, pattern in decompose(np.array([0.5, 0.5]), np.log(2))]
    [(0.5, (-1,)), (0.5, (1,))]
    """
    rest = np.array(column, dtype=np.float64)
    if not bool(np.any(rest > 0)):
        return []
    if bool(np.any(rest <= 0)):
        raise InputError(
            "A column with a zero beside a positive entry is not private: no scales add up to it."
        )
    ratio, gap = np.exp(-epsilon), -np.expm1(-2 * epsilon)
    steps = np.diff(np.log(rest)) / epsilon
    if bool(np.any(np.abs(steps) > 1 + tolerance / epsilon)):
        raise InputError(f"The column is not private at epsilon {epsilon:g}: no scales add up to it.")
    tight = np.where(np.abs(steps) >= 1 - tolerance / epsilon, np.sign(steps), 0).astype(np.int64)
    found: list[tuple[float, Pattern]] = []
    while True:
        pattern = np.where(tight != 0, tight, np.where(np.diff(rest) > 0, 1, -1))
        unit = scale(pattern, epsilon)
        up = pattern > 0
        inner = np.where(up, rest[1:] - ratio * rest[:-1], rest[:-1] - ratio * rest[1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = np.where(tight == 0, inner / (gap * np.where(up, unit[1:], unit[:-1])), np.inf)
        step = int(np.argmin(allowed)) if len(allowed) else 0
        whole = float(np.min(rest / unit))
        if len(allowed) == 0 or allowed[step] >= whole:
            found.append((whole, tuple(int(p) for p in pattern)))
            return found
        taken = max(float(allowed[step]), 0.0)
        if taken > 0:
            found.append((taken, tuple(int(p) for p in pattern)))
        rest = np.maximum(rest - taken * unit, np.finfo(np.float64).tiny)
        tight[step] = -pattern[step]


def representation(
    matrix: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9
) -> NDArray[np.float64]:
    """A matrix B of non-negative weights with ``matrix = scales(n, ε) @ B`` (it need not be the only one)."""
    n = matrix.shape[0]
    index = {pattern: k for k, pattern in enumerate(patterns(n))}
    weights = np.zeros((len(index), matrix.shape[1]))
    for j, column in enumerate(matrix.T):
        for weight, pattern in decompose(column, epsilon, tolerance):
            weights[index[pattern], j] += weight
    return weights
