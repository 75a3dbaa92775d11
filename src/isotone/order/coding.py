"""Exclusive options as an order: running totals in place of counts.

Number the options of a choice c1, …, ck. To the count of each element at or below ci add the counts of c1, …,
c(i-1), for every choice on the way up. Then the records become exactly the filters of an order Q, in which
what is below c1 lies below what is below c2, and so on; the last option of a partition has the running total
of its parent, and is one with it. The map can be undone by differences, in whole numbers. So noise for Q is
noise for the counts (docs/theory/exclusive.md, section 1).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints

if TYPE_CHECKING:
    from isotone.order.choices import Choice
    from isotone.order.poset import Poset

__all__ = ["Coding", "Options", "code", "codings", "innermost_first", "partitions_upward"]

T = TypeVar("T", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Coding:
    """Counts over an order with choices as counts over the order Q of its running totals, and back.

    The count of element x is the running total at ``target[x]``, less that at ``before[x]`` unless that is -1.
    The running total z is at the element ``own[z]``, or at others that have the same one.
    """

    order: Poset
    target: Ints
    before: Ints
    own: Ints

    def decode(self, totals: NDArray[T]) -> NDArray[T]:
        """The counts (last axis) that belong to running totals. Counts of partitions add up."""
        counts = totals[..., self.target]
        later = np.flatnonzero(self.before >= 0)
        counts[..., later] -= totals[..., self.before[later]]
        return counts

    def encode(self, counts: NDArray[T]) -> NDArray[T]:
        """The running totals (last axis) of counts."""
        totals = np.ascontiguousarray(counts[..., self.own])
        before = self.before[self.own]
        for z in self.order.linear_order.tolist():
            if before[z] >= 0:  # which is below z in Q
                totals[..., z] += totals[..., before[z]]
        return totals


@dataclass(frozen=True)
class Options:
    """Where the options of all choices are.

    ``nearest[x]`` is the lowest option at or above x, ``enclosing[c]`` the lowest one above the option c.
    """

    nearest: dict[Hashable, Hashable | None]
    enclosing: dict[Hashable, Hashable | None]

    @classmethod
    def of(cls, P: Poset) -> Options:
        """The options of ``P``, in O(n)."""
        options = {option for choice in P.choices for option in choice.options}
        upper: dict[Hashable, Hashable] = {}
        for low, high in P.covers:
            upper.setdefault(low, high)  # below an option every way up leads through it, so any will do
        nearest: dict[Hashable, Hashable | None] = {}
        enclosing: dict[Hashable, Hashable | None] = {}
        for x in reversed(P.linear_extension()):
            above = nearest[upper[x]] if x in upper else None
            if x in options:
                enclosing[x] = above
            nearest[x] = x if x in options else above
        return cls(nearest, enclosing)


def innermost_first(P: Poset) -> list[Choice]:
    """The choices, those below an option of another before that one."""
    place = {x: k for k, x in enumerate(P.linear_extension())}
    return sorted(P.choices, key=lambda choice: max(place[option] for option in choice.options))


def codings(P: Poset) -> Iterator[Coding]:
    """Codings in which each element in turn is its own running total.

    The noise is the same for every sequence of options, so what is known about running totals in one of these is
    known about counts. Each coding serves as many elements as it can.
    """
    options, waiting = Options.of(P), {*P.elements}
    while waiting:
        wanted: set[Hashable] = set()
        for x in waiting:
            option = options.nearest[x]
            while option is not None and option not in wanted:
                wanted.add(option)
                option = options.enclosing[option]
        chosen = (next((x for x in choice.options if x in wanted), None) for choice in P.choices)
        coding = code(P, frozenset(option for option in chosen if option is not None))
        yield coding
        waiting -= {x for x, before in zip(P.elements, coding.before.tolist(), strict=True) if before < 0}


def code(P: Poset, first: frozenset[Hashable] = frozenset()) -> Coding:
    """The order Q of an order with choices.

    Options are numbered in canonical sequence, so that Q does not depend on how the order was described; those
    in ``first`` come before their siblings.
    """
    from isotone.order.poset import Poset

    options = Options.of(P)
    parent = dict(P.covers)
    rank = {P.elements[x]: k for k, x in enumerate(P.canonical.positions.tolist())}
    previous: dict[Hashable, Hashable] = {}
    same: dict[Hashable, Hashable] = {}
    for choice in P.choices:
        row = sorted(choice.options, key=lambda option: (option not in first, rank[option]))
        previous.update(zip(row[1:], row[:-1], strict=True))
        if choice.kind == "partition":
            same[row[-1]] = parent[row[-1]]
    before: dict[Hashable | None, Hashable | None] = {None: None}
    total: dict[Hashable, Hashable] = {}
    for x in reversed(P.linear_extension()):  # from the top, so that what is above x is known
        total[x] = total[same[x]] if x in same else x
        if x in options.enclosing:
            before[x] = previous[x] if x in previous else before[options.enclosing[x]]
    own = [x for x in P.elements if total[x] == x]
    place = {x: z for z, x in enumerate(own)}
    earlier = [before[options.nearest[x]] for x in P.elements]
    stacked = [(low, total[x]) for x, low in zip(P.elements, earlier, strict=True) if low is not None]
    covers = [(total[low], total[high]) for low, high in P.covers]
    return Coding(
        Poset(own, [*covers, *stacked]),
        np.array([place[total[x]] for x in P.elements], np.int64),
        np.array([-1 if low is None else place[low] for low in earlier], np.int64),
        np.array([P.index(x) for x in own], np.int64),
    )


def partitions_upward(P: Poset) -> list[tuple[Hashable, Sequence[Hashable], list[Hashable]]]:
    """Each partition from the bottom up: its parent, its options, and what else is below the parent.

    A yes to the parent without one to an option is taken back, and so is what else is below it.
    """
    parent, children = dict(P.covers), dict[Hashable, list[Hashable]]()
    for low, high in P.covers:
        children.setdefault(high, []).append(low)
    found: list[tuple[Hashable, Sequence[Hashable], list[Hashable]]] = []
    for choice in P.choices:
        if choice.kind == "partition":
            top = parent[choice.options[0]]
            others = {y for x in children[top] if x not in choice.options for y in P.down_set(x)}
            found.append((top, choice.options, [x for x in P.elements if x in others]))
    return sorted(found, key=lambda one: int(P.levels[P.index(one[0])]))
