"""At which thresholds the cumulative histogram is measured, and with which share of ε.

The number of categories of at most ``t`` is changed by one step only, that from ``t`` to ``t + 1``. So measuring it costs a
share of ε on that step alone, and the noise on the counts keeps all of ε on every other step. A measurement carries
information in proportion to the square of its ε, so few thresholds with more each tell more than all of them with little
(docs/theory/tables-whole.md, sections 1 and 6). Everything here is a function of public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.noise import UnevenLine
from isotone.privacy.draws import Draws
from isotone.tables.estimate.beliefs import GeometricBeliefs
from isotone.tables.estimate.unbiased import error_law, largest_deviation, unbiased
from isotone.tables.estimate.views import noise_precision
from isotone.tables.estimate.whole import estimate_histogram
from isotone.tables.matrices.geometric import geometric_matrix

__all__ = ["DENSE", "SMALL", "Preset", "Thresholds", "default_preset", "share_of", "thresholds_for"]

Preset = Literal["counts", "both", "distribution"]

SMALL = 50
"""Categories below which nothing is spent on the distribution, and nothing is made of it."""

_SHARES: dict[Preset, tuple[Fraction, Fraction]] = {
    "counts": (Fraction(15, 1000), Fraction(15, 100)),
    "both": (Fraction(4, 100), Fraction(50, 100)),
    "distribution": (Fraction(95, 1000), Fraction(80, 100)),
}
"""The share of ε that each threshold would have if all were measured, and the most that one may have."""

_SCATTER = 4
"""How the scatter of real tables between thresholds compares with the noise of a threshold: see :func:`_apart`."""

DENSE = 8
"""Categories for each pair of counts from which on thresholds are measured at an ε of 1 or more, unless told otherwise."""


@dataclass(frozen=True)
class Thresholds:
    """The two measurements of a table with counts up to ``upper``, for ``step`` of ε on every step.

    ``places`` are the thresholds that are measured, each with ``share`` of ``step``.
    """

    upper: int
    step: Fraction
    places: tuple[int, ...]
    share: Fraction

    @property
    def rate(self) -> Fraction:
        """The ε of a measured threshold."""
        return self.share * self.step

    @cached_property
    def line(self) -> UnevenLine:
        """The line on which counts get their noise. Its steps have what the thresholds leave of ε."""
        full, less = self.share.denominator, self.share.denominator - self.share.numerator
        weights = [full] * self.upper
        for place in self.places:
            weights[place] = less
        return UnevenLine(self.step / full, tuple(weights), full)

    def measure(self, table: Ints, draws: Draws) -> tuple[Ints, Ints]:
        """Both private measurements, cumulative numbers at the thresholds, and counts. Nothing else reads the table."""
        places = list(self.places)
        cumulative = np.cumsum(np.bincount(table, minlength=self.upper + 1))[places]
        if places:
            cumulative = cumulative + draws.geometrics(self.rate, len(places))
        return cumulative.astype(np.int64), draws.uneven(table, self.line)

    def histogram(self, cumulative: Ints, noisy: Ints) -> tuple[NDArray[np.float64], str]:
        """The histogram that both measurements tell, and the model it comes from. Post-processing."""
        direct = np.zeros(self.upper, np.int64)
        direct[list(self.places)] = cumulative
        return estimate_histogram(direct, self.seen(noisy), self.precision(), self.line.rates)

    def seen(self, noisy: Ints) -> Ints:
        """What a posterior is computed from, the noisy counts within 0..upper. Geometric noise beyond says nothing more."""
        return np.clip(noisy, 0, self.upper)

    def beliefs(self, probabilities: NDArray[np.float64], size: int) -> GeometricBeliefs:
        """The posteriors of the true counts."""
        return GeometricBeliefs(probabilities, size, self.line.rates)

    def channel(self) -> NDArray[np.float64]:
        """The probability of every clamped noisy count, given every true count."""
        return geometric_matrix(self.upper + 1, self.line.rates)

    def readings(self, unbiased: float) -> list[int]:
        """See :class:`~isotone.tables.measurement.Measurement`."""
        known: list[int] = np.flatnonzero(
            np.abs(self._inside - unbiased) <= 1e-4 + 1e-9 * abs(unbiased)
        ).tolist()
        if unbiased == int(unbiased) and not 0 <= unbiased <= self.upper:
            known.append(0 if unbiased < 0 else self.upper)
        return known

    @cached_property
    def _inside(self) -> NDArray[np.float64]:
        return self.unbiased(np.arange(self.upper + 1))

    def unbiased(self, noisy: Ints) -> NDArray[np.float64]:
        """For each noisy count an estimate whose mean is the true count."""
        return unbiased(noisy, self.line)

    def errors(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far :meth:`unbiased` is from a true count, and with which probabilities."""
        return error_law(self.line, count)

    @property
    def deviation(self) -> float:
        """The largest standard deviation of :meth:`unbiased` over all true counts."""
        return largest_deviation(self.line)

    def precision(self) -> NDArray[np.float64]:
        """One over the variance of each noisy cumulative number, and 0 where none was measured."""
        precision = np.zeros(self.upper)
        precision[list(self.places)] = noise_precision(float(self.rate)) if self.share else 0.0
        return precision


def share_of(preset: Preset | None, loud: bool) -> Fraction:
    """The share of ρ for the distribution, for which all thresholds are measured. None takes the usual preset."""
    hundredths = {"counts": 3, "both": 8, "distribution": 12}
    return Fraction(hundredths[preset or ("distribution" if loud else "counts")], 100)


def default_preset(step: Fraction, upper: int, size: int) -> Preset:
    """What keeps both errors small, by public numbers (docs/theory/tables-whole.md, section 6).

    >>> default_preset(Fraction(1), 50, 3000), default_preset(Fraction(1), 50, 30_000)
    ('counts', 'distribution')
    """
    return "distribution" if step < 1 or size >= DENSE * (upper + 1) ** 2 else "counts"


def thresholds_for(preset: Preset, upper: int, step: Fraction, size: int) -> Thresholds:
    """The thresholds of a preset for ``size`` categories with counts up to ``upper``.

    >>> thresholds_for("counts", 50, Fraction(1, 10), 3000)
    Thresholds(upper=50, step=Fraction(1, 10), places=(0, 1, 2, 4, 8, 16, 24, 32, 40, 48), share=Fraction(3, 20))
    """
    each, most = _SHARES[preset]
    each *= (1 + _loud(step) / 4) / max(Fraction(1), step)
    if size < SMALL or (preset == "counts" and step >= 1):
        return Thresholds(upper, step, (), Fraction(0))
    apart = _apart(upper + 1, size, each * step, int(most / each))
    share = Fraction(round(100 * each * apart), 100)
    return Thresholds(upper, step, _places(upper, apart) if share else (), share)


def _loud(step: Fraction) -> Fraction:
    """From 1 at an ε of 0.1 to 0 at 0.3. Where noise is strong, estimates lose little if thresholds have a quarter more."""
    return min(Fraction(1), max(Fraction(0), (3 - 10 * step) / 2))


def _apart(counts: int, size: int, rate: Fraction, most: int) -> int:
    """How far apart thresholds are best, at most ``most``.

    Thresholds ``g`` apart, for what all of them would cost with ``rate`` each, have noise of the variance ``2/(g·rate)²``. What lies
    between two of them is interpolated, and there real tables scatter with a variance in proportion to ``g·size/counts``. Both are
    alike where ``g³ = _SCATTER·counts/(size·rate²)``.

    >>> _apart(51, 3000, Fraction(1, 100), 10), _apart(51, 100_000, Fraction(1, 100), 10)
    (9, 3)
    """
    apart = 1
    while apart < most and (apart + Fraction(1, 2)) ** 3 * size * rate**2 <= _SCATTER * counts:
        apart += 1
    return apart


def _places(upper: int, apart: int) -> tuple[int, ...]:
    """Thresholds below ``upper`` that double their distance until it is ``apart``."""
    places: list[int] = []
    place = 0
    while place < upper:
        places.append(place)
        place += max(1, min(place, apart))
    return tuple(places)
