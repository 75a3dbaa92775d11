"""A deterministic walk from 64-bit words to extended bipartitions.

Uniform independent words in give exactly uniform extended bipartitions out (docs/theory/counts.md,
section 6), whether the words come from the operating system for a release or from a seeded generator for a
simulation. The walk

* starts over when it lands in the excess of a rounded-up table;
* *asks* when keeping a step depends on numbers too long for compiled code (factorials, binomials, long products): with
  probability 2^-24 for each. The caller answers by exact arithmetic and plays the words again;
* stops when the words run out: the caller adds some and plays the words again.

Playing again from the same words is what keeps the last two free of bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.counting_steps import BESIDE, CHAIN, POINTS, PRIME, STACK
from isotone.order.bipartitions.placing import arrange, breaks, deal, partners_of, scatter
from isotone.order.bipartitions.spelling import choose_split, spell
from isotone.order.bipartitions.stream import (
    START,
    STATUS,
    Stream,
    below,
    bits,
    certain,
    last_unit_kept,
    locate,
    rewind,
    settle_walk,
)
from isotone.order.bipartitions.upward import (
    EXACT_BINOMIALS,
    Int64,
    Numbers,
    exponent,
    mantissa,
    share,
    shift,
)

__all__ = ["walks"]

Places = NDArray[np.int32]


@kernel
def walks(
    arrays: Any,
    words: Stream,
    cursor: Ints,
    answers: NDArray[np.int8],
    dropped: Ints,
    orders: Places,
    sizes: Ints,
    begun: Ints,
) -> Int64:
    """Fill the rows of ``orders`` with extended bipartitions.

    Returns how many were made before it had to stop.

    Row r has side A, ascending, in its first ``sizes[r]`` places, then side B. A walk that puts a pair
    ``dropped[k]`` = (lower, upper) in the wrong order on one side is not kept: so an order is drawn from
    another one with fewer relations. It ends as soon as it does so. ``begun[r]`` is the
    word that the walk of row r began with. ``cursor`` tells why the walk stopped. ``answers`` are those to the
    questions of the walk that it starts with.
    """
    n = orders.shape[1]
    assigned = np.empty((arrays[0].shape[0], 3), np.int64)
    places, spare, ends = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(64, np.int64)
    filled, found, flags = 0, np.empty(n, np.int32), np.zeros(n, np.int8)
    starts, partners = partners_of(dropped, n)
    put = np.empty(n if dropped.shape[0] > 0 else 0, np.int32)
    while filled < sizes.size:
        a = _walk(
            arrays, words, cursor, answers, assigned, places, spare, ends, flags, starts, partners, put, found
        )
        if cursor[STATUS] != 0:
            rewind(cursor)
            break
        if a >= 0:
            begun[filled] = cursor[START]
            for k in range(n):  # to assign one array to another takes seconds to compile
                orders[filled, k] = found[k]
            sizes[filled] = a
            filled += 1
        settle_walk(cursor)
        answers = answers[:0]
    return filled


@kernel(leaf=True)
def _walk(
    arrays: Any,
    words: Stream,
    cursor: Ints,
    answers: NDArray[np.int8],
    assigned: Ints,
    places: Places,
    spare: Places,
    ends: Ints,
    flags: NDArray[np.int8],
    starts: Ints,
    partners: Ints,
    put: Places,
    out: Places,
) -> Int64:
    """Walk once through the tables.

    Returns the size of side A, or -1 if the walk ended in an excess, broke a pair or had to stop.

    Step v is given ``assigned[v, 0]`` places of side A, listed in ``places`` from ``assigned[v, 1]`` on, and
    for its other elements places of side B, listed from ``assigned[v, 2]`` on; both in ascending order.
    """
    tree, elements, blocks, module, numbers, g, lasts, first, state, weight, top, unit = arrays
    last = tree.shape[0] - 1
    n_a = _first_size(words, cursor, top, unit, numbers, tree[last, 4])
    for k in range(out.size):
        places[k] = k
    for k in range(put.size):
        put[k] = -1
    _assign(assigned, last, n_a, 0, n_a)
    for v in range(last, -1, -1):
        if n_a < 0 or cursor[STATUS] != 0:
            return -1
        kind, size, left, right, start = tree[v, 0], tree[v, 1], tree[v, 2], tree[v, 3], tree[v, 4]
        a, pa, pb = assigned[v, 0], assigned[v, 1], assigned[v, 2]
        if kind in (BESIDE, STACK):
            near, far = tree[left, 1], tree[right, 1]
            k = _split(words, cursor, numbers, start + a, tree[left, 4], near, tree[right, 4], far, a)
            if k < 0:
                return -1
            if kind == BESIDE:
                deal(words, cursor, places, pa, a, k, spare, flags)
                deal(words, cursor, places, pb, size - a, near - k, spare, flags)
            _assign(assigned, left, k, pa, pb)
            _assign(assigned, right, a - k, pa + k, pb + near - k)
            continue
        if kind == PRIME:
            split = choose_split(words, cursor, tree, blocks, module, numbers, g, first, state, weight, v, a)
            if split < 0 or not certain(words, cursor, answers, v, a, split):
                return -1
            if not spell(
                words,
                cursor,
                blocks,
                module,
                g,
                lasts,
                left,
                split,
                a,
                size - a,
                pa,
                pb,
                assigned,
                places,
                spare,
                ends,
            ):
                return -1
            continue
        exact = size <= EXACT_BINOMIALS and kind in (POINTS, CHAIN)
        if not exact and not certain(words, cursor, answers, v, a, 0):
            return -1
        if kind == POINTS:
            arrange(words, cursor, elements, left, size, a, places, pa, pb, spare, put, out)
        elif kind == CHAIN:
            scatter(words, cursor, elements, left, size, a, places, pa, pb, put, out)
        else:
            _assign(assigned, left, a, pa, pb)
            continue
        if put.size > 0 and breaks(elements, left, size, n_a, starts, partners, put):
            return -1
    return n_a if cursor[STATUS] == 0 else -1


@kernel(leaf=True)
def _assign(assigned: Ints, step: Int64, a: Int64, pa: Int64, pb: Int64) -> None:
    assigned[step, 0], assigned[step, 1], assigned[step, 2] = a, pa, pb


@kernel(leaf=True)
def _first_size(words: Stream, cursor: Ints, top: Ints, unit: Int64, numbers: Numbers, start: Int64) -> Int64:
    """The size of side A, by the last table, or -1."""
    width = 0
    while top[-1] >> width > 0:
        width += 1
    r = bits(words, cursor, width)
    while r >= top[-1] and cursor[STATUS] == 0:
        r = bits(words, cursor, width)
    a = locate(top, 0, top.size, r)
    r -= top[a - 1] if a > 0 else 0
    number = numbers[start + a]
    return a if last_unit_kept(words, cursor, r, mantissa(number), unit - exponent(number)) else -1


@kernel(leaf=True)
def _split(
    words: Stream,
    cursor: Ints,
    numbers: Numbers,
    at: Int64,
    i: Int64,
    ni: Int64,
    j: Int64,
    nj: Int64,
    a: Int64,
) -> Int64:
    """How many of the a elements on side A belong to the table at i.

    The others belong to the table at j. Returns -1 if the walk has to end.
    """
    number = numbers[at]
    unit = exponent(number) - shift(number)
    r = below(words, cursor, mantissa(number)) << shift(number)
    r |= bits(words, cursor, shift(number))
    for k in range(max(0, a - nj), min(a, ni) + 1):
        one, other = numbers[i + k], numbers[j + a - k]
        exact, gap = mantissa(one) * mantissa(other), unit - exponent(one) - exponent(other)
        units = share(exact, gap)
        if r < units:
            return k if last_unit_kept(words, cursor, r, exact, gap) else -1
        r -= units
    return -1
