"""Exact choices among options with given weights."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import PLAIN_STEPS, Flag, Int, Ints, Word, Words, kernel, most_steps
from isotone.noise.bits import (
    below,
    exp2_negative,
    exp_negative,
    log_two,
    multiply,
    random_below,
    random_bits,
    random_words,
    shift_left,
    shift_right,
)

__all__ = [
    "DONE",
    "EMPTY",
    "NEED_WORDS",
    "OPEN",
    "REJECTED",
    "SCALE",
    "SEGMENT",
    "STEP",
    "UNDECIDED",
    "WORD",
    "Brackets",
    "choose_exponential",
    "choose_exponential_segments",
    "choose_integer",
    "choose_lazily",
    "choose_segments",
    "locate",
    "shuffle",
]


# Exact choices that need only integers.
#
# A uniform shuffle and a choice with integer weights.

T = TypeVar("T")


def shuffle(items: Sequence[T]) -> list[T]:
    """The items in a uniformly random order.

    Returns a new list (Fisher and Yates).

    >>> sorted(shuffle([3, 1, 2]))
    [1, 2, 3]
    """
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = random_below(last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def choose_integer(weights: Sequence[int]) -> int:
    """Choose an index ``i`` with probability ``weights[i] / sum(weights)``.

    The weights are integers of any size.

    >>> choose_integer([0, 10**50, 0])
    1
    """
    cumulative = list(accumulate(int(weight) for weight in weights))
    if not cumulative or cumulative[-1] <= 0 or min(weights) < 0:
        raise InputError("A choice needs weights that are 0 or above, at least one of them above 0.")
    return bisect_right(cumulative, random_below(cumulative[-1]))


# Exact choices with real weights, by a lazily refined inverse CDF.
#
# The weights are known to any precision.
#
# A uniform real number is compared with cumulative weights, of which only brackets are known. When it falls
# into a bracket, it gets more bits and the weights more precision, until it does not. So the outcome has
# exactly the probability of the real weights (docs/theory/sampling.md, section 6).

Brackets = Callable[[int], tuple[Sequence[int], Sequence[int]]]
"""``brackets(bits)`` gives integers with ``lower[i] <= 2**bits · weight[i] <= upper[i]``."""

STEP = 64  # bits that a uniform gets at a time
REJECTED, OPEN = -1, -2


def choose_lazily(brackets: Brackets) -> int:
    """An index ``i`` with probability ``weight[i] / sum(weight)``, for real weights known through brackets.

    ``brackets(bits)`` returns two sequences of integers with
    ``0 <= lower[i] <= 2**bits · weight[i] <= upper[i]``. It is called with growing ``bits`` (64, 128, …), and
    almost always once. The weights may have any scale. They must not all be zero, and the brackets of the
    others must become relatively narrow as ``bits`` grows.

    >>> choose_lazily(lambda bits: ([0, 3 << bits], [0, 3 << bits]))
    1
    """
    bits, lower, upper = _accurate(brackets)
    while True:
        uniform = random_bits(sum(upper).bit_length())
        place, finer = locate(uniform, lower, upper), bits
        while place == OPEN:
            finer += STEP
            uniform = uniform << STEP | random_bits(STEP)
            place = locate(uniform, *brackets(finer))
        if place != REJECTED:
            return place


def _accurate(brackets: Brackets) -> tuple[int, Sequence[int], Sequence[int]]:
    """The first brackets whose total is known within a factor of two.

    Few uniforms are then rejected.
    """
    bits = STEP
    while True:
        lower, upper = brackets(bits)
        if sum(upper) == 0:
            raise InputError("A choice needs at least one candidate, and a weight above 0.")
        if 2 * sum(lower) >= sum(upper):
            return bits, lower, upper
        bits *= 2


def locate(uniform: int, lower: Sequence[int], upper: Sequence[int]) -> int:
    """Where a real number in ``[uniform, uniform + 1)`` falls among the cumulative weights.

    The index of its candidate; REJECTED if it is above the total; OPEN if the brackets do not tell.
    """
    least = most = 0
    for index, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if uniform < least + low:
            return index if most <= uniform else OPEN
        least, most = least + low, most + high
    return REJECTED if most <= uniform else OPEN


# The compiled first step of a choice with weights ``multiplicity·exp(-rate·score)``.
#
# Each weight is a 64-bit mantissa with a known error and a power of two; cumulative sums of lower bounds are
# kept in 128 bits, scaled so that the largest weight is just below 2**100. Upper bounds follow from the lower
# ones: ``C <= true sum <= C·(1 + 2**-50) + 2·terms + 1`` (docs/theory/sampling.md, section 6).

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
    result, best = False, np.int64(0)
    for i in range(start, stop):
        if counts.size:
            if counts[i] < 0:
                return False, best
            if counts[i] == 0:
                continue
        if not result or scores[i] < best:
            result, best = True, scores[i]
    return result, best


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
        result, best = _best_score(scores, counts, start, stop)
        if not result:
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


# The choice of the exponential mechanism.
#
# The weights are ``multiplicity[i]·exp(-rate·score[i])``.
#
# A lazily refined inverse CDF whose first step is compiled (``noise/choices.py``). Only when a draw falls
# between the bounds of two neighbouring sums, about once in 2**50 / candidates draws, are weights computed
# again with more bits, here, in integers of any size (docs/theory/sampling.md, section 6).

Integers = NDArray[np.int64] | Sequence[int]
MOST_CANDIDATES = 2**27
PLAIN_CANDIDATES = 1 << 12
"""From at most so many Python chooses within a twentieth of a second."""
LOG_TWO_ABOVE = log_two(192)[1]
NO_WEIGHT = "A choice needs a candidate of multiplicity above 0, and none of multiplicity below 0."
ALL_ONE = np.zeros(0, dtype=np.int64)


def choose_exponential(scores: Integers, rate: Fraction, multiplicity: Integers | None = None) -> int:
    """An index ``i`` with probability proportional to ``multiplicity[i]·exp(-rate·scores[i])``, exactly.

    Scores are integers of any size (arrays of 64-bit integers are fast), ``rate`` is a rational at or above
    0, multiplicities are integers at or above 0 (default: 1), not all 0. Linear in the number of candidates.

    >>> choose_exponential([5, 0, 7], Fraction(1000))
    1
    """
    try:
        values = _int64(scores, "scores")
        counts = ALL_ONE if multiplicity is None else _int64(multiplicity, "multiplicity")
    except OverflowError:
        return _choose_large(scores, rate, multiplicity)
    _check_layout(values.size, values.size, 0 if multiplicity is None else counts.size - values.size)
    bounds = np.array([0, values.size], dtype=np.int64)
    return int(_choose(values, counts, bounds, values.size, [rate])[0])


def choose_exponential_segments(
    scores: Integers,
    offsets: Integers,
    rates: Fraction | Sequence[Fraction],
    multiplicity: Integers | None = None,
    *,
    size: int | None = None,
) -> NDArray[np.int64]:
    """Choose independently in each segment.

    Each choice has the distribution of :func:`choose_exponential`.

    Segment ``s`` holds the candidates ``offsets[s], …, offsets[s + 1] - 1``, at least one; ``rates`` is one
    rate for all segments, or one for each. The result counts from the start of the segment. Scores and
    multiplicities must fit 64 bits. Where the number of candidates is private, ``size`` is a public bound on it: few enough
    are chosen from without compiling anything, and the law is the same.

    >>> choose_exponential_segments([0, 50, 50, 0], [0, 2, 4], Fraction(1000))
    array([0, 1])
    """
    values, bounds = _int64(scores, "scores"), _int64(offsets, "offsets")
    counts = ALL_ONE if multiplicity is None else _int64(multiplicity, "multiplicity")
    if bounds.size < 1 or bounds[0] != 0 or bounds[-1] != values.size:
        raise InputError("offsets must rise from 0 to the number of scores.")
    sizes = np.diff(bounds)
    longest = int(sizes.max(initial=0))
    _check_layout(
        int(sizes.min(initial=1)), longest, 0 if multiplicity is None else counts.size - values.size
    )
    every = [rates] if isinstance(rates, Fraction) else list(rates)
    if len(every) != sizes.size and not isinstance(rates, Fraction):
        raise InputError(f"{sizes.size} segments need one rate, or one for each, not {len(every)}.")
    return _choose(values, counts, bounds, longest, every, size)


def _choose(
    scores: NDArray[np.int64],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    longest: int,
    rates: Sequence[Fraction],
    size: int | None = None,
) -> NDArray[np.int64]:
    """Run the kernel, and settle what it leaves open."""
    segments = offsets.size - 1
    octaves = [_in_octaves(rate.numerator, rate.denominator) for rate in rates]
    mantissas = np.array([mantissa for mantissa, _ in octaves], dtype=np.uint64)
    places = np.array([place for _, place in octaves], dtype=np.int64)
    sums = np.empty((longest, 2), dtype=np.uint64)
    chosen = np.empty(segments, dtype=np.int64)
    pending, state = np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64)
    words = random_words(4 * segments + 8)
    run = choose_segments
    if size is not None:
        few = size * PLAIN_STEPS <= PLAIN_CANDIDATES * most_steps()
        run = choose_segments.plain if few else choose_segments.compiled
    while True:
        status = run(scores, counts, offsets, mantissas, places, words, sums, chosen, pending, state)
        segment = int(state[SEGMENT])
        if status == DONE:
            return chosen
        if status == EMPTY:
            raise InputError(NO_WEIGHT)
        if status == NEED_WORDS:
            words = random_words(4 * (segments - segment) + 8)
            state[WORD] = 0
            continue
        part = slice(int(offsets[segment]), int(offsets[segment + 1]))
        weights = _weights(
            scores[part].tolist(), rates[segment if len(rates) > 1 else 0], counts[part].tolist() or None
        )
        place = _settle(weights, int(pending[0]) << 64 | int(pending[1]), int(state[SCALE]))
        if place != REJECTED:
            chosen[segment] = place
            state[SEGMENT] += 1


def _settle(weights: Brackets, uniform: int, bits: int) -> int:
    """The place of a uniform that the kernel's bounds left open.

    Reads further bits until it is decided.
    """
    place = OPEN
    while place == OPEN:
        bits += STEP
        uniform = uniform << STEP | random_bits(STEP)
        place = locate(uniform, *weights(bits))
    return place


def _choose_large(scores: Integers, rate: Fraction, multiplicity: Integers | None) -> int:
    """The same choice for integers that do not fit 64 bits."""
    counts = None if multiplicity is None else [int(count) for count in multiplicity]
    _check_layout(len(scores), len(scores), 0 if counts is None else len(counts) - len(scores))
    if rate < 0:
        raise InputError(f"The rate of a choice must be at least 0, not {rate}.")
    return choose_lazily(_weights([int(score) for score in scores], rate, counts))


def _weights(scores: list[int], rate: Fraction, multiplicity: list[int] | None) -> Brackets:
    """Brackets of the weights, relative to the best score among candidates of positive multiplicity."""
    counts = [1] * len(scores) if multiplicity is None else multiplicity
    if min(counts) < 0 or max(counts) == 0:
        raise InputError(NO_WEIGHT)
    best = min(score for score, count in zip(scores, counts, strict=True) if count)
    longest = max(counts).bit_length()

    def brackets(bits: int) -> tuple[list[int], list[int]]:
        powers: dict[int, tuple[int, int]] = {}
        lower, upper = [0] * len(scores), [0] * len(scores)
        for i, (score, count) in enumerate(zip(scores, counts, strict=True)):
            if count:
                if score not in powers:
                    powers[score] = exp_negative(rate * (score - best), bits + longest)
                low, high = powers[score]
                lower[i], upper[i] = (low * count) >> longest, -((-high * count) >> longest)
        return lower, upper

    return brackets


@lru_cache(maxsize=4096)
def _in_octaves(numerator: int, denominator: int) -> tuple[int, int]:
    """The rate in units of ``ln 2``, as an integer and an exponent.

    ``(m, s)`` with ``m <= 2**s · rate / ln 2 < m + 2``, and ``2**63 <= m < 2**64`` unless the rate is 0.
    """
    if numerator < 0:
        raise InputError(f"The rate of a choice must be at least 0, not {Fraction(numerator, denominator)}.")
    if numerator == 0:
        return 0, 64
    places = 65 - numerator.bit_length() + denominator.bit_length()
    while True:  # at most three times: the first guess is at most two places too many
        over, under = max(192 + places, 0), max(-192 - places, 0)
        mantissa = (numerator << over) // ((denominator * LOG_TWO_ABOVE) << under)
        if mantissa.bit_length() == 64:
            return mantissa, places
        places -= 1


def _int64(values: Integers, name: str) -> NDArray[np.int64]:
    """The integers as a 64-bit array.

    Raises OverflowError if one does not fit.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional.")
    if array.dtype == np.int64:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iub":
        if not all(isinstance(value, (int, np.integer)) for value in values):
            raise InputError(f"{name} must be integers.")
        return np.array([int(value) for value in values], dtype=np.int64)
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        raise OverflowError(name)
    return array.astype(np.int64)


def _check_layout(shortest: int, longest: int, surplus: int) -> None:
    if shortest < 1:
        raise InputError("A choice needs at least one candidate.")
    if longest > MOST_CANDIDATES:
        raise InputError("A choice can have at most 2**27 candidates.")
    if surplus:
        raise InputError("Every score needs one multiplicity, or none is given.")
