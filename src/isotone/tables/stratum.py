"""Tables that are measured stratum by stratum, where a stratum is a public class of categories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee
from isotone.tables.estimate.remap import assign, cuts_of
from isotone.tables.measurement import Measurement
from isotone.tables.published_table import PublishedTable, Stratum
from isotone.tables.thresholds import SMALL
from isotone.tables.top_coding import Counts, top_coded

__all__ = ["StratifiedMechanism", "published_stratum"]


class StratifiedMechanism(ABC):
    """A mechanism that measures a table, or each stratum of it, and publishes what the measurements tell."""

    upper: int
    guarantee: Guarantee

    def release(self, counts: Counts) -> Ints:
        """One private count for each category, from exact noise and cryptographic bits."""
        return self.release_in_full(counts).values

    def release_in_full(self, counts: Counts, strata: Sequence[Ints] | None = None) -> PublishedTable:
        """Release a table with all its private parts.

        Estimates, intervals, distribution and noisy measurements. ``strata`` are the positions of the categories of each
        public class, and each is measured with the whole budget.
        """
        return self.run(top_coded(counts, self.upper), require_exact(ExactDraws()), strata)

    def simulate(self, counts: Counts, rng: np.random.Generator) -> Simulated:
        """Simulate the published counts of a seeded run. They are not private and serve experiments only."""
        return Simulated.wrap(self.simulate_in_full(counts, rng).values)

    def simulate_in_full(
        self, counts: Counts, rng: np.random.Generator, strata: Sequence[Ints] | None = None
    ) -> PublishedTable:
        """Simulate a release with all its parts, for experiments only."""
        return self.run(top_coded(np.asarray(counts), self.upper), SeededDraws(rng), strata)

    def run(self, table: Ints, draws: Draws, strata: Sequence[Ints] | None = None) -> PublishedTable:
        """Both measurements of a top-coded table with the given draws, and what is made of them.

        Private only if they are :class:`ExactDraws`; with all others the published values are marked as simulated.
        """
        parts = [np.arange(len(table))] if strata is None else _checked_strata(strata, len(table))
        upper = self.bound(table, draws)
        table = np.minimum(table, upper)
        values: NDArray[Any] = np.empty(len(table), np.int64)
        found: list[Stratum] = []
        for members in parts:
            made = self.measurement(len(members), upper)
            values[members], stratum = published_stratum(members, table[members], made, draws)
            found.append(stratum)
        if not isinstance(draws, ExactDraws):
            values = Simulated.wrap(values)
        return PublishedTable(values, upper, tuple(found), self.guarantee)

    def bound(self, table: Ints, draws: Draws) -> int:
        """The largest count that is published, a public number unless a mechanism spends a part of its budget on it."""
        return self.upper

    @abstractmethod
    def measurement(self, size: int, upper: int | None = None) -> Measurement:
        """The two measurements of a table, or a stratum, of ``size`` categories."""


def published_stratum(
    members: Ints, table: Ints, measurement: Measurement, draws: Draws
) -> tuple[Ints, Stratum]:
    """The published counts of a stratum, and all that was measured of it.

    Only the measurement reads the table; all the rest is post-processing.
    """
    measurement, cumulative, noisy = measurement.measure(table, draws)
    upper, size = measurement.upper, len(members)
    words = draws.words(size)
    if size < SMALL or upper == 0:
        even = np.full(upper + 1, 1 / (upper + 1))
        values = np.clip(noisy, 0, upper)
        return values, Stratum(members, noisy, cumulative, measurement, even, "none", "noise")
    histogram, model = measurement.histogram(cumulative, noisy)
    ranks = np.unique(measurement.seen(noisy), return_inverse=True)[1]
    values = assign(ranks.astype(np.int64), cuts_of(histogram, size), words)
    return values, Stratum(members, noisy, cumulative, measurement, histogram / size, model, "table")


def _checked_strata(strata: Sequence[Ints], size: int) -> list[Ints]:
    """The strata, refused unless each category is in exactly one."""
    parts = [np.asarray(part, np.int64).reshape(-1) for part in strata]
    joined = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
    if not np.array_equal(joined, np.arange(size)):
        raise InputError("strata must hold each of the categories exactly once.")
    return parts
