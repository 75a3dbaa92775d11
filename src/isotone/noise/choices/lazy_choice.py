"""Exact choices with real weights, by a lazily refined inverse CDF.

The weights are known to any precision.

A uniform real number is compared with cumulative weights, of which only brackets are known. When it falls
into a bracket, it gets more bits and the weights more precision, until it does not. So the outcome has
exactly the probability of the real weights (docs/theory/sampling.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from isotone.errors import InputError
from isotone.noise.bits import random_bits
from isotone.noise.brackets import exp_negative

__all__ = ["OPEN", "REJECTED", "STEP", "Brackets", "choose_lazily", "choose_log", "locate"]

Brackets = Callable[[int], tuple[Sequence[int], Sequence[int]]]
"""``brackets(bits)`` gives integers with ``lower[i] <= 2**bits · weight[i] <= upper[i]``."""

STEP = 64  # bits that a uniform gets at a time
REJECTED, OPEN = -1, -2


def choose_lazily(brackets: Brackets) -> int:
    """An index ``i`` with probability ``weight[i] / sum(weight)``, for real weights known through brackets.

    ``brackets(bits)`` returns two sequences of integers with
    ``0 <= lower[i] <= 2**bits · weight[i] <= upper[i]``. It is called with growing ``bits`` (64, 128, …), and
    almost always once. The weights may have any scale. They must not all be zero, and the brackets of the
    others must become relatively narrow as ``bits`` grows.

    >>> choose_lazily(lambda bits: ([0, 3 << bits], [0, 3 << bits]))
    1
    """
    bits, lower, upper = _accurate(brackets)
    while True:
        uniform = random_bits(sum(upper).bit_length())
        place, finer = locate(uniform, lower, upper), bits
        while place == OPEN:
            finer += STEP
            uniform = uniform << STEP | random_bits(STEP)
            place = locate(uniform, *brackets(finer))
        if place != REJECTED:
            return place


def _accurate(brackets: Brackets) -> tuple[int, Sequence[int], Sequence[int]]:
    """The first brackets whose total is known within a factor of two.

    Few uniforms are then rejected.
    """
    bits = STEP
    while True:
        lower, upper = brackets(bits)
        if sum(upper) == 0:
            raise InputError("A choice needs at least one candidate, and a weight above 0.")
        if 2 * sum(lower) >= sum(upper):
            return bits, lower, upper
        bits *= 2


def locate(uniform: int, lower: Sequence[int], upper: Sequence[int]) -> int:
    """Where a real number in ``[uniform, uniform + 1)`` falls among the cumulative weights.

    The index of its candidate; REJECTED if it is above the total; OPEN if the brackets do not tell.
    """
    least = most = 0
    for index, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if uniform < least + low:
            return index if most <= uniform else OPEN
        least, most = least + low, most + high
    return REJECTED if most <= uniform else OPEN


def choose_log(log_weights: Brackets) -> int:
    """An index ``i`` with probability proportional to ``exp(L[i])``, for real ``L`` known through brackets.

    ``log_weights(bits)`` returns two sequences of integers with ``lower[i] <= 2**bits · L[i] <= upper[i]``.
    It is called with growing ``bits``, and must bracket the same numbers ever more closely.

    >>> choose_log(lambda bits: ([-1000 << bits, 5 << bits], [-1000 << bits, 5 << bits]))
    1
    """
    first = log_weights(STEP)[1]
    if not first:
        raise InputError("A choice needs at least one candidate, and a weight above 0.")
    top = Fraction(max(first), 1 << STEP)  # at or above every L: the weights are taken relative to exp(top)

    def weights(bits: int) -> tuple[list[int], list[int]]:
        places = bits + 8
        lower, upper = log_weights(places)
        lows = [exp_negative(top - Fraction(low, 1 << places), bits)[0] for low in lower]
        # a bracket may reach above top, but the number it holds does not
        highs = [exp_negative(max(Fraction(0), top - Fraction(high, 1 << places)), bits)[1] for high in upper]
        return lows, highs

    return choose_lazily(weights)
