"""Drawing through a prime block: its split by modules, then a word for each side.

Words in, choices out, as in :mod:`.bipartition_walk`, of which this is a part.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.order.bipartition_words import last_letters, word_unit
from isotone.order.stream import Stream, below, bits, in_tail, last_unit_kept, locate
from isotone.order.upward import ONE, Int64, Numbers, exponent, mantissa, product_up, share, shift

__all__ = ["choose_split", "spell"]

Ints = NDArray[np.int64]
Places = NDArray[np.int32]


@njit(cache=True)
def choose_split(
    words: Stream,
    cursor: Ints,
    tree: Ints,
    blocks: Ints,
    module: Ints,
    numbers: Numbers,
    g: Numbers,
    first: Ints,
    state: Places,
    weight: Ints,
    v: Int64,
    a: Int64,
) -> Int64:
    """The state of a split of the block of step v with a elements on side A, or -1."""
    b, number = tree[v, 2], numbers[tree[v, 4] + a]
    r = below(words, cursor, mantissa(number)) << shift(number)
    r |= bits(words, cursor, shift(number))
    low, high = first[blocks[b, 3] + a], first[blocks[b, 3] + a + 1]
    found = locate(weight, low, high, r)
    if found == high:
        return -1
    r -= weight[found - 1] if found > low else 0
    chosen = np.int64(state[found])
    product, rest, kept = np.int64(ONE), chosen, True
    for i in range(blocks[b + 1, 0] - 1, blocks[b, 0] - 1, -1):
        kept, product = _times(
            words, cursor, kept, product, numbers[tree[module[i, 0], 4] + rest // module[i, 3]]
        )
        rest %= module[i, 3]
    kept, product = _times(words, cursor, kept, product, g[blocks[b, 2] + chosen])
    kept, product = _times(words, cursor, kept, product, g[blocks[b, 2] + blocks[b, 1] - 1 - chosen])
    gap = exponent(number) - shift(number) - exponent(product)
    return chosen if kept and last_unit_kept(words, cursor, r, mantissa(product), gap) else -1


@njit(cache=True)
def _times(words: Stream, cursor: Ints, kept: bool, a: Int64, b: Int64) -> tuple[bool, Int64]:
    """The rounded-up product, and whether a draw in proportion to it is one of the exact product."""
    product, exact = product_up(a, b), mantissa(a) * mantissa(b)
    m, gap = mantissa(product), exponent(product) - exponent(a) - exponent(b)
    if not kept or m << gap == exact or below(words, cursor, m) < m - 1:
        return kept, product
    return in_tail(words, cursor, exact - ((m - 1) << gap), gap), product


@njit(cache=True)
def spell(
    words: Stream,
    cursor: Ints,
    blocks: Ints,
    module: Ints,
    g: Numbers,
    b: Int64,
    split: Int64,
    size_a: Int64,
    size_b: Int64,
    pa: Int64,
    pb: Int64,
    assigned: Ints,
    places: Places,
    spare: Places,
    room: Ints,
) -> bool:
    """Give each module its places on both sides, by a uniform word for each; False in an excess."""
    first, stop = blocks[b, 0], blocks[b + 1, 0]
    for side in range(2):
        start, size, state = (pa, size_a, split) if side == 0 else (pb, size_b, blocks[b, 1] - 1 - split)
        end, rest = start, state
        for i in range(first, stop):
            count = rest % (module[i, 1] + 1)
            rest //= module[i, 1] + 1
            if side == 0:
                assigned[module[i, 0], 0] = count
            assigned[module[i, 0], 1 + side] = end
            end += count
            room[i - first, 0], room[i - first, 1] = count, end
        for k in range(size):
            spare[k] = places[start + k]
        for k in range(size - 1, -1, -1):
            i = _last_letter(words, cursor, module, first, stop - first, g, blocks[b, 2], state, room)
            if i < 0:
                return False
            state -= module[first + i, 3]
            room[i, 0] -= 1
            room[i, 1] -= 1
            places[room[i, 1]] = spare[k]
    return True


@njit(cache=True)
def _last_letter(
    words: Stream,
    cursor: Ints,
    module: Ints,
    first: Int64,
    k: Int64,
    g: Numbers,
    at: Int64,
    state: Int64,
    room: Ints,
) -> Int64:
    """The last letter of a uniform word with the counts ``room[:, 0]``, or -1."""
    used = np.int64(0)
    for i in range(k):
        if room[i, 0] > 0:
            used |= np.int64(1) << i
    letters = last_letters(used, module, first)
    if letters & (letters - 1) == 0:  # one letter only: the number of words is the same without it
        i = 0
        while letters >> i > 1:
            i += 1
        return i
    number, unit = g[at + state], word_unit(at + state, letters, module, first, g)
    gap = exponent(number) - unit
    r = below(words, cursor, mantissa(number)) << gap
    r |= bits(words, cursor, gap)
    for i in range(k):
        if letters >> i & 1:
            fewer = g[at + state - module[first + i, 3]]
            gap = unit - exponent(fewer)
            units = share(mantissa(fewer), gap)
            if r < units:
                return i if last_unit_kept(words, cursor, r, mantissa(fewer), gap) else -1
            r -= units
    return -1
