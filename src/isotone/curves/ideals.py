"""Ideals of an order as options of a private choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Bools, Ints
from isotone.curves.circuits import Circuit, CircuitTables, CurveDraws
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.order import Leaf, Node, Parallel, Prime

# All ideals of a small order, listed, and the least isotonic losses on both sides of each.
#
# An ideal (down-set) holds everything below each of its elements. Orders of few elements or small width have few
# ideals: at most ``(n/w + 1)**w`` for width ``w`` (docs/theory/curves-posets.md, section 2).

Words = NDArray[np.uint64]

MOST_IDEALS = 1_000_000
MOST_WORDS = 1 << 24
"""Of 64 bits, for the list itself: an order of many elements has a shorter one."""


@dataclass(frozen=True)
class IdealList:
    """Ideals in the order of their discovery. The empty one first, each later one is an earlier one plus one element.

    Ideal ``i > 0`` is ideal ``parent[i]`` and the element ``added[i]``; ``members`` packs all of them as bits. They were
    found in steps, one for each element: step ``k`` found those from ``first[k]`` to ``first[k + 1] − 1``, and its element
    has lower covers that no ideal before step ``since[k]`` holds all of. Step 0 is the empty ideal.
    """

    size: int
    parent: Ints = field(repr=False)
    added: Ints = field(repr=False)
    members: Words = field(repr=False)
    first: Ints = field(repr=False)
    since: Ints = field(repr=False)

    @property
    def count(self) -> int:
        """The number of ideals."""
        return self.parent.size

    def sums(self, weights: Ints) -> Ints:
        """The sum of the weights in every ideal."""
        return _sums(self.parent, self.added, weights)

    def ideal(self, index: int) -> NDArray[np.bool_]:
        """Which elements an ideal holds."""
        bits = np.unpackbits(self.members[index].view(np.uint8), bitorder="little")
        return bits[: self.size].astype(np.bool_)

    def extensions(self) -> tuple[Ints, Ints]:
        """All pairs of ideals that differ by one element, ``(smaller, larger)``, by rising number of the larger.

        An ideal found in a step is its parent plus the step's element ``x``. So the step's pairs are the parents with
        their children, and one pair of children for every pair of parents: both lack the same element but for ``x``.
        """
        child = np.full(self.count, -1, np.int64)
        smaller, larger = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for k in range(1, self.size + 1):
            result = np.arange(self.first[k], self.first[k + 1])
            parents = self.parent[result]
            child[parents] = result
            low = child[np.concatenate(smaller[self.since[k] : k])]
            high = child[np.concatenate(larger[self.since[k] : k])]
            both = (low >= 0) & (high >= 0)
            smaller.append(np.concatenate([parents, low[both]]))
            larger.append(np.concatenate([result, high[both]]))
            child[parents] = -1
        low, high = np.concatenate(smaller), np.concatenate(larger)
        by_number = np.argsort(high, kind="stable")
        return low[by_number], high[by_number]


def list_ideals(size: int, covers: Ints, order: Ints, most: int = MOST_IDEALS) -> IdealList | None:
    """All ideals of the order on ``0, …, size − 1`` with these covers, or None if there are too many.

    ``order`` is a linear extension. An element can be added to the ideals of those before it that hold its lower covers;
    none found before the last of these does.
    """
    words = (size + 63) // 64
    below = np.zeros((size, words), np.uint64)
    step = np.empty(size, np.int64)
    step[order] = np.arange(1, size + 1)
    since = np.zeros(size + 1, np.int64)
    for lower, upper in covers.tolist():
        below[upper, lower >> 6] |= np.uint64(1) << np.uint64(lower & 63)
        since[step[upper]] = max(since[step[upper]], step[lower])
    parents, added = [np.zeros(1, np.int64)], [np.full(1, -1, np.int64)]
    result = [np.zeros((1, words), np.uint64)]
    first = [0, 1]
    for k, x in enumerate(order.tolist(), start=1):
        recent = np.concatenate(result[since[k] :])
        held = np.flatnonzero(below[x])
        ready = np.flatnonzero(((recent[:, held] & below[x, held]) == below[x, held]).all(axis=1))
        first.append(first[-1] + ready.size)
        if first[-1] > most or first[-1] * words > MOST_WORDS:
            return None
        extended = recent[ready]
        extended[:, x >> 6] |= np.uint64(1) << np.uint64(x & 63)
        result.append(extended)
        parents.append(first[since[k]] + ready)
        added.append(np.full(ready.size, x, np.int64))
    return IdealList(
        size, np.concatenate(parents), np.concatenate(added), np.concatenate(result), np.array(first), since
    )


@kernel(steps=lambda parent, *_: 2 * parent.size)
def _sums(parent: Ints, added: Ints, weights: Ints) -> Ints:
    sums = np.zeros(parent.size, np.int64)
    for i in range(1, parent.size):
        sums[i] = sums[parent[i]] + weights[added[i]]
    return sums


# Parts of an order that can be cut exactly. The interface, and parts whose ideals are listed.
#
# A region is a convex set of elements (with two elements it holds all between them). Cutting it draws one of the
# ideals of the order on it, with weight ``exp(−rate · sum of the weights in the ideal)``, and leaves two regions: the
# ideal and the rest. Both are convex again (docs/theory/curves-posets.md, section 2).


class Region(Protocol):
    """A part of an order."""

    @property
    def members(self) -> Ints:
        """The elements."""
        ...

    def log_ideals(self) -> float:
        """The logarithm of the number of ideals."""
        ...

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal. ``weights`` has one entry for each element of the whole order."""
        ...


@dataclass(frozen=True)
class Cut:
    """The two sides of a cut. A side without elements is None."""

    below: Region | None
    above: Region | None


@dataclass(frozen=True)
class ListedRegion:
    """A region with few ideals, all listed.

    ``covers`` are those of the whole order, ``order`` a linear extension of it: between elements of a convex set there
    are no others.
    """

    elements: Ints = field(repr=False)
    covers: Ints = field(repr=False)

    @property
    def members(self) -> Ints:
        """The elements, along a linear extension."""
        return self.elements

    @cached_property
    def ideals(self) -> IdealList:
        """All ideals. Element ``k`` in them is ``members[k]``."""
        result = self.count_up_to(MOST_IDEALS)
        if result is None:
            raise InputError(
                f"This order has too many ideals to list: {MOST_IDEALS:,}, or {MOST_WORDS >> 17} MB of them, is the "
                "limit. Use method='additive'."
            )
        return result

    def count_up_to(self, most: int) -> IdealList | None:
        """The ideals, or None if there are more than ``most``."""
        size = self.elements.size
        return list_ideals(size, self._own_covers(), np.arange(size), most)

    def _own_covers(self) -> Ints:
        """The covers between members, by their places."""
        place = np.full(int(max(self.elements.max(), self.covers.max(initial=0))) + 1, -1, np.int64)
        place[self.elements] = np.arange(self.elements.size)
        pairs = place[self.covers]
        return pairs[(pairs >= 0).all(axis=1)]

    def log_ideals(self) -> float:
        """The logarithm of the number of ideals."""
        return math.log(self.ideals.count)

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal by its weight."""
        return self.choose(self.ideals.sums(weights[self.elements]), rate, draws)

    def choose(self, scores: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal by its score, one for each of the list."""
        one = np.ones(scores.size, np.int64)
        chosen = draws.segments(scores, np.array([0, scores.size]), [rate], one)
        inside = self.ideals.ideal(int(chosen[0]))
        return Cut(self._part(inside), self._part(~inside))

    def _part(self, inside: NDArray[np.bool_]) -> ListedRegion | None:
        return ListedRegion(self.elements[inside], self.covers) if inside.any() else None


# Orders put together from smaller ones. Ideals by the rules for parallel, series and small prime parts.
#
# The tree of strong modules of an order (``Poset.decomposition``) stays a valid description when elements are left
# out: nodes lose children. So a region keeps its own trimmed tree, and a cut costs O(its size)
# (docs/theory/curves-posets.md, section 4).

MOST_QUOTIENT_IDEALS = 10_000
"""Prime parts with more ideals than this are not spelled out."""


@dataclass(frozen=True)
class CompositionNode:
    """A node of the tree, which is an element or children that are unrelated, in series (bottom to top), or as ``less`` says."""

    children: tuple[int, ...] = ()
    element: int = -1
    less: Bools | None = None
    series: bool = False


@dataclass(frozen=True)
class OrderComposition:
    """A region described by a tree of parts, children first and the root last."""

    parts: Sequence[CompositionNode] = field(repr=False)

    @cached_property
    def places(self) -> tuple[Ints, Ints]:
        """Where each part's elements start and stop in ``members``."""
        size = np.zeros(len(self.parts), np.int64)
        for k, part in enumerate(self.parts):
            size[k] = 1 if not part.children else sum(int(size[c]) for c in part.children)
        start = np.zeros(len(self.parts), np.int64)
        for k in range(len(self.parts) - 1, -1, -1):
            place = int(start[k])
            for c in self.parts[k].children:
                start[c] = place
                place += int(size[c])
        return start, start + size

    @property
    def members(self) -> Ints:
        """The elements. Those of each part are next to each other, children in order."""
        return self._members

    @cached_property
    def _members(self) -> Ints:
        start, _ = self.places
        result = [(int(start[k]), part.element) for k, part in enumerate(self.parts) if not part.children]
        members = np.empty(len(result), np.int64)
        for place, element in result:
            members[place] = element
        return members

    @cached_property
    def spelled(self) -> _Speller:
        """The circuit of all ideals."""
        return _Speller(self)

    def log_ideals(self) -> float:
        """The logarithm of the number of ideals."""
        circuit = self.spelled.circuit
        return CircuitTables(circuit, np.zeros(circuit.nodes, np.int64), Fraction(1)).log_total()

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal."""
        speller = self.spelled
        before = np.concatenate([[0], np.cumsum(weights[self.members])])
        selected = draws.select(speller.circuit, before[speller.stop] - before[speller.start], rate)
        inside = np.zeros(self.members.size, np.bool_)
        for node in selected.tolist():
            inside[speller.start[node] : speller.stop[node]] = True
        return Cut(self.trimmed(inside), self.trimmed(~inside))

    def trimmed(self, kept: Bools) -> OrderComposition | None:
        """The same tree without the other elements. Parts left with one child give way to it."""
        start, _ = self.places
        now: list[int] = []
        parts: list[CompositionNode] = []
        for k, part in enumerate(self.parts):
            if not part.children:
                if kept[start[k]]:
                    parts.append(part)
                    now.append(len(parts) - 1)
                else:
                    now.append(-1)
                continue
            alive = [place for place, c in enumerate(part.children) if now[c] >= 0]
            children = tuple(now[part.children[place]] for place in alive)
            if len(children) < 2:
                now.append(children[0] if children else -1)
                continue
            less = None if part.less is None else part.less[np.ix_(alive, alive)]
            parts.append(CompositionNode(children, less=less, series=part.series))
            now.append(len(parts) - 1)
        return OrderComposition(parts) if parts else None


class _Speller:
    """Writes the ideals of a composition as a circuit.

    ``start[i], stop[i]``: node ``i`` takes these members; its cost is the sum of their weights.
    """

    def __init__(self, composition: OrderComposition) -> None:
        self._summed: list[bool] = []
        self._first: list[int] = [0]
        self._child: list[int] = []
        self._start: list[int] = []
        self._stop: list[int] = []
        starts, stops = composition.places
        self._places = starts.tolist(), stops.tolist()
        self._nothing = self._add(False, ())
        some: list[int] = []  # for every part, its ideals that are not empty
        for k, part in enumerate(composition.parts):
            some.append(self._some(k, part, some))
        self._add(True, (self._nothing, some[-1]))
        self.circuit = Circuit(
            np.array(self._summed, dtype=np.bool_), np.array(self._first), np.array(self._child)
        )
        self.start, self.stop = np.array(self._start), np.array(self._stop)

    def _add(self, summed: bool, children: Sequence[int], start: int = 0, stop: int = 0) -> int:
        self._summed.append(summed)
        self._child.extend(children)
        self._first.append(len(self._child))
        self._start.append(start)
        self._stop.append(stop)
        return len(self._summed) - 1

    def _some(self, k: int, part: CompositionNode, some: list[int]) -> int:
        if not part.children:
            return self._add(False, (), self._places[0][k], self._places[1][k])
        if part.series:
            return self._series(part.children, some)
        if part.less is None:
            return self._parallel(part.children, some)
        return self._related(part.children, part.less, some)

    def _series(self, children: tuple[int, ...], some: list[int]) -> int:
        """The topmost child that is not empty has an ideal that is not empty. All below it are full."""
        bottom = self._places[0][children[0]]
        terms = [some[children[0]]]
        terms += [self._add(False, (some[c],), bottom, self._places[0][c]) for c in children[1:]]
        return self._add(True, terms)

    def _parallel(self, children: tuple[int, ...], some: list[int]) -> int:
        """The first child that is not empty, and any ideals of those after it."""
        rest = self._nothing
        terms: list[int] = []
        for c in reversed(children):
            terms.append(some[c] if rest == self._nothing else self._add(False, (some[c], rest)))
            either = self._add(True, (self._nothing, some[c]))
            rest = either if rest == self._nothing else self._add(False, (either, rest))
        return self._add(True, terms)

    def _related(self, children: tuple[int, ...], less: Bools, some: list[int]) -> int:
        """Sum over the ideals of the children's order. All but its maximal children are full."""
        k = len(children)
        ideals = list_ideals(k, np.argwhere(less), np.argsort(less.sum(axis=0), kind="stable"))
        if ideals is None:
            raise InputError("A part of this order has too many ideals to spell out.")
        full = [self._add(False, (), self._places[0][c], self._places[1][c]) for c in children]
        terms: list[int] = []
        for i in range(1, ideals.count):
            inside = ideals.ideal(i)
            topmost = inside & ~(less & inside).any(axis=1)
            places = np.flatnonzero(inside).tolist()
            terms.append(self._add(False, [some[children[j]] if topmost[j] else full[j] for j in places]))
        return self._add(True, terms)


def compose(tree: Node) -> OrderComposition:
    """The composition that the decomposition of an order describes."""
    number: dict[int, int] = {}
    parts: list[CompositionNode] = []
    for node in tree.walk():
        children = tuple(number[id(child)] for child in node.children)
        if isinstance(node, Leaf):
            part = CompositionNode(element=node.index)
        elif isinstance(node, Parallel):
            part = CompositionNode(children)
        elif isinstance(node, Prime):
            part = CompositionNode(
                children, less=node.quotient.leq_matrix() & ~np.eye(len(children), dtype=np.bool_)
            )
        else:
            part = CompositionNode(children, series=True)
        number[id(node)] = len(parts)
        parts.append(part)
    return OrderComposition(parts)
