"""The compiled walk that draws extended bipartitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.steps import (
    BESIDE,
    CHAIN,
    EXACT_BINOMIALS,
    POINTS,
    PRIME,
    STACK,
    Int64,
    Numbers,
    exponent,
    mantissa,
    share,
    shift,
    split_weight,
)

# Reading integers from a stream of 64-bit words, in compiled code.
#
# The ``cursor`` is a small integer array that says where the reader is. When the words run out, or a decision
# needs arithmetic that compiled code does not have, ``cursor[STATUS]`` is set and stays set; what is returned
# from then on is meaningless, and the reader must :func:`rewind` to where the present walk started.

Stream = NDArray[np.uint64]

POSITION, HELD, SPARE, STATUS, START, ASKED, QUESTION = range(7)  # QUESTION takes three places
NEEDS_WORDS, NEEDS_ANSWER = 1, 2

SLICE = 24
"""A decision that is yes with probability at least 1 - 2^-SLICE is asked with probability 2^-SLICE only."""


class WordReader(NamedTuple):
    """Words, and the cursor that says where among them the reader is."""

    words: Stream
    cursor: Ints


def reader_of(words: Stream) -> WordReader:
    """A reader at the first word."""
    return WordReader(words, np.zeros(9, np.int64))


@kernel(leaf=True)
def settle_walk(cursor: Ints) -> None:
    """Make the present place the start of the next walk."""
    cursor[HELD], cursor[ASKED], cursor[START] = 0, 0, cursor[POSITION]


@kernel(leaf=True)
def rewind(cursor: Ints) -> None:
    """Go back to the start of the present walk. The status stays, for the caller to read."""
    cursor[HELD], cursor[ASKED], cursor[POSITION] = 0, 0, cursor[START]


@kernel(leaf=True)
def _half(reader: WordReader) -> Int64:
    """The next 32 bits."""
    words, cursor = reader
    if cursor[HELD] == 1:
        cursor[HELD] = 0
        return cursor[SPARE]
    if cursor[POSITION] >= words.size:
        cursor[STATUS] = NEEDS_WORDS
        return np.int64(0)
    word = words[cursor[POSITION]]
    cursor[POSITION] += 1
    cursor[HELD], cursor[SPARE] = 1, np.int64(word >> np.uint64(32))
    return np.int64(word & np.uint64(0xFFFFFFFF))


@kernel(leaf=True)
def bits(reader: WordReader, count: Int64) -> Int64:
    """``count`` bits as an integer, for at most 62 of them."""
    if count <= 32:
        return _half(reader) >> (32 - count) if count > 0 else np.int64(0)
    high = _half(reader)
    return (high << (count - 32)) | (_half(reader) >> (64 - count))


@kernel(leaf=True)
def below(reader: WordReader, n: Int64) -> Int64:
    """A uniform integer below ``n``, which is below 2^31.

    Multiply and keep the high half (Lemire 2019).
    """
    product = _half(reader) * np.int64(n)
    low = product & 0xFFFFFFFF
    if low < n:
        threshold = (np.int64(1) << 32) % np.int64(n)
        while low < threshold and reader.cursor[STATUS] == 0:
            product = _half(reader) * np.int64(n)
            low = product & 0xFFFFFFFF
    return product >> 32


@kernel(leaf=True)
def in_tail(reader: WordReader, rest: Int64, gap: Int64) -> bool:
    """True with probability ``rest / 2^gap``, for ``rest`` below 2^62 and any gap."""
    while gap > 62:
        width = min(32, gap - 62)
        if bits(reader, width) != 0:
            return False
        gap -= width
    return bits(reader, gap) < rest


@kernel(leaf=True)
def last_unit_kept(reader: WordReader, r: Int64, exact: Int64, gap: Int64) -> bool:
    """Whether unit r of the share of ``exact`` in units of 2^gap is kept.

    Only the last unit may have an excess.
    """
    if gap <= 0 or r < share(exact, gap) - 1:
        return True
    return in_tail(reader, exact - (r << gap) if gap <= 61 else exact, gap)


@kernel(leaf=True)
def locate(cumulative: Ints, low: Int64, high: Int64, r: Int64) -> Int64:
    """The first place from ``low`` up to before ``high`` with a cumulative weight above r, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] <= r:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(leaf=True)
def certain(reader: WordReader, answers: NDArray[np.int8], step: Int64, a: Int64, state: Int64) -> bool:
    """Decide a question whose answer is almost surely yes.

    Nothing is computed for it except in a small slice of the probability.
    """
    cursor = reader.cursor
    if bits(reader, SLICE) != 0:
        return True
    if cursor[ASKED] < answers.size:
        cursor[ASKED] += 1
        return answers[cursor[ASKED] - 1] == 1
    if cursor[STATUS] == 0:
        cursor[STATUS] = NEEDS_ANSWER
        cursor[QUESTION], cursor[QUESTION + 1], cursor[QUESTION + 2] = step, a, state
    return False


# Putting elements in their places, and telling whether they break a relation there, in compiled code.

Places = NDArray[np.int32]


@kernel
def partners_of(dropped: Ints, n: Int64) -> tuple[Ints, Ints]:
    """For each element the others that it is in a pair with, from ``starts[x]`` on: u above it, -1 - u below it."""
    starts, partners = np.zeros(n + 1, np.int64), np.empty(2 * dropped.shape[0], np.int64)
    for k in range(dropped.shape[0]):
        starts[dropped[k, 0] + 1] += 1
        starts[dropped[k, 1] + 1] += 1
    for x in range(n):
        starts[x + 1] += starts[x]
    free = starts.copy()
    for k in range(dropped.shape[0]):
        lower, upper = dropped[k, 0], dropped[k, 1]
        partners[free[lower]], partners[free[upper]] = upper, -1 - lower
        free[lower] += 1
        free[upper] += 1
    return starts, partners


@kernel(leaf=True)
def breaks(
    elements: Ints, start: Int64, count: Int64, a: Int64, starts: Ints, partners: Ints, put: Places
) -> bool:
    """Whether one of the elements just put in their places breaks a pair with one that was put before."""
    for k in range(start, start + count):
        x = elements[k]
        for j in range(starts[x], starts[x + 1]):
            other = partners[j]
            above = other >= 0
            place = put[other if above else -1 - other]
            if place >= 0 and (place < a) == (put[x] < a) and (place > put[x]) != above:
                return True
    return False


@kernel
def kept(orders: Places, sizes: Ints, dropped: Ints) -> NDArray[np.bool_]:
    """For each row whether it has each pair (lower, upper) of ``dropped`` on two sides, or in order on one."""
    place, result = np.empty(orders.shape[1], np.int32), np.empty(sizes.size, np.bool_)
    for r in range(sizes.size):
        result[r] = _keeps(orders[r], sizes[r], dropped, place)
    return result


@kernel(leaf=True)
def _keeps(order: Places, a: Int64, dropped: Ints, place: Places) -> bool:
    """Whether each pair of ``dropped`` is on two sides, or in the right order on one."""
    if dropped.shape[0] > 0:
        for k in range(order.size):
            place[order[k]] = k
    for k in range(dropped.shape[0]):
        lower, upper = place[dropped[k, 0]], place[dropped[k, 1]]
        if lower > upper and (lower < a) == (upper < a):
            return False
    return True


class Room(NamedTuple):
    """What a walk writes to.

    Step v is given ``assigned[v, 0]`` places of side A, listed in ``places`` from ``assigned[v, 1]`` on, and
    for its other elements places of side B, listed from ``assigned[v, 2]`` on; both in ascending order.
    """

    assigned: Ints
    places: Places
    spare: Places
    ends: Ints
    flags: NDArray[np.int8]
    put: Places
    """Where each element is, or empty if nobody asks."""
    out: Places
    """The element in each place."""


@kernel(leaf=True)
def scatter(reader: WordReader, room: Room, elements: Ints, start: Int64, count: Int64, v: Int64) -> None:
    """Put a random part of the elements of step v on side A and the others on side B, each side in their order."""
    places, put, out = room.places, room.put, room.out
    a, pa, pb = room.assigned[v, 0], room.assigned[v, 1], room.assigned[v, 2]
    for k in range(count):
        if a > 0 and (a == count - k or below(reader, count - k) < a):
            place = places[pa]
            pa += 1
            a -= 1
        else:
            place = places[pb]
            pb += 1
        out[place] = elements[start + k]
        if put.size > 0:
            put[elements[start + k]] = place


@kernel(leaf=True)
def arrange(reader: WordReader, room: Room, elements: Ints, start: Int64, count: Int64, v: Int64) -> None:
    """Put the elements of step v in random order. The first go to side A, the others to side B."""
    places, spare, put, out = room.places, room.spare, room.put, room.out
    a, pa, pb = room.assigned[v, 0], room.assigned[v, 1], room.assigned[v, 2]
    for k in range(count):
        spare[k] = elements[start + k]
    for k in range(count - 1, -1, -1):
        j = below(reader, k + 1) if k > 0 else 0
        place = places[pa + k] if k < a else places[pb + k - a]
        out[place] = spare[j]
        if put.size > 0:
            put[spare[j]] = place
        spare[j] = spare[k]


@kernel(leaf=True)
def deal(reader: WordReader, room: Room, start: Int64, count: Int64, k: Int64) -> None:
    """Move a random ``k`` of ``count`` places to the front, keeping the order of these and of the others.

    The smaller part is drawn place by place, drawing again where a place is taken; ``flags`` are 0 before
    and after.
    """
    places, spare, flags = room.places, room.spare, room.flags
    few = min(k, count - k)
    if few == 0:
        return
    for _ in range(few):
        p = below(reader, count)
        while flags[p] == 1 and reader.cursor[STATUS] == 0:
            p = below(reader, count)
        flags[p] = 1
    front = 1 if few == k else 0
    i, j = start, 0
    for p in range(count):
        if flags[p] == front:
            places[i] = places[start + p]
            i += 1
        else:
            spare[j] = places[start + p]
            j += 1
        flags[p] = 0
    for p in range(j):
        places[i + p] = spare[p]


# Draws of extended bipartitions of an order that decomposes neither in series nor in parallel.
#
# First the split by its modules, then a word for each side.
#
# Words in, choices out.


class WalkTables(NamedTuple):
    """The arrays that a walk reads, those of ``Steps`` and of the tables made for them."""

    tree: Ints
    elements: Ints
    blocks: Ints
    module: Ints
    numbers: Numbers
    g: Numbers
    lasts: Places
    first: Ints
    state: Places
    weight: Ints
    top: Ints
    unit: int


@kernel(leaf=True)
def choose_split(reader: WordReader, tables: WalkTables, v: Int64, a: Int64) -> Int64:
    """The state of a split of the block of step v with a elements on side A, or -1."""
    tree, _, blocks, module, numbers, g, _, first, state, weight, _, _ = tables
    b, number = tree[v, 2], numbers[tree[v, 4] + a]
    r = below(reader, mantissa(number)) << shift(number)
    r |= bits(reader, shift(number))
    low, high = first[blocks[b, 3] + a], first[blocks[b, 3] + a + 1]
    result = locate(weight, low, high, r)
    if result == high:
        return -1
    r -= weight[result - 1] if result > low else 0
    chosen = np.int64(state[result])
    # the last unit may be partly excess
    if r == weight[result] - (weight[result - 1] if result > low else 0) - 1:
        rounded = split_weight(tree, blocks, b, module, numbers, g, chosen)
        gap = exponent(number) - shift(number) - exponent(rounded)
        if not last_unit_kept(reader, r, mantissa(rounded), gap):
            return -1
    return chosen


@kernel(leaf=True)
def spell(reader: WordReader, tables: WalkTables, room: Room, v: Int64, split: Int64) -> bool:
    """Give each module of the block of step v its places by a uniform word for each side.

    Returns False in an excess.
    """
    blocks, module, b, size_a = tables.blocks, tables.module, tables.tree[v, 2], room.assigned[v, 0]
    assigned, places, spare, ends = room.assigned, room.places, room.spare, room.ends
    first, stop, at = blocks[b, 0], blocks[b + 1, 0], blocks[b, 2]
    for side in range(2):
        start, size, state = assigned[v, 1], size_a, split
        if side == 1:
            start, size, state = assigned[v, 2], tables.tree[v, 1] - size_a, blocks[b, 1] - 1 - split
        end, rest = start, state
        for i in range(first, stop):
            count = rest % (module[i, 1] + 1)
            rest //= module[i, 1] + 1
            if side == 0:
                assigned[module[i, 0], 0] = count
            assigned[module[i, 0], 1 + side] = end
            end += count
            ends[i - first] = end
        for k in range(size):
            spare[k] = places[start + k]
        for k in range(size - 1, -1, -1):
            i = _last_letter(reader, tables, first, at, state)
            if i < 0:
                return False
            state -= module[first + i, 3]
            ends[i] -= 1
            places[ends[i]] = spare[k]
    return True


@kernel(leaf=True)
def _last_letter(reader: WordReader, tables: WalkTables, first: Int64, at: Int64, state: Int64) -> Int64:
    """The last letter of a uniform word of a state, or -1."""
    module, g = tables.module, tables.g
    letters, i = np.int64(tables.lasts[at + state]), 0
    if letters & (letters - 1) == 0:  # one letter only: the number of words is the same without it
        while letters > 1:
            letters >>= 1
            i += 1
        return i
    number = g[at + state]
    unit = exponent(number) - shift(number)
    r = below(reader, mantissa(number)) << shift(number)
    r |= bits(reader, shift(number))
    while letters > 0:
        if letters & 1:
            fewer = g[at + state - module[first + i, 3]]
            gap = unit - exponent(fewer)
            units = share(mantissa(fewer), gap)
            if r < units:
                return i if last_unit_kept(reader, r, mantissa(fewer), gap) else -1
            r -= units
        letters >>= 1
        i += 1
    return -1


# A deterministic walk from 64-bit words to extended bipartitions.
#
# Uniform independent words in give exactly uniform extended bipartitions out (docs/theory/counts.md,
# section 6), whether the words come from the operating system for a release or from a seeded generator for a
# simulation. The walk
#
# * starts over when it lands in the excess of a rounded-up table;
# * *asks* when keeping a step depends on numbers too long for compiled code (factorials, binomials, long products): with
#   probability 2^-24 for each. The caller answers by exact arithmetic and plays the words again;
# * stops when the words run out: the caller adds some and plays the words again.
#
# Playing again from the same words is what keeps the last two free of bias.


class BipartitionRows(NamedTuple):
    """Extended bipartitions, a row each: side A, ascending, in its first ``sizes[r]`` places, then side B."""

    orders: Places
    sizes: Ints
    begun: Ints
    """The word that the walk of each row began with."""


@kernel
def walks(
    tables: WalkTables, reader: WordReader, answers: NDArray[np.int8], dropped: Ints, rows: BipartitionRows
) -> Int64:
    """Fill ``rows`` with extended bipartitions.

    Returns how many were made before it had to stop.

    A walk that puts a pair ``dropped[k]`` = (lower, upper) in the wrong order on one side is not kept: so an order is
    drawn from another one with fewer relations. It ends as soon as it does so. The cursor tells why the walk stopped.
    ``answers`` are those to the questions of the walk that it starts with.
    """
    (orders, sizes, begun), cursor, filled = rows, reader.cursor, 0
    n = orders.shape[1]
    room = Room(
        np.empty((tables.tree.shape[0], 3), np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(64, np.int64),
        np.zeros(n, np.int8),
        np.empty(n if dropped.shape[0] > 0 else 0, np.int32),
        np.empty(n, np.int32),
    )
    starts, partners = partners_of(dropped, n)
    while filled < sizes.size:
        a = _walk(tables, reader, answers, room, starts, partners)
        if cursor[STATUS] != 0:
            rewind(cursor)
            break
        if a >= 0:
            begun[filled] = cursor[START]
            for k in range(n):  # to assign one array to another takes seconds to compile
                orders[filled, k] = room.out[k]
            sizes[filled] = a
            filled += 1
        settle_walk(cursor)
        answers = answers[:0]
    return filled


@kernel(leaf=True)
def _walk(
    tables: WalkTables,
    reader: WordReader,
    answers: NDArray[np.int8],
    room: Room,
    starts: Ints,
    partners: Ints,
) -> Int64:
    """Walk once through the tables.

    Returns the size of side A, or -1 if the walk ended in an excess, broke a pair or had to stop.
    """
    tree, elements, assigned = tables.tree, tables.elements, room.assigned
    last = tree.shape[0] - 1
    n_a = _first_size(reader, tables)
    for k in range(room.out.size):
        room.places[k] = k
    for k in range(room.put.size):
        room.put[k] = -1
    _assign(assigned, last, n_a, 0, n_a)
    for v in range(last, -1, -1):
        if n_a < 0 or reader.cursor[STATUS] != 0:
            return -1
        kind, size, left, right = tree[v, 0], tree[v, 1], tree[v, 2], tree[v, 3]
        a, pa, pb = assigned[v, 0], assigned[v, 1], assigned[v, 2]
        if kind in (BESIDE, STACK):
            near, k = tree[left, 1], _split(reader, tree, tables.numbers, v, a)
            if k < 0:
                return -1
            if kind == BESIDE:
                deal(reader, room, pa, a, k)
                deal(reader, room, pb, size - a, near - k)
            _assign(assigned, left, k, pa, pb)
            _assign(assigned, right, a - k, pa + k, pb + near - k)
            continue
        if kind == PRIME:
            split = choose_split(reader, tables, v, a)
            if split < 0 or not certain(reader, answers, v, a, split):
                return -1
            if not spell(reader, tables, room, v, split):
                return -1
            continue
        exact = size <= EXACT_BINOMIALS and kind in (POINTS, CHAIN)
        if not exact and not certain(reader, answers, v, a, 0):
            return -1
        if kind == POINTS:
            arrange(reader, room, elements, left, size, v)
        elif kind == CHAIN:
            scatter(reader, room, elements, left, size, v)
        else:
            _assign(assigned, left, a, pa, pb)
            continue
        if room.put.size > 0 and breaks(elements, left, size, n_a, starts, partners, room.put):
            return -1
    return n_a if reader.cursor[STATUS] == 0 else -1


@kernel(leaf=True)
def _assign(assigned: Ints, step: Int64, a: Int64, pa: Int64, pb: Int64) -> None:
    assigned[step, 0], assigned[step, 1], assigned[step, 2] = a, pa, pb


@kernel(leaf=True)
def _first_size(reader: WordReader, tables: WalkTables) -> Int64:
    """The size of side A, by the last table, or -1."""
    top = tables.top
    width = 0
    while top[-1] >> width > 0:
        width += 1
    r = bits(reader, width)
    while r >= top[-1] and reader.cursor[STATUS] == 0:
        r = bits(reader, width)
    a = locate(top, 0, top.size, r)
    r -= top[a - 1] if a > 0 else 0
    number = tables.numbers[tables.tree[-1, 4] + a]
    return a if last_unit_kept(reader, r, mantissa(number), tables.unit - exponent(number)) else -1


@kernel(leaf=True)
def _split(reader: WordReader, tree: Ints, numbers: Numbers, v: Int64, a: Int64) -> Int64:
    """How many of the a elements of step v on side A belong to its first part, or -1 if the walk has to end."""
    left, right, number = tree[v, 2], tree[v, 3], numbers[tree[v, 4] + a]
    (ni, i), (nj, j) = (tree[left, 1], tree[left, 4]), (tree[right, 1], tree[right, 4])
    unit = exponent(number) - shift(number)
    r = below(reader, mantissa(number)) << shift(number)
    r |= bits(reader, shift(number))
    for k in range(max(0, a - nj), min(a, ni) + 1):
        one, other = numbers[i + k], numbers[j + a - k]
        exact, gap = mantissa(one) * mantissa(other), unit - exponent(one) - exponent(other)
        units = share(exact, gap)
        if r < units:
            return k if last_unit_kept(reader, r, exact, gap) else -1
        r -= units
    return -1
