"""Several copies of one order, each wholly above the one before it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["stacked_copies"]


def stacked_copies(order: Poset, copies: int) -> Poset:
    """The ordinal sum of so many copies, with the elements ``(copy, place)``.

    Its canonical sequence has the copies one after the other, each in the canonical sequence of ``order``.

    >>> from isotone.order import Poset
    >>> stacked_copies(Poset.antichain("ab"), 2).height
    2
    """
    from isotone.order.poset import Poset

    one = order.canonical.order
    width = len(str(max(len(one), copies)))  # as texts, numbers of one length stand in their sequence
    names = [[f"{copy:0{width}} {x:0{width}}" for x in range(len(one))] for copy in range(copies)]
    pairs = one.cover_pairs.tolist()
    top = [one.index(x) for x in one.maximal]
    bottom = [one.index(x) for x in one.minimal]
    relations = [(row[x], row[y]) for row in names for x, y in pairs]
    relations += [(below[x], above[y]) for below, above in pairwise(names) for x in top for y in bottom]
    return Poset([name for row in names for name in row], relations)
