"""Sweeps over all coordinates of an order of two levels, for bounds from below and from above at once.

Coordinates 0, …, m - 1 are *tied* to the shared coordinate, which is number n; those from m to n - 1 are not. With
``s`` the shared one, v a tied and w a free one, the body is given by

    0 <= s <= 1,    s - 1 <= v <= s,    -1 <= w <= 0,    v - 1 <= w <= v  wherever v and w are related

(docs/theory/counts.md, section 9). Given the others, a coordinate is uniform between two ends, each of which
increases in every other coordinate; it becomes ``(1 - u)·end + u·other end``, which increases in both. A sweep
without a word for the shared coordinate leaves it where it is.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels import Int, Ints, Word, Words, kernel

__all__ = ["sweep", "sweep_widely"]

_ONE = 1 << 60
_HALF_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@kernel
def sweep(starts: Ints, others: Ints, m: Int, words: Words, low: Ints, high: Ints) -> None:
    """All sweeps of 64-bit words, in compiled code; coordinates in units of 2^-60.

    Word k stands for the interval [k, k + 1]/2^64. ``low`` and ``high`` are replaced by the bounds at the end.
    """
    n = low.size - 1
    for t in range(words.shape[0]):
        low_first, high_first = np.int64(0), np.int64(0)  # the ends of the shared coordinate
        low_last, high_last = np.int64(_ONE), np.int64(_ONE)
        for v in range(m):
            low_a, low_b, high_a, high_b = low[n] - _ONE, low[n], high[n] - _ONE, high[n]
            for k in range(starts[v], starts[v + 1]):
                w = others[k]
                low_a, low_b = max(low_a, low[w]), min(low_b, low[w] + _ONE)
                high_a, high_b = max(high_a, high[w]), min(high_b, high[w] + _ONE)
            low[v] = _between_down(low_a, low_b, words[t, v])
            high[v] = _between_up(high_a, high_b, words[t, v])
            low_first, low_last = max(low_first, low[v]), min(low_last, low[v] + _ONE)
            high_first, high_last = max(high_first, high[v]), min(high_last, high[v] + _ONE)
        if words.shape[1] > n:
            low[n] = _between_down(low_first, low_last, words[t, n])
            high[n] = _between_up(high_first, high_last, words[t, n])
        for w in range(m, n):
            low_a, low_b, high_a, high_b = np.int64(-_ONE), np.int64(0), np.int64(-_ONE), np.int64(0)
            for k in range(starts[w], starts[w + 1]):
                v = others[k]
                low_a, low_b = max(low_a, low[v] - _ONE), min(low_b, low[v])
                high_a, high_b = max(high_a, high[v] - _ONE), min(high_b, high[v])
            low[w] = _between_down(low_a, low_b, words[t, w])
            high[w] = _between_up(high_a, high_b, words[t, w])


@kernel(leaf=True)
def _between_down(first: Int, last: Int, word: Word) -> Int:
    """``first + u·(last - first)`` rounded down, for the least it can be with this word."""
    if last < first:  # by rounding only
        return last
    return first + np.int64(_product(np.uint64(last - first), word)[0])


@kernel(leaf=True)
def _between_up(first: Int, last: Int, word: Word) -> Int:
    """``first + u·(last - first)`` rounded up, for the most it can be with this word."""
    if last < first:
        return first
    length = np.uint64(last - first)
    above, below = _product(length, word)
    carried = below + length  # times word + 1
    if carried < below:
        above += np.uint64(1)
    return first + np.int64(above) + (1 if carried > np.uint64(0) else 0)


@kernel(leaf=True)
def _product(a: Word, b: Word) -> tuple[Word, Word]:
    """The product of two 64-bit numbers as two words, the higher first."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _HALF_MASK, b >> _HALF, b & _HALF_MASK
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (middle & _HALF_MASK)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), a * b


def sweep_widely(
    starts: list[int],
    others: list[int],
    m: int,
    words: list[int],
    digits: int,
    one: int,
    low: list[int],
    high: list[int],
) -> None:
    """One sweep in Python's integers, for words of any number of ``digits``; ``one`` is the unit of coordinates."""
    n = len(low) - 1
    for values, rounding in ((low, 0), (high, 1)):
        for v in range(m):
            related = [values[w] for w in others[starts[v] : starts[v + 1]]]
            ends = max([values[n] - one, *related]), min([values[n], *(w + one for w in related)])
            values[v] = _between(*ends, words[v], digits, rounding)
        if len(words) > n:
            ends = max([0, *values[:m]]), min([one, *(v + one for v in values[:m])])
            values[n] = _between(*ends, words[n], digits, rounding)
        for w in range(m, n):
            related = [values[v] for v in others[starts[w] : starts[w + 1]]]
            ends = max([-one, *(v - one for v in related)]), min([0, *related])
            values[w] = _between(*ends, words[w], digits, rounding)


def _between(first: int, last: int, word: int, digits: int, rounding: int) -> int:
    if last < first:
        return first if rounding else last
    length = last - first
    return first + (-(-length * (word + 1) >> digits) if rounding else length * word >> digits)
