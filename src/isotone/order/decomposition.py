"""The modular decomposition of an order, with the kernels that split a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order import closure
from isotone.order.closure import Bits

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = [
    "Leaf",
    "Node",
    "Parallel",
    "Prime",
    "PrimeSplits",
    "Series",
    "decompose",
    "parallel_labels",
    "series_labels",
]


# The three kernels that split one strong module.
#
# They serve :mod:`.decomposition`.
#
# Each takes the members of a module and labels them by child, children numbered bottom to top (series) or by
# the first member met (parallel, prime). One label for all means: no split of this kind.


def series_labels(balance: Ints) -> Ints:
    """Blocks that lie on top of each other, from each member's (number below − number above).

    Summed over a set L of k members out of s, the balance counts pairs from L to the rest with weight +1
    where the rest is below and −1 where it is above. So L lies below all the rest exactly when its sum
    reaches the least possible value, −k (s − k); and then L has the k smallest balances.
    """
    by_balance = np.argsort(balance, kind="stable")
    k = np.arange(1, balance.size + 1)
    block_ends_here = np.cumsum(balance[by_balance]) == -k * (balance.size - k)
    labels = np.empty_like(balance)
    labels[by_balance] = np.cumsum(block_ends_here) - block_ends_here
    return labels


@kernel(steps=lambda members, place, first, _, uppers, *lowers: members.size + uppers.size)
def parallel_labels(
    members: Ints, place: Ints, first: int, upper_starts: Ints, uppers: Ints, lower_starts: Ints, lowers: Ints
) -> Ints:
    """Label the connected components of a module.

    Member k is the element ``members[k]``, at ``place[element] == first + k``.

    The covers inside a module are covers of the whole order, because modules are convex.
    """
    labels = np.full(members.size, -1, np.int64)
    waiting = np.empty(members.size, np.int64)
    component = -1
    for root in range(members.size):
        if labels[root] >= 0:
            continue
        component += 1
        labels[root] = component
        waiting[0], count = root, 1
        while count > 0:
            count -= 1
            x = members[waiting[count]]
            for starts, ends in ((upper_starts, uppers), (lower_starts, lowers)):
                for y in ends[starts[x] : starts[x + 1]]:
                    k = place[y] - first
                    if 0 <= k < members.size and labels[k] < 0:
                        labels[k] = component
                        waiting[count] = k
                        count += 1
    return labels


@kernel
def _relation(up: Bits, down: Bits, x: Any, y: Any) -> Any:
    """The relation of y to x.

    1 where y is above, 2 where it is below, 0 where they are unrelated.
    """
    shift = np.uint64(y & 63)
    return (up[x, y >> 6] >> shift & np.uint64(1)) + np.uint64(2) * (down[x, y >> 6] >> shift & np.uint64(1))


class PrimeSplits:
    """The splits of prime modules, all together in O(n²).

    In a prime module T let v be a member. The other members fall into *parts*, the largest modules without
    v. A module that holds v and a part A must hold every part B that sees v and A differently: A *forces*
    B. Parts that force, step by step, all of T are children; the rest and v form one child.

    For a smaller module that holds v the parts and what they force are the same, so they are found once;
    any two elements are compared in one such search only, because they are no longer apart in the next.
    """

    def __init__(self, up: Bits, down: Bits) -> None:
        self._up, self._down = up, down
        self._pivot = np.full(len(up), -1)  # the v of the last search that an element took part in
        self._part = np.full(len(up), -1)
        self._rank = np.full(len(up), -1)  # of the part, sources of forcing first

    def labels(self, members: Ints) -> Ints:
        """Children of a prime module, numbered by the first member met."""
        pivot = self._pivot[members[0]]
        if pivot < 0 or pivot not in members:
            pivot = members[0]
            parts = _modules_without_first(self._up, self._down, members)
            self._pivot[members] = pivot
            self._part[members] = parts
            self._rank[members] = _forcing_ranks(self._up, self._down, members, parts)
        others = members != pivot
        rank = self._rank[members]
        forces_all = others & (rank == rank[others].min())
        child = np.where(forces_all, self._part[members], -1)
        _, first, label = np.unique(child, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[label]


@kernel(steps=lambda up, down, members: members.size**2)
def _modules_without_first(up: Bits, down: Bits, members: Ints) -> Ints:
    """For each member but the first a label of the largest module that holds it and not the first.

    Partition refinement: when a part falls into groups, the members of each group must in turn see every
    other group alike. Two members are compared once, when they part: O(s²).
    """
    s = members.size
    seat = np.arange(1, s)  # parts are intervals of seats; members move only inside their part
    part = np.zeros(s - 1, np.int64)  # the part of each seat
    end = np.full(s, s - 1, np.int64)  # where each part ends
    parts = 1
    task = np.empty((2 * s, 4), np.int64)  # members at seats [0]..[1] must see those at [2]..[3] alike
    tasks = 0
    sees, spare = np.empty(s, np.uint64), np.empty(s, np.int64)
    watchers, left, right = np.zeros(1, np.int64), 0, s - 1  # to begin with, the first member sees all
    while True:
        for watcher in watchers:
            divisible = False
            p = left
            while p < right:
                stop = end[part[p]]
                if stop - p > 1:
                    divisible = True
                    one, two = _divide(up, down, (members, seat), watcher, (p, stop), (sees, spare))
                    for a, b in ((p, one), (one, two), (two, stop)):
                        if a == b or b - a == stop - p:
                            continue
                        if a > p:
                            part[a:b] = parts
                            parts += 1
                        end[part[a]] = b
                        for c, d in ((p, a), (b, stop)):
                            if d - c > 1:
                                task[tasks] = (a, b, c, d)
                                tasks += 1
                p = stop
            if not divisible:
                break
        if tasks == 0:
            break
        tasks -= 1
        watchers = seat[task[tasks, 0] : task[tasks, 1]].copy()
        left, right = task[tasks, 2], task[tasks, 3]
    labels = np.full(s, -1, np.int64)
    labels[seat] = part
    return labels


@kernel
def _divide(
    up: Bits,
    down: Bits,
    seats: tuple[Ints, Ints],
    watcher: Any,
    span: tuple[Any, Any],
    room: tuple[Bits, Ints],
) -> tuple[int, int]:
    """Partition the seats of a span by how the watcher sees their members.

    Returns where the second and the third group begin.
    """
    (members, seat), (p, stop), (sees, spare) = seats, span, room
    alike = True
    for q in range(p, stop):
        sees[q] = _relation(up, down, members[watcher], members[seat[q]])
        alike &= sees[q] == sees[p]
    if alike:
        return stop, stop
    spare[p:stop] = seat[p:stop]
    begin = np.full(3, p, np.int64)
    k = p
    for group in range(3):
        begin[group] = k
        for q in range(p, stop):
            if sees[q] == np.uint64(group):
                seat[k] = spare[q]
                k += 1
    return begin[1], begin[2]


@kernel(steps=lambda up, down, members, parts: members.size**2)
def _forcing_ranks(up: Bits, down: Bits, members: Ints, parts: Ints) -> Ints:
    """For each member the place of its part's strong component in the graph of forcing, sources first.

    Kosaraju's two searches, over all pairs of parts.
    """
    v = members[0]
    k = parts.max() + 1
    part = np.empty(k, np.int64)  # one element of each part
    for m in range(1, members.size):
        part[parts[m]] = members[m]
    finished = np.empty(k, np.int64)
    done = 0
    seen = np.zeros(k, np.bool_)
    path = np.empty(k, np.int64)
    cursor = np.zeros(k, np.int64)
    for root in range(k):
        if seen[root]:
            continue
        seen[root] = True
        path[0], depth = root, 1
        while depth > 0:
            a = path[depth - 1]
            b = cursor[a]
            while b < k and (
                seen[b] or _relation(up, down, part[a], part[b]) == _relation(up, down, v, part[b])
            ):
                b += 1
            cursor[a] = b
            if b < k:
                seen[b] = True
                path[depth] = b
                depth += 1
            else:
                finished[done] = a
                done += 1
                depth -= 1
    rank = np.full(k, -1, np.int64)
    component = 0
    for root in finished[::-1]:
        if rank[root] >= 0:
            continue
        rank[root] = component
        path[0], depth = root, 1
        while depth > 0:
            depth -= 1
            b = path[depth]
            for a in range(k):
                if rank[a] < 0 and _relation(up, down, part[b], part[a]) != _relation(up, down, part[b], v):
                    rank[a] = component
                    path[depth] = a
                    depth += 1
        component += 1
    ranks = np.full(members.size, -1, np.int64)
    for m in range(1, members.size):
        ranks[m] = rank[parts[m]]
    return ranks


# The modular (substitution) decomposition of an order.
#
# A *module* is a set of elements that every other element sees alike: below all of it, above all of it, or
# unrelated to all of it. It is *strong* when it overlaps no other module without containing or being
# contained. The strong modules form a tree (Gallai 1967) with four kinds of nodes:
#
# * :class:`Leaf`: one element;
# * :class:`Parallel`: no relation between different children;
# * :class:`Series`: all of one child lies below all of the next;
# * :class:`Prime`: neither; the children are the largest proper modules, ``quotient`` the order among them.
#
# Orders without prime nodes are the series-parallel ones; every forest is among them.
#
# Splitting a node of size s costs O(s log s + covers); the prime nodes cost O(n²) more, all together.


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
        result: list[Node] = []
        waiting: list[Node] = [self]  # pyright: ignore[reportAssignmentType]  (only the four kinds exist)
        while waiting:
            node = waiting.pop()
            result.append(node)
            waiting.extend(node.children)
        return reversed(result)

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
        self._primes = PrimeSplits(up, down)
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
        labels = series_labels(self._balance[members])
        if labels.max() == 0:
            kind = Parallel
            labels = parallel_labels(members, self._place, first, *self._uppers, *self._lowers)
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
