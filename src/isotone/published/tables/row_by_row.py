"""Two-stage releases as published, for the record.

A private distribution of counts, then each count by itself through the matrix that keeps it. Releases use
:class:`~isotone.tables.TwoStageMechanism`, whose errors are smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.noise import Simulated
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, positive, share, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit
from isotone.published.tables.split import PUBLISHED, WHOLE_TABLE
from isotone.tables.distribution.distribution import Distribution
from isotone.tables.distribution.privatize import measure_cumulative
from isotone.tables.estimate.remap import assign, cuts_of
from isotone.tables.estimate.views import Views, noise_precision
from isotone.tables.estimate.whole import estimate_histogram
from isotone.tables.matrices.coupling import comonotone, draw_remap
from isotone.tables.matrices.geometric import push_through
from isotone.tables.top_coding import Counts, top_coded

__all__ = ["RowByRowMechanism", "even_split_table"]


@dataclass(frozen=True, init=False)
class RowByRowMechanism:
    """A table whose noisy counts go one by one through the optimal matrix of a private distribution.

    The framework of Kohli and Laskowski (2026) with the cumulative privatiser and the closed form of the matrix.

    Guarantee: epsilon-DP for adding or removing one person, or replacing one: the stages compose, each divides its part
    of epsilon by the steps of a person (docs/theory/tables-whole.md, section 8).

    >>> RowByRowMechanism(upper=9, epsilon=1).release([0, 0, 1, 3]).shape
    (4,)
    """

    upper: int
    epsilon: Fraction
    split: Fraction | None
    unit: Unit

    def __init__(
        self,
        upper: int,
        epsilon: Number,
        split: Number | None = None,
        *,
        contributions: int = 1,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        object.__setattr__(self, "upper", whole_number(upper, "upper", least=0))
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "split", None if split is None else share(split, "split"))
        object.__setattr__(self, "unit", Unit(contributions, neighbours))

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP, both stages together."""
        return self.unit.pure(self.epsilon)

    def stages(self) -> tuple[Fraction, Fraction]:
        """The parts of ε for the distribution and for the counts.

        >>> RowByRowMechanism(upper=9, epsilon=1, split="0.25").stages()
        (Fraction(1, 4), Fraction(3, 4))
        """
        part = PUBLISHED(self.unit.per_step(self.epsilon)) if self.split is None else self.split
        return self.epsilon * part, self.epsilon - self.epsilon * part

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """One private count for each category, from exact noise and cryptographic bits."""
        return self._run(top_coded(counts, self.upper), require_exact(ExactDraws()))

    def simulate(self, counts: Counts, rng: np.random.Generator) -> Simulated:
        """Simulate the published counts of a seeded run, for experiments only."""
        return Simulated.wrap(self._run(top_coded(np.asarray(counts), self.upper), SeededDraws(rng)))

    def _run(self, table: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        before, after = self.stages()
        first, noisy = _measured(table, self.upper, before, after, self.unit, draws)
        z = first.probabilities.view(np.ndarray)
        remap = comonotone(push_through(z, float(self.unit.per_step(after))), z)
        return draw_remap(noisy, draws.words(len(table)), remap.starts, remap.columns, remap.ceilings)


def even_split_table(
    counts: Counts, upper: int, epsilon: Number, rng: np.random.Generator, split: Number | None = None
) -> Simulated:
    """Simulate the whole-table estimate when every threshold is measured with the same small share of ε.

    That was the release before thresholds became few. For experiments only.
    """
    table, total, draws = top_coded(np.asarray(counts), upper), positive(epsilon, "epsilon"), SeededDraws(rng)
    part = WHOLE_TABLE(total) if split is None else share(split, "split")
    first, noisy = _measured(table, upper, total * part, total - total * part, Unit(), draws)
    assert first.noisy_cumulative is not None  # the cumulative privatiser always has it
    precision = noise_precision(float(total * part))
    cumulative = first.noisy_cumulative.view(np.ndarray)
    found = estimate_histogram(Views.of(cumulative, noisy, precision, float(total - total * part)))
    return Simulated.wrap(assign(noisy, cuts_of(found.histogram, len(table)), draws.words(len(table))))


def _measured(
    table: NDArray[np.int64], upper: int, before: Fraction, after: Fraction, unit: Unit, draws: Draws
) -> tuple[Distribution, NDArray[np.int64]]:
    """A noisy distribution, and noisy counts within 0..upper."""
    first = measure_cumulative(table, upper, before, unit, draws)
    added = np.clip(draws.geometrics(unit.per_step(after), len(table)), -upper, upper)
    return first, np.clip(table + added, 0, upper)
