"""Arrays of exact geometric and two-sided geometric variables from a compiled kernel.

The kernel reads cryptographic words one by one and keeps its place in an explicit state. When the words run
out, or a word does not decide a digit, it returns; Python supplies what is missing and the kernel goes on
exactly where it stopped. Nothing that was drawn is ever thrown away, so stopping cannot bias a draw
(docs/theory/sampling.md, section 4).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bits import random_words
from isotone.noise.digits import BASE_BITS, DigitTable, geometric_digits

__all__ = ["SMALLEST_RATE", "draw_digits", "geometrics", "two_sided_geometrics"]

SMALLEST_RATE = Fraction(1, 2**45)
"""The smallest rate of an array: below it, a value might not fit 64 bits."""

DONE, NEED_WORDS, UNDECIDED, TOO_LARGE = 0, 1, 2, 3
# places in the state of the kernel
CELL, ROW, VALUE, NEXT_WORD = 0, 1, 2, 3


def geometrics(rate: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws ``k >= 0`` with probability proportional to ``exp(-rate·k)``."""
    _check(rate, size)
    return draw_digits(geometric_digits(rate), size, two_sided=False)


def two_sided_geometrics(epsilon: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws with probability proportional to ``exp(-epsilon·|k|)``, exactly.

    The same distribution as :func:`two_sided_geometric`, at some ten million draws a second. ``epsilon`` must
    be at least 2**-45, so that every value fits 64 bits (a larger one has probability below exp(-90000), and
    raises).
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
            left = size - int(state[CELL])
            words = random_words(_expected_words(table, left, two_sided))
            state[NEXT_WORD] = 0
        elif status == UNDECIDED:
            word = int(words[state[NEXT_WORD]])
            digit = table.resolve(int(state[ROW]), word >> 1)
            state[NEXT_WORD] += 1
            _place(values, two_sided, table.unbounded, len(table.rates), state, digit, word & 1)
        else:
            raise OverflowError("A geometric draw exceeded 64 bits; this has probability below exp(-90000).")


def _expected_words(table: DigitTable, size: int, two_sided: bool) -> int:
    """Words that will probably do: too few costs a refill, too many costs bits."""
    tries = 1.0
    if two_sided:  # minus zero is drawn again
        tries += 0.5 * (1.0 - np.exp(-min(50.0, float(table.rates[0]))))
    return 8 + int(size * len(table.rates) * tries * 1.01)


@njit(cache=True)
def _place(values, two_sided, unbounded, rows, state, digit, sign):  # pragma: no cover - compiled
    """Add one digit to the value in hand; when it was the last, finish the cell. False on overflow."""
    row = state[ROW]
    state[VALUE] += digit << (BASE_BITS * row)
    if row < rows - 1:
        state[ROW] = row + 1
        return True
    if unbounded and digit == 255:
        return state[VALUE] < 1 << 62  # the excess is drawn like the digit itself
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


@njit(cache=True)
def _fill(values, two_sided, unbounded, thresholds, guides, words, state):  # pragma: no cover - compiled
    """Fill ``values`` from ``words``, from where ``state`` stands; say why it stopped."""
    rows = thresholds.shape[0]
    one = np.uint64(1)
    high = np.uint64(55)
    while state[CELL] < values.size:
        if state[NEXT_WORD] == words.size:
            return NEED_WORDS
        row = state[ROW]
        word = words[state[NEXT_WORD]]
        uniform = word >> one
        digit = guides[row, uniform >> high]
        while uniform > thresholds[row, digit]:
            digit += 1
        if uniform == thresholds[row, digit]:
            return UNDECIDED
        state[NEXT_WORD] += 1
        if not _place(values, two_sided, unbounded, rows, state, digit, np.int64(word & one)):
            return TOO_LARGE
    return DONE
