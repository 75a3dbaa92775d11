"""The choice of the exponential mechanism: candidate ``i`` with weight ``multiplicity[i]·exp(-rate·score[i])``.

A lazily refined inverse CDF whose first step is compiled (``choice_kernel.py``). Only when a draw falls between
the bounds of two neighbouring sums, about once in 2**50 / candidates draws, are weights computed again with more
bits, here, in integers of any size (docs/theory/sampling.md, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise.bits import random_bits, random_words
from isotone.noise.brackets import exp_negative, log_two
from isotone.noise.choice_kernel import DONE, EMPTY, NEED_WORDS, SCALE, SEGMENT, WORD, choose_segments
from isotone.noise.lazy_choice import FIRST_BITS, OPEN, REJECTED, Brackets, choose_lazily, locate

__all__ = ["choose_exponential", "choose_exponential_segments"]

Integers = NDArray[np.int64] | Sequence[int]
MOST_CANDIDATES = 2**27
NO_WEIGHT = "A choice needs a candidate of multiplicity above 0, and none of multiplicity below 0."
NONE_GIVEN = np.zeros(0, dtype=np.int64)


def choose_exponential(scores: Integers, rate: Fraction, multiplicity: Integers | None = None) -> int:
    """An index ``i`` with probability proportional to ``multiplicity[i]·exp(-rate·scores[i])``, exactly.

    Scores are integers of any size (arrays of 64-bit integers are fast), ``rate`` is a rational at or above 0,
    multiplicities are integers at or above 0 (default: 1), not all 0. Linear in the number of candidates.

    >>> choose_exponential([5, 0, 7], Fraction(1000))
    1
    """
    try:
        values = _int64(scores, "scores")
        counts = None if multiplicity is None else _int64(multiplicity, "multiplicity")
    except OverflowError:
        return _choose_large(scores, rate, multiplicity)
    return int(choose_exponential_segments(values, np.array([0, values.size]), rate, counts)[0])


def choose_exponential_segments(
    scores: Integers,
    offsets: Integers,
    rates: Fraction | Sequence[Fraction],
    multiplicity: Integers | None = None,
) -> NDArray[np.int64]:
    """One independent choice in each segment, as :func:`choose_exponential` makes it.

    Segment ``s`` holds the candidates ``offsets[s], …, offsets[s + 1] - 1``; ``rates`` is one rate for all
    segments, or one for each. The result counts from the start of the segment.

    >>> choose_exponential_segments([0, 50, 50, 0], [0, 2, 4], Fraction(1000))
    array([0, 1])
    """
    values, bounds = _int64(scores, "scores"), _int64(offsets, "offsets")
    counts = NONE_GIVEN if multiplicity is None else _int64(multiplicity, "multiplicity")
    segments = bounds.size - 1
    _check_layout(values, bounds, counts, multiplicity is not None)
    every = [rates] if isinstance(rates, Fraction) else list(rates)
    if len(every) not in (1, segments) or (len(every) != segments and not isinstance(rates, Fraction)):
        raise InputError(f"{segments} segments need one rate, or one for each, not {len(every)}.")
    mantissas = np.array([_in_octaves(rate)[0] for rate in every], dtype=np.uint64)
    places = np.array([_in_octaves(rate)[1] for rate in every], dtype=np.int64)

    chosen = np.empty(segments, dtype=np.int64)
    state = np.zeros(3, dtype=np.int64)
    pending = np.zeros(2, dtype=np.uint64)
    sums = np.empty((int(np.diff(bounds).max(initial=0)), 2), dtype=np.uint64)
    words = random_words(4 * segments + 8)
    while True:
        status = choose_segments(
            values, counts, bounds, mantissas, places, words, sums, chosen, pending, state
        )
        segment = int(state[SEGMENT])
        if status == DONE:
            return chosen
        if status == EMPTY:
            raise InputError(NO_WEIGHT)
        if status == NEED_WORDS:
            words = random_words(4 * (segments - segment) + 8)
            state[WORD] = 0
            continue
        part = slice(int(bounds[segment]), int(bounds[segment + 1]))
        weights = _weights(
            values[part].tolist(), every[segment if len(every) > 1 else 0], counts[part].tolist() or None
        )
        place = _settle(weights, int(pending[0]) << 64 | int(pending[1]), int(state[SCALE]))
        if place != REJECTED:
            chosen[segment] = place
            state[SEGMENT] += 1


def _settle(weights: Brackets, uniform: int, bits: int) -> int:
    """The place of a uniform that the kernel's bounds left open: read on until it is decided."""
    place = OPEN
    while place == OPEN:
        bits += FIRST_BITS
        uniform = uniform << FIRST_BITS | random_bits(FIRST_BITS)
        place = locate(uniform, *weights(bits))
    return place


def _choose_large(scores: Integers, rate: Fraction, multiplicity: Integers | None) -> int:
    """The same choice for integers that do not fit 64 bits."""
    counts = None if multiplicity is None else [int(count) for count in multiplicity]
    if rate < 0 or (counts is not None and (len(counts) != len(scores) or min(counts) < 0)):
        raise InputError("A choice needs a rate of at least 0, and one multiplicity, 0 or above, per score.")
    return choose_lazily(_weights([int(score) for score in scores], rate, counts))


def _weights(scores: list[int], rate: Fraction, multiplicity: list[int] | None) -> Brackets:
    """Brackets of the weights, relative to the best score among candidates of positive multiplicity."""
    counts = [1] * len(scores) if multiplicity is None else multiplicity
    if not any(counts):
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
def _in_octaves(rate: Fraction) -> tuple[int, int]:
    """``(m, s)`` with ``m <= 2**s · rate / ln 2 < m + 2`` and ``2**63 <= m < 2**64``; ``(0, 64)`` for rate 0."""
    if rate < 0:
        raise InputError(f"The rate of a choice must be at least 0, not {rate}.")
    if rate == 0:
        return 0, 64
    _, above = log_two(192)
    places = 64 - rate.numerator.bit_length() + rate.denominator.bit_length()
    while True:
        exponent = 192 + places
        scaled = rate * (1 << exponent) if exponent >= 0 else rate / (1 << -exponent)
        mantissa = scaled.numerator // (scaled.denominator * above)
        if mantissa.bit_length() == 64:
            return mantissa, places
        places += 64 - mantissa.bit_length()


def _int64(values: Integers, name: str) -> NDArray[np.int64]:
    """The integers as a 64-bit array; OverflowError if one does not fit."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional.")
    if array.dtype == np.int64:
        return array
    if array.dtype.kind not in "iub":
        if not all(isinstance(value, (int, np.integer)) for value in values):
            raise InputError(f"{name} must be integers.")
        return np.array([int(value) for value in values], dtype=np.int64)
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        raise OverflowError(name)
    return array.astype(np.int64)


def _check_layout(
    scores: NDArray[np.int64], offsets: NDArray[np.int64], counts: NDArray[np.int64], counted: bool
) -> None:
    if offsets.size < 1 or offsets[0] != 0 or offsets[-1] != scores.size or np.any(np.diff(offsets) < 1):
        raise InputError(
            "offsets must rise from 0 to the number of scores, with at least one candidate per segment."
        )
    if counted and counts.size != scores.size:
        raise InputError(f"{scores.size} scores need as many multiplicities, not {counts.size}.")
    if np.diff(offsets).max(initial=0) > MOST_CANDIDATES:
        raise InputError("A choice can have at most 2**27 candidates.")
