"""The mechanism for tables of counts.

A few noisy cumulative numbers, noisy counts, and the table that is estimated from both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, exact, positive, share, whole_number
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables.distribution.percentile import choose_upper
from isotone.tables.emphasis import LEAST_SIZE, MOST_SIZE, Emphasis, checked_emphasis
from isotone.tables.stratum import StratifiedMechanism
from isotone.tables.thresholds import DENSE, FEW, SMALL, Thresholds, default_emphasis, thresholds_for

__all__ = ["LARGEST", "Stages", "TwoStageMechanism"]

LARGEST = 1_000_000  # time and memory for the estimate grow with the largest count


UPPER_SHARE = Fraction(1, 20)
"""The share of ε for the largest count, where a percentile asks for it."""


@dataclass(frozen=True)
class Stages:
    """How ε is spent on a table.

    ``bound`` goes to a private bound for top-coding, and the rest to both measurements together: each step of one count
    costs ``thresholds.step``, all on the noise of the counts, or shared with a threshold that it crosses.
    """

    bound: Fraction
    thresholds: Thresholds


@dataclass(frozen=True, init=False)
class TwoStageMechanism(StratifiedMechanism):
    """A table of counts, one for each category, whose distribution of counts survives the noise.

    The numbers of categories of at most ``t`` are measured with geometric noise for a few thresholds ``t``, then for those in gaps
    that these noisy numbers show to be rough, and every count with geometric noise that is stronger on the steps across
    all these thresholds. The rest is post-processing.

    Guarantee: epsilon-DP for adding or removing one person who is counted at most ``contributions`` times, or
    for replacing one (``neighbours="replace"``). A step of one count costs ε, shared between the one threshold that
    it crosses and the noise of the count (docs/theory/tables-whole.md, section 1). The number and the order of the
    categories and their strata are public. A step touches one category and so one stratum, and every stratum is measured
    with all of ε.
    Error: depends on the table; ``tables.plan`` tells it for a guessed shape, without data.
    Cost: O(N log N + n log n); a million categories and a thousand counts take seconds.

    Parameters
    ----------
    upper
        The largest count, public: larger ones are top-coded. It must not be chosen by looking at the data.
    emphasis
        What ε is spent on, from 0 (the counts alone) to 1 (their distribution alone), or the name of a point: ``counts`` is 0.02,
        ``both`` 0.05 and ``distribution`` 0.5. ``tables.plan`` shows both errors along the scale. None takes ``both`` for an
        epsilon per step below 1 or eight categories or more for each pair of counts, and otherwise ``counts``.
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
    emphasis: Fraction | None
    percentile: Fraction | None
    upper_share: Fraction
    unit: Unit
    guarantee: Guarantee = field(repr=False)

    def __init__(
        self,
        upper: int,
        epsilon: Number,
        emphasis: Number | Emphasis | None = None,
        *,
        percentile: Number | None = None,
        upper_share: Number = UPPER_SHARE,
        contributions: int = 1,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        unit = Unit(contributions, neighbours)
        values: dict[str, Any] = {
            "upper": whole_number(upper, "upper", least=0, most=LARGEST),
            "epsilon": positive(epsilon, "epsilon"),
            "emphasis": None if emphasis is None else checked_emphasis(emphasis),
            "percentile": None if percentile is None else _checked_percentile(percentile),
            "upper_share": share(upper_share, "upper_share"),
            "unit": unit,
            "guarantee": unit.pure(epsilon),  # all stages together
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.percentile is None and self.upper_share != UPPER_SHARE:
            raise InputError("upper_share is what a percentile costs: give percentile, or leave it out.")

    def bound(self, table: Ints, draws: Draws) -> int:
        """The largest count that is published, about the percentile asked for, which is private."""
        if self.percentile is None:
            return self.upper
        rate = self.unit.per_step(self.stages(len(table)).bound)
        return choose_upper(table, self.upper, self.percentile, rate, draws)

    def stages(self, size: int, upper: int | None = None) -> Stages:
        """How ε is spent on a table, or a stratum, of ``size`` categories.

        It is a function of public numbers, and of the private bound ``upper`` if there is one.

        >>> TwoStageMechanism(upper=9, epsilon=1, emphasis="distribution").stages(1000).thresholds.share
        Fraction(11, 20)
        """
        bound = self.epsilon * self.upper_share if self.percentile is not None else Fraction(0)
        step = self.unit.per_step(self.epsilon - bound)
        top = self.upper if upper is None else upper
        emphasis = default_emphasis(step, top, size) if self.emphasis is None else self.emphasis
        return Stages(bound, thresholds_for(emphasis, top, step, size))

    def measurement(self, size: int, upper: int | None = None) -> Thresholds:
        """The two measurements of a table, or a stratum, of ``size`` categories."""
        return self.stages(size, upper).thresholds

    def error(self) -> Error:
        """The largest mean squared error of the unbiased noisy counts.

        Estimates are nearer to the truth on average, by how much depends on the table: see ``tables.plan``. It is the
        largest over all numbers of categories that the rule for thresholds tells apart.
        """
        powers = [round(2 ** (half / 2)) for half in range(LEAST_SIZE, MOST_SIZE + 1)]
        dense = DENSE * (self.upper + 1) ** 2
        sizes = {SMALL, FEW, FEW + 1, *powers, dense, dense - 1}
        most = max(self.stages(size).thresholds.deviation_bound for size in sizes if size >= SMALL) ** 2
        return Error(np.full(self.upper + 1, most), method="upper bound, of the unbiased noisy counts")


def _checked_percentile(percentile: Number) -> Fraction:
    value = exact(percentile, "percentile")
    if not 0 < value <= 100:
        raise InputError(f"percentile must be above 0 and at most 100, not {percentile!r}.")
    return value
