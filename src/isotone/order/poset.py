"""Finite partial orders."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.errors import OrderError
from isotone.order import choices as exclusive
from isotone.order import closure
from isotone.order.building import combine, description
from isotone.order.choices import Children
from isotone.order.relation import Relation, read_only

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.order.building.canonical import Canonical
    from isotone.order.coding import Coding
    from isotone.order.decomposition import Node
    from isotone.order.drawing.hasse import Direction

__all__ = ["Poset"]


class Poset(Relation):
    """A finite partial order.

    ``Poset(elements, relations)``: ``elements`` are distinct hashable names (at least one), ``relations``
    pairs ``(lower, upper)``, read "a yes to lower implies a yes to upper". Relations may repeat, may leave
    out what follows by transitivity, and may relate a name to itself, which says nothing and is ignored;
    they must not form a cycle. ``choices`` are pairs ``(kind, options)``: of the options of an ``"exclusive"``
    choice a record has at most one, and of a ``"partition"`` exactly one if it has their parent, so that their
    counts add up. Choices that overlap, or cannot be recoded as an order (:mod:`.choices`), are refused.

    A poset is immutable. Two are equal when they have the same set of elements, the same order on it and
    the same choices, however they were described. The *sequence* of the elements, which gives every array its meaning, is
    not part of equality: before sharing arrays between equal posets compare ``elements`` too.

    Positions in arrays are positions in ``elements``. Building takes O(m n / 64) word operations for m
    relations, and O(n) when no element has two upper ones.

    >>> P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> P.leq("twice", "hyp"), P.height, P.width
    (True, 2, 2)
    >>> P.covers
    (('twice', 'hyp'), ('meds', 'hyp'))
    >>> sorted(P.close({"meds"}))
    ['hyp', 'meds']
    """

    def __init__(
        self, elements: Iterable[Hashable], relations: Iterable[Any] = (), choices: Iterable[Any] = ()
    ) -> None:
        index = description.read_elements(elements)
        self._accept(index, description.read_relations(relations, index), choices)

    @classmethod
    def _of(cls, elements: Iterable[Hashable], pairs: Ints, choices: Iterable[Any] = ()) -> Poset:
        """The poset with these relations, distinct rows ``(lower, upper)`` of positions."""
        poset = cls.__new__(cls)
        poset._accept(description.read_elements(elements), pairs, choices)
        return poset

    def _accept(self, index: dict[Hashable, int], pairs: Ints, choices: Iterable[Any]) -> None:
        self._settle(index, pairs)
        self.__dict__["_choices"] = exclusive.read_choices(choices, index)
        exclusive.check_choices(self)

    # Building from other things

    @classmethod
    def chain(cls, elements: Iterable[Hashable]) -> Poset:
        """The total order with the elements ascending.

        >>> Poset.chain("abc").leq("a", "c")
        True
        """
        names = tuple(elements)
        lower = np.arange(max(len(names) - 1, 0))
        return cls._of(names, np.column_stack((lower, lower + 1)))

    @classmethod
    def antichain(cls, elements: Iterable[Hashable]) -> Poset:
        """The order in which no two elements are related."""
        return cls(elements)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, elements: Iterable[Hashable] | None = None) -> Poset:
        """The order whose 0/1 matrix has entry ``[i, j]`` exactly when ``i ≤ j``.

        The matrix must be reflexive, antisymmetric and transitive. Names default to ``0, 1, 2, …``.
        """
        given = description.read_matrix(matrix)
        names = tuple(range(len(given))) if elements is None else tuple(elements)
        if len(names) != len(given):
            raise OrderError(f"A matrix of {len(given)} rows needs as many elements, not {len(names)}.")
        description.check_reflexive_antisymmetric(given, names)
        poset = cls._of(names, _strict_pairs(given))
        closed = poset.leq_matrix()
        if not np.array_equal(closed, given):
            raise description.not_transitive(given, closed, names)
        return poset

    @classmethod
    def from_mapping(cls, parents: Mapping[Any, Any], children: Children = "any") -> Poset:
        """The order in which each key lies below its parents.

        A value is a parent, a list or set of parents, or None; text and tuples are single names. Parents
        that are no keys become elements too, after the keys.

        ``children`` says what a record can have together among the children of an element: ``"any"`` of them,
        at most one (``"exclusive"``) or exactly one (``"partition"``). It is one of these words for all
        elements, or a mapping from elements to such a word or to a list of groups ``(word, [children])``; None
        stands for the elements with nothing above them. ``children="partition"`` describes codes of which a
        record has one, so several elements with nothing above them then exclude each other too.

        >>> Poset.from_mapping({"twice": "hyp", "meds": ["hyp"], "hyp": None}).maximal
        ('hyp',)
        >>> T = Poset.from_mapping({"111": "11", "112": "11", "21": None}, children="partition")
        >>> [choice.options for choice in T.choices]
        [('111', '112'), ('21', '11')]
        """
        elements, relations = description.read_mapping(parents)
        return cls(elements, relations, exclusive.read_children(children, elements, relations))

    @classmethod
    def from_networkx(cls, graph: Any) -> Poset:
        """The order generated by a networkx digraph with edges ``(lower, upper)``.

        Loops are ignored.
        """
        if not graph.is_directed():
            raise OrderError("An order needs directed edges (lower, upper): pass a networkx.DiGraph.")
        return cls(graph.nodes, [(edge[0], edge[1]) for edge in graph.edges])

    @classmethod
    def disjoint_union(cls, *posets: Poset) -> Poset:
        """The posets side by side, unrelated to each other. Names must differ."""
        return cls._of(*combine.beside(posets), [c for P in posets for c in P.choices])

    @classmethod
    def series(cls, *posets: Poset) -> Poset:
        """The posets stacked, bottom to top.

        All of one lies below all of the next. Names must differ. Choices are forgotten.

        >>> Poset.series(Poset.antichain("ab"), Poset.chain("c")).covers
        (('a', 'c'), ('b', 'c'))
        """
        return cls._of(*combine.stacked(posets))

    @classmethod
    def product(cls, *posets: Poset) -> Poset:
        """The tuples with one element of each poset, ordered in every place at once.

        The last place runs fastest. A filter of ``product(chain, P)`` is a growing sequence of filters of ``P``: what
        someone reached, period by period. Choices are forgotten.

        >>> Poset.product(Poset.chain([1, 2]), Poset.chain("ab")).covers
        (((1, 'a'), (1, 'b')), ((1, 'a'), (2, 'a')), ((1, 'b'), (2, 'b')), ((2, 'a'), (2, 'b')))
        """
        return cls._of(*combine.crossed(posets))

    @classmethod
    def random_dag(cls, n: int, rng: np.random.Generator, steps: int | None = None) -> Poset:
        """The order on ``0..n-1`` generated by a random acyclic digraph.

        See :mod:`.building.random_dags`.
        """
        from isotone.order.building.random_dags import random_dag

        return cls._of(range(n), random_dag(n, rng, steps))

    def dual(self) -> Poset:
        """The same elements, upside down, without choices."""
        return self._of(self._index, self._covers[:, ::-1])

    def induced(self, names: Iterable[Hashable]) -> Poset:
        """The order restricted to ``names``.

        They keep the sequence they have here. Choices are forgotten, since what they say may depend on others.
        """
        chosen = np.unique([self.index(name) for name in names]).astype(np.int64)
        leq = closure.unpack(self._closure[chosen], len(self))[:, chosen]
        return self._of([self.elements[x] for x in chosen], _strict_pairs(leq))

    def rename(self, new: Mapping[Any, Hashable] | Callable[[Any], Hashable]) -> Poset:
        """The same order with other names.

        ``new`` maps old names to new ones. Names that are absent from it stay.

        >>> Poset.chain("ab").rename({"a": "first"}).elements
        ('first', 'b')
        """
        names = [new(x) if callable(new) else new.get(x, x) for x in self.elements]
        called = dict(zip(self.elements, names, strict=True))
        choices = [(choice.kind, [called[x] for x in choice.options]) for choice in self.choices]
        return self._of(names, self._covers, choices)

    def forget_choices(self) -> Poset:
        """The same order in which all children combine freely.

        It covers all records that this one does, and more; the noise is larger.
        """
        return self._of(self._index, self._covers)

    # Other views of the same order

    @cached_property
    def coding(self) -> Coding:
        """Counts as counts over an order without choices, and back. See :mod:`.coding`."""
        from isotone.order.coding import code

        return code(self)

    @cached_property
    def canonical(self) -> Canonical:
        """The same order with its elements in canonical sequence.

        See :mod:`.building.canonical`.
        """
        from isotone.order.building.canonical import Canonical, canonical_positions

        positions = canonical_positions(self)
        place = np.empty(len(self), np.int64)
        place[positions] = np.arange(len(self))
        names = [self.elements[x] for x in positions.tolist()]
        return Canonical(self._of(names, place[self._covers], self.choices), read_only(positions))

    def decomposition(self) -> Node:
        """The tree of series, parallel and prime nodes. See :mod:`.decomposition`."""
        return self._decomposition

    @cached_property
    def _decomposition(self) -> Node:
        from isotone.order.decomposition import decompose

        return decompose(self)

    def count_extended_bipartitions(self) -> int:
        """The exact number of extended bipartitions. See :mod:`.bipartitions`."""
        from isotone.order.bipartitions import extended as bipartitions

        return bipartitions.count(self)

    def __repr__(self) -> str:
        if len(self) <= 12:
            choices = [(choice.kind, list(choice.options)) for choice in self.choices]
            also = f", {choices!r}" if choices else ""
            return f"Poset({list(self.elements)!r}, {list(self.covers)!r}{also})"
        first = ", ".join(repr(name) for name in self.elements[:3])
        size = f"{len(self)} elements, {len(self._covers)} covers, height {self.height}"
        return f"<Poset of {size}: {first}, …>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Poset._of, (self.elements, self._covers, self.choices)

    def to_networkx(self) -> Any:
        """The Hasse diagram as a ``networkx.DiGraph`` with edges ``(lower, upper)``."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.elements)
        graph.add_edges_from(self.covers)
        return graph

    def plot(
        self,
        ax: Axes | None = None,
        *,
        values: Mapping[Any, object] | Sequence[object] | None = None,
        labels: Mapping[Any, str] | None = None,
        direction: Direction | None = None,
    ) -> Axes:
        """Draw the Hasse diagram.

        Levels by height, a line for each cover, text as large as fits.

        ``labels`` replace names, and are wrapped; ``values`` (one per element, or by name: numbers or text
        such as an interval) stand under them. Greater elements are above (``direction="up"``) or to the
        left (``"left"``, better for long texts); by default whichever is readable. Without an axis a figure
        of suitable size is made.
        """
        from isotone.order.drawing.hasse import draw

        return draw(self, ax, values, labels, direction)


def _strict_pairs(leq: NDArray[np.bool_]) -> Ints:
    """The entries of a matrix off the diagonal, as rows of positions."""
    return np.argwhere(leq & ~np.eye(len(leq), dtype=np.bool_))
