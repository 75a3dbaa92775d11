"""Bands for a distribution: for the records exactly, by fresh draws of the noise, and for the population they came from.

Proofs: docs/theory/distribution.md, section 5. The bins are given; only the noise of their counts is in what is drawn. A band that
cannot be had, such as one for about no records, is from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats
from isotone.distribution.estimate import running_totals, variance_of
from isotone.distribution.mechanism import DistributionMechanism, MeasuredLine
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree
from isotone.noise.simulate import public_stream
from isotone.privacy.checks import confidence_level

DRAWS = 999
MOST_CONFIDENT = 0.99
"""So much confidence the draws can tell."""
_FIRST = 0.1
"""This part of what may go wrong is for the totals of all bins, which bound the shares."""
_LEAST_WEIGHT = 0.02
_ROOM = 1 << 23
"""So many numbers are drawn at once."""


@dataclass(frozen=True, eq=False)
class ShareBand:
    """What the share below the edge of each bin is between, for all edges at once, with a bound for the number of records."""

    low: Floats
    high: Floats
    records: float

    @classmethod
    def unknown(cls, bins: int) -> ShareBand:
        """Nothing is known but both ends."""
        low, high = np.zeros(bins + 1), np.ones(bins + 1)
        high[0], low[-1] = 0.0, 1.0
        return cls(low, high, 0.0)


@dataclass(frozen=True, eq=False)
class TotalsLaw:
    """Noisy running totals over bins, one row for each status, and fresh draws of their noise."""

    totals: Floats
    parts: Callable[[], Iterable[Floats]]
    """The draws, by draw, status and bin, in parts that fit into memory. They are the same each time."""
    scale: Floats
    """About the standard deviation of each total. It weighs them, and no claim depends on it."""
    back: Floats
    """The same for totals from the last bin."""

    @classmethod
    def of(cls, mechanism: DistributionMechanism, line: MeasuredLine, draws: int = DRAWS) -> TotalsLaw:
        """The law of one line, drawn from the seed that was released with it."""
        rule, bins = mechanism.rule(line.number), line.bins
        tree, noise = mechanism.tree(bins), mechanism.counts_noise(rule, bins)
        sd = math.sqrt(variance_of(noise))
        scale, back = _scales(tree, bins)
        totals = running_totals(np.asarray(line.counts), bins, tree)
        size = max(1, _ROOM // line.counts.size)

        def parts() -> Iterator[Floats]:
            stream = public_stream(f"isotone distribution {line.seed} band")
            for done in range(0, draws, size):
                shape = (min(size, draws - done), *line.counts.shape)
                yield running_totals(np.asarray(noise.floats(stream, shape), np.float64), bins, tree)

        kept = list(parts()) if draws <= size else []
        return cls(totals, (lambda: kept) if kept else parts, sd * scale, sd * back)

    def upper(self, statistic: Callable[[Floats], Floats], outside: float) -> float:
        """What the statistic of the true noise is above with a probability of ``outside`` at most.

        The true noise and the draws are exchangeable, so its rank among them is uniform, whatever its law is.
        """
        result = np.concatenate([statistic(part) for part in self.parts()])
        place = math.ceil((1 - outside) * (result.size + 1))
        return float(np.partition(result, place - 1)[place - 1])


def _scales(tree: SumTree | None, bins: int) -> tuple[Floats, Floats]:
    """The standard deviation of each running total, and of each total from there on, where nodes have noise of 1."""
    if tree is None:
        return np.sqrt(np.arange(1.0, bins + 1)), np.sqrt(np.arange(bins - 1.0, -1, -1))
    scale = np.sqrt(tree.variances)
    return scale, np.concatenate([scale[-2::-1], [0.0]])


def checked(confidence: float, what: str = "A band", parts: int = 1) -> float:
    """What may go wrong, refused if the draws cannot tell it, or an even part of it."""
    level, most = confidence_level(confidence), round(1 - parts * (1 - MOST_CONFIDENT), 9)
    if level > most:
        raise InputError(
            f"{what} has a confidence of {most:g} at most, not {level:g}: it is from {DRAWS} draws of noise."
        )
    return 1 - level


def band_for_records(mechanism: DistributionMechanism, line: MeasuredLine, confidence: float) -> ShareBand:
    """A band for the shares of these records, whatever they are and however many."""
    outside = checked(confidence)
    if line.bins < 2:
        return ShareBand.unknown(line.bins)
    law = TotalsLaw.of(mechanism, line)
    return shares_band(law, outside)


def band_for_population(mechanism: DistributionMechanism, line: MeasuredLine, confidence: float) -> ShareBand:
    """A band for the distribution that the records were drawn from, independently of each other.

    Half of what may go wrong is for the noise, and half for the sample (Dvoretzky, Kiefer and Wolfowitz; Massart 1990).
    """
    if mechanism.contributions > 1:
        raise InputError(
            "There is no band for the population where a unit has several records: they are no independent draws from it. "
            "Ask for that of the records."
        )
    outside = checked(confidence, "A band for the population", 2)
    band = band_for_records(mechanism, line, 1 - outside / 2)
    if band.records < 1:
        return ShareBand.unknown(line.bins)
    away = math.sqrt(math.log(4 / outside) / (2 * band.records))
    low, high = np.maximum(band.low - away, 0.0), np.minimum(band.high + away, 1.0)
    low[-1], high[0] = 1.0, 0.0
    return ShareBand(low, high, band.records)


def shares_band(law: TotalsLaw, outside: float) -> ShareBand:
    """Bounds of the shares ``C_j/N`` from noisy totals of which the last is that of all records.

    First all totals are bounded, and with them the shares. Then, for every share that is left, how far the noise of a total
    is from the same share of the noise of the whole; and the shares that the noisy totals allow.
    """
    totals = law.totals.sum(axis=0)
    bins = totals.size
    known = totals_bounds(law, totals, _FIRST * outside)
    if known is None or known[0][-1] < 1:
        return ShareBand.unknown(bins)
    least, most = known
    low, high = np.minimum(least / most[-1], 1.0)[:-1], np.minimum(most / least[-1], 1.0)[:-1]
    # the squared weight of a share f is a − 2bf + cf², about the variance of Z_j − f Z_N
    front, back = law.scale[:-1] ** 2, law.back[:-1] ** 2
    floor = _LEAST_WEIGHT * float(np.mean(front))
    weight = front + floor, front, front + back
    reach = law.upper(lambda part: _farthest(part.sum(axis=1), weight, low, high), (1 - _FIRST) * outside)
    allowed = _allowed(totals, reach * (1 + 1e-9) + 1e-9, weight, low, high)
    if allowed is None:
        return ShareBand.unknown(bins)
    low, high = (np.concatenate([[0.0], part, [1.0]]) for part in allowed)
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    if np.any(low > high):
        return ShareBand.unknown(bins)
    return ShareBand(low, high, float(least[-1]))


def totals_bounds(law: TotalsLaw, totals: Floats, outside: float) -> tuple[Floats, Floats] | None:
    """Whole numbers that all totals, which do not fall, are between at once. None where the bounds cross."""
    reach = law.upper(lambda part: np.max(np.abs(part.sum(axis=1)) / law.scale, axis=1), outside)
    return risen_bounds(totals, reach * law.scale)


def risen_bounds(totals: Floats, away: Floats) -> tuple[Floats, Floats] | None:
    """Whole numbers that totals which do not fall are between, if noisy ones are so far away. None where the bounds cross."""
    away = away * (1 + 1e-9) + 1e-9
    low = np.maximum.accumulate(np.maximum(np.ceil(totals - away), 0.0))
    high = np.minimum.accumulate(np.floor(totals + away)[::-1])[::-1]
    return None if np.any(low > high) else (low, high)


Weight = tuple[Floats, Floats, Floats]


def _farthest(noise: Floats, weight: Weight, low: Floats, high: Floats) -> Floats:
    """By draw, the largest of ``|Z_j − f Z_N| / weight(f)`` over bins and shares ``f`` in their bounds.

    The square is a quotient of two parabolas, with one stationary point that is not a zero: it and both ends are tried.
    """
    first, whole = noise[:, :-1], noise[:, -1:]
    a, b, c = weight
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = (whole * a - first * b) / (whole * b - first * c)
    turn = np.where(np.isfinite(turn), turn, low)
    most = np.zeros(len(noise))
    for share in (low, high, np.clip(turn, low, high)):
        apart = np.abs(first - share * whole) / np.sqrt(a - 2 * b * share + c * share**2)
        most = np.maximum(most, apart.max(axis=1))
    return most


def _allowed(
    totals: Floats, reach: float, weight: Weight, low: Floats, high: Floats
) -> tuple[Floats, Floats] | None:
    """The shares in their bounds with ``|Ĉ_j − f N̂| ≤ reach·weight(f)``, or None where there are none."""
    a, b, c = weight
    first, whole = totals[:-1], totals[-1]
    square = whole**2 - reach**2 * c
    half = first * whole - reach**2 * b
    rest = first**2 - reach**2 * a
    root = half**2 - square * rest
    closed = square > 0  # otherwise the shares are not an interval, and all stay
    if np.any(closed & (root < 0)):
        return None
    middle = half / np.where(closed, square, 1.0)
    away = np.sqrt(np.maximum(root, 0.0)) / np.where(closed, square, 1.0) + 1e-12
    least = np.where(closed, np.maximum(low, middle - away), low)
    most = np.where(closed, np.minimum(high, middle + away), high)
    return None if np.any(least > most) else (least, most)
