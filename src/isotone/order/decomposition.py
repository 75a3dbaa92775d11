"""The shape of an order: its modular (substitution) decomposition.

A *module* is a set of elements that every other element sees alike: below all of it, above all of it, or
unrelated to all of it. It is *strong* when it overlaps no other module without containing or being
contained. The strong modules form a tree (Gallai 1967) with four kinds of nodes:

* :class:`Leaf`: one element;
* :class:`Parallel`: no relation between different children;
* :class:`Series`: all of one child lies below all of the next;
* :class:`Prime`: neither; the children are the largest proper modules, ``quotient`` the order among them.

Orders without prime nodes are the series-parallel ones; every forest is among them.

Splitting a node of size s costs O(s log s + covers) when it is series or parallel, O(s²) when prime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isotone.order import closure, modules
from isotone.order.closure import Ints

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["Leaf", "Node", "Parallel", "Prime", "Series", "decompose"]


@dataclass(frozen=True, eq=False, repr=False)
class _Module:
    """What all nodes have. Nodes compare by identity: trees may be too deep to compare by recursion."""

    indices: Ints
    children: tuple[Node, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.indices.size

    def walk(self) -> Iterator[Node]:
        """Every node of the tree, children before their parent: use it instead of recursion."""
        found: list[Node] = []
        waiting: list[Node] = [self]  # pyright: ignore[reportAssignmentType]  (only the four kinds exist)
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(node.children)
        return reversed(found)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.children)} children, {self.size} elements)"


class Leaf(_Module):
    """One element."""

    @property
    def index(self) -> int:
        """The position of the element."""
        return int(self.indices[0])

    def __repr__(self) -> str:
        return f"Leaf({self.index})"


class Parallel(_Module):
    """Children without relations between them, none of them Parallel."""


class Series(_Module):
    """Children bottom to top, each all below the next, none of them Series."""


@dataclass(frozen=True, eq=False, repr=False)
class Prime(_Module):
    """Children related as ``quotient`` says: a poset on ``0..k-1`` whose only modules are trivial."""

    quotient: Poset


Node: TypeAlias = Leaf | Parallel | Series | Prime


def decompose(poset: Poset) -> Node:
    """The decomposition tree of an order.

    >>> from isotone.order import Poset
    >>> tree = decompose(Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")]))
    >>> tree, tree.children
    (Series(2 children, 3 elements), (Parallel(2 children, 2 elements), Leaf(0)))
    """
    arrangement = _Arrangement(poset)
    intervals = [(0, len(poset))]
    splits: list[tuple[type[_Module], slice, Poset | None]] = []
    for first, stop in intervals:  # grows as it is read: children come after their parent
        kind, sizes, quotient = arrangement.split(first, stop)
        splits.append((kind, slice(len(intervals), len(intervals) + len(sizes)), quotient))
        ends = (first + np.cumsum(sizes)).tolist()
        intervals.extend(zip([first, *ends], ends, strict=False))
    members = arrangement.members
    members.flags.writeable = False
    nodes: list[Any] = [None] * len(intervals)
    for k in range(len(intervals) - 1, -1, -1):
        kind, children, quotient = splits[k]
        parts = (members[slice(*intervals[k])], tuple(nodes[children]))
        nodes[k] = kind(*parts) if quotient is None else Prime(*parts, quotient)
    return nodes[0]


class _Arrangement:
    """The elements in a row, arranged step by step until every strong module is an interval."""

    def __init__(self, poset: Poset) -> None:
        self._poset = poset
        self._bits = poset.closure_bits.copy()  # the kernels take writable arrays
        self._covers = poset.cover_rows
        above, below = closure.popcounts(self._bits)
        self._balance = below - above  # within the module an element is in at present
        self.members = poset.linear_order.copy()
        self._place = np.empty_like(self.members)
        self._place[self.members] = np.arange(len(poset))

    def split(self, first: int, stop: int) -> tuple[type[_Module], Ints, Poset | None]:
        """Arrange the module in this interval by children: the kind of node and the sizes of the children."""
        members = self.members[first:stop]
        quotient = None
        if members.size == 1:
            return Leaf, np.empty(0, np.int64), None
        kind: type[_Module] = Series
        labels = modules.series_labels(self._balance[members])
        if labels.max() == 0:
            kind = Parallel
            labels = modules.parallel_labels(members, self._place, first, *self._covers)
        if labels.max() == 0:
            kind = Prime
            labels = modules.prime_labels(self._bits, members)
        sizes = np.bincount(labels)
        members[:] = members[np.argsort(labels, kind="stable")]
        self._place[members] = np.arange(first, stop)
        if kind is Series:
            lower = np.cumsum(sizes) - sizes
            self._balance[members] -= np.repeat(2 * lower + sizes - members.size, sizes)
        elif kind is Prime:
            quotient, balance = self._quotient(members[np.cumsum(sizes) - sizes], sizes)
            self._balance[members] -= np.repeat(balance, sizes)
        return kind, sizes, quotient

    def _quotient(self, representatives: Ints, sizes: Ints) -> tuple[Poset, Ints]:
        """The order among the children, and for each the (number below − number above) it owes to others."""
        leq = closure.unpack(self._bits[representatives], len(self._poset))[:, representatives]
        quotient = type(self._poset).from_matrix(leq)
        relation = leq.astype(np.int64)
        return quotient, relation.T @ sizes - relation @ sizes
