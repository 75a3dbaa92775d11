"""The two-stage mechanism for tables.

A private distribution of counts, then private counts that have it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise import Simulated
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, exact, one_of, positive, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit
from isotone.tables.distribution.distribution import Distribution
from isotone.tables.distribution.percentile import choose_upper
from isotone.tables.distribution.privatize import measure_cumulative
from isotone.tables.estimate.remap import assign, thresholds
from isotone.tables.estimate.whole import Estimate, estimate_histogram
from isotone.tables.matrices.coupling import comonotone, draw_remap
from isotone.tables.matrices.fixed_point import truncated_geometric
from isotone.tables.matrices.geometric import push_through
from isotone.tables.published_table import PublishedTable
from isotone.tables.split import PUBLISHED, WHOLE_TABLE, checked_split
from isotone.tables.top_coding import Counts, top_coded

__all__ = ["Remapping", "Stages", "TwoStageMechanism"]

Remapping = Literal["auto", "rows", "table"]
_SHORT = 8  # fewer counts than that have little to smooth over: the first measurement matters more
_LARGEST = 1_000_000  # time and memory for the estimate grow with the largest count
_SCARCE = 4.0  # categories times ε below which the whole-table estimate has nothing to go by …
_LONG = 16  # … unless counts range so far that row by row, with a distribution of noise, is worse still


@dataclass(frozen=True)
class Stages:
    """How ε is spent on a table.

    On its upper bound, its distribution and its counts, and by which remap.
    """

    bound: Fraction
    distribution: Fraction
    counts: Fraction
    remap: Remapping


@dataclass(frozen=True, init=False)
class TwoStageMechanism:
    """A table of counts, one for each category, whose distribution of counts survives the noise.

    Two measurements are made: the cumulative histogram of the counts with geometric noise, and every count
    with geometric noise. All the rest is post-processing of the two.

    Guarantee: epsilon-DP for adding or removing one person who is counted at most ``contributions`` times, or
    for replacing one (``neighbours="replace"``): the two measurements compose, each category is a part of its
    own (docs/theory/tables-whole.md, section 1). The number and the order of the categories are public.
    Error: depends on the table; ``tables.plan`` tells it for a guessed shape, without data.
    Cost: O(N log N + n log n); a million categories and a thousand counts take seconds.

    Parameters
    ----------
    upper
        The largest count, public: larger ones are top-coded. It must not be chosen by looking at the data.
    split
        The share of epsilon that goes to the distribution. None takes the rule of thumb that goes with
        ``remap``: that of Kohli and Laskowski 2026 for ``rows``, one of its own for ``table``.
    remap
        ``rows``: each noisy count by itself through the optimal fixed-point matrix (Kohli and Laskowski's
        framework, with better parts). ``table``: the whole noisy table at once, by an estimate from both
        measurements. ``auto`` (default): ``table``, unless the numbers of categories and counts leave nothing
        to estimate from, or the estimate contradicts the first measurement; then ``rows``.
    price
        For ``table``: what one unit of distribution error is worth in count error; None is infinite.
    percentile
        If given, the bound for top-coding is itself private: about this percentile of the counts, at most
        ``upper``, for ``upper_share`` of epsilon.

    >>> m = TwoStageMechanism(upper=9, epsilon=1)
    >>> published = m.release([0, 0, 1, 3, 2, 0, 12, 5])
    >>> len(published), bool(published.max() <= 9), m.guarantee
    (8, True, Guarantee(ε = 1, add-remove one record))
    """

    upper: int
    epsilon: Fraction
    split: Fraction | None
    remap: Remapping
    price: Fraction | None
    percentile: Fraction | None
    upper_share: Fraction
    unit: Unit

    def __init__(
        self,
        upper: int,
        epsilon: Number,
        split: Number | None = None,
        remap: Remapping = "auto",
        *,
        price: Number | None = 3,
        percentile: Number | None = None,
        upper_share: Number = "0.05",
        contributions: int = 1,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        values = {
            "upper": whole_number(upper, "upper", least=0, most=_LARGEST),
            "epsilon": positive(epsilon, "epsilon"),
            "split": None if split is None else checked_split(split),
            "remap": one_of(remap, "remap", get_args(Remapping)),
            "price": None if price is None else positive(price, "price"),
            "percentile": None if percentile is None else _checked_percentile(percentile),
            "upper_share": checked_split(upper_share, "upper_share"),
            "unit": Unit(contributions, neighbours),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP, all stages together."""
        return self.unit.pure(self.epsilon)

    def stages(self, size: int) -> Stages:
        """How ε is spent on a table of ``size`` categories.

        It is a function of public numbers.

        >>> TwoStageMechanism(upper=9, epsilon=1, split="0.25").stages(100)
        Stages(bound=Fraction(0, 1), distribution=Fraction(1, 4), counts=Fraction(3, 4), remap='auto')
        """
        bound = self.epsilon * self.upper_share if self.percentile is not None else Fraction(0)
        rest = self.epsilon - bound
        step = self.unit.per_step(rest)
        remap = self.remap
        if remap == "auto" and (self.upper < 2 or (self.upper < _LONG and size * step < _SCARCE)):
            remap = "rows"
        rule = PUBLISHED if remap == "rows" or self.upper < _SHORT else WHOLE_TABLE
        share = rule(step) if self.split is None else self.split
        return Stages(bound, rest * share, rest - rest * share, remap)

    def error(self) -> Error:
        """The mean squared error of the noisy counts before post-processing, for each true count.

        What is published is nearer to the truth on average, by how much depends on the table: see
        ``tables.plan``. The stages are those of a large table.
        """
        stages = self.stages(10**9)
        noisy = truncated_geometric(self.upper + 1, self.unit.per_step(stages.counts))
        return Error(noisy.error().variance, method="exact, of the noisy counts before post-processing")

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """One private count for each category, from exact noise and cryptographic bits."""
        return self.release_in_full(counts).values

    def release_in_full(self, counts: Counts) -> PublishedTable:
        """Release a table with all its private parts.

        Intervals, distribution and noisy measurements.
        """
        return self.run(top_coded(counts, self.upper), require_exact(ExactDraws()))

    def simulate(self, counts: Counts, rng: np.random.Generator) -> Simulated:
        """Simulate the published counts of a seeded run.

        They are not private and serve experiments only.
        """
        table = top_coded(np.asarray(counts), self.upper)
        return Simulated.wrap(self.run(table, SeededDraws(rng)).values)

    def run(self, table: NDArray[np.int64], draws: Draws) -> PublishedTable:
        """Both stages on a top-coded table with the given draws.

        Private only if they are :class:`ExactDraws`; with all others the published values are marked as simulated.
        """
        stages, size, upper = self.stages(len(table)), len(table), self.upper
        if self.percentile is not None:
            upper = choose_upper(table, upper, self.percentile, self.unit.per_step(stages.bound), draws)
            table = np.minimum(table, upper)
        first = measure_cumulative(table, upper, stages.distribution, self.unit, draws)
        step = self.unit.per_step(stages.counts)
        added = np.clip(draws.geometrics(step, size), -upper, upper)
        measured = _Measured(first, np.clip(table + added, 0, upper), self.unit, stages)
        published = measured.published(stages.remap, self.price, draws, self.guarantee)
        if isinstance(draws, ExactDraws):
            return published
        return replace(published, values=Simulated.wrap(published.values))


@dataclass(frozen=True, eq=False)
class _Measured:
    """The two private measurements of a table.

    Everything made from them is post-processing.
    """

    first: Distribution
    noisy: NDArray[np.int64]
    unit: Unit
    stages: Stages

    @property
    def step(self) -> float:
        return float(self.unit.per_step(self.stages.counts))

    @property
    def cumulative(self) -> NDArray[np.int64]:
        assert self.first.noisy_cumulative is not None  # the cumulative privatiser always has it
        return self.first.noisy_cumulative.view(np.ndarray)

    def published(
        self, remap: Remapping, price: Fraction | None, draws: Draws, guarantee: Guarantee
    ) -> PublishedTable:
        believed: Estimate | None = None
        if remap != "rows" and len(self.noisy) > 0 and self.first.upper > 0:
            before = float(self.unit.per_step(self.stages.distribution))
            believed = estimate_histogram(self.cumulative, self.noisy, before, self.step)
            if remap == "auto" and believed.contradicts(self.cumulative, before):
                believed = None
        words = draws.words(len(self.noisy))
        if believed is None:
            probabilities, model = self.first.probabilities.view(np.ndarray), "isotonic"
            values = self._row_by_row(words)
        else:
            probabilities, model = believed.histogram / len(self.noisy), believed.model
            values = self._at_once(believed, price, words)
        return PublishedTable(
            values,
            self.first.upper,
            "rows" if believed is None else "table",
            model,
            probabilities,
            self.noisy,
            self.cumulative,
            self.step,
            guarantee,
        )

    def _row_by_row(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        z = self.first.probabilities.view(np.ndarray)
        m = comonotone(push_through(z, self.step), z)
        return draw_remap(self.noisy, words, m.starts, m.columns, m.ceilings)

    def _at_once(
        self, believed: Estimate, price: Fraction | None, words: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        observed = np.bincount(self.noisy, minlength=self.first.upper + 1)
        rate = np.inf if price is None else float(price)
        cuts = thresholds(observed, believed.histogram, believed.deviation, self.step, rate)
        return assign(self.noisy, cuts, words)


def _checked_percentile(percentile: Number) -> Fraction:
    value = exact(percentile, "percentile")
    if not 0 < value <= 100:
        raise InputError(f"percentile must be above 0 and at most 100, not {percentile!r}.")
    return value
