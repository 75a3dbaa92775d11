"""The tree behind an order whose records have one leaf each.

In a hierarchy the children of every element exclude each other. Where they are no partition, a record may stop at
the element itself: it is then in a *remainder*, a leaf that is not published. An element whose only child is a
partition has the same count as the child, and both are one node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.building import children_of, hierarchy_problem

__all__ = ["Hierarchy", "require_hierarchy"]

T = TypeVar("T", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nodes numbered from the top, level by level, those with one parent side by side.

    ``parent`` is -1 for roots. ``node`` is the node of each element of the order.
    """

    parent: Ints
    node: Ints

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def leaf(self) -> NDArray[np.bool_]:
        """Which nodes have nothing below them."""
        leaf = np.ones(len(self), np.bool_)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf

    @cached_property
    def depth(self) -> Ints:
        """How many nodes are above each."""
        depth = np.zeros(len(self), np.int64)
        for x, above in enumerate(self.parent.tolist()):
            if above >= 0:
                depth[x] = depth[above] + 1
        return depth

    @cached_property
    def levels(self) -> list[slice]:
        """The nodes of each level, roots first."""
        ends = np.cumsum(np.bincount(self.depth)).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def roots(self) -> int:
        """How many nodes have nothing above them."""
        return self.levels[0].stop

    def sums(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of the leaves below each node (last axis), given values of which those at leaves count."""
        total = np.where(self.leaf, leaves, 0)
        for level in reversed(self.levels[1:]):
            above = self.parent[level]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            total[..., above[first]] += np.add.reduceat(total[..., level], first, axis=-1)
        return total

    def below(self, values: Floats, level: slice) -> Floats:
        """For each node the sum of the values at its children in one level, given those values."""
        return np.bincount(self.parent[level], values, len(self)).astype(np.float64)

    def leaves_of(self, counts: NDArray[T]) -> NDArray[T]:
        """Counts by element as values by node, in which remainders make nodes add up."""
        values = np.zeros((*counts.shape[:-1], len(self)), counts.dtype)
        values[..., self.node] = counts
        rest = values.copy()
        for level in self.levels[1:]:
            above = self.parent[level]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            rest[..., above[first]] -= np.add.reduceat(values[..., level], first, axis=-1)
        published = np.zeros(len(self), np.bool_)
        published[self.node] = True
        remainders = np.flatnonzero(~published)
        values[..., remainders] = rest[..., self.parent[remainders]]
        return values


def require_hierarchy(P: Poset) -> Hierarchy:
    """The tree of a hierarchy, or an error that says what is missing."""
    problem = hierarchy_problem(P)
    if problem is not None:
        raise InputError(
            f"This order is no hierarchy, in which a record has one leaf: {problem}. Build it with "
            'Poset.from_mapping(parents, children="partition"), or use PosetMechanism.'
        )
    return _plant(P)


def _plant(P: Poset) -> Hierarchy:
    children = children_of(P, P.canonical.positions.tolist())
    kinds = {option: choice.kind for choice in P.choices for option in choice.options}
    parent: list[int] = []
    node: dict[Hashable, int] = {}
    waiting: deque[tuple[Hashable | None, int]] = deque((x, -1) for x in children[None])
    while waiting:
        x, above = waiting.popleft()
        here = len(parent)
        parent.append(above)
        if x is None:  # a remainder
            continue
        node[x] = here
        while len(children.get(x, ())) == 1 and kinds.get(children[x][0]) == "partition":
            x = children[x][0]
            node[x] = here
        below = children.get(x, [])
        waiting.extend((y, here) for y in below)
        if below and kinds.get(below[0]) != "partition":
            waiting.append((None, here))
    return Hierarchy(np.array(parent, np.int64), np.array([node[x] for x in P.elements], np.int64))
