"""Exact Gaussian noise, rounded to integers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Floats, Int, Ints, Real, Word, Words, kernel
from isotone.noise.bits import bernoulli_exp, bernoulli_exp_lazily, exp2_negative, random_bits, random_words
from isotone.noise.laplace import SMALLEST_RATE, geometrics, two_sided_geometric

# The compiled acceptance step of Gaussian arrays.
#
# The exponent of the acceptance probability is computed in double precision with the basic operations only,
# whose rounding IEEE 754 fixes; docs/theory/sampling.md, section 7, bounds its error. The exponential of it is
# an integer computation.

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


# The discrete Gaussian, and the continuous Gaussian rounded to integers, exactly.
#
# Both are accepted from geometric proposals. One draw of the discrete Gaussian needs integers only (Canonne,
# Kamath and Steinke 2020). Arrays compare a uniform word with a bracket of the acceptance probability in a
# compiled kernel, and read on in integers in the rare case that the word falls into the bracket
# (docs/theory/sampling.md, section 7).

LEAST_VARIANCE = Fraction(1, 2**100)  # of an array: the kernel's numbers then stay in range
DRAWN_VARIANCE = 4  # a continuous Gaussian is drawn at a scale at least this large, and scaled down


def discrete_gaussian(sigma2: Fraction) -> int:
    """A draw ``k`` with probability proportional to ``exp(-k²/(2·sigma2))``, for any rational above 0."""
    _check_variance(sigma2)
    scale = _proposal_scale(sigma2)
    while True:
        candidate = two_sided_geometric(Fraction(1, scale))
        if bernoulli_exp((abs(candidate) - sigma2 / scale) ** 2 / (2 * sigma2)):
            return candidate


def discrete_gaussians(sigma2: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws with probability proportional to ``exp(-k²/(2·sigma2))``, exactly.

    The standard deviation must be below ``2**44``, so that values fit 64 bits, and at least ``2**-50``.
    """
    return _draw(sigma2, size, places=0)


def rounded_gaussians(sigma2: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent Gaussian variables of variance ``sigma2``, each exactly rounded to an integer.

    Halves are rounded up; an exact half has probability zero. The standard deviation must be below ``2**43``,
    and at least ``2**-50``.
    """
    _check_variance(sigma2)
    places = 1
    while sigma2 * 4**places < DRAWN_VARIANCE:
        places += 1
    return _draw(sigma2 * 4**places, size, places)


def _check_variance(sigma2: Fraction) -> None:
    if sigma2 <= 0:
        raise InputError(f"The variance of a Gaussian must be above 0, not {sigma2}.")


def _proposal_scale(sigma2: Fraction) -> int:
    """The scale of the geometric proposals.

    It is the least integer above the standard deviation.
    """
    return isqrt(int(sigma2)) + 1


def _draw(sigma2: Fraction, size: int, places: int) -> NDArray[np.int64]:
    """Discrete Gaussians (``places = 0``), or continuous ones rounded after division by ``2**places``."""
    _check_variance(sigma2)
    if sigma2 < LEAST_VARIANCE * 4**places:
        raise InputError("Arrays of Gaussian noise need a standard deviation of at least 2**-50.")
    scale = _proposal_scale(sigma2)
    if Fraction(1, scale) < 2 * SMALLEST_RATE:
        limit = 44 if places == 0 else 43
        raise InputError(f"Arrays of Gaussian noise need a standard deviation below 2**{limit}.")
    if size < 0:
        raise InputError(f"The number of draws must be at least 0, not {size}.")
    shape = np.array([float(sigma2 / scale), float(1 / (2 * sigma2)), 1 / scale])
    values = np.empty(size, dtype=np.int64)
    state = np.zeros(2, dtype=np.int64)
    while state[TAKEN] < size:
        proposals = geometrics(Fraction(1, scale), 16 + int(1.5 * (size - state[TAKEN])))
        uniforms = random_words(proposals.size)
        fractions = random_words(proposals.size if places else 0)
        state[PROPOSAL] = 0
        while accept(values, proposals, uniforms, fractions, shape, places, state) != DONE:
            i = int(state[PROPOSAL])
            word = int(uniforms[i])
            exponents = _exponents(sigma2, int(proposals[i]), int(fractions[i]) if places else None)
            if bernoulli_exp_lazily(exponents, word >> 1, 63):
                put(values, int(proposals[i]), word & 1, places, state)
            state[PROPOSAL] += 1
    return values


def _exponents(sigma2: Fraction, proposal: int, fraction: int | None) -> Iterator[tuple[Fraction, Fraction]]:
    """Ever closer bounds of the exponent of a proposal's acceptance probability (section 7).

    It is ``(y - c)²/(2·sigma2) + (y - proposal)/scale`` with ``c = sigma2/scale``. A continuous proposal is
    ``y = proposal + fraction/2**64 + …``, read on from random bits; a discrete one has no fraction.
    """
    scale = _proposal_scale(sigma2)
    known, unread = Fraction(proposal), Fraction(0)
    if fraction is not None:
        known, unread = known + Fraction(fraction, 2**64), Fraction(1, 2**64)
    while True:
        farthest = max(abs(y - sigma2 / scale) for y in (known, known + unread))
        nearest = max(Fraction(0), farthest - unread)
        slope = (known - proposal) / scale
        yield nearest**2 / (2 * sigma2) + slope, farthest**2 / (2 * sigma2) + slope + unread / scale
        if unread:
            unread /= 2**64
            known += random_bits(64) * unread
