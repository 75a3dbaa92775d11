"""What the two noisy sums of every bin tell about its value, with the unknown number of records summed out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.curves.posterior.noises import CountNoise
from isotone.curves.posterior.rates import Rates

__all__ = ["BinValues", "CountTable", "bin_values"]

STEP, RATIO, LEAST = 0.5, 0.3, 0.01
"""Means at which the law of a noisy count is computed are apart by this share of its standard deviation, or of the mean
if that is less; large ones by the last share of the mean, where a logarithm is nearly a parabola."""
FIRST = 1e-12
"""The lowest of them."""
CHUNK = 1 << 18
"""So many probabilities are computed at once."""


@dataclass(frozen=True)
class BinValues:
    """By bin and value, the log likelihood, and the expected sums of ``y`` and of ``1 − y`` given the value."""

    log_likelihood: Floats
    ones: Floats
    zeros: Floats


def bin_values(
    ones: Floats, zeros: Floats, rates: Rates, values: Floats, noise: CountNoise, keep: float
) -> BinValues:
    """The likelihood of every value in every bin, ``Σ_λ q(λ)·P(ones; λv)·P(zeros; λ(1−v))``.

    Rates with less than ``keep`` of the weight of the best are left out.
    """
    weight = rates.others * rates.own
    kept = weight >= keep * weight.max(axis=1, keepdims=True)
    table = CountTable(np.concatenate([ones, zeros]), np.outer(rates.grid, values), noise)
    log_others = np.log(rates.others + 1e-300)
    out = BinValues(*(np.empty((ones.size, values.size)) for _ in range(3)))
    for b in range(ones.size):
        places = np.flatnonzero(kept[b])
        log_a, mean_a = table.at(b, places)
        log_c, mean_c = table.at(ones.size + b, places)
        log_p = log_a + log_c[:, ::-1] + log_others[b, places, None]
        top = log_p.max(axis=0)
        p = np.exp(log_p - top)
        total = p.sum(axis=0)
        out.log_likelihood[b] = top + np.log(total)
        out.ones[b] = (p * mean_a).sum(axis=0) / total
        out.zeros[b] = (p * mean_c[:, ::-1]).sum(axis=0) / total
    return out


class CountTable:
    """Laws of noisy counts ``seen`` at any of the ``means`` (by rate and value).

    The law is computed at a few means. Between them its logarithm is the cubic that has the right values and slopes at
    both sides: ``d log P/dm = E[k | a]/m − 1``, and the expected count follows from the slope of the cubic.
    """

    def __init__(self, seen: Floats, means: Floats, noise: CountNoise) -> None:
        nodes = _nodes(float(means.max()), noise)
        distinct, self.rows = np.unique(seen, return_inverse=True)
        self.log_p, self.slope = _laws(distinct, nodes, noise)
        self.means = means
        self.low = np.clip(np.searchsorted(nodes, means, side="right") - 1, 0, nodes.size - 2)
        width = np.diff(nodes)[self.low]
        t = np.maximum(means - nodes[self.low], 0.0) / width
        rest = 1 - t
        self.share = t * t * (3 - 2 * t)
        self.bent = t * rest * rest * width, -t * t * rest * width
        self.turned = 6 * t * rest / width, rest * (1 - 3 * t), t * (3 * t - 2)

    def at(self, place: int, rates: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The log probability of one noisy count and the expected count given it, by rate and value."""
        row, low = self.rows[place], self.low[rates]
        before, after = self.log_p[row][low], self.log_p[row][low + 1]
        slopes = self.slope[row][low], self.slope[row][low + 1]
        rise = after - before
        log_p = before + rise * self.share[rates]
        slope = rise * self.turned[0][rates]
        for side in range(2):
            log_p += slopes[side] * self.bent[side][rates]
            slope += slopes[side] * self.turned[1 + side][rates]
        return log_p, np.maximum(self.means[rates] * (1 + slope), 0.0)


def _laws(seen: Floats, nodes: Floats, noise: CountNoise) -> tuple[Floats, Floats]:
    """Log probabilities and their slopes, by noisy count and mean."""
    found = np.empty((2, seen.size, nodes.size))
    size = max(1, CHUNK // nodes.size)
    for first in range(0, seen.size, size):
        part = slice(first, first + size)
        found[:, part] = noise.count(seen[part, None], nodes[None, :])
    # next to 0 the logarithm may be so steep that a cubic would swing: no slope is far beyond that of its neighbours' line
    steep = 3 * np.abs(np.diff(found[0], axis=1) / np.diff(nodes)) + 1.0
    steep = np.maximum(np.c_[steep[:, :1], steep], np.c_[steep, steep[:, -1:]])
    return found[0], np.clip(found[1] / nodes - 1, -steep, steep)


def _nodes(top: float, noise: CountNoise) -> Floats:
    """Means from 0 to ``top``."""
    found, small = [FIRST], max(1e-9, 0.1 * noise.blur)
    while found[-1] < top:
        here = found[-1]
        apart = max(STEP * math.sqrt(here + noise.variance), LEAST * here)
        found.append(here + min(apart, max(RATIO * here, small)))
    return np.array(found if len(found) > 1 else [FIRST, 2 * FIRST])
