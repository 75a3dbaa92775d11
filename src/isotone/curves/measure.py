"""Noisy means of bins: the measurement behind ``bins`` and behind the values of ``additive``.

A record of level ``u`` adds ``u`` to one sum of its bin and ``top − u`` to another. Both are whole numbers and
together they are always ``top``, so noise of rate ``share·epsilon/top`` on each costs ``share`` of epsilon in all,
and no budget is split between a count and a sum (docs/theory/curves.md, section 8).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.curves.choices import Choices
from isotone.curves.curve import refuse_small_rate
from isotone.curves.grids import FINE
from isotone.curves.privacy import Setting
from isotone.curves.records import Records
from isotone.order.projection_chain import pool_adjacent_violators

__all__ = ["equal_bins", "noisy_means", "pooled"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def equal_bins(low: Ints, high: Ints, bins: int) -> Ints:
    """The first points of about ``bins`` bins, the same number in each of the parts ``low, …, high − 1``."""
    each = max(1, round(bins / low.size))
    starts = [
        a + np.arange(count) * (b - a) // count
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
        for count in [min(each, b - a)]
    ]
    return np.concatenate(starts).astype(np.int64)


def noisy_means(
    records: Records, starts: Ints, setting: Setting, share: Fraction, choices: Choices
) -> tuple[Floats, Floats]:
    """For every bin, a noisy mean between 0 and 1 and a noisy count of at least 1, both from two noisy sums."""
    rate = setting.rate(share, FINE)
    refuse_small_rate(rate, setting.epsilon)
    bins = np.searchsorted(starts, records.cells, side="right") - 1
    sums = np.zeros((2, starts.size), dtype=np.int64)
    np.add.at(sums[0], bins, records.weights * records.levels)
    np.add.at(sums[1], bins, records.weights * (FINE - records.levels))
    sums = choices.perturb(sums, rate)
    # from here on everything is made of noisy numbers: floats do no harm
    unit = float(FINE * setting.weight_steps)
    ones, zeros = sums[0] / unit, sums[1] / unit
    count = np.maximum(ones + zeros, 1.0)
    mean = np.where(ones + zeros > 1.0, ones / count, 0.5)
    return mean, count


def pooled(values: Floats, weights: Floats) -> Floats:
    """The nondecreasing values closest to the given ones in weighted squares."""
    return pool_adjacent_violators(np.ascontiguousarray(values), np.ascontiguousarray(weights))
