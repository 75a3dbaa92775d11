"""Arrays of sums of several geometric numbers, a draw for each sum.

A uniform number U decides: the sum is above k exactly if ``U >= P(sum <= k)``. These probabilities are bracketed by
integers once for a rate and a number of terms. The first 64 bits of U nearly always tell between which of them it lies;
where they do not, further bits are compared with closer brackets (docs/theory/sampling.md, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from isotone.errors import InputError
from isotone.kernels import Ints, Words
from isotone.noise.bits import random_bits, random_words
from isotone.noise.brackets import exp_negative

__all__ = ["LEAST_SUM_RATE", "MOST_TERMS", "geometric_sums"]


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
    low, high = _table(rate, terms)
    words = random_words(size)
    result = np.searchsorted(high, words, side="right").astype(np.int64)
    settled = words < low[np.minimum(result, low.size - 1)]
    for i in np.flatnonzero(~settled | (result == low.size)).tolist():
        result[i] = _sum(int(words[i]), rate, terms)
    return result


@lru_cache(maxsize=512)
def _table(rate: Fraction, terms: int) -> tuple[Words, Words]:
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
