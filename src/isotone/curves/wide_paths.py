"""The totals of :mod:`isotone.curves.paths` in integers of any size, for the rare draw that floats leave open."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.noise.brackets import exp_negative, log_two

__all__ = ["WideSums"]

Ints = NDArray[np.int64]
Bracket = tuple[int, int, int]
"""``(lower, upper, exponent)``: a number between ``lower·2**exponent`` and ``upper·2**exponent``."""

GUARD = 64


class WideSums:
    """Total weights of a path graph as brackets of any precision, computed when first asked for."""

    def __init__(
        self, first: Ints, before: Ints, source: NDArray[np.bool_], costs: Ints, rate: Fraction
    ) -> None:
        self._first, self._before, self._source = first, before, source
        self._costs, self._rate = costs, rate
        self._totals: dict[int, list[Bracket]] = {}

    def brackets(self, nodes: list[int], bits: int, scale: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**(bits − scale)`` times the totals of the given nodes."""
        if bits not in self._totals:
            self._totals[bits] = self._sum(bits + GUARD)
        totals = self._totals[bits]
        lower = [_shift(totals[node][0], bits - scale + totals[node][2]) for node in nodes]
        upper = [-_shift(-totals[node][1], bits - scale + totals[node][2]) for node in nodes]
        return lower, upper

    def _sum(self, precision: int) -> list[Bracket]:
        weights: dict[int, Bracket] = {}
        totals: list[Bracket] = []
        for node, cost in enumerate(self._costs.tolist()):
            if cost not in weights:
                weights[cost] = _weight(self._rate * cost, precision)
            if self._source[node]:
                total: Bracket = (1, 1, 0)
            else:
                start, stop = int(self._first[node]), int(self._first[node + 1])
                total = _add([totals[other] for other in self._before[start:stop].tolist()], precision)
            totals.append(_trim(_times(total, weights[cost]), precision))
        return totals


def _weight(x: Fraction, precision: int) -> Bracket:
    """``exp(−x)``, with as many binary digits for large ``x`` as for small."""
    extra = precision + x.numerator.bit_length() + 8
    low, high = log_two(extra)
    octaves = int(x * (1 << extra) / high)
    least = max(Fraction(0), x - Fraction(octaves * high, 1 << extra))
    most = x - Fraction(octaves * low, 1 << extra)
    bits = precision + 8
    return exp_negative(most, bits)[0], exp_negative(least, bits)[1], -octaves - bits


def _times(a: Bracket, b: Bracket) -> Bracket:
    return a[0] * b[0], a[1] * b[1], a[2] + b[2]


def _add(parts: list[Bracket], precision: int) -> Bracket:
    alive = [part for part in parts if part[1]]
    if not alive:
        return 0, 0, 0
    # digits far below the largest part are rounded away, outward
    floor = max(part[1].bit_length() + part[2] for part in alive) - 2 * precision
    exponent = max(min(part[2] for part in alive), floor)
    lower = sum(_shift(part[0], part[2] - exponent) for part in alive)
    upper = sum(-_shift(-part[1], part[2] - exponent) for part in alive)
    return lower, upper, exponent


def _trim(number: Bracket, precision: int) -> Bracket:
    lower, upper, exponent = number
    spare = upper.bit_length() - precision - 2
    if spare <= 0:
        return number
    return lower >> spare, -(-upper >> spare), exponent + spare


def _shift(value: int, places: int) -> int:
    """``value·2**places``, rounded down."""
    return value << places if places >= 0 else value >> -places
