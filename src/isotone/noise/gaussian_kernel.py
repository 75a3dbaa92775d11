"""The compiled acceptance step of Gaussian arrays.

The exponent of the acceptance probability is computed in double precision with the basic operations only, whose
rounding IEEE 754 fixes; its error is bounded by ``2**-46·(1 + (y + c + 1)²·h)`` (docs/theory/sampling.md, section
7). The exponential of it is an integer computation.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone.noise.wide import exp2_negative

__all__ = ["DONE", "PROPOSAL", "TAKEN", "UNDECIDED", "accept", "put"]

DONE, UNDECIDED = 0, 1
PROPOSAL, TAKEN = 0, 1  # places in the state

LOG2_E = 1.4426950408889634
FARTHEST = 45.0  # exp(-FARTHEST) is below 2**-64
_1, _11 = np.uint64(1), np.uint64(11)


@njit(cache=True)
def put(values, proposal, sign, places, state):  # pragma: no cover - compiled
    """Store an accepted proposal: signed, and rounded if it is continuous. Minus zero is not stored."""
    if places == 0:
        if sign == 1 and proposal == 0:
            return
        value = -proposal if sign == 1 else proposal
    else:  # the floor of the signed continuous variable, moved by a half and rounded down
        value = ((-proposal - 1 if sign == 1 else proposal) + (1 << (places - 1))) >> places
    values[state[TAKEN]] = value
    state[TAKEN] += 1


@njit(cache=True, inline="always")
def _acceptance(exponent, error):  # pragma: no cover - compiled
    """A bracket of ``2**63·exp(-x)`` for ``|x - exponent| <= error``."""
    if exponent - error > FARTHEST:
        return np.uint64(0), _1
    octaves = max(exponent, 0.0) * LOG2_E
    whole = np.floor(octaves)
    mantissa = exp2_negative(np.uint64((octaves - whole) * 2.0**64))
    slack = np.uint64(np.float64(mantissa) * (2.0 * error + 2.0**-44)) + np.uint64(32)
    by = np.uint64(whole)
    return (mantissa - slack) >> by, ((mantissa + slack) >> by) + _1


@njit(cache=True)
def accept(values, proposals, uniforms, fractions, shape, places, state):  # pragma: no cover - compiled
    """Go through the proposals from where ``state`` stands until ``values`` is full or one is undecided."""
    centre, curvature, slope = shape[0], shape[1], shape[2]
    while state[PROPOSAL] < proposals.size and state[TAKEN] < values.size:
        i = state[PROPOSAL]
        fraction = np.float64(fractions[i] >> _11) * 2.0**-53 if places > 0 else 0.0
        y = np.float64(proposals[i]) + fraction
        distance = y - centre
        exponent = distance * distance * curvature + fraction * slope
        reach = y + centre + 1.0
        error = 2.0**-46 * (1.0 + reach * reach * curvature)
        if error > 2.0**-16:
            return UNDECIDED
        least, most = _acceptance(exponent, error)
        uniform = uniforms[i] >> _1
        if uniform < least:
            put(values, proposals[i], np.int64(uniforms[i] & _1), places, state)
        elif uniform < most:
            return UNDECIDED
        state[PROPOSAL] += 1
    return DONE
