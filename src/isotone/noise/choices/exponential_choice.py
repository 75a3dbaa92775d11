"""The choice of the exponential mechanism.

The weights are ``multiplicity[i]·exp(-rate·score[i])``.

A lazily refined inverse CDF whose first step is compiled (``noise/compiled/choice_kernel.py``). Only when a draw falls
between the bounds of two neighbouring sums, about once in 2**50 / candidates draws, are weights computed
again with more bits, here, in integers of any size (docs/theory/sampling.md, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import PLAIN_STEPS, most_steps
from isotone.noise.bits import random_bits, random_words
from isotone.noise.brackets import exp_negative, log_two
from isotone.noise.choices.lazy_choice import OPEN, REJECTED, STEP, Brackets, choose_lazily, locate
from isotone.noise.compiled.choice_kernel import (
    DONE,
    EMPTY,
    NEED_WORDS,
    SCALE,
    SEGMENT,
    WORD,
    choose_segments,
)

__all__ = ["choose_exponential", "choose_exponential_segments"]

Integers = NDArray[np.int64] | Sequence[int]
MOST_CANDIDATES = 2**27
PLAIN_CANDIDATES = 1 << 12
"""From at most so many Python chooses within a twentieth of a second."""
LOG_TWO_ABOVE = log_two(192)[1]
NO_WEIGHT = "A choice needs a candidate of multiplicity above 0, and none of multiplicity below 0."
ALL_ONE = np.zeros(0, dtype=np.int64)


def choose_exponential(scores: Integers, rate: Fraction, multiplicity: Integers | None = None) -> int:
    """An index ``i`` with probability proportional to ``multiplicity[i]·exp(-rate·scores[i])``, exactly.

    Scores are integers of any size (arrays of 64-bit integers are fast), ``rate`` is a rational at or above
    0, multiplicities are integers at or above 0 (default: 1), not all 0. Linear in the number of candidates.

    >>> choose_exponential([5, 0, 7], Fraction(1000))
    1
    """
    try:
        values = _int64(scores, "scores")
        counts = ALL_ONE if multiplicity is None else _int64(multiplicity, "multiplicity")
    except OverflowError:
        return _choose_large(scores, rate, multiplicity)
    _check_layout(values.size, values.size, 0 if multiplicity is None else counts.size - values.size)
    bounds = np.array([0, values.size], dtype=np.int64)
    return int(_choose(values, counts, bounds, values.size, [rate])[0])


def choose_exponential_segments(
    scores: Integers,
    offsets: Integers,
    rates: Fraction | Sequence[Fraction],
    multiplicity: Integers | None = None,
    *,
    size: int | None = None,
) -> NDArray[np.int64]:
    """Choose independently in each segment.

    Each choice has the distribution of :func:`choose_exponential`.

    Segment ``s`` holds the candidates ``offsets[s], …, offsets[s + 1] - 1``, at least one; ``rates`` is one
    rate for all segments, or one for each. The result counts from the start of the segment. Scores and
    multiplicities must fit 64 bits. Where the number of candidates is private, ``size`` is a public bound on it: few enough
    are chosen from without compiling anything, and the law is the same.

    >>> choose_exponential_segments([0, 50, 50, 0], [0, 2, 4], Fraction(1000))
    array([0, 1])
    """
    values, bounds = _int64(scores, "scores"), _int64(offsets, "offsets")
    counts = ALL_ONE if multiplicity is None else _int64(multiplicity, "multiplicity")
    if bounds.size < 1 or bounds[0] != 0 or bounds[-1] != values.size:
        raise InputError("offsets must rise from 0 to the number of scores.")
    sizes = np.diff(bounds)
    longest = int(sizes.max(initial=0))
    _check_layout(
        int(sizes.min(initial=1)), longest, 0 if multiplicity is None else counts.size - values.size
    )
    every = [rates] if isinstance(rates, Fraction) else list(rates)
    if len(every) != sizes.size and not isinstance(rates, Fraction):
        raise InputError(f"{sizes.size} segments need one rate, or one for each, not {len(every)}.")
    return _choose(values, counts, bounds, longest, every, size)


def _choose(
    scores: NDArray[np.int64],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    longest: int,
    rates: Sequence[Fraction],
    size: int | None = None,
) -> NDArray[np.int64]:
    """Run the kernel, and settle what it leaves open."""
    segments = offsets.size - 1
    octaves = [_in_octaves(rate.numerator, rate.denominator) for rate in rates]
    mantissas = np.array([mantissa for mantissa, _ in octaves], dtype=np.uint64)
    places = np.array([place for _, place in octaves], dtype=np.int64)
    sums = np.empty((longest, 2), dtype=np.uint64)
    chosen = np.empty(segments, dtype=np.int64)
    pending, state = np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64)
    words = random_words(4 * segments + 8)
    run = choose_segments
    if size is not None:
        few = size * PLAIN_STEPS <= PLAIN_CANDIDATES * most_steps()
        run = choose_segments.plain if few else choose_segments.compiled
    while True:
        status = run(scores, counts, offsets, mantissas, places, words, sums, chosen, pending, state)
        segment = int(state[SEGMENT])
        if status == DONE:
            return chosen
        if status == EMPTY:
            raise InputError(NO_WEIGHT)
        if status == NEED_WORDS:
            words = random_words(4 * (segments - segment) + 8)
            state[WORD] = 0
            continue
        part = slice(int(offsets[segment]), int(offsets[segment + 1]))
        weights = _weights(
            scores[part].tolist(), rates[segment if len(rates) > 1 else 0], counts[part].tolist() or None
        )
        place = _settle(weights, int(pending[0]) << 64 | int(pending[1]), int(state[SCALE]))
        if place != REJECTED:
            chosen[segment] = place
            state[SEGMENT] += 1


def _settle(weights: Brackets, uniform: int, bits: int) -> int:
    """The place of a uniform that the kernel's bounds left open.

    Reads further bits until it is decided.
    """
    place = OPEN
    while place == OPEN:
        bits += STEP
        uniform = uniform << STEP | random_bits(STEP)
        place = locate(uniform, *weights(bits))
    return place


def _choose_large(scores: Integers, rate: Fraction, multiplicity: Integers | None) -> int:
    """The same choice for integers that do not fit 64 bits."""
    counts = None if multiplicity is None else [int(count) for count in multiplicity]
    _check_layout(len(scores), len(scores), 0 if counts is None else len(counts) - len(scores))
    if rate < 0:
        raise InputError(f"The rate of a choice must be at least 0, not {rate}.")
    return choose_lazily(_weights([int(score) for score in scores], rate, counts))


def _weights(scores: list[int], rate: Fraction, multiplicity: list[int] | None) -> Brackets:
    """Brackets of the weights, relative to the best score among candidates of positive multiplicity."""
    counts = [1] * len(scores) if multiplicity is None else multiplicity
    if min(counts) < 0 or max(counts) == 0:
        raise InputError(NO_WEIGHT)
    best = min(score for score, count in zip(scores, counts, strict=True) if count)
    longest = max(counts).bit_length()

    def brackets(bits: int) -> tuple[list[int], list[int]]:
        powers: dict[int, tuple[int, int]] = {}
        lower, upper = [0] * len(scores), [0] * len(scores)
        for i, (score, count) in enumerate(zip(scores, counts, strict=True)):
            if count:
                if score not in powers:
                    powers[score] = exp_negative(rate * (score - best), bits + longest)
                low, high = powers[score]
                lower[i], upper[i] = (low * count) >> longest, -((-high * count) >> longest)
        return lower, upper

    return brackets


@lru_cache(maxsize=4096)
def _in_octaves(numerator: int, denominator: int) -> tuple[int, int]:
    """The rate in units of ``ln 2``, as an integer and an exponent.

    ``(m, s)`` with ``m <= 2**s · rate / ln 2 < m + 2``, and ``2**63 <= m < 2**64`` unless the rate is 0.
    """
    if numerator < 0:
        raise InputError(f"The rate of a choice must be at least 0, not {Fraction(numerator, denominator)}.")
    if numerator == 0:
        return 0, 64
    places = 65 - numerator.bit_length() + denominator.bit_length()
    while True:  # at most three times: the first guess is at most two places too many
        over, under = max(192 + places, 0), max(-192 - places, 0)
        mantissa = (numerator << over) // ((denominator * LOG_TWO_ABOVE) << under)
        if mantissa.bit_length() == 64:
            return mantissa, places
        places -= 1


def _int64(values: Integers, name: str) -> NDArray[np.int64]:
    """The integers as a 64-bit array.

    Raises OverflowError if one does not fit.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional.")
    if array.dtype == np.int64:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iub":
        if not all(isinstance(value, (int, np.integer)) for value in values):
            raise InputError(f"{name} must be integers.")
        return np.array([int(value) for value in values], dtype=np.int64)
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        raise OverflowError(name)
    return array.astype(np.int64)


def _check_layout(shortest: int, longest: int, surplus: int) -> None:
    if shortest < 1:
        raise InputError("A choice needs at least one candidate.")
    if longest > MOST_CANDIDATES:
        raise InputError("A choice can have at most 2**27 candidates.")
    if surplus:
        raise InputError("Every score needs one multiplicity, or none is given.")
