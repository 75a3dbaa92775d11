"""OpenDP's measure and privacy map for a guarantee.

The map says what follows from it for d units instead of one.

| guarantee | measure | d units |
|---|---|---|
| ε-DP | max_divergence | d·ε |
| ρ-zCDP | zero_concentrated_divergence | d²·ρ (Bun and Steinke 2016, Proposition 1.9) |
| (ε, δ)-DP | fixed_smoothed_max_divergence | (d·ε, δ·(1 + e^ε + … + e^((d-1)ε))) |

Guarantees are exact rationals and OpenDP's distances are floats: every map rounds up. A float given to a mechanism
means what it prints, so ε = 0.3 is 3/10, which is a little more than the float 0.3: its map gives the next float.
The constructors of ``context.py`` take OpenDP's floats at their binary value, and so meet a budget exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from opendp.measures import fixed_smoothed_max_divergence, max_divergence, zero_concentrated_divergence

from isotone.privacy.guarantee import Guarantee

__all__ = ["measure_and_map", "round_up"]

_SLACK = 1 + 1e-12
"""Above the rounding errors of a few exponentials, each below 1e-15."""


def measure_and_map(guarantee: Guarantee) -> tuple[Any, Callable[[int], Any]]:
    """The output measure and the privacy map of a mechanism with this guarantee for one unit.

    >>> _, pure = measure_and_map(Guarantee.pure("1/2"))
    >>> pure(1), pure(3)
    (0.5, 1.5)
    >>> _, concentrated = measure_and_map(Guarantee.zcdp("1/2"))
    >>> concentrated(3)
    4.5
    """
    if guarantee.kind == "zcdp":
        return zero_concentrated_divergence(), lambda d: round_up(guarantee.rho * int(d) ** 2)
    if guarantee.kind == "pure":
        return max_divergence(), lambda d: round_up(guarantee.epsilon * int(d))
    return fixed_smoothed_max_divergence(), lambda d: _group(guarantee, int(d))


def _group(guarantee: Guarantee, d: int) -> tuple[float, float]:
    epsilon, delta = round_up(guarantee.epsilon), round_up(guarantee.delta)
    if d <= 1:
        return epsilon * d, delta * d
    try:
        factor = math.expm1(d * epsilon) / math.expm1(epsilon) * _SLACK
    except OverflowError:
        factor = math.inf
    return round_up(guarantee.epsilon * d), min(1.0, delta * factor)


def round_up(value: Fraction) -> float:
    """The smallest float that is not below ``value``.

    >>> round_up(Fraction(1, 3)) >= Fraction(1, 3) > Fraction(math.nextafter(round_up(Fraction(1, 3)), 0))
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
