"""Orders put together from smaller ones. Ideals by the rules for parallel, series and small prime parts.

The tree of strong modules of an order (``Poset.decomposition``) stays a valid description when elements are left
out: nodes lose children. So a region keeps its own trimmed tree, and a cut costs O(its size)
(docs/theory/curves-posets.md, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from isotone.array_types import Bools, Ints
from isotone.curves.circuits.circuit import Circuit, CircuitTables
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.poset.ideals import list_ideals
from isotone.curves.poset.regions import Cut
from isotone.errors import InputError
from isotone.order import Leaf, Node, Parallel, Prime

__all__ = ["MOST_QUOTIENT_IDEALS", "CompositionNode", "OrderComposition", "compose"]

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
        found = [(int(start[k]), part.element) for k, part in enumerate(self.parts) if not part.children]
        members = np.empty(len(found), np.int64)
        for place, element in found:
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
