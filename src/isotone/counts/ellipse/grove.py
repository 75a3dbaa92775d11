"""A forest in preorder under a virtual root, with equal subtrees folded, for sparse elimination.

Siblings with equal subtrees below them are *twins*. An optimal ellipse can be chosen that treats twins alike
(docs/theory/gaussian.md, section 5), so one node stands for all of them. Taxonomies shrink severalfold, and an
antichain of any size to a single node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints

__all__ = ["Grove", "plant"]

_WORK = 6e7
"""Above this many multiplications an evaluation is shortened by leaving out distant ancestors."""


@dataclass(frozen=True)
class Grove:
    """A folded forest.

    Node 0 is the virtual root, and nodes come in preorder.

    ``node`` is the node of each element, ``parents`` the elements' own parents (-1: none) and ``top_down`` an
    order in which parents come first. ``times`` is how many twins a node stands for under one parent,
    ``copies`` how many elements in all. A node is tied to the root and its nearest ancestors, ``width`` of
    them, listed from the root down in places ``start[x] … start[x+1]-1`` of every ragged array.
    """

    parents: Ints
    top_down: Ints
    node: Ints
    parent: Ints
    depth: Ints
    times: Ints
    copies: Ints
    width: Ints
    start: Ints

    @property
    def nodes(self) -> int:
        """The number of nodes, the root included."""
        return self.parent.size


def plant(parents: NDArray[np.integer]) -> Grove:
    """The folded form of the forest in which ``parents`` is each element's upper cover, or -1."""
    above = parents.tolist()
    children: list[list[int]] = [[] for _ in range(len(above) + 1)]
    for x, p in enumerate(above):
        children[p].append(x)  # those without parent go to the last list, number -1
    top_down = children[-1].copy()
    for x in top_down:  # grows while it is walked
        top_down.extend(children[x])
    shape = _shapes(top_down, children)
    root = _fold(children, shape)
    node = np.empty(len(above), np.int64)
    for x in top_down:
        siblings = root.classes[0 if above[x] < 0 else int(node[above[x]])]
        node[x] = siblings[shape[x]]
    parent, times = np.array(root.parent), np.array(root.times)
    depth, copies = np.zeros_like(parent), np.ones_like(parent)
    for x in range(1, parent.size):
        depth[x] = depth[parent[x]] + 1
        copies[x] = copies[parent[x]] * times[x]
    width = np.minimum(depth, _affordable_window(depth) + 1)
    start = np.concatenate(([0], np.cumsum(width)))
    order = np.array(top_down, np.int64)
    return Grove(np.asarray(parents, np.int64), order, node, parent, depth, times, copies, width, start)


def _shapes(top_down: list[int], children: list[list[int]]) -> list[int]:
    """A number for the shape of the subtree below each element.

    It is equal exactly for equal shapes.
    """
    numbers: dict[tuple[int, ...], int] = {}
    shape = [0] * len(top_down)
    for x in reversed(top_down):
        below = tuple(sorted(shape[c] for c in children[x]))
        shape[x] = numbers.setdefault(below, len(numbers))
    return shape


@dataclass
class _Folded:
    """Twin classes in preorder.

    Parent, number of twins, and the classes below by their shape.
    """

    parent: list[int]
    times: list[int]
    classes: list[dict[int, int]]


def _fold(children: list[list[int]], shape: list[int]) -> _Folded:
    folded = _Folded([], [], [])
    waiting = [(-1, -1, 1)]  # an element of the class (-1: the root), its parent's node, the number of twins
    while waiting:
        x, p, twins = waiting.pop()
        this = len(folded.parent)
        folded.parent.append(p)
        folded.times.append(twins)
        folded.classes.append({})
        if p >= 0:
            folded.classes[p][shape[x]] = this
        groups: dict[int, list[int]] = {}
        for c in children[x]:
            groups.setdefault(shape[c], []).append(c)
        waiting.extend((twin[0], this, len(twin)) for twin in groups.values())
    return folded


def _affordable_window(depth: Ints) -> int:
    """How many near ancestors to keep, so that an evaluation stays within ``_WORK``."""
    deepest = int(depth.max())
    counts = np.bincount(depth)
    low, high = 8, max(8, deepest)
    while low < high:
        middle = (low + high + 1) // 2
        work = float(np.sum(counts * np.minimum(np.arange(deepest + 1), middle + 1.0) ** 2))
        low, high = (middle, high) if work <= _WORK else (low, middle - 1)
    return low
