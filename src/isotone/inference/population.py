"""Figures of the population that the records are a sample of, with noise and sampling together.

The records are taken as independent draws from the population, or as worth ``records / deff`` such draws where the
steward states a design effect. A value of the share is kept if the released counts are not too unlikely under it;
tail probabilities are means over draws of the noise of exact binomial ones, with a bound on their own error (Chernoff;
docs/theory/inference.md, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.inference.estimate import NOT_KNOWN, UNUSUAL, Estimate
from isotone.inference.measured import Measured
from isotone.inference.ratio import shown_ratio
from isotone.linear.law import FALSE_CONFIDENCE
from isotone.privacy.checks import shown

__all__ = ["population_proportion", "population_share"]

_NUISANCE = 0.002
"""The chance that the size of the whole is outside of the set over which the worst case is taken (Berger and Boos 1994)."""

_LEAST_EVENTS = 15

_SIZES = 6
"""So many sizes of the whole are looked at, the largest among them."""

_PRECISION = 1e-5


def population_proportion(found: Measured, part: Any, level: float, deff: Any = 1) -> Estimate:
    """The share of ``part`` in the population, where the number of records is public, by inverting both tails."""
    effect, x, n = _effect(deff), found.place(part), found.records
    if not n:
        return Estimate(None, 0.0, 1.0, level, NOT_KNOWN, "population")
    noise, y = found.law.draws[:, x].astype(np.float64), float(found.values[x])
    ranked = {1: np.sort(noise), -1: np.sort(-noise)}
    least, worth = _threshold((1 - level) / 2, noise.size), max(round(n / effect), 1)

    def tail(p: float, sign: int) -> float:
        """The probability of the value released or one further out, upward or downward."""
        counts, chance = _binomial(worth, p)
        reach = sign * (y - counts * (n / worth))  # the noise is that or further out
        place = np.searchsorted(ranked[sign], reach - 1e-9)
        return float(chance @ (noise.size - place)) / noise.size

    value = min(max(y / n, 0.0), 1.0)
    low = _edge(lambda p: tail(p, 1) > least, 1.0, 0.0)
    high = _edge(lambda p: tail(p, -1) > least, 0.0, 1.0)
    return shown_ratio(value, low, high, level, about="population")


def population_share(found: Measured, part: Any, of: Any, level: float, deff: Any = 1) -> Estimate:
    """The share of ``part`` in ``of`` in the population. The unknown size of the whole is taken at its worst."""
    effect, x = _effect(deff), found.place(part)
    if of is None and not found.has_total:
        raise InputError(
            "The share of all needs the number of records: state it with records=, if it is public."
        )
    z = len(found.P) if of is None else found.place(of)
    if of is not None and not found.P.leq(found.P.elements[x], found.P.elements[z]):
        raise InputError(f"{part!r} does not imply {of!r}, so it is no part of it.")
    a, b = float(found.values[x]), float(found.values[z])
    noise_a, noise_b = (found.law.draws[:, i].astype(np.float64) for i in (x, z))
    outside = max(_NUISANCE, _LEAST_EVENTS / noise_a.size)  # which few draws could not show
    half = float(found.law.upper(np.abs(noise_b), 1 - outside))
    if b + half < 1:
        return Estimate(None, 0.0, 1.0, level, NOT_KNOWN, "population")
    sizes = np.unique(np.rint(np.linspace(max(b - half, 1), b + half, _SIZES)).astype(np.int64))[::-1]
    least = _threshold(1 - level - outside, noise_a.size)

    def kept(r: float) -> bool:
        noise = np.sort(noise_a - r * noise_b)
        off = abs(a - r * b) - 1e-12 * (abs(a) + abs(r * b))
        return any(_two_tails(noise, off, int(size), r, effect) > least for size in sizes)

    best = min(max(a / b, 0.0), 1.0) if b > 0 else math.nan
    inside = next((r for r in (best, 0.0, 1.0) if not math.isnan(r) and kept(r)), None)
    if inside is None:
        return Estimate(best, best, best, level, UNUSUAL, "population")
    low, high = (_edge(kept, inside, end) for end in (0.0, 1.0))
    return shown_ratio(None if b <= 0 else best, low, high, level, about="population")


def _two_tails(noise: Floats, off: float, size: int, r: float, effect: float) -> float:
    """How likely it is that sampling and noise are off by so much or more, in either direction."""
    worth = max(round(size / effect), 1)
    counts, chance = _binomial(worth, r)
    error = (counts - r * worth) * (size / worth)
    above = noise.size - np.searchsorted(noise, off - error)
    below = np.searchsorted(noise, -off - error, side="right")
    return float(chance @ np.minimum(above + below, noise.size)) / noise.size


def _binomial(size: int, p: float) -> tuple[Floats, Floats]:
    """The counts that matter and their probabilities. What is left out, below 1e-12, counts as likely."""
    from scipy.special import gammaln

    spread = 8 * math.sqrt(size * p * (1 - p)) + 40
    counts = np.arange(max(0, math.floor(size * p - spread)), min(size, math.ceil(size * p + spread)) + 1.0)
    if p <= 0 or p >= 1:
        return np.array([size * round(p)], dtype=np.float64), np.ones(1)
    ways = gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)
    return counts, np.exp(ways + counts * math.log(p) + (size - counts) * math.log1p(-p))


@lru_cache(maxsize=64)
def _threshold(tail: float, draws: int) -> float:
    """The least mean over the draws that a tail probability of ``tail`` or more has, but for one time in a million."""
    if tail <= 0:
        raise InputError("This confidence is too close to 1 for a figure of the population.")
    room, low, high = -math.log(FALSE_CONFIDENCE) / draws, 0.0, tail
    for _ in range(60):
        middle = (low + high) / 2
        gap = (1 - middle) * math.log((1 - middle) / (1 - tail))
        gap += middle * math.log(middle / tail) if middle > 0 else 0.0
        low, high = (middle, high) if gap > room else (low, middle)
    return low


def _edge(kept: Callable[[float], bool], inside: float, end: float) -> float:
    """The point between ``inside`` and ``end`` where values cease to be kept, on the far side."""
    if kept(end):
        return end
    outside = end
    while abs(outside - inside) > _PRECISION:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if kept(middle) else (inside, middle)
    return outside


def _effect(deff: Any) -> float:
    try:
        number = float(deff)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(deff, (str, bytes, bool)) or not (1 <= number <= 1e6):
        raise InputError(f"deff, the design effect, must be a number from 1, not {shown(deff)}.")
    return number
