"""Exact rounding of sums of exponential variables that share their terms.

An exponential variable of rate ``r`` is a string of independent binary digits: ``floor(2**k · E)`` is
geometric of rate ``r / 2**k``, and the digits that follow are independent of it (docs/theory/sampling.md,
section 5). So a signed sum of exponentials lies in an interval as wide as the unread digits allow. Digits are
read on, for all terms at once, while the interval of some sum still holds a rounding boundary.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bulk import SMALLEST_RATE, draw_digits
from isotone.noise.digits import BASE_BITS, DigitTable, digits_below, geometric_digits

__all__ = ["rounded_exponential_sums"]

LARGEST_MEAN = 2**56  # of the longest sum: results then fit 64 bits
FURTHER_DIGITS = 4  # base-256 digits that are read at once while a rounding is open
FURTHER_PLACES = FURTHER_DIGITS * BASE_BITS


def rounded_exponential_sums(
    rate: Fraction, plus: NDArray[np.int64], minus: NDArray[np.int64]
) -> NDArray[np.int64]:
    """``round(E_1 + … + E_plus[x] - E'_1 - … - E'_minus[x])`` for every ``x``, exactly and jointly.

    ``E_1, E_2, …`` and ``E'_1, E'_2, …`` are independent exponential variables of the given rate, the same
    ones for every ``x``. Halves are rounded up; an exact half has probability zero. The rate must be at least
    ``2**-44``, and the longest sum may have a mean of at most ``2**56``, so that results fit 64 bits.

    >>> rounded_exponential_sums(Fraction(1), np.array([0, 0]), np.array([0, 0]))
    array([0, 0])
    """
    plus, minus = _lengths(plus, "plus"), _lengths(minus, "minus")
    if plus.shape != minus.shape:
        raise InputError(f"plus and minus must have one entry per sum, not {plus.size} and {minus.size}.")
    terms = (int(plus.max(initial=0)), int(minus.max(initial=0)))
    places = _first_places(rate, max(terms), plus.size)
    up, down = (_partial_sums(geometric_digits(rate / 2**places), count) for count in terms)
    value = up[plus] - down[minus]
    # in units of the last place read, the sum lies between value - minus and value + plus
    half = 1 << (places - 1)
    low, high = (value - minus + half) >> places, (value + plus + half) >> places
    still_open = np.flatnonzero(low != high)
    if still_open.size:
        cells = [(int(value[x]), int(plus[x]), int(minus[x])) for x in still_open]
        low[still_open] = _read_on(rate, terms, places, cells)
    return low


def _lengths(lengths: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    array = np.asarray(lengths)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a one-dimensional array of integers.")
    array = array.astype(np.int64)
    if array.size and array.min() < 0:
        raise InputError(f"{name} counts terms: its entries must be 0 or above.")
    return array


def _first_places(rate: Fraction, longest: int, cells: int) -> int:
    """Binary places to read at first: so many that an open rounding is rare, if 64 bits hold the sums."""
    finest = max(SMALLEST_RATE, Fraction(longest, 2 * LARGEST_MEAN))
    if rate < 2 * finest:
        raise InputError(
            f"A rounded sum of {longest} exponential variables needs a rate of at least {2 * finest}, "
            f"not {rate}: below that, sums may not fit 64 bits."
        )
    fits = int(rate / finest).bit_length() - 1
    rare = longest.bit_length() + cells.bit_length() + 12
    # rounded up to whole digits, so that few different tables are ever built
    return min(fits, -(-rare // BASE_BITS) * BASE_BITS)


def _partial_sums(table: DigitTable, terms: int) -> NDArray[np.int64]:
    """``0, N_1, N_1 + N_2, …`` for independent ``N`` with the digits of ``table``."""
    draws = draw_digits(table, terms, two_sided=False)
    if draws.sum(dtype=np.float64) >= 2.0**62:
        raise OverflowError("A sum of exponentials exceeded 64 bits; this has probability below exp(-60000).")
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(draws)])


def _read_on(
    rate: Fraction, terms: tuple[int, int], places: int, cells: list[tuple[int, int, int]]
) -> list[int]:
    """Round the sums in ``cells`` (value so far, plus, minus) by reading further digits of every term."""
    rounded: dict[int, int] = {}
    values = [value for value, _, _ in cells]
    while len(rounded) < len(cells):
        places += FURTHER_PLACES
        table = digits_below(rate / 2**places, FURTHER_DIGITS)
        up, down = (_partial_sums(table, count) for count in terms)
        half = 1 << (places - 1)
        for x, (_, plus, minus) in enumerate(cells):
            if x in rounded:
                continue
            values[x] = (values[x] << FURTHER_PLACES) + int(up[plus]) - int(down[minus])
            low, high = (values[x] - minus + half) >> places, (values[x] + plus + half) >> places
            if low == high:
                rounded[x] = low
    return [rounded[x] for x in range(len(cells))]
