"""The compiled first step of a choice with weights ``multiplicity·exp(-rate·score)``.

Each weight is a 64-bit mantissa with a known error and a power of two; cumulative sums of lower bounds are
kept in 128 bits, scaled so that the largest weight is just below 2**100. Upper bounds follow from the lower
ones: ``C <= true sum <= C·(1 + 2**-50) + 2·terms + 1`` (docs/theory/sampling.md, section 6).
"""

from __future__ import annotations

import numpy as np

from isotone.kernels import Flag, Int, Ints, Word, Words, kernel
from isotone.noise.compiled.wide import below, exp2_negative, multiply, shift_left, shift_right

__all__ = ["DONE", "EMPTY", "NEED_WORDS", "SCALE", "SEGMENT", "UNDECIDED", "WORD", "choose_segments"]

DONE, NEED_WORDS, UNDECIDED, EMPTY = 0, 1, 2, 3
SEGMENT, WORD, SCALE = 0, 1, 2  # places in the state

TOP = 100  # the largest weight is scaled to just below 2**TOP
FAR = 256  # weights below 2**-FAR of the best score's are 0 at first
CLOSENESS = 50
MANTISSA_ERROR = np.uint64(1024)  # in units of 2**-63
ABOVE_TOTAL, BETWEEN_BOUNDS = -1, -2
_0, _1, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def _octaves(distance: Word, mantissa: Word, places: Int) -> tuple[Int, Word]:
    """``distance·mantissa / 2**places`` as an integer part (at most FAR) and 64 fractional bits."""
    high, low = multiply(distance, mantissa)
    if places <= 0:
        return (0, _0) if high | low == _0 else (FAR, _0)
    whole_high, whole_low = shift_right(high, low, places)
    if whole_high != _0 or whole_low >= np.uint64(FAR):
        return FAR, _0
    if places < 64:
        return np.int64(whole_low), low << np.uint64(64 - places)
    return np.int64(whole_low), shift_right(high, low, places - 64)[1]


@kernel
def _bit_length(number: Int) -> Int:
    length = 0
    while number > 0:
        number >>= 1
        length += 1
    return length


@kernel
def _upper(high: Word, low: Word, terms: Int) -> tuple[Word, Word]:
    """An upper bound of a sum of weights with known lower bounds.

    The lower bounds of the ``terms`` weights add up to (high, low).
    """
    more_high, more_low = shift_right(high, low, CLOSENESS)
    more_low += np.uint64(2 * terms + 1)
    if more_low < np.uint64(2 * terms + 1):
        more_high += _1
    total = low + more_low
    return high + more_high + (_1 if total < low else _0), total


@kernel
def _best_score(scores: Ints, counts: Ints, start: Int, stop: Int) -> tuple[Flag, Int]:
    """Whether the segment has a candidate (and no negative multiplicity), and the least score of one."""
    found, best = False, np.int64(0)
    for i in range(start, stop):
        if counts.size:
            if counts[i] < 0:
                return False, best
            if counts[i] == 0:
                continue
        if not found or scores[i] < best:
            found, best = True, scores[i]
    return found, best


@kernel
def _largest(
    scores: Ints, counts: Ints, start: Int, stop: Int, best: Int, mantissa: Word, places: Int
) -> Int:
    """The ``t`` for which every weight is below ``2**t``, and one is at least ``2**(t - 2)``."""
    top = 1
    if counts.size:
        for i in range(start, stop):
            length = _bit_length(counts[i])
            if length > top:
                whole, _ = _octaves(np.uint64(scores[i]) - np.uint64(best), mantissa, places)
                top = max(top, length - whole)
    return top


@kernel
def _add_up(
    scores: Ints,
    counts: Ints,
    start: Int,
    stop: Int,
    best: Int,
    top: Int,
    mantissa: Word,
    places: Int,
    sums: Words,
) -> None:
    """Cumulative sums of the lower bounds of the weights, scaled by ``2**(TOP - top)``."""
    high, low = _0, _0
    for i in range(start, stop):
        count = np.uint64(counts[i]) if counts.size else _1
        if count > _0:
            whole, fraction = _octaves(np.uint64(scores[i]) - np.uint64(best), mantissa, places)
            if whole < FAR:
                term_high, term_low = multiply(exp2_negative(fraction) - MANTISSA_ERROR, count)
                drop = whole + top + 63 - TOP
                if drop >= 0:
                    term_high, term_low = shift_right(term_high, term_low, drop)
                else:
                    term_high, term_low = shift_left(term_high, term_low, -drop)
                low += term_low
                high += term_high + (_1 if low < term_low else _0)
        sums[i - start, 0] = high
        sums[i - start, 1] = low


@kernel
def _place(high: Word, low: Word, sums: Words, size: Int) -> Int:
    """The candidate of a uniform in ``[u, u + 1)``.

    ABOVE_TOTAL if it lies above all sums, BETWEEN_BOUNDS if that is still open.
    """
    first, last = 0, size
    while first < last:
        middle = (first + last) // 2
        if below(high, low, sums[middle, 0], sums[middle, 1]):
            last = middle
        else:
            first = middle + 1
    if first > 0:
        upper_high, upper_low = _upper(sums[first - 1, 0], sums[first - 1, 1], first)
        if below(high, low, upper_high, upper_low):
            return BETWEEN_BOUNDS
    return first if first < size else ABOVE_TOTAL


@kernel(steps=lambda scores, *_: 32 * scores.size)
def choose_segments(
    scores: Ints,
    counts: Ints,
    offsets: Ints,
    mantissas: Words,
    places: Ints,
    words: Words,
    sums: Words,
    chosen: Ints,
    pending: Words,
    state: Ints,
) -> Int:
    """Choose in every segment, starting at ``state``.

    Returns why it stopped.

    ``counts`` may be empty: every multiplicity is then 1. There is one mantissa and place for each segment,
    or one for all. A stop between two uniforms loses nothing, since the sums do not depend on them; an
    undecided uniform is handed over in ``pending``.
    """
    while state[SEGMENT] < chosen.size:
        segment = state[SEGMENT]
        start, stop = offsets[segment], offsets[segment + 1]
        which = segment if mantissas.size > 1 else 0
        mantissa, octave = mantissas[which], places[which]
        found, best = _best_score(scores, counts, start, stop)
        if not found:
            return EMPTY
        top = _largest(scores, counts, start, stop, best, mantissa, octave)
        _add_up(scores, counts, start, stop, best, top, mantissa, octave, sums)
        size = stop - start
        total_high, _ = _upper(sums[size - 1, 0], sums[size - 1, 1], size)
        mask = _ALL
        while mask >> _1 >= total_high:
            mask >>= _1
        place, high, low = ABOVE_TOTAL, _0, _0
        while place == ABOVE_TOTAL:
            if state[WORD] + 2 > words.size:
                return NEED_WORDS
            high, low = words[state[WORD]] & mask, words[state[WORD] + 1]
            state[WORD] += 2
            place = _place(high, low, sums, size)
        if place == BETWEEN_BOUNDS:
            pending[0], pending[1], state[SCALE] = high, low, TOP - top
            return UNDECIDED
        chosen[segment] = place
        state[SEGMENT] += 1
    return DONE
