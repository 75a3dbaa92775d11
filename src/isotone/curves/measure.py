"""Noisy sums and means of bins. The measurement behind every curve that is fitted by means.

A record of level ``u`` adds ``u`` to one sum of its bin and ``top − u`` to another. Both are whole numbers and
together they are always ``top``, so noise of rate ``share·epsilon/top`` on each costs ``share`` of epsilon in all,
and no budget is split between a count and a sum (docs/theory/curves.md, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.grids import FINE
from isotone.curves.posterior.noises import CountNoise, GaussianNoise, GeometricNoise
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting
from isotone.order.projection.chain import pool_adjacent_violators

__all__ = [
    "NoisySums",
    "equal_bins",
    "even_starts",
    "faint",
    "middles",
    "noisy_means",
    "noisy_sums",
    "pooled",
    "rescaled",
]


def even_starts(points: int, bins: int) -> Ints:
    """The first points of so many even bins."""
    return np.arange(bins, dtype=np.int64) * points // bins


def equal_bins(low: Ints, high: Ints, bins: int, by_width: float = 0.0) -> Ints:
    """The first points of about ``bins`` bins in the parts ``low, …, high − 1``.

    Every part has the same number of them; or the share ``by_width`` of the bins goes to parts by their widths.
    """
    share = (1.0 - by_width) / low.size + by_width * (high - low) / float((high - low).sum())
    counts = np.minimum(np.maximum(1, np.rint(bins * share)).astype(np.int64), high - low)
    starts = [
        a + np.arange(count) * (b - a) // count
        for a, b, count in zip(low.tolist(), high.tolist(), counts.tolist(), strict=True)
    ]
    return np.concatenate(starts).astype(np.int64)


@dataclass(frozen=True)
class NoisySums:
    """What was measured in bins that begin at ``starts``. For each a noisy sum of ``y`` and one of ``1 − y``.

    ``ones`` and ``zeros`` are whole numbers in ``unit``-ths of a record, with two-sided geometric noise of the given
    rate, or Gaussian noise of the given variance. They were released: everything made of them is post-processing.
    """

    starts: Ints
    ones: Ints
    zeros: Ints
    unit: int
    rate: Fraction | None
    points: int
    variance: Fraction | None = None

    @property
    def in_records(self) -> tuple[Floats, Floats]:
        """Both sums in records."""
        return self.ones / self.unit, self.zeros / self.unit

    @property
    def noise(self) -> CountNoise:
        """The law of the noise, in records."""
        if self.rate is not None:
            return GeometricNoise(float(self.rate * self.unit))
        assert self.variance is not None, "sums have one of both"
        return GaussianNoise(float(self.variance / self.unit**2))

    @property
    def middles(self) -> Floats:
        """The middles of bins, in points."""
        return (self.starts + np.r_[self.starts[1:], self.points] - 1) / 2.0

    def mirrored(self) -> NoisySums:
        """The same sums with the points in reverse order."""
        ends = np.r_[self.starts[1:], self.points]
        return replace(self, starts=self.points - ends[::-1], ones=self.ones[::-1], zeros=self.zeros[::-1])

    def upside_down(self) -> NoisySums:
        """The same sums with ``y`` running the other way."""
        return replace(self, ones=self.zeros, zeros=self.ones)


def noisy_sums(
    records: Records,
    starts: Ints,
    points: int,
    setting: CurveSetting,
    share: Fraction,
    draws: CurveDraws,
    top: int = FINE,
) -> NoisySums:
    """The noisy sums of ``y`` and ``1 − y`` in bins, for ``share`` of epsilon.

    ``y`` is counted in ``top`` levels: 1 for labels, which are 0 or 1, so that noise is in whole records.
    """
    levels = records.levels // (FINE // top)
    bins = records.bins(starts)
    sums = np.zeros((2, starts.size), dtype=np.int64)
    np.add.at(sums[0], bins, records.weights * levels)
    np.add.at(sums[1], bins, records.weights * (top - levels))
    sums, rate, variance = setting.perturbed(sums, share, top, draws)
    return NoisySums(starts, sums[0], sums[1], top * setting.weight_steps, rate, points, variance)


def noisy_means(
    records: Records, starts: Ints, setting: CurveSetting, share: Fraction, draws: CurveDraws
) -> tuple[Floats, Floats]:
    """For every bin, a noisy mean and a noisy count, both from two noisy sums.

    A count below half the scale of the noise tells nothing: there the count is that, and the mean 1/2.
    """
    # from here on everything is made of noisy numbers: floats do no harm
    ones, zeros = noisy_sums(records, starts, 0, setting, share, draws).in_records
    least = faint(setting, share)
    count = np.maximum(ones + zeros, least)
    mean = np.where(ones + zeros > least, ones / count, 0.5)
    return mean, count


def faint(setting: CurveSetting, share: Fraction) -> float:
    """Half the scale of the noise of a sum, in records. Smaller counts are not told from none."""
    return setting.factor / (2.0 * setting.weight_steps * float(share * setting.epsilon))


def pooled(values: Floats, weights: Floats) -> Floats:
    """The nondecreasing values closest to the given ones in weighted squares."""
    return pool_adjacent_violators(np.ascontiguousarray(values), np.ascontiguousarray(weights))


def rescaled(values: Floats, ends: tuple[Fraction, Fraction]) -> Floats:
    """Values as shares of the range between the lowest and the highest prediction, and inside it."""
    low, high = float(ends[0]), float(ends[1])
    return (np.clip(values, low, high) - low) / (high - low)


def middles(floor: Ints, width: int) -> Floats:
    """The middles of intervals of values. For the lowest and the highest interval the end of the range.

    Data often are at the ends.
    """
    middle = (floor + width / 2) / FINE
    middle[floor == 0] = 0.0
    middle[floor + width == FINE] = 1.0
    return middle
