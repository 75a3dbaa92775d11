"""The totals of a circuit in integers of any size.

For the rare draw that the floats of :mod:`isotone.curves.circuits.circuit` leave open.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.noise.brackets import exp_negative, log_two

__all__ = ["WideTotals"]

Bracket = tuple[int, int, int]
"""``(lower, upper, exponent)``: a number between ``lower·2**exponent`` and ``upper·2**exponent``."""

GUARD = 64
ONE: Bracket = (1, 1, 0)


class WideTotals:
    """Totals of a circuit as brackets of any precision, computed when first asked for."""

    def __init__(
        self, summed: NDArray[np.bool_], first: Ints, child: Ints, costs: Ints, rate: Fraction
    ) -> None:
        self._summed, self._first, self._child = summed, first, child
        self._costs, self._rate = costs, rate
        self._totals: dict[int, list[Bracket]] = {}

    def brackets(self, nodes: list[int], bits: int, scale: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**(bits − scale)`` times the totals of the given nodes."""
        if bits not in self._totals:
            self._totals[bits] = self._compute(bits + GUARD)
        totals = self._totals[bits]
        lower = [_shift(totals[node][0], bits - scale + totals[node][2]) for node in nodes]
        upper = [-_shift(-totals[node][1], bits - scale + totals[node][2]) for node in nodes]
        return lower, upper

    def _compute(self, precision: int) -> list[Bracket]:
        weights: dict[int, Bracket] = {0: ONE}
        totals: list[Bracket] = []
        bounds = self._first.tolist()
        for node, (cost, summed) in enumerate(zip(self._costs.tolist(), self._summed.tolist(), strict=True)):
            if cost not in weights:
                weights[cost] = _weight(self._rate * cost, precision)
            parts = [totals[other] for other in self._child[bounds[node] : bounds[node + 1]].tolist()]
            if summed:
                total = _add(parts, precision)
            else:
                total = ONE
                for part in parts:
                    total = _trim(_times(total, part), precision)
            totals.append(_trim(_times(total, weights[cost]), precision))
        return totals


def _weight(x: Fraction, precision: int) -> Bracket:
    """``exp(−x)`` for ``x`` of either sign, with as many binary digits for large ``x`` as for small."""
    extra = precision + x.numerator.bit_length() + 8
    low, high = log_two(extra)
    octaves = floor(x * (1 << extra) / high)
    # high bounds ln 2 from above and low from below, whatever the sign of the number of octaves
    ends = (x - Fraction(octaves * high, 1 << extra), x - Fraction(octaves * low, 1 << extra))
    bits = precision + 8
    least, most = max(Fraction(0), min(ends)), max(Fraction(0), *ends)
    return exp_negative(most, bits)[0], _above(min(ends), least, bits), -octaves - bits


def _above(end: Fraction, least: Fraction, bits: int) -> int:
    """An upper bound of ``2**bits·exp(−end)``, also where the bracket of the rest reaches just below 0."""
    if end >= 0:
        return exp_negative(least, bits)[1]
    return (1 << bits) + floor(-2 * end * (1 << bits)) + 1  # exp(t) <= 1 + 2t for t up to 1


def _times(a: Bracket, b: Bracket) -> Bracket:
    return a[0] * b[0], a[1] * b[1], a[2] + b[2]


def _add(parts: list[Bracket], precision: int) -> Bracket:
    parts = [part for part in parts if part[1]]
    if not parts:
        return 0, 0, 0
    # digits far below the largest part are rounded away, outward
    lowest = max(part[1].bit_length() + part[2] for part in parts) - 2 * precision
    exponent = max(min(part[2] for part in parts), lowest)
    lower = sum(_shift(part[0], part[2] - exponent) for part in parts)
    upper = sum(-_shift(-part[1], part[2] - exponent) for part in parts)
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
