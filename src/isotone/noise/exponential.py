"""Exponential variables and points of a cube, known between bounds that are refined when asked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bits import random_below, random_bits
from isotone.noise.laplace import (
    BASE_BITS,
    SMALLEST_RATE,
    DigitTable,
    digits_below,
    draw_digits,
    geometric_digits,
)

# Exponential variables as lazily read binary digits, and exact rounding of their sums.
#
# An exponential variable of rate ``r`` is a string of independent binary digits: ``floor(2**k · E)`` is
# geometric of rate ``r / 2**k``, and the digits that follow are independent of it (docs/theory/sampling.md,
# section 5). So a signed sum of exponentials lies in an interval as wide as the unread digits allow. Digits are
# read on, for all terms at once, while the interval of some sum still holds a rounding boundary.

LARGEST_MEAN = 2**56  # of the longest sum: results then fit 64 bits
FURTHER_DIGITS = 4  # base-256 digits that are read at once
TERMS_AT_ONCE = 1 << 16


class LazyExponentials:
    """Independent exponential variables ``E_1, …, E_count``, known to a growing number of binary places.

    In units of ``2**-places``, ``E_1 + … + E_m`` is at or above ``partial_sum(m)``, by less than ``m``.
    :meth:`read_on` adds 32 places to all of them.
    """

    def __init__(self, rate: Fraction, count: int, places: int) -> None:
        """Read the first ``places`` binary places.

        ``first_places`` says how many 64 bits can hold.
        """
        self.rate = rate
        self.places = places
        self._sums = [_partial_sums(geometric_digits(rate / 2**places), count)]

    def read_on(self) -> None:
        """Read 32 further binary places of every variable."""
        self.places += FURTHER_DIGITS * BASE_BITS
        table = digits_below(self.rate / 2**self.places, FURTHER_DIGITS)
        self._sums.append(_partial_sums(table, self._sums[0].size - 1))

    def partial_sum(self, terms: int) -> int:
        """The digits read so far of the first ``terms`` variables, added up, in units of ``2**-places``."""
        total = 0
        for sums in self._sums:
            total = (total << FURTHER_DIGITS * BASE_BITS) + int(sums[terms])
        return total

    def first_partial_sums(self) -> NDArray[np.int64]:
        """``partial_sum(0), partial_sum(1), …`` as they were when only the first places had been read."""
        return self._sums[0]


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
    turn = plus.max(initial=0)  # the steps down follow those up
    return _rounded(rate, plus, np.zeros_like(plus), turn + minus, np.full_like(minus, turn))


def rounded_exponential_rows(
    rate: Fraction, plus: NDArray[np.int64], minus: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw :func:`rounded_exponential_sums` for each row of ``plus`` and ``minus``, with variables of its own.

    Many rows at once take one sequence of variables, of which each row has a part.
    """
    if plus.ndim != 2 or plus.shape != minus.shape:
        raise InputError("plus and minus must be tables with one entry per sum.")
    steps = max(1, int(plus.max(initial=0)), int(minus.max(initial=0)))
    size = max(1, TERMS_AT_ONCE // (2 * steps))
    result = np.empty(plus.shape, np.int64)
    for start in range(0, len(plus), size):
        up, down = plus[start : start + size], minus[start : start + size]
        first = np.zeros_like(up) + 2 * steps * np.arange(len(up))[:, None]
        ends = (first + up, first, first + steps + down, first + steps)
        result[start : start + size] = _rounded(rate, *(end.ravel() for end in ends)).reshape(up.shape)
    return result


def rounded_exponential_spans(
    rate: Fraction,
    upper: NDArray[np.int64],
    lower: NDArray[np.int64],
    starts: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> NDArray[np.int64]:
    """``round(S_upper[x] - S_lower[x])`` for every ``x``, exactly and jointly, with ``S_t = E_1 + … + E_t``.

    As :func:`rounded_exponential_sums`, but with one sequence of exponential variables for both terms. With ``starts``
    both sums begin later: ``round((S_upper[x] - S_starts[0][x]) - (S_lower[x] - S_starts[1][x]))``.

    >>> rounded_exponential_spans(Fraction(1), np.array([3, 0]), np.array([3, 0]))
    array([0, 0])
    """
    upper, lower = _lengths(upper, "upper"), _lengths(lower, "lower")
    first, second = (np.zeros_like(upper), np.zeros_like(lower)) if starts is None else starts
    first, second = _lengths(first, "starts"), _lengths(second, "starts")
    if not upper.shape == lower.shape == first.shape == second.shape:
        raise InputError(f"upper and lower must have one entry per sum, not {upper.size} and {lower.size}.")
    if np.any(first > upper) or np.any(second > lower):
        raise InputError("A span must not end before it starts.")
    return _rounded(rate, upper, first, lower, second)


def _rounded(
    rate: Fraction,
    upper: NDArray[np.int64],
    first: NDArray[np.int64],
    lower: NDArray[np.int64],
    second: NDArray[np.int64],
) -> NDArray[np.int64]:
    """``round((S_upper[x] - S_first[x]) - (S_lower[x] - S_second[x]))`` for every ``x``, exactly and jointly."""
    longest = int(max(upper.max(initial=0), lower.max(initial=0)))
    places = first_places(rate, longest, upper.size)
    steps = LazyExponentials(rate, longest, places)
    sums = steps.first_partial_sums()
    value = sums[upper] - sums[first] - (sums[lower] - sums[second])
    # the terms that both share cancel: in units of the last place read, only the others are in doubt
    both = np.maximum(np.minimum(upper, lower) - np.maximum(first, second), 0)
    rise, fall = upper - first - both, lower - second - both
    half = 1 << (places - 1)
    rounded, high = (value - fall + half) >> places, (value + rise + half) >> places
    still_open = [int(x) for x in np.flatnonzero(rounded != high)]
    while still_open:
        steps.read_on()
        half = 1 << (steps.places - 1)
        for x in still_open:
            ends = (upper[x], first[x], lower[x], second[x])
            a, b, c, d = (steps.partial_sum(int(end)) for end in ends)
            digits = a - b - (c - d)
            rounded[x] = (digits - int(fall[x]) + half) >> steps.places
            high[x] = (digits + int(rise[x]) + half) >> steps.places
        still_open = [x for x in still_open if rounded[x] != high[x]]
    return rounded


def first_places(rate: Fraction, longest: int, cells: int) -> int:
    """The number of binary places to read at first.

    Enough to make an open rounding rare, as far as 64 bits hold the sums.
    """
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


def _lengths(lengths: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    array = np.asarray(lengths)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a one-dimensional array of integers.")
    array = array.astype(np.int64)
    if array.size and array.min() < 0:
        raise InputError(f"{name} counts terms: its entries must be 0 or above.")
    return array


# Exactly rounded noise of the ℓ∞ mechanism.
#
# Its density is proportional to ``exp(-rate · max|y|)``.
#
# Such a vector of ``d`` numbers is uniform in the cube of half-side ``G``, for a ``G`` that is the sum of
# ``d + 1`` exponential variables. Given ``G``, the numbers are independent, and each rounds to an integer of
# ``-N … N``, where ``N = round(G)``: to the inner ones with equal weight 1, to the two ends with weight
# ``F = G + 1/2 - N``, a real number in [0, 1) whose binary digits are read only as far as they are needed
# (docs/theory/baselines.md, section 3).


def rounded_cube(rate: Fraction, size: int) -> NDArray[np.int64]:
    """``round(y)`` for a vector ``y`` of ``size`` numbers with density ∝ ``exp(-rate · max|y|)``, exactly.

    The rate must be at least ``2**-44``, and ``(size + 1) / rate`` at most ``2**56``, so that values fit 64 bits
    (docs/theory/sampling.md, section 5).

    >>> rounded_cube(Fraction(10**6), 3)
    array([0, 0, 0])
    """
    if size < 0:
        raise InputError(f"Noise in a cube needs a size of 0 or above, not {size}.")
    half_side = _HalfSide(rate, size)
    bound = half_side.rounded()
    values = np.zeros(size, dtype=np.int64)
    for x in range(size if bound else 0):
        value = random_below(2 * bound + 1) - bound
        while abs(value) == bound and not half_side.is_end_kept():
            value = random_below(2 * bound + 1) - bound
        values[x] = value
    return values


class _HalfSide:
    """The half-side ``G`` of a cube, read on demand.

    For ``size`` dimensions it is a sum of ``size + 1`` exponentials.

    ``2**places · G`` is at or above ``floor`` and below ``floor + terms``.
    """

    def __init__(self, rate: Fraction, size: int) -> None:
        self.terms = size + 1
        self.digits = LazyExponentials(rate, self.terms, first_places(rate, self.terms, size))

    @property
    def places(self) -> int:
        """How many binary places are known."""
        return self.digits.places

    def shifted(self) -> int:
        """The known digits of ``G + 1/2``.

        They are ``floor + 2**(places - 1)``.
        """
        return self.digits.partial_sum(self.terms) + (1 << (self.places - 1))

    def rounded(self) -> int:
        """``round(G)``."""
        while True:
            low = self.shifted()
            if low >> self.places == (low + self.terms - 1) >> self.places:
                return low >> self.places
            self.digits.read_on()

    def is_end_kept(self) -> bool:
        """True with probability ``F``, the fractional part of ``G + 1/2``.

        Call it after :meth:`rounded`.
        """
        uniform, known = random_bits(self.places), self.places
        while True:
            fraction = self.shifted() & ((1 << self.places) - 1)
            if uniform < fraction:
                return True
            if uniform >= fraction + self.terms:
                return False
            self.digits.read_on()
            uniform = uniform << (self.places - known) | random_bits(self.places - known)
            known = self.places
