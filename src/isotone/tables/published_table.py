"""A published table, with what its noisy parts say about each true count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotone.privacy.checks import confidence_level
from isotone.privacy.guarantee import Guarantee
from isotone.tables.estimate.beliefs import Beliefs
from isotone.tables.estimate.sum_intervals import from_noise
from isotone.tables.measurement import Measurement

__all__ = ["PublishedTable", "Stratum"]

Method = Literal["table", "noise"]


@dataclass(frozen=True, eq=False)
class Stratum:
    """One public class of categories and what was measured of it.

    ``members`` are the positions of its categories. ``noisy_counts`` may be any whole numbers, and
    ``noisy_cumulative`` has an entry for each place of ``thresholds``. ``probabilities`` is the distribution of true
    counts believed in, from ``model``. ``method`` is ``table``, or ``noise`` where there are too few categories to make
    anything of their distribution.
    """

    members: NDArray[np.int64]
    noisy_counts: NDArray[np.int64]
    noisy_cumulative: NDArray[np.int64]
    thresholds: Measurement
    probabilities: NDArray[np.float64]
    model: str
    method: Method

    @property
    def clamped(self) -> NDArray[np.int64]:
        """The noisy counts within 0..upper."""
        return np.clip(self.noisy_counts, 0, self.thresholds.upper)

    @property
    def beliefs(self) -> Beliefs:
        """The posteriors of its true counts."""
        return self.thresholds.beliefs(self.probabilities, len(self.members))

    def estimates(self) -> NDArray[np.float64]:
        """The posterior mean of each count, or the clamped noisy count itself where there are too few categories."""
        if self.method == "noise":
            return self.clamped.astype(np.float64)
        return self.beliefs.means(self.thresholds.seen(self.noisy_counts))

    def intervals(self, level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ends of the interval of each count, from its posterior, or from its noise alone where there are too few categories."""
        if self.method == "noise":
            return from_noise(self.thresholds.unbiased(self.noisy_counts), self.thresholds, level)
        low, high = self.beliefs.intervals(self.thresholds.seen(self.noisy_counts), level)
        return low, high


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """The result of a two-stage release.

    Every part is private, so all of it may be published. ``values`` has one count for each category: integers whose
    distribution is right. Everything else is computed from what was measured of each stratum and from public numbers.
    """

    values: NDArray[np.int64]
    upper: int
    strata: tuple[Stratum, ...]
    guarantee: Guarantee

    @property
    def method(self) -> Method:
        """``noise`` if no stratum has enough categories to estimate a distribution, otherwise ``table``."""
        return "table" if any(stratum.method == "table" for stratum in self.strata) else "noise"

    @property
    def model(self) -> str:
        """Where the distributions come from, in words."""
        return "; ".join(stratum.model for stratum in self.strata)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution of the true counts of the whole table."""
        sizes = [len(stratum.members) for stratum in self.strata]
        weights = np.array(sizes) / sum(sizes) if sum(sizes) else np.full(len(sizes), 1 / len(sizes))
        return weights @ np.array([stratum.probabilities for stratum in self.strata])

    @property
    def noisy_counts(self) -> NDArray[np.int64]:
        """The noisy counts as they were drawn. They may be negative, or above ``upper``."""
        return self._gathered([stratum.noisy_counts for stratum in self.strata], np.int64)

    @property
    def noisy_cumulative(self) -> NDArray[np.int64]:
        """The noisy cumulative numbers, stratum after stratum."""
        return np.concatenate([stratum.noisy_cumulative for stratum in self.strata])

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """For each category the posterior mean of its count.

        It has the smallest expected squared error, but its distribution is too narrow.
        """
        return self._gathered([stratum.estimates() for stratum in self.strata], np.float64)

    @cached_property
    def noisy(self) -> NDArray[np.float64]:
        """For each category an unbiased estimate of its count, from its own noise alone, for adding up."""
        parts = [stratum.thresholds.unbiased(stratum.noisy_counts) for stratum in self.strata]
        return self._gathered(parts, np.float64)

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """The standard deviation of ``noisy``, its maximum over all true counts, which is a public number."""
        parts = [np.full(len(stratum.members), stratum.thresholds.deviation) for stratum in self.strata]
        return self._gathered(parts, np.float64)

    def interval(self, confidence: float = 0.95) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each category, bounds between which its top-coded true count lies with this probability.

        The probability is that of a count drawn from ``probabilities`` (doubted where categories are few) and seen as
        its noisy count: right on average over the categories, if the distribution believed in is. In a stratum of fewer than
        fifty categories it is that of the noise, and right for every count.
        """
        level = confidence_level(confidence)
        ends = [stratum.intervals(level) for stratum in self.strata]
        low, high = (self._gathered([each[side] for each in ends], np.int64) for side in (0, 1))
        return low, high

    def _gathered(self, parts: list[NDArray[Any]], kind: type[Any]) -> NDArray[Any]:
        """What each stratum says of its categories, in the order of the categories."""
        out = np.empty(len(self.values), kind)
        for stratum, part in zip(self.strata, parts, strict=True):
            out[stratum.members] = part
        return out
