"""The compiled acceptance step of Gaussian arrays.

The exponent of the acceptance probability is computed in double precision with the basic operations only,
whose rounding IEEE 754 fixes; docs/theory/sampling.md, section 7, bounds its error. The exponential of it is
an integer computation.
"""

from __future__ import annotations

import numpy as np

from isotone.kernels import Floats, Int, Ints, Real, Word, Words, kernel
from isotone.noise.compiled.wide import exp2_negative

__all__ = ["DONE", "PROPOSAL", "TAKEN", "UNDECIDED", "accept", "put"]

DONE, UNDECIDED = 0, 1
PROPOSAL, TAKEN = 0, 1  # places in the state

LOG2_E = 1.4426950408889634
FARTHEST = 44.0  # exp(-FARTHEST) is below 2**-63
ROUNDING = 2.0**-46  # eight times the error that section 7 proves
LARGEST_ERROR = 2.0**-16
_1, _11, _32 = np.uint64(1), np.uint64(11), np.uint64(32)


@kernel(steps=lambda *_: 1)
def put(values: Ints, proposal: Int, sign: Int, places: Int, state: Ints) -> None:
    """Store an accepted proposal with its sign.

    Continuous values are rounded. Minus zero is not stored.
    """
    if places == 0:
        if sign == 1 and proposal == 0:
            return
        value = -proposal if sign == 1 else proposal
    else:  # the floor of the signed continuous variable, moved by a half and rounded down
        value = ((-proposal - 1 if sign == 1 else proposal) + (1 << (places - 1))) >> places
    values[state[TAKEN]] = value
    state[TAKEN] += 1


@kernel
def _acceptance(exponent: Real, error: Real) -> tuple[Word, Word]:
    """A bracket of ``2**63·exp(-x)`` for ``|x - exponent| <= error``, ``x >= 0``."""
    if exponent - error > FARTHEST:
        return np.uint64(0), _1
    if error > LARGEST_ERROR:
        return np.uint64(0), _1 << np.uint64(63)
    octaves = max(exponent, 0.0) * LOG2_E
    whole = np.floor(octaves)
    mantissa = exp2_negative(np.uint64((octaves - whole) * 2.0**64))
    slack = np.uint64(np.float64(mantissa) * (2.0 * error + 2.0**-44)) + _32
    by = np.uint64(whole)
    return (mantissa - slack) >> by, ((mantissa + slack) >> by) + _1


@kernel(steps=lambda values, proposals, *_: 32 * proposals.size)
def accept(
    values: Ints,
    proposals: Ints,
    uniforms: Words,
    fractions: Words,
    shape: Floats,
    places: Int,
    state: Ints,
) -> Int:
    """Go through the proposals from where ``state`` stands until ``values`` is full or one is undecided.

    ``shape`` holds ``c = sigma2/scale``, ``1/(2·sigma2)`` and ``1/scale``.
    """
    centre, curvature, slope = shape[0], shape[1], shape[2]
    while state[PROPOSAL] < proposals.size and state[TAKEN] < values.size:
        i = state[PROPOSAL]
        fraction, reach = 0.0, centre
        if places > 0:
            fraction = np.float64(fractions[i] >> _11) * 2.0**-53
            reach += 1.0
        y = np.float64(proposals[i]) + fraction
        distance = y - centre
        exponent = distance * distance * curvature + fraction * slope
        reach += y
        least, most = _acceptance(exponent, ROUNDING * (1.0 + reach * reach * curvature))
        uniform = uniforms[i] >> _1
        if uniform < least:
            put(values, proposals[i], np.int64(uniforms[i] & _1), places, state)
        elif uniform < most:
            return UNDECIDED
        state[PROPOSAL] += 1
    return DONE
