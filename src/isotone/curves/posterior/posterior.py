"""The posterior of a rising curve, given two noisy sums for every bin.

Model: a bin holds a Poisson number of records, so the sums of ``y`` and of ``1 − y`` are independent Poisson counts, whose
rates are the bin's rate times its value and times the rest. Values are a rising hidden chain under nine priors, which are
averaged by their evidence. The numbers of records enter as messages and not as joint states: an approximation. No guarantee
of privacy depends on anything here (docs/theory/curves.md, section 8.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isotone.array_types import Floats
from isotone.curves.measure import pooled
from isotone.curves.posterior.hidden_chain import evidence_of_nothing, posterior_of, priors
from isotone.curves.posterior.noises import CountNoise
from isotone.curves.posterior.rates import rates_of
from isotone.curves.posterior.values import bin_values

__all__ = ["CurvePosterior", "curve_posterior"]

LEAST = 1e-130
"""No value of a bin counts less than this share of the best, so that all paths keep a weight above 0."""


@dataclass(frozen=True)
class CurvePosterior:
    """The posterior by bin: ``chances`` of the ``values``, and the expected sums of ``y`` and ``1 − y``."""

    values: Floats
    chances: Floats = field(repr=False)
    ones: Floats
    zeros: Floats
    weights: Floats
    """The posterior weights of the nine priors."""

    def of(self, output: str) -> Floats:
        """One of the two curves below, by its name."""
        return self.records if output == "records" else self.population

    @property
    def population(self) -> Floats:
        """The posterior mean of the curve that the records were drawn from."""
        return np.maximum.accumulate(np.clip(self.chances @ self.values, 0.0, 1.0))

    @property
    def records(self) -> Floats:
        """The pooled shares of the expected sums: near the fit to the records themselves."""
        total = self.ones + self.zeros
        share = self.ones / np.maximum(total, 1e-9)
        return np.clip(pooled(share, np.maximum(total, 1e-6)), 0.0, 1.0)


def curve_posterior(
    ones: Floats, zeros: Floats, noise: CountNoise, levels: int, spread: float = 1.0, keep: float = 1e-3
) -> CurvePosterior:
    """The posterior given noisy sums in records, and the law of their noise.

    ``levels`` is the number of values, denser near 0 and 1, where shares vary less. ``spread`` says how ``y`` varies about
    its mean ``v``, with the variance ``spread·v·(1 − v)``: 1 for labels.
    """
    noise = noise.over(spread)
    a, c = np.rint(ones / spread), np.rint(zeros / spread)
    values = np.sin(np.linspace(0.0, np.pi / 2, levels)) ** 2
    found = bin_values(a, c, rates_of(a + c, noise), values, noise, keep)
    best = found.log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.maximum(np.exp(found.log_likelihood - best), LEAST)
    weights: list[float] = []
    chances: list[Floats] = []
    for prior, nothing in zip(priors(a.size, levels), evidence_of_nothing(a.size, levels), strict=True):
        evidence, marginals = posterior_of(likelihood, prior)
        weights += (evidence - nothing).tolist()
        chances += list(marginals)
    share = np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    mixed = np.tensordot(share, np.array(chances), 1)
    return CurvePosterior(
        values,
        mixed,
        spread * (mixed * found.ones).sum(axis=1),
        spread * (mixed * found.zeros).sum(axis=1),
        share,
    )
