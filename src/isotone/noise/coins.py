"""Coins with probability p/q, with probability exp(-p/q), and with probability exp(-x) for a lazily known x.

The first two use integers only: no real number is ever computed (Canonne, Kamath and Steinke 2020;
docs/theory/sampling.md, section 3). The third compares a uniform with brackets of exp(-x), and reads on.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from isotone.errors import InputError
from isotone.noise.bits import random_below, random_bits
from isotone.noise.brackets import exp_negative

__all__ = ["bernoulli", "bernoulli_exp", "bernoulli_exp_lazily"]


def bernoulli(p: Fraction) -> bool:
    """True with probability ``p``, a rational in [0, 1].

    >>> bernoulli(Fraction(1)), bernoulli(Fraction(0))
    (True, False)
    """
    if not 0 <= p <= 1:
        raise InputError(f"A probability must be between 0 and 1, not {p}.")
    return random_below(p.denominator) < p.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability ``exp(-x)``, for a rational ``x >= 0``.

    >>> bernoulli_exp(Fraction(0))
    True
    """
    if x < 0:
        raise InputError(f"exp(-x) is a probability only for x at or above 0, not {x}.")
    whole, rest = divmod(x.numerator, x.denominator)
    for _ in range(whole):
        if not _bernoulli_exp_below_one(1, 1):
            return False
    return _bernoulli_exp_below_one(rest, x.denominator)


def _bernoulli_exp_below_one(p: int, q: int) -> bool:
    """True with probability ``exp(-p/q)``, for ``p <= q``.

    The first failure among coins p/(q·k), k = 1, 2, …, comes at an odd k with this probability.
    """
    k = 1
    while random_below(q * k) < p:
        k += 1
    return k % 2 == 1


def bernoulli_exp_lazily(
    bounds: Iterable[tuple[Fraction, Fraction]], uniform: int = 0, bits: int = 0
) -> bool:
    """True with probability ``exp(-x)``, for a real ``x >= 0`` that is known through ever closer bounds.

    ``bounds`` yields pairs ``0 <= low <= x <= high`` whose distance shrinks to nothing; as many are taken as
    needed. If ``x`` is itself random, later bounds may come from further random digits of it. ``uniform``
    holds the first ``bits`` bits of the uniform to compare with, if some were drawn already.

    >>> bernoulli_exp_lazily([(Fraction(0), Fraction(0))])
    True
    """
    for low, high in bounds:
        uniform, bits = uniform << 64 | random_bits(64), bits + 64
        if uniform < exp_negative(high, bits)[0]:
            return True
        if uniform >= exp_negative(low, bits)[1]:
            return False
    raise InputError("The bounds of the exponent ended before they decided; they must come ever closer.")
