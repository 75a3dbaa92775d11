"""Orders in which a record has one leaf, as codes of a classification do.

In a hierarchy the children of every element exclude each other, and so do the elements with nothing above them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["Ends", "children_of", "hierarchy_problem", "is_hierarchy"]


def is_hierarchy(P: Poset) -> bool:
    """Whether a record has one leaf at most, as its choices say."""
    return bool(P.choices) and hierarchy_problem(P) is None


def children_of(P: Poset, sequence: list[int]) -> dict[Hashable | None, list[Hashable]]:
    """The children of each element of a forest in the sequence of these positions, those of None being the roots."""
    names = P.elements
    children: dict[Hashable | None, list[Hashable]] = {}
    parents = P.parents.tolist()
    for x in sequence:
        children.setdefault(names[parents[x]] if parents[x] >= 0 else None, []).append(names[x])
    return children


def hierarchy_problem(P: Poset) -> str | None:
    """What keeps an order from being a hierarchy."""
    if not P.choices:
        return "it has no choices"
    if not P.is_forest:
        return "an element has two upper ones"
    group = {option: g for g, choice in enumerate(P.choices) for option in choice.options}
    for parent, children in children_of(P, list(range(len(P)))).items():
        groups = {group.get(x, -1) for x in children}
        if len(children) > 1 and (len(groups) > 1 or -1 in groups):
            below = "those with nothing above them" if parent is None else f"those below {parent!r}"
            return f"{below} do not all exclude each other"
    return None


@dataclass(frozen=True)
class Ends:
    """Where a record of a hierarchy can end, numbered so that the first number is the one that is kept.

    ``rank`` numbers the elements: what is below an element before it, and options in the sequence of the elements. The
    elements below x, and x, have the numbers from ``first[x]`` to ``rank[x]``. A record can end at x if x is a leaf, or if
    its children are no partition; ``end[x]`` is the number of the lowest such element at or above x, or None.
    """

    rank: list[int]
    first: list[int]
    end: list[int | None]

    @classmethod
    def of(cls, P: Poset) -> Ends:
        """The numbers of a hierarchy's elements, in O(n)."""
        children = children_of(P, list(range(len(P))))
        whole = {option for choice in P.choices if choice.kind == "partition" for option in choice.options}
        rank, first = [0] * len(P), [0] * len(P)
        waiting = [(x, False) for x in reversed(children[None])]
        number = 0
        while waiting:
            x, done = waiting.pop()
            place = P.index(x)
            if done:
                rank[place], number = number, number + 1
                continue
            first[place] = number
            waiting.append((x, True))
            waiting += [(y, False) for y in reversed(children.get(x, []))]
        end: list[int | None] = [None] * len(P)
        parents = P.parents.tolist()
        for place in sorted(range(len(P)), key=rank.__getitem__, reverse=True):  # from the top
            below = children.get(P.elements[place])
            if below and below[0] in whole:
                end[place] = end[parents[place]] if parents[place] >= 0 else None
            else:
                end[place] = rank[place]
        return cls(rank, first, end)

    def sums(self, P: Poset, at_rank: dict[int, int]) -> list[int]:
        """The counts of all elements, given how many records end at each number."""
        ended = np.zeros(len(P) + 1, np.int64)
        for number, count in at_rank.items():
            ended[number + 1] = count
        running = np.cumsum(ended)
        return [int(running[r + 1] - running[f]) for r, f in zip(self.rank, self.first, strict=True)]
