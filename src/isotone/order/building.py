"""Orders from relations, matrices, parents, other orders and hierarchies, and at random; and their canonical sequence."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.errors import InputError, OrderError
from isotone.kernels import kernel
from isotone.order.closure import Bits, lowest_bit, unpack

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Read and check the description of an order.
#
# Names, pairs of names, matrices or parents. All checks of input are here.
#
# Everything in a description is public, so messages quote it freely; each says how to repair it.


def read_elements(elements: Iterable[Hashable]) -> dict[Hashable, int]:
    """The position of each name, refusing what cannot be the elements of an order."""
    index: dict[Hashable, int] = {}
    for position, name in enumerate(elements):
        try:
            first = index.setdefault(name, position)
        except TypeError:
            raise OrderError(
                f"A {type(name).__name__} is not hashable, so it is no name of an element. Use text, a number or a tuple."
            ) from None
        if first != position:
            raise OrderError(
                f"The element {name!r} is given twice (positions {first} and {position}). "
                "Names must differ: drop one or rename it."
            )
    if not index:
        raise OrderError("An order needs at least one element. Name the questions (or items) to count.")
    return index


def find(index: Mapping[Hashable, int], name: Any) -> int:
    """The position of ``name``, or an error that proposes what may have been meant."""
    try:
        return index[name]
    except TypeError:
        raise OrderError(
            f"A {type(name).__name__} is not hashable, so it is no name. Use one of the elements."
        ) from None
    except KeyError:
        raise _unknown_name(index, name) from None


def _unknown_name(names: Collection[Hashable], name: Hashable) -> OrderError:
    close = get_close_matches(str(name), [str(known) for known in names], n=1) if len(names) <= 10_000 else []
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return OrderError(f"{name!r} is not an element of this order.{hint} Correct it or add it.")


def read_relations(relations: Iterable[Any], index: Mapping[Hashable, int]) -> Ints:
    """Positions of the distinct pairs ``(lower, upper)``, without those that relate a name to itself."""
    pairs: dict[tuple[int, int], None] = {}
    for relation in relations:
        lower, upper = _pair(relation)
        pair = find(index, lower), find(index, upper)
        if pair[0] != pair[1]:
            pairs[pair] = None
    return np.array(list(pairs), np.int64).reshape(-1, 2)


def _pair(relation: Any) -> tuple[Any, Any]:
    if not isinstance(relation, (str, bytes, set, frozenset, Mapping)):
        try:
            lower, upper = relation
        except (TypeError, ValueError):
            pass
        else:
            return lower, upper
    raise OrderError(f"A relation must be a pair (lower, upper) of names, not {relation!r}.")


def read_matrix(matrix: ArrayLike) -> NDArray[np.bool_]:
    """A square matrix of 0 and 1 (or booleans) as booleans."""
    relation = np.asarray(matrix)
    if relation.ndim != 2 or relation.shape[0] != relation.shape[1]:
        raise OrderError(
            f"An order's matrix must be square, [i, j] saying i ≤ j; this one is {relation.shape}."
        )
    if relation.size == 0:
        raise OrderError("An order needs at least one element: this matrix has none.")
    if relation.dtype.kind not in "biuf" or not np.isin(relation, (0, 1)).all():
        raise OrderError("An order's matrix must hold only 0 and 1 (or booleans).")
    return relation.astype(np.bool_)


def check_reflexive_antisymmetric(matrix: NDArray[np.bool_], names: Sequence[Hashable]) -> None:
    """Refuse a matrix with a gap in its diagonal or two elements below each other."""
    if not matrix.diagonal().all():
        name = names[int(np.argmin(matrix.diagonal()))]
        raise OrderError(
            f"In this matrix {name!r} is not related to itself. An order is reflexive: set the diagonal to 1."
        )
    both = matrix & matrix.T
    np.fill_diagonal(both, False)
    if both.any():
        i, j = (names[int(k)] for k in np.argwhere(both)[0])
        raise OrderError(
            f"In this matrix {i!r} ≤ {j!r} and {j!r} ≤ {i!r}. In an order they would be one element: "
            "clear one of the two entries, or merge the elements."
        )


def not_transitive(
    matrix: NDArray[np.bool_], closed: NDArray[np.bool_], names: Sequence[Hashable]
) -> OrderError:
    """The error for a matrix that lacks an entry of its closure, with the two entries that call for it."""
    for i, k in np.argwhere(closed & ~matrix):
        between = np.flatnonzero(matrix[i] & matrix[:, k])
        if between.size:  # the first gap on a path has two steps: some gap always does
            a, b, c = names[int(i)], names[int(between[0])], names[int(k)]
            return OrderError(
                f"This matrix is not transitive: {a!r} ≤ {b!r} ≤ {c!r}, but {a!r} ≤ {c!r} is missing. "
                "Set that entry, or pass the pairs to Poset(elements, relations), which closes them."
            )
    raise AssertionError("the matrix is closed")


def read_mapping(mapping: Any) -> tuple[list[Hashable], list[tuple[Hashable, Hashable]]]:
    """Elements and relations of a mapping from children to parents.

    ``child: parent | [parents] | None``. Parents that are no keys come last.
    """
    if not isinstance(mapping, Mapping):
        raise OrderError(
            f"An order is made of a mapping from each name to what it implies, not of a {type(mapping).__name__}: "
            "Poset(elements, relations) takes pairs."
        )
    parents = cast("Mapping[Any, Any]", mapping)
    elements = dict.fromkeys(parents)
    relations: list[tuple[Hashable, Hashable]] = []
    for child, above in parents.items():
        if above is None:
            continue
        if isinstance(above, tuple) and above not in elements:
            raise OrderError(f"The parent {above!r} of {child!r} is a tuple but no element. Pass a list.")
        several = above if isinstance(above, (list, set, frozenset)) else [above]
        if child in several:
            raise OrderError(
                f"{child!r} cannot be its own parent. Name what it implies, or leave this relation out."
            )
        relations.extend((child, parent) for parent in several)
    for _, parent in relations:
        try:
            elements.setdefault(parent)
        except TypeError:
            raise OrderError(
                f"A {type(parent).__name__} is not hashable, so it is no name of a parent."
            ) from None
    return list(elements), relations


_MOST_COMPARED = 1_000
"""Elements of an order whose names are compared with each other."""


def lookalikes(P: Poset) -> list[tuple[str, str]]:
    """Pairs of names that may be one name and a slip of the pen.

    The first has elements below it and none above, which is all that a misspelt parent has; the second is not related to it, and one
    of its words differs by one letter. Of large orders there are none.

    >>> from isotone.order import Poset
    >>> lookalikes(Poset.from_mapping({"weekly": "bikee", "helmet": "bike", "ever_rode": None}))
    [('bikee', 'bike')]
    """
    if len(P) > _MOST_COMPARED:
        return []
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for top in P.maximal:
        below = P.down_set(top)
        for other in P.elements if len(below) > 1 else ():
            if other not in below and _differ_by_a_letter(str(top), str(other)):
                pairs.setdefault(frozenset((str(top), str(other))), (str(top), str(other)))
    return list(pairs.values())


def _differ_by_a_letter(one: str, other: str) -> bool:
    """Whether two names differ in one word of four letters or more, by a letter that is replaced, left out, added or swapped."""
    words, others = (re.findall(r"[^\W\d_]+|[\W\d_]+", name) for name in (one, other))
    if abs(len(one) - len(other)) > 1 or len(words) != len(others):
        return False
    odd = [(a, b) for a, b in zip(words, others, strict=True) if a != b]
    if len(odd) != 1 or not all(len(word) > 3 and word.isalpha() for word in odd[0]):
        return False
    short, long = sorted(odd[0], key=len)
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    a, b = short[start:], long[start:]
    return a == b[1:] if len(a) < len(b) else a[1:] == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:])


def cycle_error(names: Sequence[Hashable]) -> OrderError:
    """The error for relations that form a cycle.

    Each name lies below the next, the last below the first.
    """
    shown = [repr(name) for name in names]
    if len(shown) > 12:
        shown[6:-5] = [f"… {len(shown) - 11} more …"]
    cycle = " ≤ ".join([*shown, shown[0]])
    return OrderError(
        f"These relations form a cycle: {cycle}. In an order its elements would be equal: "
        "drop one of these relations, or merge the elements."
    )


# Names and relations of several posets, side by side or stacked.


def beside(posets: Sequence[Poset]) -> tuple[list[Hashable], Ints]:
    """All names, and the covers of each poset."""
    pairs = [poset.cover_pairs + first for poset, first in zip(posets, _firsts(posets), strict=True)]
    return _names(posets), np.concatenate(pairs)


def stacked(posets: Sequence[Poset]) -> tuple[list[Hashable], Ints]:
    """The same, and every maximal element below every minimal one of the next poset."""
    names, inside = beside(posets)
    firsts = _firsts(posets)
    pairs = [inside]
    for k in range(1, len(posets)):
        tops = [posets[k - 1].index(name) + firsts[k - 1] for name in posets[k - 1].maximal]
        bottoms = [posets[k].index(name) + firsts[k] for name in posets[k].minimal]
        pairs.append(np.column_stack((np.repeat(tops, len(bottoms)), np.tile(bottoms, len(tops)))))
    return names, np.concatenate(pairs)


def crossed(posets: Sequence[Poset]) -> tuple[list[Hashable], Ints]:
    """All tuples with one name of each poset, the last one running fastest, and the covers of their product."""
    if not posets:
        raise OrderError("There is nothing to combine: pass at least one poset.")
    sizes = [len(poset) for poset in posets]
    places = np.arange(np.prod(sizes)).reshape(sizes)
    pairs: list[Ints] = []
    for axis, poset in enumerate(posets):
        rows = np.moveaxis(places, axis, 0).reshape(sizes[axis], -1)
        pairs.append(rows[poset.cover_pairs].transpose(0, 2, 1).reshape(-1, 2))
    return list(product(*posets)), np.concatenate(pairs)


def _firsts(posets: Sequence[Poset]) -> list[int]:
    """The position of each poset's first element among all."""
    if not posets:
        raise OrderError("There is nothing to combine: pass at least one poset.")
    sizes = [len(poset) for poset in posets]
    return [sum(sizes[:k]) for k in range(len(sizes))]


def _names(posets: Sequence[Poset]) -> list[Hashable]:
    names: dict[Hashable, None] = {}
    for poset in posets:
        for name in poset:
            if name in names:
                raise OrderError(
                    f"Two of the posets have an element {name!r}. Give one new names with rename()."
                )
            names[name] = None
    return list(names)


# An order in one fixed sequence, whatever the sequence in which it was described.
#
# What is computed from an order in floating point, or from seeded draws, depends on the sequence of its elements: sums
# are rounded differently, draws go to other elements. So such things are computed for the canonical sequence and mapped
# back, and two descriptions of one order have identical results. The sequence is a linear extension: by level, then by
# name as text, so that an order read back from a file, where all names are text, has the same one.

T = TypeVar("T", bound=np.generic)


def canonical_positions(poset: Poset) -> Ints:
    """The positions of the elements in the canonical sequence, in O(n log n + covers)."""
    names, levels = poset.elements, poset.levels.tolist()

    def key(x: int) -> tuple[int, str, str]:
        return levels[x], str(names[x]), type(names[x]).__qualname__  # 1 and "1" may stand side by side

    return np.array(sorted(range(len(names)), key=key), np.int64)


@dataclass(frozen=True, eq=False)
class Canonical:
    """An order with its elements in canonical sequence.

    ``positions[k]`` is where the element at place k of the canonical sequence stands in the sequence given.
    """

    order: Poset
    positions: Ints

    def forth(self, values: NDArray[T]) -> NDArray[T]:
        """Values in the sequence given (last axis), in canonical sequence."""
        return values[..., self.positions]

    def back(self, values: NDArray[T]) -> NDArray[T]:
        """Values in canonical sequence (last axis), in the sequence given."""
        result: NDArray[Any] = np.empty_like(values)
        result[..., self.positions] = values
        return result


# Random acyclic digraphs, uniform over all labelled ones.
#
# The Markov chain of Melançon, Dutour and Bousquet-Mélou (2001): pick an ordered pair of vertices at random;
# if it is an arc, remove it; if not, and adding it closes no circuit, add it; else do nothing. Steps can be
# undone with the same probability, any digraph can be emptied and filled again, and a pair of equal vertices
# leaves things as they are: the chain converges to the uniform distribution.

_BLOCK = 1 << 20


def default_steps(n: int) -> int:
    """The default number of steps, 20 n² (1 + ln n).

    The chain starts from the empty digraph.

    Every pair is then picked about 20 (1 + ln n) times. Starting from no arcs at all, every labelling is
    equally likely at every step, so only the shape has to converge; measured against exact counts (all
    digraphs with 3 and 4 vertices, the numbers of arcs and of sources with up to 80) a tenth is enough.
    """
    return int(np.ceil(20 * n * n * (1 + np.log(n))))


def random_dag(n: int, rng: np.random.Generator, steps: int | None = None) -> Ints:
    """The arcs of a random acyclic digraph on ``0..n-1``, an ``(m, 2)`` array.

    A step is O(n / 64) word operations for each vertex searched, at most O(n² / 64).
    """
    if n < 1:
        raise InputError(f"A random order needs at least one element, not n = {n!r}.")
    left = default_steps(n) if steps is None else steps
    if left < 0:
        raise InputError(f"steps must be at least 0, not {steps!r}.")
    arcs = np.zeros((n, (n + 63) >> 6), np.uint64)
    while left > 0:
        block = min(left, _BLOCK)
        _walk(arcs, rng.integers(n, size=(block, 2)))
        left -= block
    return np.argwhere(unpack(arcs, n))


@kernel
def _walk(arcs: Bits, pairs: Ints) -> None:
    """One step of the chain for each pair, in place. Bit j of row i is the arc i → j."""
    n, words = arcs.shape
    reached = np.empty(words, np.uint64)
    waiting = np.empty(n, np.int64)
    for step in range(pairs.shape[0]):
        i, j = pairs[step]
        bit = np.uint64(1) << np.uint64(j & 63)
        if arcs[i, j >> 6] & bit:
            arcs[i, j >> 6] ^= bit
        elif i != j and not _leads_to(arcs, j, i, reached, waiting):
            arcs[i, j >> 6] |= bit


@kernel
def _leads_to(arcs: Bits, start: int, goal: int, reached: Bits, waiting: Ints) -> bool:
    """Whether a path leads from ``start`` to ``goal``.

    ``reached`` and ``waiting`` are scratch space.
    """
    goal_word, goal_bit = goal >> 6, np.uint64(1) << np.uint64(goal & 63)
    reached[:] = np.uint64(0)
    waiting[0], count = start, 1
    while count > 0:
        count -= 1
        x = waiting[count]
        if arcs[x, goal_word] & goal_bit:
            return True
        for w in range(arcs.shape[1]):
            new = arcs[x, w] & ~reached[w]
            reached[w] |= new
            while new:
                waiting[count] = (w << 6) + lowest_bit(new)
                count += 1
                new &= new - np.uint64(1)
    return False


# Several copies of one order, each wholly above the one before it.


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


# Orders in which a record has one leaf, as codes of a classification do.
#
# In a hierarchy the children of every element exclude each other, and so do the elements with nothing above them.


def is_hierarchy(P: Poset) -> bool:
    """Whether a record has one leaf at most, as its choices say."""
    return bool(P.choices) and hierarchy_problem(P) is None


def children_of(P: Poset, sequence: list[int]) -> dict[Hashable | None, list[Hashable]]:
    """The children of each element of a forest in the sequence of these positions, those of None being the roots."""
    names = P.elements
    children: dict[Hashable | None, list[Hashable]] = {}
    parents = P.parents.tolist()
    for x in sequence:
        children.setdefault(names[parents[x]] if parents[x] >= 0 else None, []).append(names[x])
    return children


def hierarchy_problem(P: Poset) -> str | None:
    """What keeps an order from being a hierarchy."""
    if not P.choices:
        return "it has no choices"
    if not P.is_forest:
        return "an element has two upper ones"
    group = {option: g for g, choice in enumerate(P.choices) for option in choice.options}
    for parent, children in children_of(P, list(range(len(P)))).items():
        groups = {group.get(x, -1) for x in children}
        if len(children) > 1 and (len(groups) > 1 or -1 in groups):
            below = "those with nothing above them" if parent is None else f"those below {parent!r}"
            return f"{below} do not all exclude each other"
    return None


@dataclass(frozen=True)
class Ends:
    """Where a record of a hierarchy can end, numbered so that the first number is the one that is kept.

    ``rank`` numbers the elements: what is below an element before it, and options in the sequence of the elements. The
    elements below x, and x, have the numbers from ``first[x]`` to ``rank[x]``. A record can end at x if x is a leaf, or if
    its children are no partition; ``end[x]`` is the number of the lowest such element at or above x, or None.
    """

    rank: list[int]
    first: list[int]
    end: list[int | None]

    @classmethod
    def of(cls, P: Poset) -> Ends:
        """The numbers of a hierarchy's elements, in O(n)."""
        children = children_of(P, list(range(len(P))))
        whole = {option for choice in P.choices if choice.kind == "partition" for option in choice.options}
        rank, first = [0] * len(P), [0] * len(P)
        waiting = [(x, False) for x in reversed(children[None])]
        number = 0
        while waiting:
            x, done = waiting.pop()
            place = P.index(x)
            if done:
                rank[place], number = number, number + 1
                continue
            first[place] = number
            waiting.append((x, True))
            waiting += [(y, False) for y in reversed(children.get(x, []))]
        end: list[int | None] = [None] * len(P)
        parents = P.parents.tolist()
        for place in sorted(range(len(P)), key=rank.__getitem__, reverse=True):  # from the top
            below = children.get(P.elements[place])
            if below and below[0] in whole:
                end[place] = end[parents[place]] if parents[place] >= 0 else None
            else:
                end[place] = rank[place]
        return cls(rank, first, end)

    def sums(self, P: Poset, at_rank: dict[int, int]) -> list[int]:
        """The counts of all elements, given how many records end at each number."""
        ended = np.zeros(len(P) + 1, np.int64)
        for number, count in at_rank.items():
            ended[number + 1] = count
        running = np.cumsum(ended)
        return [int(running[r + 1] - running[f]) for r, f in zip(self.rank, self.first, strict=True)]
