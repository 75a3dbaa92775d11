"""What a guarantee means for one person, as odds."""

from __future__ import annotations

import math

from isotone.privacy.guarantee import Guarantee

__all__ = ["odds"]

_BELIEFS = ("0.01", "0.1", "0.5")


def odds(guarantee: Guarantee) -> list[tuple[str, str]]:
    """How far a reader's belief about one person may move at most, a pair (before, after) for some beliefs.

    >>> odds(Guarantee.pure(1))
    [('1 %', '2.7 %'), ('10 %', '23 %'), ('50 %', '73 %')]
    """
    stated = guarantee.to_approximate("1e-6") if guarantee.kind == "zcdp" else guarantee
    epsilon = min(float(stated.epsilon), 700.0)
    found: list[tuple[str, str]] = []
    for belief in map(float, _BELIEFS):
        after = 1 / (1 + (1 - belief) / belief * math.exp(-epsilon))
        found.append((f"{100 * belief:g} %", f"{100 * after:.2g} %" if after < 0.995 else "more than 99 %"))
    return found
