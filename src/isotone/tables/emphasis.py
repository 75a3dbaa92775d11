"""From an emphasis between 0 (counts) and 1 (distribution) to the thresholds that are measured, by public numbers alone.

What a step of a count spends on its threshold it does not spend on the count. So thresholds everywhere or at few places, with any
share, are one family of designs, and each has two errors: that of an estimate and that of the distribution. Both are predicted without
data, for an even table whose histogram may bend. The emphasis says which error may be how far from the best that any design has: the
design with the least ``max((1 - e)·ln(estimate/best), e·ln(distance/best))`` is taken (docs/theory/tables-whole.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log2
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.privacy.checks import Number, exact, one_of
from isotone.tables.estimate.views import SILENT, noise_precision

__all__ = [
    "LEAST_SIZE",
    "MOST_SIZE",
    "POINTS",
    "Design",
    "Emphasis",
    "checked_emphasis",
    "chosen_design",
    "designs",
    "places_apart",
    "predicted_errors",
]

Emphasis = Literal["counts", "both", "distribution"]
"""Names of three points on the scale."""

POINTS: dict[Emphasis, Fraction] = {
    "counts": Fraction(1, 50),
    "both": Fraction(1, 20),
    "distribution": Fraction(1, 2),
}

_APART = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_WIDE = 16  # counts apart, beyond which thresholds are only on lines of many times as many counts
_SHARES = tuple(
    Fraction(hundredths, 100)
    for hundredths in (
        3,
        5,
        8,
        10,
        13,
        16,
        20,
        25,
        30,
        35,
        40,
        45,
        50,
        55,
        60,
        65,
        70,
        75,
        80,
        85,
        90,
        95,
        98,
    )
)
_LEAST = Fraction(16, 100)
"""The smallest share at an ε of a step below 1: without any threshold intervals of 95 % held for 58 % of a long table."""
_MOST = Fraction(80, 100)  # the largest share of thresholds that are apart, up to an emphasis of a half
_MOST_BEYOND = Fraction(95, 100)  # and beyond
_POINTS = 64  # steps for which errors are predicted, at most: longer lines are pooled, or cut
_FINE = Fraction(1, 2)  # the ε of a pooled step, at most
_BEND = 0.2  # the length over which a histogram bends, of the range of counts
_MEAN = 0.8  # mean of |x| for a normal x of standard deviation 1
_NOTHING = (1e-6, 1e-9)  # errors too small to matter, of an estimate and of the distribution
_DIGITS = 9  # of a loss: what differs by less is a tie, and the first design of the list has it
LEAST_SIZE, MOST_SIZE = 13, 54
"""Twice the binary logarithm of the smallest and the largest number of categories that are told apart."""


@dataclass(frozen=True)
class Design:
    """Thresholds ``apart`` from each other, each with ``share`` of the ε of a step, and both predicted errors.

    No threshold is measured if the share is 0. ``estimate`` is the root mean square error of an estimate and ``distance`` the Wasserstein-1
    distance of the distributions.
    """

    apart: int
    share: Fraction
    estimate: float
    distance: float


def checked_emphasis(value: Number | Emphasis) -> Fraction:
    """A number from 0 to 1, or one of the three names.

    >>> checked_emphasis("both"), checked_emphasis(0.25)
    (Fraction(1, 20), Fraction(1, 4))
    """
    if isinstance(value, str) and not any(letter.isdigit() for letter in value):
        return POINTS[one_of(value, "emphasis", get_args(Emphasis))]
    number = exact(value, "emphasis")
    if not 0 <= number <= 1:
        raise InputError(f"emphasis must be from 0 (counts) to 1 (distribution), not {value!r}.")
    return number


def places_apart(upper: int, apart: int) -> tuple[int, ...]:
    """Thresholds below ``upper`` that double their distance until it is ``apart``, and the one below the top count.

    Then distances differ by one in turn: with equal ones every gap of a table of even numbers would look alike.

    >>> places_apart(20, 4), len(places_apart(20, 1))
    ((0, 1, 2, 4, 7, 12, 16, 19), 20)
    """
    places = {upper - 1} if upper else set[int]()
    place, turn = 0, 0
    while place < upper:
        places.add(place)
        if place < apart:
            place += max(1, place)
        else:
            place += max(1, apart + (-1, 1, 0)[turn % 3]) if apart > 1 else 1
            turn += 1
    return tuple(sorted(places))


def chosen_design(emphasis: Fraction, size: int, upper: int, step: Fraction) -> tuple[Design, Fraction]:
    """The design for an emphasis, and the share of thresholds in gaps that turn out to be rough.

    That share is the one that all thresholds would have if there were no gaps. The number of categories enters rounded to half a power
    of two. All of it is a function of public numbers.

    >>> design, finer = chosen_design(Fraction(1, 10), 1000, 60, Fraction(1, 10))
    >>> design.apart, float(design.share), float(finer)
    (6, 0.75, 0.16)
    """
    half_powers = min(max(round(2 * log2(max(size, 1))), LEAST_SIZE), MOST_SIZE)
    listed = designs(half_powers, upper, step)
    most = _MOST if 2 * emphasis <= 1 else _MOST_BEYOND
    something = _LEAST if step < 1 else Fraction(0)
    allowed = [each for each in listed if something <= each.share and (each.apart == 1 or each.share <= most)]
    chosen = _least(allowed, allowed, emphasis)
    if chosen.apart == 1:
        return chosen, Fraction(0)
    everywhere = [each for each in listed if each.apart == 1 and each.share]
    return chosen, _least(everywhere, allowed, emphasis).share


def _least(designs: list[Design], allowed: list[Design], emphasis: Fraction) -> Design:
    """The design with the least loss, the first one of equal ones."""
    e = float(emphasis)
    best = [min(_log(each, which) for each in allowed) for which in (0, 1)]

    def loss(design: Design) -> float:
        estimate, distance = ((1 - e) * (_log(design, 0) - best[0]), e * (_log(design, 1) - best[1]))
        return round(max(estimate, distance) + 1e-3 * (estimate + distance), _DIGITS)

    return min(designs, key=loss)


def _log(design: Design, which: int) -> float:
    return float(np.log((design.estimate, design.distance)[which] + _NOTHING[which]))


@lru_cache(maxsize=256)
def designs(half_powers: int, upper: int, step: Fraction) -> tuple[Design, ...]:
    """All designs for ``2**(half_powers/2)`` categories with counts up to ``upper``, with their predicted errors.

    Up to 64 steps are predicted as they are. Longer lines are pooled while a pooled step has at most half of ε. What is longer
    still is cut: a bound that high is a generous one, and most counts are expected below it.
    """
    kinds = [(1, Fraction(0))]
    apart_at_most = max(1, min(upper // 2, max(_WIDE, upper // 8)))
    kinds += [(apart, share) for apart in _APART if apart <= apart_at_most for share in _SHARES]
    profiles = [(places_apart(upper, apart) if share else (), share) for apart, share in kinds]
    errors = predicted_errors(2 ** (half_powers / 2), upper, step, profiles)
    return tuple(Design(*kind, *both) for kind, both in zip(kinds, errors, strict=True))


def predicted_errors(
    size: float, upper: int, step: Fraction, profiles: list[tuple[tuple[int, ...], Fraction]]
) -> list[tuple[float, float]]:
    """The errors of an estimate and of the distribution for ``size`` categories, for each choice of places and their share."""
    pool = max(1, min(-(-upper // _POINTS), int(_FINE / step)))
    length = min(upper, _POINTS * pool)
    starts = np.arange(0, length, pool)
    rates, precisions = np.empty((2, len(profiles), len(starts)))
    for row, (places, share) in enumerate(profiles):
        shares = np.zeros(upper)
        shares[list(places)] = float(share)
        rates[row] = np.add.reduceat(float(step) * (1 - shares[:length]), starts)
        precisions[row] = np.add.reduceat(shares[:length] > 0, starts) * noise_precision(float(share * step))
    estimates, distances = _errors(size, rates, precisions)
    return list(zip((pool * estimates).tolist(), (pool * distances).tolist(), strict=True))


def _errors(size: float, rates: Floats, precisions: Floats) -> tuple[Floats, Floats]:
    """Both errors of a table of ``size`` categories spread evenly, for rows of rates of steps and precisions of thresholds.

    The first is the posterior deviation of a count, every count being as likely. The second is the mean distance of cumulative
    numbers, whose posterior covariance is that of three independent sources: the thresholds, the noisy counts, and a
    histogram that scatters about an even one by chance and by a bend.
    """
    rates = np.minimum(rates, SILENT)
    steps = rates.shape[1]
    n, counts = steps + 1, np.arange(steps + 1)
    edge = np.full((len(rates), 1), np.inf)
    left, right = np.hstack([edge, rates]), np.hstack([rates, edge])
    weights = -np.expm1(-left - right) / ((1 + np.exp(-left)) * (1 + np.exp(-right)))
    place = np.hstack([np.zeros_like(edge), np.cumsum(rates, axis=1)])
    channel = weights[:, None, :] * np.exp(-np.abs(place[:, :, None] - place[:, None, :]))
    seen = channel.sum(axis=1)
    means = np.einsum("i,dik->dk", counts, channel) / seen
    away = (counts[:, None] - means[:, None, :]) ** 2
    estimates = np.sqrt(np.einsum("dik,dik->d", away, channel) / n)
    slope = np.exp(-rates) / -np.expm1(-2 * rates)
    up, down = np.zeros_like(weights), np.zeros_like(weights)
    up[:, :-1], down[:, 1:] = slope / weights[:, :-1], slope / weights[:, 1:]
    seen *= size / n
    through = np.zeros((len(rates), steps, steps))
    at = np.arange(steps)
    through[:, at, at] = (up * (1 + up) * seen)[:, :-1] + (down * (1 + down) * seen)[:, 1:] + 1e-9
    through[:, at[1:], at[:-1]] = through[:, at[:-1], at[1:]] = -(up * down * seen)[:, 1:-1]
    precision = np.linalg.inv(through) + np.linalg.inv(_scatter(size, n))
    precision[:, at, at] += precisions
    variances = np.diagonal(np.linalg.inv(precision), axis1=1, axis2=2)
    return estimates, _MEAN * np.sqrt(np.maximum(variances, 0.0)).sum(axis=1) / size


def _scatter(size: float, n: int) -> NDArray[np.float64]:
    """The covariance of cumulative numbers of an even table that scatters by chance and by a bend, its total being known."""
    counts: Ints = np.arange(n)
    each = size / n
    bend = np.exp(-(((counts[:, None] - counts) / (_BEND * n)) ** 2) / 2)
    histogram = each * np.eye(n) + each**2 * bend
    total = histogram.sum(axis=1)
    histogram -= np.outer(total, total) / total.sum()
    below = np.tril(np.ones((n, n)))[:-1]
    return below @ histogram @ below.T + 1e-9 * size * np.eye(n - 1)
