"""Geometric noise on a line whose steps have different rates.

The probability of moving from ``i`` to ``k`` is ``ω[k]·exp(-(sum of the rates of the steps between them))``. With
equal rates this is two-sided geometric noise. Every column of that law is as steep at each step as the rate allows,
so a step of rate ``r`` costs exactly ``r``.

Sampling takes one geometric variable and one word for each value, whatever the value is. So the number of draws does
not tell the value. That this has exactly the law is shown in docs/theory/sampling.md, section 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, expm1, floor, log, log1p

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Ints
from isotone.noise.bits import random_bits, random_words
from isotone.noise.brackets import exp_negative
from isotone.noise.laplace.bulk import geometrics

__all__ = ["UnevenLine", "uneven_geometrics"]

_BITS = 63  # of a word: the lowest bit is the sign


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
        """Where values from ``0`` to ``len(weights)`` go, given what was drawn.

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
        reach = self.positions[values] + far
        inside = np.searchsorted(self.positions[1:] + need[self.kinds], reach, side="right")
        beyond = (reach - self.positions[-1] - need[0]) // self.outside
        return inside + np.where(inside == len(self.weights), np.maximum(beyond, 0), 0)

    def _downward(self, values: Ints, far: Ints, need: Ints) -> Ints:
        """The same, from the lower end of each step."""
        reach = self.positions[values] - far
        inside = np.searchsorted(self.positions[:-1] - need[self.kinds], reach, side="left")
        beyond = (-reach - need[0]) // self.outside
        return inside - np.where(inside == 0, np.maximum(beyond, 0), 0)


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
        bits = _BITS
        while True:
            low, high = _short(unit, weight, whole, bits)
            high = min(high, (1 << bits) - 1)  # the probability is below 1
            if low >> (bits - _BITS) == high >> (bits - _BITS):
                return cls(unit, weight, whole, low >> (bits - _BITS))
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

    The values must lie between 0 and ``len(line.weights)``; the results may be any whole numbers. The number of words
    drawn is the same for every value.

    >>> line = UnevenLine(Fraction(100), (1, 2, 1), 1)
    >>> uneven_geometrics(np.array([0, 3, 2]), line)
    array([0, 3, 2])
    """
    if np.any(values < 0) or np.any(values > len(line.weights)):
        raise InputError("Noise on a line needs values on the line.")
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
    bits = _BITS
    while True:
        found = [crossing.passes(word, bits) for crossing in crossings]
        if None not in found:
            return [bool(each) for each in found]
        word, bits = word << 64 | random_bits(64), bits + 64
