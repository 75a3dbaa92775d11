"""Partial orders: elements, relations, filters, width, and records closed upward."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.errors import InputError, OrderError
from isotone.kernels import kernel
from isotone.order import building as combine
from isotone.order import building as description
from isotone.order import closure
from isotone.order import closure as exclusive
from isotone.order.closure import Bits, Children, Choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.order.building import Canonical
    from isotone.order.closure import Coding
    from isotone.order.decomposition import Node
    from isotone.order.drawing import Direction

# Records as subsets of an order.
#
# Which are filters, and the smallest filter around each.
#
# A record says yes or no to every element. It is a *filter* (an up-set, closed upward) when a yes to ``a``
# comes with a yes to everything above ``a``. Records are private: no message here quotes one.

Record = Mapping[Any, Any] | Set[Hashable] | Sequence[Any] | NDArray[Any]
Answers = NDArray[np.bool_]


def read_record(index: Mapping[Hashable, int], record: Record) -> Answers:
    """The answers of one record, one per element.

    A mapping gives answers by name (absent names are no), a set holds the names answered yes, a sequence or
    array holds one answer per element in the order of the elements.
    """
    if isinstance(record, (Mapping, Set)):
        if not all(name in index for name in record):
            raise InputError("A record names something that is not an element of this order: drop it first.")
        if isinstance(record, Mapping):
            answers = _answers(list(record.values()))
            yes = [index[name] for name, answer in zip(record, answers, strict=True) if answer]
        else:
            yes = [index[name] for name in record]
        full = np.zeros(len(index), np.bool_)
        full[yes] = True
        return full
    answers = _answers(record)
    if answers.shape != (len(index),):
        raise InputError(f"A record given as a sequence needs one answer per element: {len(index)} of them.")
    return answers


def read_matrix(n: int, matrix: ArrayLike) -> Answers:
    """A matrix of answers, one row per record and one column per element."""
    answers = _answers(matrix)
    if answers.ndim != 2 or answers.shape[1] != n:
        raise InputError(f"Records must be a matrix with one column per element: {n} columns.")
    return np.ascontiguousarray(answers)


def _answers(values: Any) -> Answers:
    answers = np.asarray(values)
    if answers.size == 0 or answers.dtype == np.bool_:
        return answers.astype(np.bool_)
    if answers.dtype.kind not in "iuf" or not np.isin(answers, (0, 1)).all():
        raise InputError("Answers must be 0 or 1 (or booleans). Recode missing and other answers first.")
    return answers.astype(np.bool_)


def like(record: Record, names: Sequence[Hashable], answers: Answers) -> Any:
    """``answers`` in the form of ``record``. A dict, a frozenset of names, or an array."""
    if isinstance(record, Mapping):
        return dict(zip(names, answers.tolist(), strict=True))
    if isinstance(record, Set):
        return frozenset(name for name, answer in zip(names, answers, strict=True) if answer)
    return answers


def are_filters(covers: Ints, matrix: Answers) -> Answers:
    """For each row whether it is closed upward."""
    closed = np.ones(len(matrix), np.bool_)
    step = max(1, _CHUNK // max(len(matrix), 1))
    for start in range(0, len(covers), step):
        lower, upper = covers[start : start + step].T
        closed &= np.all(matrix[:, upper] | ~matrix[:, lower], axis=1)
    return closed


def close_all(covers: Ints, matrix: Answers) -> None:
    """Close each row upward, in place.

    ``covers`` come in a linear order of their lower elements.
    """
    if len(covers) > FEW_COVERS:
        _close_all(covers, matrix)
        return
    for lower, upper in covers.tolist():
        matrix[:, upper] |= matrix[:, lower]


_CHUNK = 1 << 22
"""Answers that are compared at a time."""
FEW_COVERS = 1 << 12
"""Orders with so many covers at most need no compiled code; the number of rows does not matter."""


@kernel
def _close_all(covers: Ints, matrix: Answers) -> None:
    """Close each row upward, in place.

    ``covers`` come in a linear order of their lower elements.
    """
    for row in range(matrix.shape[0]):
        for k in range(covers.shape[0]):
            if matrix[row, covers[k, 0]]:
                matrix[row, covers[k, 1]] = True


# The width of an order, the size of its largest antichain.
#
# By Dilworth's theorem (1950) it is the least number of chains that cover the order, and by Fulkerson (1956)
# that number is n minus the size of a largest matching between elements and elements strictly above them. Such a matching
# is a flow along the covers: what leaves an element may go on through those that it meets.


def width(size: int, lower: Ints, upper: Ints) -> int:
    """The width of the order of so many elements with the covers ``(lower[k], upper[k])``.

    10,000 elements and 50,000 random relations take about a second.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    leave = np.arange(size)  # from an element upward; where it is met from below it has the number below
    meet, source, sink = size + leave, 2 * size, 2 * size + 1
    tails = np.concatenate((np.full(size, source), lower, meet, meet))
    heads = np.concatenate((leave, size + upper, leave, np.full(size, sink)))
    most = np.repeat([1, size, size, 1], [size, len(lower), size, size]).astype(np.int32)
    graph = csr_array((most, (tails, heads)), shape=(2 * size + 2, 2 * size + 2))
    return size - int(maximum_flow(graph, source, sink).flow_value)


# A partial order on named elements as arrays of positions: what it relates, its shape, and closed records.

N = TypeVar("N", bound=Hashable)


class Relation:
    """What :class:`.Poset` knows about its elements once they are read; it is immutable.

    Positions in arrays are positions in ``elements``.
    """

    _index: dict[Hashable, int]
    _order: Ints
    _covers: Ints
    choices: tuple[Choice, ...]
    """The groups of elements that exclude each other. See :mod:`isotone.order.closure`."""

    def _settle(self, index: dict[Hashable, int], pairs: Ints) -> None:
        """Find a linear extension and the covers."""
        n = len(index)
        pairs = _sorted_pairs(pairs)  # nothing depends on the sequence in which relations were given
        lower, upper = np.ascontiguousarray(pairs.T)
        order, cycle = closure.linear_order(*closure.ends_by_start(n, upper, lower))
        if cycle.size:
            names = list(index)
            raise description.cycle_error([names[x] for x in cycle[::-1]])
        known = self.__dict__
        known["_index"], known["_order"] = index, order
        if np.bincount(lower, minlength=n).max() <= 1:  # no element has two upper ones: nothing follows
            known["_covers"] = np.ascontiguousarray(pairs)
        else:
            bits = closure.closure(order, *closure.ends_by_start(n, lower, upper))
            known["_closure"] = bits
            covers = closure.reduction(order, lower, upper, bits)
            below, above = np.ascontiguousarray(covers.T)
            known["_covers"] = covers
            # once more, from the covers: relations that follow from others must not show in the sequence
            known["_order"], _ = closure.linear_order(*closure.ends_by_start(n, above, below))

    # Elements and relations

    @cached_property
    def elements(self) -> tuple[Hashable, ...]:
        """The names, in the sequence that gives arrays their meaning."""
        return tuple(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._index)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def index(self, name: Hashable) -> int:
        """The position of a name."""
        return description.find(self._index, name)

    @cached_property
    def covers(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The pairs ``(lower, upper)`` with nothing between them (the transitive reduction), as names."""
        names = self.elements
        return tuple((names[a], names[b]) for a, b in self._covers.tolist())

    @cached_property
    def cover_pairs(self) -> Ints:
        """The covers as an ``(m, 2)`` array of positions, in lexicographic order."""
        return read_only(self._covers)

    def leq(self, a: Hashable, b: Hashable) -> bool:
        """Whether ``a ≤ b``, so that a yes to ``a`` implies a yes to ``b``."""
        x, y = self.index(a), self.index(b)
        return bool(int(self._closure[x, y >> 6]) >> (y & 63) & 1)

    def leq_matrix(self) -> NDArray[np.bool_]:
        """A new ``(n, n)`` matrix whose entry ``[i, j]`` says that element i ≤ element j."""
        return closure.unpack(self._closure, len(self))

    def up_set(self, name: Hashable) -> frozenset[Hashable]:
        """The smallest filter that contains ``name``.

        It holds ``name`` and the elements above it.
        """
        return self._reach(self.index(name), *self._uppers)

    def down_set(self, name: Hashable) -> frozenset[Hashable]:
        """The elements below ``name``, and ``name``."""
        return self._reach(self.index(name), *self._lowers)

    @property
    def minimal(self) -> tuple[Hashable, ...]:
        """The elements with nothing below them."""
        return tuple(self.elements[x] for x in np.flatnonzero(self.levels == 0))

    @property
    def maximal(self) -> tuple[Hashable, ...]:
        """The elements with nothing above them."""
        below_something = set(self._covers[:, 0].tolist())
        return tuple(name for x, name in enumerate(self.elements) if x not in below_something)

    # Shape

    @cached_property
    def levels(self) -> Ints:
        """For each element the length of the longest chain strictly below it (0 for minimal ones)."""
        return read_only(closure.levels(self._order, *self._lowers))

    @property
    def height(self) -> int:
        """The number of elements of a longest chain."""
        return int(self.levels.max()) + 1

    @cached_property
    def width(self) -> int:
        """The number of elements of a largest antichain. See :mod:`isotone.order.poset`."""
        return width(len(self.levels), *self._cover_columns)

    def linear_extension(self) -> tuple[Hashable, ...]:
        """All names, each after everything below it.

        They stay as given, but for lower ones that are pulled forward.

        >>> from isotone.order import Poset
        >>> Poset(["hyp", "twice", "meds"], [("twice", "hyp")]).linear_extension()
        ('twice', 'hyp', 'meds')
        """
        return tuple(self.elements[x] for x in self._order)

    @cached_property
    def linear_order(self) -> Ints:
        """The positions of ``linear_extension()``, bottom up."""
        return read_only(self._order)

    @cached_property
    def is_forest(self) -> bool:
        """Whether each element has at most one upper cover, as questions with one gate do."""
        return bool(np.bincount(self._covers[:, 0], minlength=1).max() <= 1)

    @cached_property
    def parents(self) -> Ints:
        """In a forest the position of each element's only upper cover, or -1."""
        if not self.is_forest:
            raise OrderError("Only a forest has parents: an element of this order has two upper covers.")
        parents = np.full(len(self), -1, np.int64)
        parents[self._covers[:, 0]] = self._covers[:, 1]
        return read_only(parents)

    # Records

    def is_filter(self, record: Record) -> bool:
        """Whether a record (a mapping, a set of names, or one 0/1 per element) is closed upward.

        >>> from isotone.order import Poset
        >>> P = Poset.chain(["twice", "hyp"])
        >>> P.is_filter({"hyp"}), P.is_filter({"twice": 1, "hyp": 0}), P.is_filter([1, 1])
        (True, False, True)
        """
        return bool(self.are_filters(read_record(self._index, record)[None, :])[0])

    @overload
    def close(self, record: Mapping[N, Any]) -> dict[N, bool]: ...
    @overload
    def close(self, record: Set[N]) -> frozenset[N]: ...
    @overload
    def close(self, record: Sequence[Any] | NDArray[Any]) -> NDArray[np.bool_]: ...
    def close(self, record: Record) -> Any:
        """The smallest filter that contains a record, in the record's own form."""
        closed = self.close_all(read_record(self._index, record)[None, :])[0]
        return like(record, self.elements, closed)

    def are_filters(self, matrix: ArrayLike) -> NDArray[np.bool_]:
        """For each row of a 0/1 matrix (records × elements) whether it is closed upward."""
        return are_filters(self._covers, read_matrix(len(self), matrix))

    def close_all(self, matrix: ArrayLike) -> NDArray[np.bool_]:
        """Each row of a 0/1 matrix (records × elements) closed upward."""
        closed = read_matrix(len(self), matrix).copy()
        close_all(self._covers_bottom_up, closed)
        return closed

    # As a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Relation):
            return NotImplemented
        if self.elements == other.elements:
            return np.array_equal(self._covers, other._covers) and self.choices == other.choices
        return self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[frozenset[Any], ...]:
        choices = frozenset((choice.kind, frozenset(choice.options)) for choice in self.choices)
        return frozenset(self.elements), frozenset(self.covers), choices

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Poset is immutable: build a new one, for example with induced() or rename().")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    # Kept once computed

    @cached_property
    def _closure(self) -> Bits:
        return closure.closure(self._order, *self._uppers)

    @cached_property
    def _uppers(self) -> tuple[Ints, Ints]:
        return closure.ends_by_start(len(self), *self._cover_columns)

    @cached_property
    def _lowers(self) -> tuple[Ints, Ints]:
        lower, upper = self._cover_columns
        return closure.ends_by_start(len(self), upper, lower)

    @property
    def _cover_columns(self) -> tuple[Ints, Ints]:
        lower, upper = np.ascontiguousarray(self._covers.T)
        return lower, upper

    @cached_property
    def _covers_bottom_up(self) -> Ints:
        rank = np.empty(len(self), np.int64)
        rank[self._order] = np.arange(len(self))
        return self._covers[np.argsort(rank[self._covers[:, 0]], kind="stable")]

    def _reach(self, x: int, starts: Ints, ends: Ints) -> frozenset[Hashable]:
        seen, waiting = {x}, [x]
        while waiting:
            y = waiting.pop()
            new = set(ends[starts[y] : starts[y + 1]].tolist()) - seen
            seen |= new
            waiting.extend(new)
        return frozenset(self.elements[y] for y in seen)


def _sorted_pairs(pairs: Ints) -> Ints:
    """Rows of positions in lexicographic order."""
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array, protected from being written to."""
    view = array.view()
    view.flags.writeable = False
    return view


# Finite partial orders.


class Poset(Relation):
    """A finite partial order.

    ``Poset(elements, relations)``: ``elements`` are distinct hashable names (at least one), ``relations``
    pairs ``(lower, upper)``, read "a yes to lower implies a yes to upper". Relations may repeat, may leave
    out what follows by transitivity, and may relate a name to itself, which says nothing and is ignored;
    they must not form a cycle. ``choices`` are pairs ``(kind, options)``: of the options of an ``"exclusive"``
    choice a record has at most one, and of a ``"partition"`` exactly one if it has their parent, so that their
    counts add up. Choices that overlap, or cannot be recoded as an order (:mod:`isotone.order.closure`), are refused.

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
        self.__dict__["choices"] = exclusive.read_choices(choices, index)
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
        relation = description.read_matrix(matrix)
        names = tuple(range(len(relation))) if elements is None else tuple(elements)
        if len(names) != len(relation):
            raise OrderError(f"A matrix of {len(relation)} rows needs as many elements, not {len(names)}.")
        description.check_reflexive_antisymmetric(relation, names)
        poset = cls._of(names, _strict_pairs(relation))
        closed = poset.leq_matrix()
        if not np.array_equal(closed, relation):
            raise description.not_transitive(relation, closed, names)
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

        See :mod:`isotone.order.building`.
        """
        from isotone.order.building import random_dag

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
        """Counts as counts over an order without choices, and back. See :mod:`isotone.order.closure`."""
        from isotone.order.closure import code

        return code(self)

    @cached_property
    def canonical(self) -> Canonical:
        """The same order with its elements in canonical sequence.

        See :mod:`isotone.order.building`.
        """
        from isotone.order.building import Canonical, canonical_positions

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
        from isotone.order.bipartitions import counting as bipartitions

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
        from isotone.order.drawing import draw

        return draw(self, ax, values, labels, direction)


def _strict_pairs(leq: NDArray[np.bool_]) -> Ints:
    """The entries of a matrix off the diagonal, as rows of positions."""
    return np.argwhere(leq & ~np.eye(len(leq), dtype=np.bool_))


# Stages that close records upward.
#
# Which answers are joined to which is computed from the order alone.

Stage = dict[int, list[int]]
"""For some elements, by number, the elements whose answers are joined to theirs, all at once."""


def closing_stages(P: Poset) -> list[Stage]:
    """The stages that close any record upward.

    After them an element is a yes if one at or below it was.

    Levels are cut into blocks. First all blocks are closed in themselves, level by level along the covers. Then neighbouring
    blocks are joined in pairs, again and again: an element of the upper one joins the answers of the greatest elements
    below it in the lower one. The height of the first blocks is the power of two that makes the stages cheapest: all levels
    for flat orders, where the terms are the covers; one for chains, where n log n terms do in log n stages.
    """
    lower: list[list[int]] = [[] for _ in range(len(P))]
    for w, x in P.cover_pairs.tolist():
        lower[x].append(w)
    level = _levels(P)
    sizes = [1 << k for k in range(int(level.max()).bit_length())]
    best = _within(lower, level, len(P))
    merges: list[Stage] = []
    for size in reversed(sizes):
        merge = _across(P, lower, level, size, most=_cost(best, len(P)))
        if merge is None:
            break
        merges.insert(0, merge)
        best = min(best, [*_within(lower, level, size), *merges], key=lambda stages: _cost(stages, len(P)))
    return best


def _cost(stages: list[Stage], columns: int) -> int:
    """The cost of the stages.

    The number of terms, and the number of columns for each stage, since every column goes through it.
    """
    return columns * len(stages) + sum(len(joined) for stage in stages for joined in stage.values())


def _levels(P: Poset) -> NDArray[np.int64]:
    """Levels from 0, as high as the elements above allow.

    An element of a forest is then just below its upper one.
    """
    above = np.zeros(len(P), dtype=np.int64)
    place = np.empty(len(P), dtype=np.int64)
    place[P.linear_order] = np.arange(len(P))
    for w, x in sorted(P.cover_pairs.tolist(), key=lambda pair: -place[pair[0]]):
        above[w] = max(above[w], above[x] + 1)
    return above.max() - above


def _within(lower: list[list[int]], level: NDArray[np.int64], size: int) -> list[Stage]:
    """Close each block of ``size`` levels in itself, level by level."""
    stages: list[Stage] = [{} for _ in range(size - 1)]
    for x, below in enumerate(lower):
        joined = [w for w in below if level[w] // size == level[x] // size]
        if joined:
            stages[level[x] % size - 1][x] = joined
    return [stage for stage in stages if stage]


def _across(P: Poset, lower: list[list[int]], level: NDArray[np.int64], size: int, most: int) -> Stage | None:
    """Join pairs of closed blocks of ``size`` levels.

    Returns None if that takes more than ``most`` terms.
    """
    stage: Stage = {}
    terms = 0
    for x in P.linear_order.tolist():
        block = level[x] // size
        if block % 2 == 0:
            continue
        result: set[int] = set()
        for w in lower[x]:
            if level[w] // size == block:
                result.update(stage.get(w, ()))
            elif level[w] // size == block - 1:
                result.add(w)
        if result:
            stage[x] = _greatest(P, sorted(result))
            terms += len(stage[x])
        if terms > most:
            return None
    return stage


def _greatest(P: Poset, elements: list[int]) -> list[int]:
    """The elements that are below none of the others."""
    if len(elements) == 1:
        return elements
    names = P.elements
    return [w for w in elements if not any(x != w and P.leq(names[w], names[x]) for x in elements)]
