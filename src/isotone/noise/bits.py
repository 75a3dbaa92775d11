"""Random bits, and exact choices and coins made of them.

Random bits from the operating system's cryptographic source, and unbiased integers made of them.

Nothing is kept between calls: every call asks the kernel for one block of exactly the size it needs. So
there is no state that a fork could duplicate, that threads could share, or that a core dump could reveal
before it is used. Unused bits of a block are dropped; they are independent of everything drawn before and
after, so dropping them changes no distribution (docs/theory/sampling.md, section 1).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import PLAIN_STEPS, Flag, Int, Ints, Word, Words, kernel, most_steps


def random_bits(count: int) -> int:
    """A uniform integer in ``[0, 2**count)``.

    >>> random_bits(0)
    0
    >>> 0 <= random_bits(10) < 1024
    True
    """
    if count < 0:
        raise InputError(f"The number of random bits must be at least 0, not {count}.")
    size = (count + 7) // 8
    return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)


def random_below(bound: int) -> int:
    """Draw a uniform integer in ``[0, bound)`` by rejection.

    Fewer than two tries are expected.

    >>> random_below(1)
    0
    """
    if bound < 1:
        raise InputError(f"A uniform integer needs a bound of at least 1, not {bound}.")
    count = (bound - 1).bit_length()
    while True:
        candidate = random_bits(count)
        if candidate < bound:
            return candidate


def random_words(count: int) -> NDArray[np.uint64]:
    """``count`` uniform 64-bit words, drawn in one block."""
    if count < 0:
        raise InputError(f"The number of random words must be at least 0, not {count}.")
    return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


def random_salt() -> bytes:
    """Draw the 16 bytes that decide which rows of a unit count.

    They are drawn for each attempt, used once and stored nowhere.

    >>> len(random_salt())
    16
    """
    return os.urandom(16)


def random_belows(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each bound a uniform integer in ``[0, bound)``, from a word each; words of an incomplete last round are drawn again.

    >>> random_belows(np.ones(2, np.int64))
    array([0, 0])
    """
    if np.any(bounds < 1):
        raise InputError("Uniform integers need bounds of at least 1.")
    sizes = bounds.astype(np.uint64)
    words, least = random_words(sizes.size), (np.uint64(0) - sizes) % sizes  # 2**64 modulo the bound
    open_places = np.flatnonzero(words < least)
    while open_places.size:
        words[open_places] = random_words(open_places.size)
        open_places = open_places[words[open_places] < least[open_places]]
    return (words % sizes).astype(np.int64)


# Numbers known between two bounds that are refined when asked, and coins with exact probabilities.

# Guaranteed integer brackets of exponentials.
#
# They are the only source of real numbers in exact sampling.
#
# A bracket at ``bits`` bits of a real number ``v`` is a pair of integers with ``lo <= 2**bits * v <= hi``.
# Everything here is integer arithmetic with the rounding errors counted (docs/theory/sampling.md, section 2).

REDUCED = 8  # the series is summed for arguments below 2**-REDUCED


def exp_negative(x: Fraction, bits: int) -> tuple[int, int]:
    """A bracket of ``exp(-x)`` for ``x >= 0`` at ``bits`` bits, with ``hi - lo <= 2``.

    >>> exp_negative(Fraction(1), 30)  # 0.36787944117… · 2**30
    (395007542, 395007543)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if 10 * x >= 7 * (bits + 1):  # 7/10 exceeds ln 2, so exp(-x) < 2**-bits
        return 0, 1
    halvings = max(0, (x.numerator << REDUCED).bit_length() - x.denominator.bit_length() + 1)
    guard = halvings + (bits + halvings).bit_length() + 6
    width = bits + guard
    lo, hi = _series(x, halvings, width)
    for _ in range(halvings):
        lo, hi = (lo * lo) >> width, -((-hi * hi) >> width)
    return lo >> guard, -(-hi >> guard)


def _series(x: Fraction, halvings: int, width: int) -> tuple[int, int]:
    """A bracket of ``exp(-x / 2**halvings)`` at ``width`` bits.

    The argument is below ``2**-REDUCED``.
    """
    y = (x.numerator << width) // (x.denominator << halvings)
    term = total = 1 << width
    order = 0
    while term:
        order += 1
        term = (term * y >> width) // order
        total += -term if order & 1 else term
    # each computed term is short by less than 2, the omitted ones add up to less than 2, and y is short
    # by less than 1
    return total - 2 * order - 3, min(total + 2 * order + 3, 1 << width)


def powers_of_exp(x: Fraction, count: int, bits: int) -> list[tuple[int, int]]:
    """Brackets of ``exp(-x·d)`` for ``d = 0, …, count``, with ``hi - lo <= 2``.

    >>> powers_of_exp(Fraction(1, 2), 2, 8)
    [(256, 256), (155, 156), (94, 95)]
    """
    guard = (count + 1).bit_length() + 6
    width = bits + guard
    first_lo, first_hi = exp_negative(x, width)
    lo, hi = 1 << width, 1 << width
    powers = [(1 << bits, 1 << bits)]
    for _ in range(count):
        lo, hi = (lo * first_lo) >> width, -((-hi * first_hi) >> width)
        powers.append((lo >> guard, -(-hi >> guard)))
    return powers


def log_two(bits: int) -> tuple[int, int]:
    """A bracket of ``ln 2`` at ``bits`` bits, from ``ln 2 = 2·artanh(1/3)``."""
    guard = bits.bit_length() + 6
    power = (2 << (bits + guard)) // 3
    total, order = 0, 0
    while power:
        total += power // (2 * order + 1)
        power //= 9
        order += 1
    # every term is short by less than 3, and the omitted ones add up to less than 1
    return total >> guard, -(-(total + 3 * order + 1) >> guard)


# Coins with probability p/q, with probability exp(-p/q), and with probability exp(-x) for a lazily known x.
#
# The first two use integers only: no real number is ever computed (Canonne, Kamath and Steinke 2020;
# docs/theory/sampling.md, section 3). The third compares a uniform with brackets of exp(-x), and reads on.


def bernoulli(p: Fraction) -> bool:
    """True with probability ``p``, a rational in [0, 1].

    >>> bernoulli(Fraction(1)), bernoulli(Fraction(0))
    (True, False)
    """
    if not 0 <= p <= 1:
        raise InputError(f"A probability must be between 0 and 1, not {p}.")
    return random_below(p.denominator) < p.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability ``exp(-x)``, for a rational ``x >= 0``.

    >>> bernoulli_exp(Fraction(0))
    True
    """
    if x < 0:
        raise InputError(f"exp(-x) is a probability only for x at or above 0, not {x}.")
    whole, rest = divmod(x.numerator, x.denominator)
    for _ in range(whole):
        if not _bernoulli_exp_below_one(1, 1):
            return False
    return _bernoulli_exp_below_one(rest, x.denominator)


def _bernoulli_exp_below_one(p: int, q: int) -> bool:
    """True with probability ``exp(-p/q)``, for ``p <= q``.

    The first failure among coins p/(q·k), k = 1, 2, …, comes at an odd k with this probability.
    """
    k = 1
    while random_below(q * k) < p:
        k += 1
    return k % 2 == 1


def bernoulli_exp_lazily(
    bounds: Iterable[tuple[Fraction, Fraction]], uniform: int = 0, bits: int = 0
) -> bool:
    """True with probability ``exp(-x)``, for a real ``x >= 0`` that is known through ever closer bounds.

    ``bounds`` yields pairs ``0 <= low <= x <= high`` whose distance shrinks to nothing; as many are taken as
    needed. If ``x`` is itself random, later bounds may come from further random digits of it. ``uniform``
    holds the first ``bits`` bits of the uniform to compare with, if some were drawn already.

    >>> bernoulli_exp_lazily([(Fraction(0), Fraction(0))])
    True
    """
    for low, high in bounds:
        uniform, bits = uniform << 64 | random_bits(64), bits + 64
        if uniform < exp_negative(high, bits)[0]:
            return True
        if uniform >= exp_negative(low, bits)[1]:
            return False
    raise InputError("The bounds of the exponent ended before they decided; they must come ever closer.")


# Compiled 64- and 128-bit integer arithmetic, and powers of two with fractional exponents.
#
# Only integers: no result depends on the rounding of a floating-point unit or a mathematics library. Error
# bounds are proved in docs/theory/sampling.md, section 2.

POWER_ERROR = 16
"""``exp2_negative`` is off by less than this, in units of 2**-63."""

_0, _1, _32, _63, _64 = (np.uint64(value) for value in (0, 1, 32, 63, 64))
_LOW = np.uint64(0xFFFFFFFF)


def _powers_of_two(step_bits: int) -> NDArray[np.uint64]:
    """``2**63 · 2**(-i / 2**step_bits)`` for ``i = 0…255``, short by less than 2."""
    low, _ = log_two(128)
    log = Fraction(low, 1 << 128)
    return np.array(
        [exp_negative(log * Fraction(i, 1 << step_bits), 127)[0] >> 64 for i in range(256)], dtype=np.uint64
    )


_FIRST, _SECOND, _THIRD = _powers_of_two(8), _powers_of_two(16), _powers_of_two(24)
_LOG_TWO = np.uint64(log_two(64)[0])


@kernel
def multiply(a: Word, b: Word) -> tuple[Word, Word]:
    """The product of two 64-bit integers as (high, low) words."""
    a_low, a_high = a & _LOW, a >> _32
    b_low, b_high = b & _LOW, b >> _32
    low = a_low * b_low
    middle = a_high * b_low + (low >> _32)
    cross = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _32) + (cross >> _32), (cross << _32) | (low & _LOW)


@kernel
def shift_right(high: Word, low: Word, places: Int) -> tuple[Word, Word]:
    """A 128-bit integer shifted right by ``places >= 0``."""
    if places == 0:
        return high, low
    if places < 64:
        by = np.uint64(places)
        return high >> by, (low >> by) | (high << (_64 - by))
    if places < 128:
        return _0, high >> np.uint64(places - 64)
    return _0, _0


@kernel
def shift_left(high: Word, low: Word, places: Int) -> tuple[Word, Word]:
    """A 128-bit integer shifted left by ``places >= 0``.

    Bits beyond 128 are lost.
    """
    if places == 0:
        return high, low
    if places < 64:
        by = np.uint64(places)
        return (high << by) | (low >> (_64 - by)), low << by
    if places < 128:
        return low << np.uint64(places - 64), _0
    return _0, _0


@kernel
def below(a_high: Word, a_low: Word, b_high: Word, b_low: Word) -> Flag:
    """Whether one 128-bit integer is below another."""
    return a_high < b_high or (a_high == b_high and a_low < b_low)


@kernel
def _scaled_product(a: Word, b: Word) -> Word:
    """``floor(a·b / 2**63)`` for numbers up to 2**63."""
    high, low = multiply(a, b)
    return (high << _1) | (low >> _63)


@kernel
def exp2_negative(fraction: Word) -> Word:
    """``2**63 · 2**(-fraction / 2**64)``, off by less than POWER_ERROR.

    The three high bytes of the exponent are looked up; what is left is below 2**-24 and needs two terms of
    the series.
    """
    first = _FIRST[fraction >> np.uint64(56)]
    second = _SECOND[(fraction >> np.uint64(48)) & np.uint64(255)]
    third = _THIRD[(fraction >> np.uint64(40)) & np.uint64(255)]
    rest = fraction & np.uint64((1 << 40) - 1)
    linear = multiply(rest, _LOG_TWO)[0] >> _1
    quadratic = multiply(linear, linear)[0]
    last = (_1 << _63) - linear + quadratic
    return _scaled_product(_scaled_product(first, second), _scaled_product(third, last))


# Exact choices among options with given weights.

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
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


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
def _best_score(scores: Ints, counts: Ints) -> tuple[Flag, Int]:
    """Whether the segment has a candidate (and no negative multiplicity), and the least score of one."""
    result, best = False, np.int64(0)
    for i in range(scores.size):
        if counts.size:
            if counts[i] < 0:
                return False, best
            if counts[i] == 0:
                continue
        if not result or scores[i] < best:
            result, best = True, scores[i]
    return result, best


@kernel
def _largest(scores: Ints, counts: Ints, best: Int, mantissa: Word, places: Int) -> Int:
    """The ``t`` for which every weight is below ``2**t``, and one is at least ``2**(t - 2)``."""
    top = 1
    if counts.size:
        for i in range(counts.size):
            length = _bit_length(counts[i])
            if length > top:
                whole, _ = _octaves(np.uint64(scores[i]) - np.uint64(best), mantissa, places)
                top = max(top, length - whole)
    return top


@kernel
def _add_up(
    scores: Ints, counts: Ints, best: Int, top: Int, mantissa: Word, places: Int, sums: Words
) -> None:
    """Cumulative sums of the lower bounds of the weights, scaled by ``2**(TOP - top)``."""
    high, low = _0, _0
    for i in range(scores.size):
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
        sums[i, 0] = high
        sums[i, 1] = low


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


class SegmentChoices(NamedTuple):
    """What was chosen in each segment so far, sums of weights, and the undecided uniform and the place of the last stop."""

    chosen: Ints
    sums: Words
    pending: Words
    state: Ints


@kernel(steps=lambda scores, *_: 32 * scores.size)
def choose_segments(
    scores: Ints,
    counts: Ints,
    offsets: Ints,
    rates: tuple[Words, Ints],
    words: Words,
    choices: SegmentChoices,
) -> Int:
    """Choose in every segment, starting at the ``state`` of ``choices``.

    Returns why it stopped.

    ``counts`` may be empty: every multiplicity is then 1. There is one mantissa and place for each segment,
    or one for all. A stop between two uniforms loses nothing, since the sums do not depend on them; an
    undecided uniform is handed over in ``pending``.
    """
    (mantissas, places), (chosen, sums, pending, state) = rates, choices
    while state[SEGMENT] < chosen.size:
        segment = state[SEGMENT]
        start, stop = offsets[segment], offsets[segment + 1]
        which = segment if mantissas.size > 1 else 0
        mantissa, octave = mantissas[which], places[which]
        own, many = scores[start:stop], counts[start:stop]
        result, best = _best_score(own, many)
        if not result:
            return EMPTY
        top = _largest(own, many, best, mantissa, octave)
        _add_up(own, many, best, top, mantissa, octave, sums)
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
# A lazily refined inverse CDF whose first step is compiled (``noise/bits.py``). Only when a draw falls
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
    sums, chosen = np.empty((longest, 2), dtype=np.uint64), np.empty(segments, dtype=np.int64)
    choices = SegmentChoices(chosen, sums, np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64))
    pending, state = choices.pending, choices.state
    words = random_words(4 * segments + 8)
    run = choose_segments
    if size is not None:
        few = size * PLAIN_STEPS <= PLAIN_CANDIDATES * most_steps()
        run = choose_segments.plain if few else choose_segments.compiled
    while True:
        status = run(scores, counts, offsets, (mantissas, places), words, choices)
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
