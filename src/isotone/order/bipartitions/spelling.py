"""Draws of extended bipartitions of an order that decomposes neither in series nor in parallel.

First the split by its modules, then a word for each side.

Words in, choices out, as in :mod:`.walk`, of which this is a part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.module_words import split_weight
from isotone.order.bipartitions.stream import Stream, below, bits, last_unit_kept, locate
from isotone.order.bipartitions.upward import Int64, Numbers, exponent, mantissa, share, shift

__all__ = ["choose_split", "spell"]

Places = NDArray[np.int32]


@kernel(leaf=True)
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
    if (
        r == weight[found] - (weight[found - 1] if found > low else 0) - 1
    ):  # the last unit may be partly excess
        rounded = split_weight(tree, blocks, b, module, numbers, g, chosen)
        gap = exponent(number) - shift(number) - exponent(rounded)
        if not last_unit_kept(words, cursor, r, mantissa(rounded), gap):
            return -1
    return chosen


@kernel(leaf=True)
def spell(
    words: Stream,
    cursor: Ints,
    blocks: Ints,
    module: Ints,
    g: Numbers,
    lasts: Places,
    b: Int64,
    split: Int64,
    size_a: Int64,
    size_b: Int64,
    pa: Int64,
    pb: Int64,
    assigned: Ints,
    places: Places,
    spare: Places,
    ends: Ints,
) -> bool:
    """Give each module its places by a uniform word for each side.

    Returns False in an excess.
    """
    first, stop, at = blocks[b, 0], blocks[b + 1, 0], blocks[b, 2]
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
            ends[i - first] = end
        for k in range(size):
            spare[k] = places[start + k]
        for k in range(size - 1, -1, -1):
            i = _last_letter(words, cursor, module, first, g, lasts, at, state)
            if i < 0:
                return False
            state -= module[first + i, 3]
            ends[i] -= 1
            places[ends[i]] = spare[k]
    return True


@kernel(leaf=True)
def _last_letter(
    words: Stream,
    cursor: Ints,
    module: Ints,
    first: Int64,
    g: Numbers,
    lasts: Places,
    at: Int64,
    state: Int64,
) -> Int64:
    """The last letter of a uniform word of a state, or -1."""
    letters, i = np.int64(lasts[at + state]), 0
    if letters & (letters - 1) == 0:  # one letter only: the number of words is the same without it
        while letters > 1:
            letters >>= 1
            i += 1
        return i
    number = g[at + state]
    unit = exponent(number) - shift(number)
    r = below(words, cursor, mantissa(number)) << shift(number)
    r |= bits(words, cursor, shift(number))
    while letters > 0:
        if letters & 1:
            fewer = g[at + state - module[first + i, 3]]
            gap = unit - exponent(fewer)
            units = share(mantissa(fewer), gap)
            if r < units:
                return i if last_unit_kept(words, cursor, r, mantissa(fewer), gap) else -1
            r -= units
        letters >>= 1
        i += 1
    return -1
