"""The modular (substitution) decomposition of an order.

A *module* is a set of elements that every other element sees alike: below all of it, above all of it, or
unrelated to all of it. It is *strong* when it overlaps no other module without containing or being
contained. The strong modules form a tree (Gallai 1967) with four kinds of nodes:

* :class:`Leaf`: one element;
* :class:`Parallel`: no relation between different children;
* :class:`Series`: all of one child lies below all of the next;
* :class:`Prime`: neither; the children are the largest proper modules, ``quotient`` the order among them.

Orders without prime nodes are the series-parallel ones; every forest is among them.

Splitting a node of size s costs O(s log s + covers); the prime nodes cost O(n²) more, all together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isotone.array_types import Ints
from isotone.order import closure, modules

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["Leaf", "Node", "Parallel", "Prime", "Series", "decompose"]


@dataclass(frozen=True, eq=False, repr=False)
class _Module:
    """What all nodes have.

    Nodes compare by identity, since trees may be too deep to compare by recursion.
    """

    indices: Ints
    children: tuple[Node, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.indices.size

    def walk(self) -> Iterator[Node]:
        """Every node of the tree, children before their parent. Use it instead of recursion."""
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
    """A node whose children are related as ``quotient`` says.

    The quotient is a poset on ``0..k-1`` whose only modules are trivial.
    """

    quotient: Poset


Node: TypeAlias = Leaf | Parallel | Series | Prime


def decompose(poset: Poset) -> Node:
    """The decomposition tree of an order.

    >>> from isotone.order import Poset
    >>> tree = decompose(Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")]))
    >>> tree, tree.children
    (Series(2 children, 3 elements), (Parallel(2 children, 2 elements), Leaf(0)))
    """
    arrangement = _FactoringPermutation(poset)
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


class _FactoringPermutation:
    """The elements in a row, arranged step by step until every strong module is an interval."""

    def __init__(self, poset: Poset) -> None:
        n = len(poset)
        lower, upper = poset.cover_pairs.T.copy()
        self._uppers = closure.ends_by_start(n, lower, upper)
        self._lowers = closure.ends_by_start(n, upper, lower)
        self.members = poset.linear_order.copy()
        self._place = np.empty(n, np.int64)
        self._place[self.members] = np.arange(n)
        up = closure.closure(self.members, *self._uppers)
        down = closure.closure(self.members[::-1].copy(), *self._lowers)
        # number below − number above, within the module that an element is in at present
        self._balance = closure.sizes(down) - closure.sizes(up)
        self._primes = modules.PrimeSplits(up, down)
        self._poset = poset

    def split(self, first: int, stop: int) -> tuple[type[_Module], Ints, Poset | None]:
        """Arrange the module in this interval by children.

        Returns the kind of node and the children's sizes.
        """
        members = self.members[first:stop]
        if members.size == 1:
            return Leaf, np.empty(0, np.int64), None
        kind: type[_Module] = Series
        quotient = None
        labels = modules.series_labels(self._balance[members])
        if labels.max() == 0:
            kind = Parallel
            labels = modules.parallel_labels(members, self._place, first, *self._uppers, *self._lowers)
        if labels.max() == 0:
            kind = Prime
            labels = self._primes.labels(members)
            quotient = self._quotient(members, labels)
        sizes = np.bincount(labels)
        members[:] = members[np.argsort(labels, kind="stable")]
        self._place[members] = np.arange(first, stop)
        # Inside a child balances sum to 0, and from outside all its members get the same: the mean.
        balance = self._balance[members]
        outside = np.add.reduceat(balance, np.cumsum(sizes) - sizes) // sizes
        self._balance[members] = balance - np.repeat(outside, sizes)
        return kind, sizes, quotient

    def _quotient(self, members: Ints, labels: Ints) -> Poset:
        """The order among the children, from the covers between them.

        They become the covers of the quotient: what lies between two members is a member (modules are
        convex), and what lies between two children is a child.
        """
        child = np.full(len(self._poset), -1)
        child[members] = labels
        pairs = child[self._poset.cover_pairs]
        between = (pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
        return type(self._poset)(range(labels.max() + 1), pairs[between].tolist())
