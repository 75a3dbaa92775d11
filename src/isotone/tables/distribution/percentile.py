"""A private bound for top-coding, near a percentile of the counts.

It is chosen by the exponential mechanism.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.privacy.draws import Draws

__all__ = ["bounds_to_choose_from", "choose_upper", "wanted_categories"]

_RATIO = 1.15
_LEAST = 0.9


def bounds_to_choose_from(limit: int) -> NDArray[np.int64]:
    """Bounds from 1 to ``limit``, each about 15 % above the one before.

    >>> bounds_to_choose_from(12)
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 12])
    """
    bounds = [min(1, limit)]
    while bounds[-1] < limit:
        bounds.append(min(max(bounds[-1] + 1, round(_RATIO * bounds[-1])), limit))
    return np.array(bounds)


def wanted_categories(size: int, percentile: Fraction, choices: int, epsilon: Fraction) -> int:
    """How many categories should be at most the bound.

    The percentile, less ``ln(choices)/epsilon``.

    Every bound above all counts misses the percentile by the same few categories. Aiming a little low makes
    sure that they do not win by their number; never lower than nine tenths of the percentile, since a bound
    too high costs little and a bound too low cuts the table.
    """
    share = float(percentile) / 100 * size
    return math.ceil(max(share - math.log(choices) / float(epsilon), _LEAST * share))


def choose_upper(
    table: NDArray[np.int64], limit: int, percentile: Fraction, epsilon: Fraction, draws: Draws
) -> int:
    """A bound ``u`` with probability proportional to ``exp(-epsilon·|categories at most u - wanted|)``.

    Guarantee: epsilon-DP for one step, without the usual factor 2: one step changes one cumulative number of
    categories by one, so it moves one score, by at most one (docs/theory/tables-whole.md, section 7).
    """
    choices = bounds_to_choose_from(limit)
    cumulative = np.cumsum(np.bincount(table, minlength=limit + 1))[choices]
    wanted = wanted_categories(len(table), percentile, len(choices), epsilon)
    return int(choices[draws.choice(np.abs(cumulative - wanted), epsilon)])
