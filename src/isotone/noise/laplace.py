"""Exact geometric and Laplace noise: one draw at a time, arrays, sums, and lines whose steps have different rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, expm1, floor, log, log1p

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Flag, Int, Ints, Words, kernel
from isotone.noise.bits import (
    bernoulli_exp,
    exp_negative,
    powers_of_exp,
    random_below,
    random_bits,
    random_words,
)

__all__ = [
    "BASE_BITS",
    "LEAST_RATE",
    "LEAST_SUM_RATE",
    "MOST_TERMS",
    "SMALLEST_RATE",
    "WORD_BITS",
    "DigitTable",
    "UnevenLine",
    "bernoulli_exps",
    "digits_below",
    "draw_digits",
    "geometric",
    "geometric_digits",
    "geometric_sums",
    "geometrics",
    "lazy_geometrics",
    "lazy_two_sided_geometrics",
    "rounded_laplaces",
    "two_sided_geometric",
    "two_sided_geometrics",
    "uneven_geometrics",
]


# The base-256 digits of a geometric variable, as tables a compiled kernel can search.
#
# The digits of a geometric variable are independent (docs/theory/sampling.md, section 4): the digit of
# ``256**j`` is geometric with rate ``rate·256**j``, cut to 0…255. So a draw is a few searches, one uniform
# word each, in tables of ``floor(2**63 · P(digit < d))``. A word that equals an entry does not decide; it is
# then followed by further bits, against the same table at more bits, until it does. No probability is rounded.

BASE_BITS = 8
BASE = 1 << BASE_BITS
WORD_BITS = 63  # of a 64-bit word; the lowest bit is left over, for a sign
LEADING_RATE = Fraction(6, BASE - 1)  # the leading table misses at most exp(-6) of the mass
SENTINEL = 1 << WORD_BITS


@dataclass(frozen=True)
class DigitTable:
    """Tables for digits of a geometric variable, lowest digit first, one row each.

    ``thresholds[j, d - 1]`` is ``floor(2**63 · P(digit j < d))`` for ``d = 1…255``, followed by a sentinel.
    ``guides[j, h]`` is the number of thresholds below ``h·2**55``: where to start the search for a word with
    high byte ``h``. If ``unbounded``, the last row is the leading digit, which has no upper limit: its
    outcome 255 means "255 or more", and the excess is again distributed like the digit.
    """

    rates: tuple[Fraction, ...]
    unbounded: bool
    thresholds: NDArray[np.uint64]
    guides: NDArray[np.int64]

    def resolve(self, row: int, word: int) -> int:
        """The digit of ``row`` for a 63-bit word that equals a threshold.

        Draws further bits until it is decided.
        """
        bits = WORD_BITS
        while True:
            bits += 64
            word = word << 64 | random_bits(64)
            floors = _floors(self.rates[row], bits, self._is_leading(row))
            if word not in floors:
                return sum(floor < word for floor in floors)

    def _is_leading(self, row: int) -> bool:
        return self.unbounded and row == len(self.rates) - 1


@lru_cache(maxsize=64)
def geometric_digits(rate: Fraction) -> DigitTable:
    """The digits of a geometric variable of the given rate, the leading one unbounded."""
    rates = [rate]
    while rates[-1] < LEADING_RATE:
        rates.append(rates[-1] * BASE)
    return _table(tuple(rates), unbounded=True)


@lru_cache(maxsize=64)
def digits_below(rate: Fraction, count: int) -> DigitTable:
    """The lowest ``count`` digits of a geometric variable of the given rate."""
    return _table(tuple(rate * BASE**j for j in range(count)), unbounded=False)


def _table(rates: tuple[Fraction, ...], *, unbounded: bool) -> DigitTable:
    leading = len(rates) - 1 if unbounded else None
    rows = [(*_floors(rate, WORD_BITS, j == leading), SENTINEL) for j, rate in enumerate(rates)]
    thresholds = np.array(rows, dtype=np.uint64)
    starts = np.arange(BASE, dtype=np.uint64) << np.uint64(WORD_BITS - 8)
    guides = np.array([np.searchsorted(row, starts, side="left") for row in thresholds], dtype=np.int64)
    thresholds.flags.writeable = guides.flags.writeable = False
    return DigitTable(rates, unbounded, thresholds, guides)


def _floors(rate: Fraction, bits: int, leading: bool) -> tuple[int, ...]:
    """``floor(2**bits · P(digit < d))`` for ``d = 1…255``.

    The leading digit is not cut to 0…255.

    Brackets are narrowed until both ends have the same floor. They do in the end, because no
    ``P(digit < d)`` is rational (Lindemann 1882); for the same reason no bracket's end is attained, and
    being below 1 it is below ``2**bits`` in units of ``2**-bits``.
    """
    small = max(0, rate.denominator.bit_length() - rate.numerator.bit_length())
    width = bits + small + 24
    while True:
        powers = powers_of_exp(rate, BASE, width)
        one = 1 << width
        cut_lo, cut_hi = (one, one) if leading else (one - powers[BASE][1], one - powers[BASE][0])
        lows = [((one - hi) << bits) // cut_hi for _, hi in powers[1:BASE]]
        highs = [min((1 << bits) - 1, (((one - lo) << bits) - 1) // cut_lo) for lo, _ in powers[1:BASE]]
        if lows == highs:
            return tuple(lows)
        width += 32


# Arrays of exact geometric and two-sided geometric variables from a compiled kernel.
#
# The kernel reads cryptographic words one by one and keeps its place in an explicit state. When the words run
# out, or a word does not decide a digit, it returns; Python supplies what is missing and the kernel goes on
# exactly where it stopped. Nothing that was drawn is ever thrown away, so stopping cannot bias a draw
# (docs/theory/sampling.md, section 4).

SMALLEST_RATE = Fraction(1, 2**45)
"""The smallest rate of an array: below it, a value might not fit 64 bits."""

DONE, NEED_WORDS, UNDECIDED, TOO_LARGE = 0, 1, 2, 3
CELL, ROW, VALUE, WORD = 0, 1, 2, 3  # places in the state
LAST_DIGIT = (1 << BASE_BITS) - 1
LARGEST = 1 << 62
_1, _55 = np.uint64(1), np.uint64(55)


def geometrics(rate: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws ``k >= 0`` with probability proportional to ``exp(-rate·k)``, exactly.

    The rate must be at least 2**-45.
    """
    _check(rate, size)
    return draw_digits(geometric_digits(rate), size, two_sided=False)


def two_sided_geometrics(epsilon: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws with probability proportional to ``exp(-epsilon·|k|)``, exactly.

    The same distribution as :func:`two_sided_geometric`, millions of draws a second. ``epsilon`` must be at
    least 2**-45, so that every value fits 64 bits (a larger one, of probability below exp(-60000), raises).

    >>> two_sided_geometrics(Fraction(1000), 3)
    array([0, 0, 0])
    """
    _check(epsilon, size)
    return draw_digits(geometric_digits(epsilon), size, two_sided=True)


def _check(rate: Fraction, size: int) -> None:
    if rate < SMALLEST_RATE:
        raise InputError(
            f"Arrays of geometric noise need a rate of at least 2**-45, not {rate}: below that, values may "
            "not fit 64 bits. two_sided_geometric() and geometric() draw single values at any rate."
        )
    if size < 0:
        raise InputError(f"The number of draws must be at least 0, not {size}.")


def draw_digits(table: DigitTable, size: int, *, two_sided: bool) -> NDArray[np.int64]:
    """``size`` independent values made of the digits of ``table``, with a random sign if ``two_sided``."""
    values = np.empty(size, dtype=np.int64)
    state = np.zeros(4, dtype=np.int64)
    words = random_words(_expected_words(table, size, two_sided))
    while True:
        status = _fill(values, two_sided, table.unbounded, table.thresholds, table.guides, words, state)
        if status == DONE:
            return values
        if status == NEED_WORDS:
            words = random_words(_expected_words(table, size - int(state[CELL]), two_sided))
            state[WORD] = 0
        elif status == UNDECIDED:
            word = int(words[state[WORD]])
            digit = table.resolve(int(state[ROW]), word >> 1)
            state[WORD] += 1
            _place(values, two_sided, table.unbounded, len(table.rates), state, digit, word & 1)
        else:
            raise OverflowError("A geometric draw exceeded 64 bits; this has probability below exp(-60000).")


def _expected_words(table: DigitTable, size: int, two_sided: bool) -> int:
    """The number of words that will probably do.

    Too few cost a refill, too many cost bits.
    """
    tries = (
        1.0 - 0.5 * expm1(-min(50.0, float(table.rates[0]))) if two_sided else 1.0
    )  # minus zero is redrawn
    return 8 + int(1.01 * tries * size * len(table.rates))


@kernel(steps=lambda *_: 1)
def _place(
    values: Ints, two_sided: Flag, unbounded: Flag, rows: Int, state: Ints, digit: Int, sign: Int
) -> Flag:
    """Add one digit to the value in hand.

    Finishes the cell if it was the last digit. Returns False if the value grew too large.
    """
    row = state[ROW]
    state[VALUE] += digit << (BASE_BITS * row)
    if row < rows - 1:
        state[ROW] = row + 1
        return True
    if unbounded and digit == LAST_DIGIT:
        return state[VALUE] < LARGEST  # the excess is drawn like the digit itself
    value = state[VALUE]
    state[ROW] = 0
    state[VALUE] = 0
    if two_sided and sign == 1:
        if value == 0:
            return True  # minus zero: the cell is drawn again
        value = -value
    values[state[CELL]] = value
    state[CELL] += 1
    return True


@kernel(steps=lambda values, two_sided, unbounded, thresholds, *_: 4 * values.size * len(thresholds))
def _fill(
    values: Ints, two_sided: Flag, unbounded: Flag, thresholds: Words, guides: Ints, words: Words, state: Ints
) -> Int:
    """Fill ``values`` from ``words``, starting at ``state``.

    Returns why it stopped.
    """
    while state[CELL] < values.size:
        if state[WORD] == words.size:
            return NEED_WORDS
        row = state[ROW]
        word = words[state[WORD]]
        uniform = word >> _1
        digit = guides[row, uniform >> _55]
        while uniform > thresholds[row, digit]:
            digit += 1
        if uniform == thresholds[row, digit]:
            return UNDECIDED
        state[WORD] += 1
        if not _place(values, two_sided, unbounded, thresholds.shape[0], state, digit, np.int64(word & _1)):
            return TOO_LARGE
    return DONE


# Arrays of geometric numbers and of exponential coins at any rate, without tables.
#
# A uniform number U decides: a geometric number is at least k exactly if ``U < exp(-rate·k)``. Its first 64 bits, and
# floats with a generous margin for their errors, nearly always tell which k it is; where they do not, further bits of U
# are compared with brackets of the exponential until they do (docs/theory/sampling.md, section 4). So the law is exact,
# and a rate costs nothing to prepare, which is what noise with hundreds of different rates needs.

LEAST_RATE = Fraction(1, 1 << 24)
"""At smaller rates neighbouring numbers are too close for the margin."""

_MARGIN = 1e-12
"""Relative. The floats here are right to 1e-14: one product, one logarithm or exponential below exp(-45)."""

_FEW = np.uint64(1 << 24)
"""A word below this leaves too few bits to decide by floats."""


def bernoulli_exps(rate: Fraction, multiples: Ints) -> NDArray[np.bool_]:
    """For each whole number m, at least 0, True with probability ``exp(-rate·m)``.

    >>> bernoulli_exps(Fraction(1), np.zeros(2, np.int64))
    array([ True,  True])
    """
    if rate < 0 or np.any(multiples < 0):
        raise InputError("exp(-x) is a probability only for x at or above 0.")
    words = random_words(multiples.size)
    uniform = words.astype(np.float64) * 2.0**-64
    chance = np.exp(-float(rate) * multiples)
    result = uniform < chance
    close = np.abs(uniform - chance) <= _MARGIN * chance + 2.0**-60
    for i in np.flatnonzero(close & (multiples > 0)).tolist():
        result[i] = _below(int(words[i]), rate * int(multiples[i]))
    result[multiples == 0] = True
    return result


def lazy_geometrics(rate: Fraction, size: int) -> Ints:
    """``size`` independent draws ``k >= 0`` with probability proportional to ``exp(-rate·k)``, exactly."""
    if rate < LEAST_RATE:
        raise InputError(f"The rate must be at least {LEAST_RATE}, not {rate}.")
    words = random_words(size)
    slope = float(rate)
    uniform = np.maximum(words.astype(np.float64), 1.0) * 2.0**-64
    result = np.floor(-np.log(uniform) / slope).astype(np.int64)
    above = np.exp(-slope * result) * (1 - _MARGIN)
    below = np.exp(-slope * (result + 1)) * (1 + _MARGIN)
    unclear = (words < _FEW) | ~((below < uniform) & (uniform < above))
    for i in np.flatnonzero(unclear).tolist():
        result[i] = _geometric(int(words[i]), rate)
    return result


def lazy_two_sided_geometrics(rate: Fraction, size: int) -> Ints:
    """``size`` independent draws with probability proportional to ``exp(-rate·|k|)``, exactly.

    A sign and a magnitude; minus zero is drawn again, so that zero is not counted twice.
    """
    result = np.empty(size, np.int64)
    open_places = np.arange(size)
    while open_places.size:
        magnitude = lazy_geometrics(rate, open_places.size)
        negative = (random_words(open_places.size) & np.uint64(1)).astype(np.bool_)
        settled = ~(negative & (magnitude == 0))
        result[open_places[settled]] = np.where(negative, -magnitude, magnitude)[settled]
        open_places = open_places[~settled]
    return result


def _below(word: int, x: Fraction) -> bool:
    """Whether a uniform number with these first 64 bits is below ``exp(-x)``; more bits are drawn as needed."""
    return _Uniform(word).below(x)


def _geometric(word: int, rate: Fraction) -> int:
    """The geometric number of a uniform number with these first 64 bits."""
    uniform, low, high = _Uniform(word), 0, 1
    while uniform.below(rate * high):
        low, high = high, 2 * high
    while high - low > 1:  # at least low, and below high
        middle = (low + high) // 2
        low, high = (middle, high) if uniform.below(rate * middle) else (low, middle)
    return low


class _Uniform:
    """A uniform number whose bits are drawn when they matter."""

    def __init__(self, word: int) -> None:
        self.bits, self.value = 64, word

    def below(self, x: Fraction) -> bool:
        """Whether it is below ``exp(-x)``. It never equals it, since that is irrational unless x is 0."""
        if x == 0:
            return True
        while True:
            low, high = exp_negative(x, self.bits)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.value, self.bits = self.value << 64 | random_bits(64), self.bits + 64


# The geometric and the two-sided geometric distribution, one exact draw at a time.
#
# For any positive rational rate, without limit in either direction. Arrays are drawn by ``bulk.py``, by
# another method; each is a check of the other (docs/theory/sampling.md, section 3).


def geometric(x: Fraction) -> int:
    """A draw ``k >= 0`` with probability proportional to ``exp(-x·k)``, for a rational ``x > 0``.

    With ``x = p/q``, a geometric ``u + q·v`` of rate ``1/q`` is built from its remainder and its quotient,
    which are independent, and divided by ``p``.
    """
    if x <= 0:
        raise InputError(f"The rate of a geometric distribution must be above 0, not {x}.")
    p, q = x.numerator, x.denominator
    remainder = random_below(q)
    while not bernoulli_exp(Fraction(remainder, q)):
        remainder = random_below(q)
    quotient = 0
    while bernoulli_exp(Fraction(1)):
        quotient += 1
    return (remainder + q * quotient) // p


def two_sided_geometric(epsilon: Fraction) -> int:
    """Draw from the discrete Laplace distribution.

    The probability of ``k`` is proportional to ``exp(-epsilon·|k|)``.

    A sign and a magnitude; minus zero is drawn again, so that zero is not counted twice.
    """
    while True:
        negative, magnitude = random_bits(1), geometric(epsilon)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def rounded_laplaces(rate: Fraction, size: int) -> NDArray[np.int64]:
    """Laplace noise with density proportional to ``exp(-rate·|y|)``, exactly rounded to integers."""
    return np.array([_rounded_laplace(rate) for _ in range(size)], dtype=np.int64)


def _rounded_laplace(rate: Fraction) -> int:
    """Laplace noise rounded to the nearest integer (docs/theory/baselines.md, section 2).

    Its magnitude is exponential: below 1/2 it rounds to 0, and otherwise, having no memory, it exceeds 1/2 by
    another exponential, of which the rounding keeps the integer part plus one.
    """
    if not bernoulli_exp(rate / 2):
        return 0
    magnitude = 1 + geometric(rate)
    return -magnitude if random_bits(1) else magnitude


# Arrays of sums of several geometric numbers, a draw for each sum.
#
# A uniform number U decides: the sum is above k exactly if ``U >= P(sum <= k)``. These probabilities are bracketed by
# integers once for a rate and a number of terms. The first 64 bits of U nearly always tell between which of them it lies;
# where they do not, further bits are compared with closer brackets (docs/theory/sampling.md, section 4).

MOST_TERMS, LEAST_SUM_RATE = 64, Fraction(1, 32)
"""Sums of more terms, or at smaller rates, would need long tables."""

_BITS, _LAST = 64, 1 << 10
"""The bits of a word, and how many of all words are left out of a table."""


def geometric_sums(rate: Fraction, terms: int, size: int) -> Ints:
    """``size`` independent sums of ``terms`` geometric numbers, each ``k >= 0`` with probability ``∝ exp(-rate·k)``.

    >>> geometric_sums(Fraction(100), 2, 3)
    array([0, 0, 0])
    """
    if rate < LEAST_SUM_RATE or not 1 <= terms <= MOST_TERMS:
        raise InputError(
            f"Sums have 1 to {MOST_TERMS} terms and a rate of at least {LEAST_SUM_RATE}, not {terms} terms at {rate}."
        )
    low, high = _sum_table(rate, terms)
    words = random_words(size)
    result = np.searchsorted(high, words, side="right").astype(np.int64)
    settled = words < low[np.minimum(result, low.size - 1)]
    for i in np.flatnonzero(~settled | (result == low.size)).tolist():
        result[i] = _sum(int(words[i]), rate, terms)
    return result


@lru_cache(maxsize=512)
def _sum_table(rate: Fraction, terms: int) -> tuple[Words, Words]:
    """Brackets of ``2**64 · P(sum <= k)`` for k = 0, 1, … until nearly all words are below one."""
    low, high = list[int](), list[int]()
    for below, above in _cumulated(rate, terms, _BITS):
        if above >= (1 << _BITS) - _LAST:
            break
        low.append(below)
        high.append(above)
    # words beyond the last bracket are looked at closely
    return np.array([*low, 0], np.uint64), np.array([*high, (1 << _BITS) - 1], np.uint64)


def _cumulated(rate: Fraction, terms: int, bits: int) -> Iterator[tuple[int, int]]:
    """Brackets of ``2**bits · P(sum <= k)`` for k = 0, 1, …"""
    # (1 - exp(-rate))**terms is above 2**-(6·terms), since 1 - exp(-1/32) is above 2**-6
    width = bits + 6 * terms + 64
    one, shift = 1 << width, width - bits
    q_low, q_high = exp_negative(rate, width)
    low, high = one, one
    for _ in range(terms):
        low, high = low * (one - q_high) >> width, -(-high * (one - q_low) >> width)
    sum_low, sum_high, k = low, high, 0
    while True:
        yield sum_low >> shift, -(-sum_high >> shift)
        k += 1
        low, high = (
            low * q_low * (k + terms - 1) // (k << width),
            -(-high * q_high * (k + terms - 1) // (k << width)),
        )
        sum_low, sum_high = sum_low + low, sum_high + high


def _sum(word: int, rate: Fraction, terms: int) -> int:
    """The sum of a uniform number with these first 64 bits; more bits are drawn as needed."""
    value, bits = word, _BITS
    while True:
        for k, (low, high) in enumerate(_cumulated(rate, terms, bits)):
            if value < low:
                return k
            if value < high:
                break
        value, bits = value << 64 | random_bits(64), bits + 64


# Geometric noise on a line whose steps have different rates.
#
# The probability of moving from ``i`` to ``k`` is ``ω[k]·exp(-(sum of the rates of the steps between them))``. With
# equal rates this is two-sided geometric noise. Every column of that law is as steep at each step as the rate allows,
# so a step of rate ``r`` costs exactly ``r``.
#
# Sampling takes one geometric variable and one word for each value, whatever the value is. So the number of draws does
# not tell the value. That this has exactly the law is shown in docs/theory/sampling.md, section 9.

_UNEVEN_BITS = 63  # of a word: the lowest bit is the sign


@dataclass(frozen=True)
class UnevenLine:
    """The rates of the steps of the line of whole numbers.

    The step from ``f`` to ``f + 1`` has the rate ``unit·weights[f]`` for ``f = 0, …, len(weights) - 1``, and
    ``unit·outside`` for every other ``f``.
    """

    unit: Fraction
    weights: tuple[int, ...]
    outside: int

    def __post_init__(self) -> None:
        if self.unit <= 0 or min((self.outside, *self.weights)) < 1:
            raise InputError("Every step of a line needs a rate above 0.")

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """The rates of the steps within the line, as floats."""
        return float(self.unit) * np.array(self.weights, np.float64)

    @cached_property
    def positions(self) -> Ints:
        """The sums of the weights below each point."""
        return np.concatenate([[0], np.cumsum(self.weights, dtype=np.int64)]).astype(np.int64)

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """What decides whether a step is crossed, for each weight that occurs. The outside comes first."""
        kinds = [self.outside, *sorted(set(self.weights) - {self.outside})]
        return tuple(Crossing.of(self.unit, weight) for weight in kinds)

    @cached_property
    def kinds(self) -> Ints:
        """For each step within the line, which of the crossings is its own."""
        place = {crossing.weight: index for index, crossing in enumerate(self.crossings)}
        return np.array([place[weight] for weight in self.weights], np.int64)

    def moved(self, values: Ints, far: Ints, up: NDArray[np.bool_], passed: NDArray[np.bool_]) -> Ints:
        """Where values of at least ``0`` go, given what was drawn. Those beyond the line move on steps of the outside first.

        ``far`` is the geometric variable, ``up`` the direction, and ``passed[:, c]`` tells whether the rest of the
        exponential variable reached that of crossing ``c``.
        """
        out = np.empty_like(values)
        pattern = passed @ (1 << np.arange(passed.shape[1]))
        for which in np.unique(pattern):
            reached = (int(which) >> np.arange(passed.shape[1])) & 1  # one more is needed where it is not
            need = np.array([crossing.whole for crossing in self.crossings], np.int64) + 1 - reached
            for direction in (True, False):
                here = (pattern == which) & (up == direction)
                go = self._upward if direction else self._downward
                out[here] = go(values[here], far[here], need)
        return out

    def _upward(self, values: Ints, far: Ints, need: Ints) -> Ints:
        """The step above ``k`` is crossed if its upper end plus ``need`` is within reach."""
        on_line = np.minimum(values, len(self.weights))
        reach = self.positions[on_line] + far
        inside = np.searchsorted(self.positions[1:] + need[self.kinds], reach, side="right")
        inside[values > on_line] = len(self.weights)
        beyond = (reach - self.positions[-1] - need[0]) // self.outside
        return values - on_line + inside + np.where(inside == len(self.weights), np.maximum(beyond, 0), 0)

    def _downward(self, values: Ints, far: Ints, need: Ints) -> Ints:
        """The same, from the lower end of each step."""
        on_line = np.minimum(values, len(self.weights))
        outside = values - on_line
        reach = self.positions[on_line] + self.outside * outside - far
        inside = np.searchsorted(self.positions[:-1] - need[self.kinds], reach, side="left")
        beyond = (-reach - need[0]) // self.outside
        down = inside - np.where(inside == 0, np.maximum(beyond, 0), 0)
        crossed = np.maximum((far - need[0]) // self.outside, 0)  # steps of the outside, before the line
        return np.where(crossed < outside, values - crossed, down)


@dataclass(frozen=True)
class Crossing:
    """When a step of one weight is crossed.

    With ``E`` exponential of rate 1 and ``w`` the weight, a step ``d`` units away is crossed if
    ``E >= unit·d + ln((1 + exp(-unit·w))/2)``. The last term is ``unit·(whole + rest)`` with ``whole`` an integer and
    ``0 <= rest < 1``. The part of ``E/unit`` after the point reaches ``rest`` with a probability that does not depend on
    the part before it.
    """

    unit: Fraction
    weight: int
    whole: int
    floor: int
    """The largest integer at most ``2**63`` times the probability of not reaching the rest."""

    @classmethod
    def of(cls, unit: Fraction, weight: int) -> Crossing:
        """Exact, by brackets that are narrowed until they decide."""
        guess = _float_log(unit, weight)
        whole = next(
            n for n in (guess + 1, guess, guess - 1, guess - 2) if n <= 0 and _at_most(unit, weight, n)
        )
        bits = _UNEVEN_BITS
        while True:
            low, high = _short(unit, weight, whole, bits)
            high = min(high, (1 << bits) - 1)  # the probability is below 1
            if low >> (bits - _UNEVEN_BITS) == high >> (bits - _UNEVEN_BITS):
                return cls(unit, weight, whole, low >> (bits - _UNEVEN_BITS))
            bits += 32

    def passes(self, word: int, bits: int) -> bool | None:
        """Whether a uniform number that begins with these bits reaches the rest. None if more bits are needed."""
        low, high = _short(self.unit, self.weight, self.whole, bits)
        return True if word >= high else False if word < low else None

    @property
    def rest(self) -> float:
        """The rest as a float, for simulations."""
        rate = float(self.unit)
        return min(1.0, max(0.0, log1p(expm1(-rate * self.weight) / 2) / rate - self.whole))


def _float_log(unit: Fraction, weight: int) -> int:
    rate = float(unit)
    return floor(log((1 + exp(-rate * weight)) / 2) / rate) if rate * weight > 1e-9 else -weight // 2


def _at_most(unit: Fraction, weight: int, whole: int) -> bool:
    """Whether ``unit·whole <= ln((1 + exp(-unit·weight))/2)``. The two are never equal (Lindemann 1882)."""
    bits = 64
    while True:
        left, right = exp_negative(-unit * whole, bits), exp_negative(unit * weight, bits)
        if 2 * left[1] <= (1 << bits) + right[0]:
            return True
        if 2 * left[0] >= (1 << bits) + right[1]:
            return False
        bits *= 2


def _short(unit: Fraction, weight: int, whole: int, bits: int) -> tuple[int, int]:
    """A bracket at ``bits`` bits of ``P(rest not reached) = (1 - 2·e^(unit·whole)/(1 + e^(-unit·weight)))/(1 - e^-unit)``."""
    width = bits + 16 + 2 * max(0, unit.denominator.bit_length() - unit.numerator.bit_length())
    one = 1 << width
    (lo, hi), (a_lo, a_hi), (u_lo, u_hi) = (
        exp_negative(x, width) for x in (-unit * whole, unit * weight, unit)
    )
    least = one - -(-2 * hi * one // (one + a_lo))
    most = one - 2 * lo * one // (one + a_hi)
    low = max(least, 0) * (1 << bits) // (one - u_lo)
    high = -(-most * (1 << bits) // (one - u_hi))
    return low, min(high, 1 << bits)


def uneven_geometrics(values: Ints, line: UnevenLine) -> Ints:
    """Each value with geometric noise on the line, exactly, from cryptographic bits.

    The values must be at least 0, and may lie beyond ``len(line.weights)``; the results may be any whole numbers. The number of
    words drawn is the same for every value.

    >>> line = UnevenLine(Fraction(100), (1, 2, 1), 1)
    >>> uneven_geometrics(np.array([0, 3, 2]), line)
    array([0, 3, 2])
    """
    if np.any(values < 0):
        raise InputError("Noise on a line needs values of at least 0.")
    far = geometrics(line.unit, values.size)
    words = random_words(values.size)
    uniform = words >> np.uint64(1)
    floors = np.array([crossing.floor for crossing in line.crossings], np.uint64)
    passed = uniform[:, None] > floors
    for at in np.flatnonzero(np.any(uniform[:, None] == floors, axis=1)):
        passed[at] = _decided(line.crossings, int(uniform[at]))
    return line.moved(values, far, (words & np.uint64(1)) == 1, passed)


def _decided(crossings: tuple[Crossing, ...], word: int) -> list[bool]:
    """What a word decides together with as many further bits as it takes."""
    bits = _UNEVEN_BITS
    while True:
        result = [crossing.passes(word, bits) for crossing in crossings]
        if None not in result:
            return [bool(each) for each in result]
        word, bits = word << 64 | random_bits(64), bits + 64
