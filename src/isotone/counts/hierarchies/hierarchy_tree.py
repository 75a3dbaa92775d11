"""The tree behind an order whose records have one leaf each.

In a hierarchy the children of every element exclude each other. Where they are no partition, a record may stop at
the element itself: it is then in a *remainder*, a leaf that is not published. An element whose only child is a
partition has the same count as the child, and both are one node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

import numpy as np

from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy
from isotone.order import Poset
from isotone.order.building import children_of, hierarchy_problem

__all__ = ["require_hierarchy"]


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
