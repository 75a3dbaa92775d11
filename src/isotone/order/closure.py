"""Reachability as packed bits, choices among elements and their recoding as an order, and the heaviest filter."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import OrderError
from isotone.kernels import kernel

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Reachability in an acyclic relation, as packed bits.
#
# A relation on ``0..n-1`` is kept by rows: the neighbours of ``x`` are ``ends[starts[x]:starts[x + 1]]``.
# Its closure is an ``(n, words)`` array of 64-bit words: bit ``y`` of row ``x`` says that ``x <= y``. Ten
# thousand elements take 12.5 MB, and the union of two up-sets is 157 word operations. With m relations
# everything here is O(m) but the closure and the reduction, which are O(m n / 64).

Bits = NDArray[np.uint64]


@kernel(steps=lambda n, start, end: n + start.size)
def ends_by_start(n: int, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The rows ``(starts, ends)`` of the relation with the pairs ``(start[k], end[k])``, in their order."""
    starts = np.zeros(n + 1, np.int64)
    for x in start:
        starts[x + 1] += 1
    for x in range(n):
        starts[x + 1] += starts[x]
    free = starts[:-1].copy()
    ends = np.empty(start.size, np.int64)
    for k in range(start.size):
        ends[free[start[k]]] = end[k]
        free[start[k]] += 1
    return starts, ends


@kernel(steps=lambda starts, lowers: starts.size + lowers.size)
def linear_order(starts: Ints, lowers: Ints) -> tuple[Ints, Ints]:
    """A linear extension, bottom up, or a cycle.

    One of the two results is empty.

    Rows hold what lies below. The extension lists ``0, 1, 2, …`` but for elements pulled forward because a
    listed one is above them, so elements given in a linear order come back as given. The cycle goes down:
    each entry lies above the next, the last above the first.
    """
    n = starts.size - 1
    order = np.empty(n, np.int64)
    placed = 0
    path = np.empty(n, np.int64)
    cursor = starts[:-1].copy()
    state = np.zeros(n, np.uint8)  # 0 unseen, 1 on the path, 2 placed
    for root in range(n):
        if state[root] != 0:
            continue
        path[0], depth, state[root] = root, 1, 1
        while depth > 0:
            x = path[depth - 1]
            if cursor[x] == starts[x + 1]:
                order[placed] = x
                placed += 1
                state[x] = 2
                depth -= 1
                continue
            y = lowers[cursor[x]]
            cursor[x] += 1
            if state[y] == 0:
                path[depth] = y
                depth += 1
                state[y] = 1
            elif state[y] == 1:
                first = 0
                while path[first] != y:
                    first += 1
                return order[:0], path[first:depth].copy()
    return order, path[:0]


@kernel(steps=lambda order, starts, uppers: (order.size + uppers.size) * (1 + (order.size >> 6)))
def closure(order: Ints, starts: Ints, uppers: Ints) -> Bits:
    """The reflexive transitive closure.

    ``order`` is a linear extension, and the rows hold what lies above.
    """
    n = order.size
    bits = np.zeros((n, (n + 63) >> 6), np.uint64)
    for x in order[::-1]:
        row = bits[x]
        row[x >> 6] |= np.uint64(1) << np.uint64(x & 63)
        for y in uppers[starts[x] : starts[x + 1]]:
            if not row[y >> 6] >> np.uint64(y & 63) & np.uint64(1):
                for w in range(row.size):
                    row[w] |= bits[y, w]
    return bits


@kernel(steps=lambda order, lower, upper, bits: (order.size + lower.size) * bits.shape[1])
def reduction(order: Ints, lower: Ints, upper: Ints, bits: Bits) -> Ints:
    """The covers among the pairs ``(lower[k], upper[k])``, an ``(m, 2)`` array in lexicographic order.

    Above each ``x`` candidates are met in linear order; one is a cover exactly when it is not above an
    earlier cover of ``x``.
    """
    n = order.size
    rank = np.empty(n, np.int64)
    for k in range(n):
        rank[order[k]] = k
    # Rows of ranks come out ascending when their entries are dealt out in ascending order.
    below_starts, below = ends_by_start(n, rank[upper], lower)
    dealt = np.empty(lower.size, np.int64)
    for k in range(n):
        dealt[below_starts[k] : below_starts[k + 1]] = order[k]
    starts, candidates = ends_by_start(n, below, dealt)

    covers = np.empty((lower.size, 2), np.int64)
    result = 0
    above = np.empty(bits.shape[1], np.uint64)
    for x in range(n):
        above[:] = np.uint64(0)
        first = result
        for y in candidates[starts[x] : starts[x + 1]]:
            if above[y >> 6] >> np.uint64(y & 63) & np.uint64(1):
                continue
            for w in range(above.size):
                above[w] |= bits[y, w]
            covers[result, 0] = x
            covers[result, 1] = y
            result += 1
        covers[first:result, 1].sort()
    return covers[:result].copy()


@kernel(steps=lambda order, starts, lowers: order.size + lowers.size)
def levels(order: Ints, starts: Ints, lowers: Ints) -> Ints:
    """For each element the length of the longest chain below it (0 for a minimal one)."""
    level = np.zeros(order.size, np.int64)
    for x in order:
        for y in lowers[starts[x] : starts[x + 1]]:
            level[x] = max(level[x], level[y] + 1)
    return level


@kernel(steps=lambda bits: bits.size * 64)
def sizes(bits: Bits) -> Ints:
    """The number of bits set in each row."""
    size = np.zeros(bits.shape[0], np.int64)
    for x in range(bits.shape[0]):
        for word in bits[x]:
            while word:
                word &= word - np.uint64(1)
                size[x] += 1
    return size


def unpack(bits: Bits, n: int) -> NDArray[np.bool_]:
    """Rows of packed bits as rows of ``n`` booleans."""
    little = bits.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(little, axis=1, count=n, bitorder="little").view(np.bool_)


# Multiplied by a de Bruijn sequence, the 64 powers of two have 64 different leading six bits.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_OF = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_OF[((1 << _bit) * int(_DE_BRUIJN) % 2**64) >> 58] = _bit


@kernel
def lowest_bit(word: np.uint64) -> int:
    """The position of the lowest bit that is set (in a word that is not 0)."""
    return _BIT_OF[((word & (~word + np.uint64(1))) * _DE_BRUIJN) >> np.uint64(58)]


# Exclusive options as an order: running totals in place of counts.
#
# Number the options of a choice c1, …, ck. To the count of each element at or below ci add the counts of c1, …,
# c(i-1), for every choice on the way up. Then the records become exactly the filters of an order Q, in which
# what is below c1 lies below what is below c2, and so on; the last option of a partition has the running total
# of its parent, and is one with it. The map can be undone by differences, in whole numbers. So noise for Q is
# noise for the counts (docs/theory/exclusive.md, section 1).

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
        expected: set[Hashable] = set()
        for x in waiting:
            option = options.nearest[x]
            while option is not None and option not in expected:
                expected.add(option)
                option = options.enclosing[option]
        chosen = (next((x for x in choice.options if x in expected), None) for choice in P.choices)
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
    result: list[tuple[Hashable, Sequence[Hashable], list[Hashable]]] = []
    for choice in P.choices:
        if choice.kind == "partition":
            top = parent[choice.options[0]]
            others = {y for x in children[top] if x not in choice.options for y in P.down_set(x)}
            result.append((top, choice.options, [x for x in P.elements if x in others]))
    return sorted(result, key=lambda one: int(P.levels[P.index(one[0])]))


# The filter of largest total weight.
#
# Definition: given a weight for each element, a set that holds with an element everything above it and has the
# largest sum (the closure problem). Arcs of unlimited capacity along the covers, from a source to the positive
# weights and from the negative ones to a sink: a minimum cut is such a set (Picard 1976). Complexity: Dinic's
# maximum flow, in exact integers.

_UNLIMITED = np.int64(2**62)


@kernel
def _distances(
    source: int,
    first: NDArray[np.int64],
    after: NDArray[np.int64],
    to: NDArray[np.int64],
    room: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The number of arcs from the source to every node.

    Only arcs with residual capacity count. -1 where there is no path.
    """
    distance = np.full(first.size, -1, np.int64)
    queue = np.empty(first.size, np.int64)
    distance[source] = 0
    queue[0] = source
    read, write = 0, 1
    while read < write:
        u = queue[read]
        read += 1
        arc = first[u]
        while arc >= 0:
            if room[arc] > 0 and distance[to[arc]] < 0:
                distance[to[arc]] = distance[u] + 1
                queue[write] = to[arc]
                write += 1
            arc = after[arc]
    return distance


@kernel
def _blocking_flow(
    source: int,
    sink: int,
    distance: NDArray[np.int64],
    first: NDArray[np.int64],
    after: NDArray[np.int64],
    to: NDArray[np.int64],
    room: NDArray[np.int64],
) -> int:
    """Push flow along shortest ways until each is blocked (a phase of Dinic's algorithm)."""
    current = first.copy()
    way = np.empty(first.size, np.int64)
    pushed = 0
    length, u = 0, source
    while True:
        if u == sink:
            amount = _UNLIMITED
            for k in range(length):
                amount = min(amount, room[way[k]])
            pushed += amount
            keep = length
            for k in range(length - 1, -1, -1):
                room[way[k]] -= amount
                room[way[k] ^ 1] += amount
                if room[way[k]] == 0:
                    keep = k
            u, length = to[way[keep] ^ 1], keep
        arc = current[u]
        while arc >= 0 and not (room[arc] > 0 and distance[to[arc]] == distance[u] + 1):
            arc = after[arc]
        current[u] = arc
        if arc >= 0:
            way[length] = arc
            length += 1
            u = to[arc]
        elif length == 0:
            return int(pushed)
        else:
            length -= 1
            u = to[way[length] ^ 1]
            current[u] = after[current[u]]


@kernel(steps=lambda weights, covers: 32 * (weights.size + covers.shape[0]))
def heaviest_filter(weights: NDArray[np.int64], covers: NDArray[np.int64]) -> tuple[int, NDArray[np.bool_]]:
    """The largest total weight of a filter, and the smallest filter that has it.

    ``covers`` holds rows (lower, upper). The positive weights must add up to less than 2**62; the empty filter
    counts, so the largest total is never negative.

    >>> total, kept = heaviest_filter(np.array([3, -1, -1]), np.array([[0, 1], [0, 2]]))
    >>> int(total), kept.tolist()
    (1, [True, True, True])
    """
    n = weights.size
    source, sink = n, n + 1
    arcs = 2 * (n + covers.shape[0])
    first = np.full(n + 2, -1, np.int64)
    after = np.empty(arcs, np.int64)
    to = np.empty(arcs, np.int64)
    room = np.zeros(arcs, np.int64)
    gain = 0
    arc = 0
    for k in range(n + covers.shape[0]):
        if k >= n:
            tail, head, capacity = covers[k - n, 0], covers[k - n, 1], _UNLIMITED
        elif weights[k] > 0:
            tail, head, capacity = source, k, weights[k]
            gain += weights[k]
        else:
            tail, head, capacity = k, sink, -weights[k]
        to[arc], room[arc], after[arc], first[tail] = head, capacity, first[tail], arc
        to[arc + 1], after[arc + 1], first[head] = tail, first[head], arc + 1
        arc += 2
    distance = _distances(source, first, after, to, room)
    while distance[sink] >= 0:
        gain -= _blocking_flow(source, sink, distance, first, after, to, room)
        distance = _distances(source, first, after, to, room)
    return gain, distance[:n] >= 0


# Elements that exclude each other.
#
# A *choice* is a group of elements, its options, of which a record has at most one (``exclusive``) or exactly one
# as soon as it has their parent (``partition``: their counts add up to that of the parent). Elements without a
# choice combine freely (``any``).
#
# A choice can be recoded as an order (:mod:`isotone.order.closure`) if nothing but an option itself connects what is below
# it with the rest, and if all its options have the same elements above them. Anything else is refused here.

Kind = Literal["any", "exclusive", "partition"]
"""What can occur together among the children of an element."""

Children = Kind | Mapping[Any, Any]
"""One kind for all elements, or by element a kind or a list of groups ``(kind, options)``.

The key None stands for the elements that have nothing above them."""

_REPAIR = "Declare its options any, or describe another order."


@dataclass(frozen=True)
class Choice:
    """Options that exclude each other, in the sequence of the order's elements.

    Of a ``partition`` a record has exactly one if it has the parent, of an ``exclusive`` choice one at most.
    """

    kind: Literal["exclusive", "partition"]
    options: tuple[Hashable, ...]


def read_choices(choices: Iterable[Any], index: Mapping[Hashable, int]) -> tuple[Choice, ...]:
    """The choices given as pairs ``(kind, options)``, or as :class:`Choice`, in the sequence of the elements."""
    result: list[Choice] = []
    for choice in choices:
        kind, options = _pair(choice)
        for option in options:
            if option not in index:
                raise OrderError(f"The option {option!r} of a choice is not an element of this order.")
        if len(set(options)) < len(options):
            raise OrderError(f"A choice names an option twice: {options!r}. Name each once.")
        # one option that may be missing excludes nothing
        if kind == "partition" or (kind == "exclusive" and len(options) > 1):
            result.append(Choice(kind, tuple(sorted(options, key=index.__getitem__))))
    _require_disjoint(result)
    return tuple(sorted(result, key=lambda choice: index[choice.options[0]]))


def _pair(choice: Any) -> tuple[Kind, list[Any]]:
    pair = (choice.kind, choice.options) if isinstance(choice, Choice) else choice
    try:
        kind, options = pair
        names = None if isinstance(options, (str, bytes)) else list(options)
    except (TypeError, ValueError):
        kind, names = None, None
    if names is None:
        raise OrderError(f"A choice is a pair (kind, [options]), not {choice!r}.")
    if not names:
        raise OrderError("A choice needs at least one option.")
    return _kind(kind), names


def _kind(kind: Any) -> Kind:
    if not isinstance(kind, str) or kind not in get_args(Kind):
        raise OrderError(f"Children are 'any', 'exclusive' or 'partition', not {kind!r}.")
    return kind  # pyright: ignore[reportReturnType] - one of the names


def _require_disjoint(choices: Iterable[Choice]) -> None:
    seen: set[Hashable] = set()
    for choice in choices:
        for option in choice.options:
            if option in seen:
                raise OrderError(
                    f"{option!r} is an option of two choices. Groups of options must not overlap: put the options "
                    "that exclude it below one element, and let that element exclude it."
                )
            seen.add(option)


def read_children(
    children: Children, elements: Iterable[Hashable], relations: Iterable[tuple[Hashable, Hashable]]
) -> list[tuple[Kind, list[Hashable]]]:
    """The choices that ``children`` declares for an order given by its elements and relations."""
    below: dict[Hashable, list[Hashable]] = {}
    has_parent: set[Hashable] = set()
    for child, parent in dict.fromkeys(relations):  # which may repeat, and say no more then
        if child != parent:
            below.setdefault(parent, []).append(child)
            has_parent.add(child)
    names = list(elements)
    roots = [x for x in names if x not in has_parent]
    if not isinstance(children, Mapping):
        kind = _kind(children)
        choices: list[tuple[Kind, list[Hashable]]] = [(kind, group) for group in below.values()]
        # one code for a record means one root for it too
        return [*choices, ("exclusive", roots)] if kind == "partition" and len(roots) > 1 else choices
    known = {*names, None}
    result: list[tuple[Kind, list[Hashable]]] = []
    for parent, rule in children.items():
        if parent not in known:
            raise OrderError(f"children= names {parent!r}, which is not an element of this order.")
        group = roots if parent is None else below.get(parent, [])
        result += _groups(parent, rule, group)
    return result


def _groups(parent: Any, rule: Any, group: list[Hashable]) -> list[tuple[Kind, list[Hashable]]]:
    """The choices below one element."""
    if isinstance(rule, str):
        kind = _kind(rule)
        if parent is None and kind == "partition":
            raise OrderError(
                "A partition needs a parent: elements with nothing above them are exclusive at most."
            )
        if not group and kind != "any":
            raise OrderError(f"{parent!r} has no children, so they cannot be {kind}.")
        return [(kind, group)] if group else []
    if isinstance(rule, Mapping) or not isinstance(rule, Iterable):
        raise OrderError(f"children= of {parent!r} is a kind, or a list of groups (kind, [options]).")
    result = [_pair(part) for part in rule]
    for _, options in result:
        strange = [option for option in options if option not in group]
        if strange:
            raise OrderError(f"{strange[0]!r} is not a child of {parent!r}, so it is no option below it.")
    return result


def check_choices(P: Poset) -> None:
    """Refuse choices that cannot be recoded as an order, with the reason."""
    if not P.choices:
        return
    uppers: dict[Hashable, set[Hashable]] = {}
    for lower, upper in P.covers:
        uppers.setdefault(lower, set()).add(upper)
    for choice in P.choices:
        first, *others = choice.options
        above = uppers.get(first, set())
        for option in others:
            if uppers.get(option, set()) != above:
                raise OrderError(
                    f"{first!r} and {option!r} cannot exclude each other: not the same elements are above them. "
                    f"{_REPAIR}"
                )
        if choice.kind == "partition" and len(above) != 1:
            missing = "nothing is above them" if not above else "several elements are above them"
            raise OrderError(
                f"{first!r} and its siblings are no partition: {missing}. A partition needs one parent; without "
                "it, declare them exclusive."
            )
        for option in () if P.is_forest else choice.options:
            _require_module(P, option, uppers)


def some_record(P: Poset, elements: Iterable[Hashable]) -> frozenset[Hashable]:
    """A record with as many of the elements wanted as a walk from the top finds possible.

    >>> from isotone.order import Poset
    >>> P = Poset.from_mapping({"a": "q", "b": "q"}, children="partition")
    >>> sorted(some_record(P, ["q"])), sorted(some_record(P, ["q", "b"]))
    (['a', 'q'], ['b', 'q'])
    """
    yes = set(elements)
    taken: dict[Hashable, Hashable | None] = {}
    for choice in P.choices:
        first = choice.options[0] if choice.kind == "partition" else None
        only = next((option for option in choice.options if option in yes), first)
        taken.update(dict.fromkeys(choice.options, only))
    uppers: dict[Hashable, list[Hashable]] = {}
    for lower, upper in P.covers:
        uppers.setdefault(lower, []).append(upper)
    record: set[Hashable] = set()
    for x in reversed(P.linear_extension()):
        answer = x == taken[x] if x in taken else x in yes
        if answer and all(upper in record for upper in uppers.get(x, ())):
            record.add(x)
    return frozenset(record)


def never_together(P: Poset) -> NDArray[np.bool_]:
    """A matrix that says which two elements no record has together.

    >>> from isotone.order import Poset
    >>> never_together(Poset("abc", (), [("exclusive", ["a", "b"])])).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    apart = np.zeros((len(P), len(P)), np.bool_)
    for choice in P.choices:
        part = np.full(len(P), -1)
        for number, option in enumerate(choice.options):
            part[[P.index(x) for x in P.down_set(option)]] = number
        inside = part >= 0
        apart |= inside[:, None] & inside & (part[:, None] != part)
    return apart


def _require_module(P: Poset, option: Hashable, uppers: Mapping[Hashable, set[Hashable]]) -> None:
    """Refuse an option if something below it has a way up around it."""
    inside = P.down_set(option)
    for x in inside:
        if x != option and not uppers.get(x, set()) <= inside:
            outside = next(iter(sorted(uppers[x] - inside, key=str)))
            raise OrderError(
                f"{option!r} cannot be an option: {x!r} below it also implies {outside!r}, which is not below "
                f"{option!r}. {_REPAIR}"
            )
