"""A partial order on named elements as arrays of positions: what it relates, its shape, and closed records."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.errors import OrderError
from isotone.order import closure
from isotone.order import subsets as records
from isotone.order.building import description
from isotone.order.choices import Choice
from isotone.order.closure import Bits
from isotone.order.width import width

__all__ = ["Relation", "read_only"]

N = TypeVar("N", bound=Hashable)


class Relation:
    """What :class:`.Poset` knows about its elements once they are read; it is immutable.

    Positions in arrays are positions in ``elements``.
    """

    _index: dict[Hashable, int]
    _order: Ints
    _covers: Ints
    _choices: tuple[Choice, ...]

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

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The groups of elements that exclude each other. See :mod:`.choices`."""
        return self._choices

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
        """The number of elements of a largest antichain. See :mod:`.width`."""
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

    def is_filter(self, record: records.Record) -> bool:
        """Whether a record (a mapping, a set of names, or one 0/1 per element) is closed upward.

        >>> from isotone.order import Poset
        >>> P = Poset.chain(["twice", "hyp"])
        >>> P.is_filter({"hyp"}), P.is_filter({"twice": 1, "hyp": 0}), P.is_filter([1, 1])
        (True, False, True)
        """
        return bool(self.are_filters(records.read_record(self._index, record)[None, :])[0])

    @overload
    def close(self, record: Mapping[N, Any]) -> dict[N, bool]: ...
    @overload
    def close(self, record: Set[N]) -> frozenset[N]: ...
    @overload
    def close(self, record: Sequence[Any] | NDArray[Any]) -> NDArray[np.bool_]: ...
    def close(self, record: records.Record) -> Any:
        """The smallest filter that contains a record, in the record's own form."""
        closed = self.close_all(records.read_record(self._index, record)[None, :])[0]
        return records.like(record, self.elements, closed)

    def are_filters(self, matrix: ArrayLike) -> NDArray[np.bool_]:
        """For each row of a 0/1 matrix (records × elements) whether it is closed upward."""
        return records.are_filters(self._covers, records.read_matrix(len(self), matrix))

    def close_all(self, matrix: ArrayLike) -> NDArray[np.bool_]:
        """Each row of a 0/1 matrix (records × elements) closed upward."""
        closed = records.read_matrix(len(self), matrix).copy()
        records.close_all(self._covers_bottom_up, closed)
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
