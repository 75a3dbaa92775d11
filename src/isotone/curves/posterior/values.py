"""What the two noisy sums of every bin tell about its value, with the unknown number of records summed out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.curves.posterior.noises import CountNoise
from isotone.curves.posterior.rates import Rates

__all__ = ["BinValues", "bin_values"]

Floats = NDArray[np.float64]

CHUNK = 1 << 18
"""So many probabilities are held at once."""


@dataclass(frozen=True)
class BinValues:
    """By bin and value: the log likelihood, and the expected sums of ``y`` and of ``1 − y`` given the value."""

    log_likelihood: Floats
    ones: Floats
    zeros: Floats


def bin_values(
    ones: Floats, zeros: Floats, rates: Rates, values: Floats, noise: CountNoise, keep: float
) -> BinValues:
    """The likelihood of every value in every bin: ``Σ_λ q(λ)·P(ones; λv)·P(zeros; λ(1−v))``.

    Rates with less than ``keep`` of the weight of the best are left out. Both sums of all bins look up one table, in
    which a noisy count and a rate occur once.
    """
    weight = rates.others * rates.own
    bins, places = np.nonzero(weight >= keep * weight.max(axis=1, keepdims=True))
    seen = np.concatenate([ones[bins], zeros[bins]])
    wanted, rows = np.unique(np.stack([seen, np.tile(places, 2)]), axis=1, return_inverse=True)
    table = _table(wanted[0], rates.grid[wanted[1].astype(np.int64)], values, noise)
    up, down = rows.reshape(2, -1)
    starts = np.searchsorted(bins, np.arange(ones.size + 1))
    out = BinValues(*(np.empty((ones.size, values.size)) for _ in range(3)))
    for b in range(ones.size):
        part = slice(starts[b], starts[b + 1])
        (log_a, mean_a), (log_c, mean_c) = table[:, up[part]], table[:, down[part], ::-1]
        log_p = log_a + log_c + np.log(rates.others[b, places[part]] + 1e-300)[:, None]
        top = log_p.max(axis=0)
        p = np.exp(log_p - top)
        total = p.sum(axis=0)
        out.log_likelihood[b] = top + np.log(total)
        out.ones[b] = (p * mean_a).sum(axis=0) / total
        out.zeros[b] = (p * mean_c).sum(axis=0) / total
    return out


def _table(seen: Floats, lam: Floats, values: Floats, noise: CountNoise) -> Floats:
    """Log probabilities and expected counts, by noisy count (with its rate of records) and value."""
    table = np.empty((2, seen.size, values.size))
    size = max(1, CHUNK // values.size)
    for first in range(0, seen.size, size):
        part = slice(first, first + size)
        table[:, part] = noise.count(seen[part, None], lam[part, None] * values)
    return table
