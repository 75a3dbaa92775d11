"""An order as an outline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["nested_order"]


def nested_order(P: Poset) -> list[tuple[int, int]]:
    """The places of all elements with their depth, each once, under the first element that covers it.

    >>> from isotone.order import Poset
    >>> P = Poset(["year", "hyp", "meds", "flu"], [("year", "hyp"), ("meds", "hyp")])
    >>> [(P.elements[x], depth) for x, depth in nested_order(P)]
    [('hyp', 0), ('year', 1), ('meds', 1), ('flu', 0)]
    """
    first: dict[int, int] = {}
    for lower, upper in P.cover_pairs.tolist():
        first[lower] = min(upper, first.get(lower, upper))
    below: dict[int, list[int]] = {}
    for x in range(len(P)):
        below.setdefault(first.get(x, -1), []).append(x)
    found: list[tuple[int, int]] = []
    left = [(x, 0) for x in reversed(below.get(-1, []))]
    while left:
        x, depth = left.pop()
        found.append((x, depth))
        left += [(y, depth + 1) for y in reversed(below.get(x, []))]
    return found
