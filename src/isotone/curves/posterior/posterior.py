"""The posterior of a rising curve, given two noisy sums for every bin.

Model: a bin holds a Poisson number of records, so the sums of ``y`` and of ``1 − y`` are independent Poisson counts, whose
rates are the bin's rate times its value and times the rest. Values are a rising hidden chain under nine priors, or have straight
log odds. These are averaged by their evidence. The numbers of records enter as messages and not as joint states: an
approximation. No guarantee of privacy depends on anything here (docs/theory/curves.md, section 8.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from isotone.array_types import Floats
from isotone.curves.measure import NoisySums, pooled
from isotone.curves.posterior.bin_values import BinValues, bin_values
from isotone.curves.posterior.clashes import without_clashes
from isotone.curves.posterior.hidden_chain import evidence_of_nothing, posterior_of, priors, value_grid
from isotone.curves.posterior.rates import rates_of
from isotone.curves.posterior.straight_odds import posterior_of_straight_odds

__all__ = ["CurvePosterior", "curve_posterior", "values_of_bins"]

LEAST = 1e-130
"""No value of a bin counts less than this share of the best, so that all paths keep a weight above 0."""
STRAIGHT = 2.0
"""Curves with straight log odds count as much as so many of the nine priors."""


@dataclass(frozen=True)
class CurvePosterior:
    """The posterior by bin: ``chances`` of the ``values``, and the expected sums of ``y`` and ``1 − y`` and ``shares`` of ``y``."""

    values: Floats
    chances: Floats = field(repr=False)
    ones: Floats
    zeros: Floats
    shares: Floats
    weights: Floats
    """The posterior weights of the nine priors and of straight log odds."""

    def of(self, output: str) -> Floats:
        """One of the two curves below, by its name."""
        return self.records if output == "records" else self.population

    @property
    def population(self) -> Floats:
        """The posterior mean of the curve that the records were drawn from."""
        return np.maximum.accumulate(np.clip(self.chances @ self.values, 0.0, 1.0))

    @property
    def records(self) -> Floats:
        """The pooled shares: near the fit to the records themselves."""
        return np.clip(pooled(self.shares, np.maximum(self.ones + self.zeros, 1e-6)), 0.0, 1.0)


def values_of_bins(sums: NoisySums, values: Floats, spread: float = 1.0, keep: float = 1e-3) -> BinValues:
    """What the sums of every bin tell about its value. The values must lie evenly about 1/2."""
    noise = sums.noise.over(spread)
    a, c = (np.rint(each / spread) for each in sums.in_records)
    return bin_values(a, c, rates_of(a + c, noise), values, noise, keep)


def curve_posterior(sums: NoisySums, levels: int, spread: float = 1.0, keep: float = 1e-3) -> CurvePosterior:
    """The posterior given noisy sums.

    ``levels`` is the number of values. ``spread`` says how ``y`` varies about its mean ``v``, with the variance
    ``spread·v·(1 − v)``: 1 for labels.
    """
    values, bins = value_grid(levels), sums.starts.size
    found = values_of_bins(sums, values, spread, keep)
    log_likelihood = without_clashes(found.log_likelihood)
    best = log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.maximum(np.exp(log_likelihood - best), LEAST)
    straight, marginals = posterior_of_straight_odds(likelihood, (sums.middles + 0.5) / sums.points)
    weights, chances = [straight + math.log(STRAIGHT)], [marginals]
    for prior, nothing in zip(priors(bins, levels), evidence_of_nothing(bins, levels), strict=True):
        evidence, each = posterior_of(likelihood, prior)
        weights += (evidence - nothing).tolist()
        chances += list(each)
    share = np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    mixed = np.tensordot(share, np.array(chances), 1)
    # records that cannot be told from none through the noise count as if they had the curve's own value
    unseen = max(sums.noise.over(spread).blur, 1e-9)
    own = (found.ones + unseen * values) / (found.ones + found.zeros + unseen)
    ones, zeros = (spread * (mixed * each).sum(axis=1) for each in (found.ones, found.zeros))
    return CurvePosterior(values, mixed, ones, zeros, (mixed * own).sum(axis=1), share)
