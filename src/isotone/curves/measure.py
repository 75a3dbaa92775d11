"""Noisy means of bins: the measurement behind ``bins`` and behind the values of ``additive``.

A record of level ``u`` adds ``u`` to one sum of its bin and ``top − u`` to another. Both are whole numbers and
together they are always ``top``, so noise of rate ``share·epsilon/top`` on each costs ``share`` of epsilon in all,
and no budget is split between a count and a sum (docs/theory/curves.md, section 8).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.grids import FINE
from isotone.curves.records import Records
from isotone.curves.setting import CurveSetting
from isotone.order.projection.chain import pool_adjacent_violators

__all__ = ["equal_bins", "faint", "middles", "noisy_means", "pooled", "rescaled"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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


def noisy_means(
    records: Records, starts: Ints, setting: CurveSetting, share: Fraction, draws: CurveDraws
) -> tuple[Floats, Floats]:
    """For every bin, a noisy mean and a noisy count, both from two noisy sums.

    A count below half the scale of the noise tells nothing: there the count is that, and the mean 1/2.
    """
    rate = setting.noise_rate(share, FINE)
    bins = records.bins(starts)
    sums = np.zeros((2, starts.size), dtype=np.int64)
    np.add.at(sums[0], bins, records.weights * records.levels)
    np.add.at(sums[1], bins, records.weights * (FINE - records.levels))
    sums = draws.perturb(sums, rate)
    # from here on everything is made of noisy numbers: floats do no harm
    unit = float(FINE * setting.weight_steps)
    ones, zeros = sums[0] / unit, sums[1] / unit
    least = faint(setting, share)
    count = np.maximum(ones + zeros, least)
    mean = np.where(ones + zeros > least, ones / count, 0.5)
    return mean, count


def faint(setting: CurveSetting, share: Fraction) -> float:
    """Half the scale of the noise of a sum, in records: smaller counts are not told from none."""
    return setting.factor / (2.0 * setting.weight_steps * float(share * setting.epsilon))


def pooled(values: Floats, weights: Floats) -> Floats:
    """The nondecreasing values closest to the given ones in weighted squares."""
    return pool_adjacent_violators(np.ascontiguousarray(values), np.ascontiguousarray(weights))


def rescaled(values: Floats, ends: tuple[Fraction, Fraction]) -> Floats:
    """Values as shares of the range between the lowest and the highest prediction, and inside it."""
    low, high = float(ends[0]), float(ends[1])
    return (np.clip(values, low, high) - low) / (high - low)


def middles(floor: Ints, width: int) -> Floats:
    """The middles of intervals of values; for the lowest and the highest interval the end of the range.

    Data often are at the ends.
    """
    middle = (floor + width / 2) / FINE
    middle[floor == 0] = 0.0
    middle[floor + width == FINE] = 1.0
    return middle
