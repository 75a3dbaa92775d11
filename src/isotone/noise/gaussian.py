"""The discrete Gaussian, and the continuous Gaussian rounded to integers, exactly.

Both are accepted from geometric proposals. One draw of the discrete Gaussian needs integers only (Canonne,
Kamath and Steinke 2020). Arrays compare a uniform word with a bracket of the acceptance probability in a
compiled kernel, and read on in integers in the rare case that the word falls into the bracket
(docs/theory/sampling.md, section 7).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bernoulli import bernoulli_exp
from isotone.noise.bits import random_bits, random_words
from isotone.noise.brackets import exp_negative
from isotone.noise.bulk import SMALLEST_RATE, geometrics
from isotone.noise.gaussian_kernel import DONE, PROPOSAL, TAKEN, accept, put
from isotone.noise.geometric import two_sided_geometric

__all__ = ["discrete_gaussian", "discrete_gaussians", "rounded_gaussians"]

LEAST_SD = 2  # a continuous Gaussian is drawn at a scale at least this large


def discrete_gaussian(sigma2: Fraction) -> int:
    """A draw ``k`` with probability proportional to ``exp(-k²/(2·sigma2))``, for a rational ``sigma2 > 0``."""
    _check_variance(sigma2)
    scale = _proposal_scale(sigma2)
    while True:
        candidate = two_sided_geometric(Fraction(1, scale))
        if bernoulli_exp((abs(candidate) - sigma2 / scale) ** 2 / (2 * sigma2)):
            return candidate


def discrete_gaussians(sigma2: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent draws with probability proportional to ``exp(-k²/(2·sigma2))``, exactly.

    The standard deviation may be at most ``2**43``, so that values fit 64 bits.
    """
    _check_variance(sigma2)
    return _draw(sigma2, size, places=0)


def rounded_gaussians(sigma2: Fraction, size: int) -> NDArray[np.int64]:
    """``size`` independent Gaussian variables of variance ``sigma2``, each exactly rounded to an integer.

    Halves are rounded up; an exact half has probability zero. The standard deviation may be at most ``2**43``.
    """
    _check_variance(sigma2)
    places = 1
    while sigma2 * 4**places < LEAST_SD**2:
        places += 1
    return _draw(sigma2 * 4**places, size, places)


def _check_variance(sigma2: Fraction) -> None:
    if sigma2 <= 0:
        raise InputError(f"The variance of a Gaussian must be above 0, not {sigma2}.")


def _proposal_scale(sigma2: Fraction) -> int:
    """The scale of the geometric proposals: the least integer above the standard deviation."""
    return isqrt(int(sigma2)) + 1


def _draw(sigma2: Fraction, size: int, places: int) -> NDArray[np.int64]:
    """Discrete Gaussians (``places = 0``), or continuous ones rounded after division by ``2**places``."""
    scale = _proposal_scale(sigma2)
    if scale * SMALLEST_RATE > 1:
        raise InputError(f"Arrays of Gaussian noise need a standard deviation of at most 2**43, not {scale}.")
    if size < 0:
        raise InputError(f"The number of draws must be at least 0, not {size}.")
    shape = np.array([sigma2 / scale, 1 / (2 * sigma2), Fraction(1, scale)], dtype=np.float64)
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
            start = int(fractions[i]) if places else None
            if _is_accepted(sigma2, scale, int(proposals[i]), start, word >> 1):
                put(values, proposals[i], word & 1, places, state)
            state[PROPOSAL] += 1
    return values


def _is_accepted(sigma2: Fraction, scale: int, proposal: int, fraction: int | None, uniform: int) -> bool:
    """Whether a 63-bit uniform, read on as needed, is below the acceptance probability of a proposal.

    ``fraction`` is the first word of the fractional part of a continuous proposal; None for a discrete one.
    """
    bits, unread = 63, Fraction(0 if fraction is None else 1, 2**64)
    known = proposal + Fraction(fraction or 0, 2**64)
    while True:
        low, high = _exponent(sigma2, scale, proposal, known, unread)
        least, most = exp_negative(high, bits)[0], exp_negative(low, bits)[1]
        if uniform < least or uniform >= most:
            return uniform < least
        bits += 64
        uniform = uniform << 64 | random_bits(64)
        if unread:
            unread /= 2**64
            known += random_bits(64) * unread


def _exponent(
    sigma2: Fraction, scale: int, proposal: int, known: Fraction, unread: Fraction
) -> tuple[Fraction, Fraction]:
    """Bounds of ``(y - c)²/(2·sigma2) + (y - proposal)/scale`` for ``known <= y <= known + unread``."""
    ends = sorted(abs(y - sigma2 / scale) for y in (known, known + unread))
    nearest = max(Fraction(0), ends[1] - unread)
    slope = (known - proposal) / scale
    return nearest**2 / (2 * sigma2) + slope, ends[1] ** 2 / (2 * sigma2) + slope + unread / scale
