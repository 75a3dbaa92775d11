"""Arrays of exact geometric and two-sided geometric variables from a compiled kernel.

The kernel reads cryptographic words one by one and keeps its place in an explicit state. When the words run
out, or a word does not decide a digit, it returns; Python supplies what is missing and the kernel goes on
exactly where it stopped. Nothing that was drawn is ever thrown away, so stopping cannot bias a draw
(docs/theory/sampling.md, section 4).
"""

from __future__ import annotations

from fractions import Fraction
from math import expm1

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Flag, Int, Ints, Words, kernel
from isotone.noise.bits import random_words
from isotone.noise.laplace.digits import BASE_BITS, DigitTable, geometric_digits

__all__ = ["SMALLEST_RATE", "draw_digits", "geometrics", "two_sided_geometrics"]

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
