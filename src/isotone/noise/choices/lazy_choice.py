"""Exact choices with real weights, by a lazily refined inverse CDF.

The weights are known to any precision.

A uniform real number is compared with cumulative weights, of which only brackets are known. When it falls
into a bracket, it gets more bits and the weights more precision, until it does not. So the outcome has
exactly the probability of the real weights (docs/theory/sampling.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isotone.errors import InputError
from isotone.noise.bits import random_bits

__all__ = ["OPEN", "REJECTED", "STEP", "Brackets", "choose_lazily", "locate"]

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
