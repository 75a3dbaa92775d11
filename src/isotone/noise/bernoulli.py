"""Coins with probability p/q and with probability exp(-p/q), exactly.

Method of Canonne, Kamath and Steinke (2020): integers only, no real number is ever computed
(docs/theory/sampling.md, section 3).
"""

from __future__ import annotations

from fractions import Fraction

from isotone.errors import InputError
from isotone.noise.bits import random_below

__all__ = ["bernoulli", "bernoulli_exp"]


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
    whole, rest = divmod(x, 1)
    for _ in range(int(whole)):
        if not _bernoulli_exp_below_one(Fraction(1)):
            return False
    return _bernoulli_exp_below_one(rest)


def _bernoulli_exp_below_one(x: Fraction) -> bool:
    """True with probability ``exp(-x)``, ``0 <= x <= 1``: the parity of the first failure of coins x/k."""
    k = 1
    while random_below(x.denominator * k) < x.numerator:
        k += 1
    return k % 2 == 1
