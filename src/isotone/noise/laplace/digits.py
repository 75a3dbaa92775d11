"""The base-256 digits of a geometric variable, as tables a compiled kernel can search.

The digits of a geometric variable are independent (docs/theory/sampling.md, section 4): the digit of
``256**j`` is geometric with rate ``rate·256**j``, cut to 0…255. So a draw is a few searches, one uniform
word each, in tables of ``floor(2**63 · P(digit < d))``. A word that equals an entry does not decide; it is
then followed by further bits, against the same table at more bits, until it does. No probability is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isotone.noise.bits import random_bits
from isotone.noise.brackets import powers_of_exp

__all__ = ["BASE_BITS", "WORD_BITS", "DigitTable", "digits_below", "geometric_digits"]

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
