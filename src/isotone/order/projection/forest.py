"""Isotonic regression on a forest by merging blocks from the leaves up.

Definition: each element has at most one upper cover, its parent, and ``f(x) ≤ f(parent of x)`` is asked of
the ``f`` that minimises ``Σ w (f − y)²``. Complexity: O(n log n), with one mergeable heap of child blocks per
block. Reference: Pardalos and Xue 1999, "Algorithms for a class of isotonic regression problems".

Why it is right: suppose the subtrees below ``x`` are solved. Adding ``x`` as a block of its own breaks the
order only where a child block lies above it; pooling the highest such block with ``x`` is forced, and hands
its own child blocks over to the pool. When no child block lies above the pool, every block is a weighted
mean, blocks increase upward, and the multipliers on the pooled covers are nonnegative: that is optimality.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["merge_up_the_forest"]


@kernel
def _meld(
    a: int,
    b: int,
    mean: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    rank: NDArray[np.int64],
    spine: NDArray[np.int64],
) -> int:
    """Meld two leftist max-heaps (by block mean) in O(log n). -1 is the empty heap."""
    depth = 0
    while a >= 0 and b >= 0:
        if mean[a] < mean[b]:
            a, b = b, a
        spine[depth] = a
        depth += 1
        a = right[a]
    root = a if a >= 0 else b
    while depth > 0:
        depth -= 1
        top = spine[depth]
        right[top] = root
        if left[top] < 0 or (right[top] >= 0 and rank[left[top]] < rank[right[top]]):
            left[top], right[top] = right[top], left[top]
        rank[top] = 1 + (rank[right[top]] if right[top] >= 0 else 0)
        root = top
    return root


@kernel(steps=lambda parents, bottom_up, values, weights: 8 * values.size)
def merge_up_the_forest(
    parents: NDArray[np.int64],
    bottom_up: NDArray[np.int64],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The monotone vector closest to ``values`` on a forest.

    ``parents[x]`` is the upper cover of ``x`` or -1; ``bottom_up`` lists every element before its parent.
    A block is named after its highest element.
    """
    n = values.size
    mean = values.copy()
    weight = weights.copy()
    below = np.full(n, -1, np.int64)  # heap of the blocks directly under each block
    left = np.full(n, -1, np.int64)
    right = np.full(n, -1, np.int64)
    rank = np.ones(n, np.int64)
    spine = np.empty(max(n, 1), np.int64)
    pooled_into = np.full(n, -1, np.int64)
    for k in range(n):
        x = int(bottom_up[k])
        while below[x] >= 0 and mean[below[x]] >= mean[x]:
            block = int(below[x])
            total = weight[x] + weight[block]
            mean[x] += (mean[block] - mean[x]) * (weight[block] / total)
            weight[x] = total
            pooled_into[block] = x
            rest = _meld(int(left[block]), int(right[block]), mean, left, right, rank, spine)
            below[x] = _meld(rest, int(below[block]), mean, left, right, rank, spine)
        parent = int(parents[x])
        if parent >= 0:
            below[parent] = _meld(int(below[parent]), x, mean, left, right, rank, spine)
    fitted = np.empty(n)
    for k in range(n - 1, -1, -1):
        x = bottom_up[k]
        fitted[x] = mean[x] if pooled_into[x] < 0 else fitted[pooled_into[x]]
    return fitted
