"""The plan of a breakdown: noise, shares of margins, and ways to share a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.counts.breakdown import MOST_NUMBERS, Breakdown
from isotone.counts.count_plan import Setting, choose_mechanism, spelling
from isotone.counts.hierarchy import TreeGaussianMechanism
from isotone.counts.knorm import PosetMechanism
from isotone.counts.margins import MarginsMechanism, importance_of
from isotone.counts.mechanism import AdditiveMechanism, Care
from isotone.counts.order_gaussian import OrderGaussianMechanism
from isotone.errors import InputError
from isotone.order.building import is_hierarchy
from isotone.planning import Column, Plan, Row
from isotone.privacy.guarantee import Guarantee

__all__ = [
    "MarginsPlan",
    "MarginsRow",
    "margins_mechanism",
    "plan_margins",
]


# Choosing the noise and the shares of a breakdown. No data is needed.

_SMALL, _NEAR = 200, 1.2
"""For larger orders a second search could take long; and how much more error is taken for shorter intervals."""


def margins_mechanism(
    setting: Setting,
    breakdown: Breakdown,
    guarantee: Guarantee,
    mechanism: str | AdditiveMechanism | None = None,
    importance: Any = None,
) -> MarginsMechanism:
    """The mechanism for a breakdown that keeps ``guarantee``, with the best noise for the cells and the best shares.

    For replace neighbours the noise is for adding or removing, at so much less that replacing follows.
    """
    P, care = setting.P, setting.care
    numbers = breakdown.cells * len(P)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"{breakdown.cells:,} cells of {len(P)} counts are {numbers:,} numbers, and a breakdown has at most "
            f"{MOST_NUMBERS:,}. Take coarser lists, or fewer attributes."
        )

    weights = importance_of(breakdown, importance)

    def chosen(
        asked: Guarantee, kind: str | AdditiveMechanism | None, cared: Care | None
    ) -> AdditiveMechanism:
        # a unit that is replaced may change its cell: each is guaranteed so much about adding that replacing follows
        return choose_mechanism(replace(setting, care=cared), asked.of_one_unit(), kind)

    def shared(base: AdditiveMechanism) -> MarginsMechanism:
        if guarantee.kind != "zcdp" or base.guarantee.kind != "pure":
            return MarginsMechanism(base, breakdown, importance)
        return MarginsMechanism(base, breakdown, importance, rho=guarantee.of_one_unit().rho)

    def best(asked: Guarantee) -> MarginsMechanism:
        """The noise that is best for the shares of the cells, which need not be that for the whole budget."""
        first = shared(chosen(asked, None, care))
        if asked.kind != "pure" or len(P) > _SMALL or is_hierarchy(P):
            return first
        result = {type(first.base): first}
        for share in {min(filter(None, first.shares)), max(first.shares)} - {1}:
            base = chosen(replace(asked, epsilon=asked.epsilon * share), None, care)
            result.setdefault(type(base), shared(base.part(1 / share)))
        if setting.max_size is None and PosetMechanism not in result:  # its intervals are the shortest
            result[PosetMechanism] = shared(chosen(asked, PosetMechanism.__name__, None))
        return _shortest(list(result.values()), weights)

    if mechanism not in (None, "best"):
        return shared(chosen(guarantee, mechanism, care))
    if guarantee.kind != "approximate":
        return best(guarantee)
    # all parts of Gaussian noise together cost what one does, so it wins more often than for one table
    result = [best(Guarantee.pure(guarantee.epsilon, neighbours=guarantee.neighbours, unit=guarantee.unit))]
    gaussian = TreeGaussianMechanism if is_hierarchy(P) else OrderGaussianMechanism
    if is_hierarchy(P) or not any(choice.kind == "partition" for choice in P.choices):
        result.append(shared(chosen(guarantee, gaussian.__name__, care)))
    return min(result, key=lambda one: float(weights @ one.mean_variances()))


def _shortest(found: list[MarginsMechanism], weights: NDArray[np.float64]) -> MarginsMechanism:
    """Of those with nearly the least error the one with the shortest intervals.

    Those of noise on whole numbers are proved for any law of the kind, and wide.
    """
    errors = [math.sqrt(float(weights @ one.mean_variances())) for one in found]
    near = [one for one, error in zip(found, errors, strict=True) if error <= _NEAR * min(errors)]
    return min(
        near,
        key=lambda one: float(
            weights @ [float(half.mean()) for half in one.tables(one.bounded_half_widths())]
        ),
    )


# The plan of a breakdown, with several ways to share the budget between margins. Nothing is read and nothing is spent.


@dataclass(frozen=True)
class MarginsRow(Row):
    """One way to share the budget, with the root of the mean variance over margins, weighted, and that of the worst margin."""

    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", "rms error", marker="o"),
        Column("worst", "worst margin", marker="|"),
    )

    mechanism: MarginsMechanism
    rmse: float
    worst: float

    @classmethod
    def of(cls, name: str, mechanism: MarginsMechanism) -> MarginsRow:
        """The row of a mechanism."""
        means, weights = mechanism.mean_variances(), np.array(mechanism.importance)
        return cls(name, mechanism, math.sqrt(weights @ means / weights.sum()), math.sqrt(means.max()))

    @property
    def note(self) -> str:
        """The share of each margin."""
        pairs = zip(self.mechanism.breakdown.margins, self.mechanism.shares, strict=True)
        return ", ".join(
            f"{self.mechanism.breakdown.label(margin)} {float(share):.2g}" for margin, share in pairs
        )


@dataclass(frozen=True)
class MarginsPlan(Plan[MarginsRow]):
    """Ways to share a budget between the margins of a breakdown, best first."""

    breakdown: Breakdown
    guarantee: Guarantee

    @property
    def title(self) -> str:
        """The number of counts and margins, and the guarantee."""
        size = len(self.best.base.P)
        return f"{size} counts in {len(self.breakdown.margins)} margins, {self.guarantee}"

    @property
    def best(self) -> MarginsMechanism:
        """The mechanism with the least error."""
        return self.rows[0].mechanism

    @property
    def remark(self) -> str:
        """The error of each margin with the best shares, and the noise of a cell."""
        best, breakdown = self.best, self.breakdown
        means = np.sqrt(best.mean_variances()).tolist()
        pairs = zip(breakdown.margins, means, strict=True)
        errors = ", ".join(f"{breakdown.label(margin)} {error:.3g}" for margin, error in pairs)
        alike = spelling(best.base.P)
        return f"{alike and alike + chr(10)}Rms errors of the margins with {self.rows[0].name}: {errors}. Noise of a cell: {type(best.base).__name__}."

    def plain(self) -> dict[str, Any]:
        """The plan as plain values, with the share and the error of each margin."""
        best, breakdown = self.best, self.breakdown
        margins = [
            {"margin": list(breakdown.names(margin)), "share": str(share), "rmse": error}
            for margin, share, error in zip(
                breakdown.margins, best.shares, np.sqrt(best.mean_variances()).tolist(), strict=True
            )
        ]
        return {**super().plain(), "base": type(best.base).__name__, "margins": margins}


def plan_margins(best: MarginsMechanism) -> MarginsPlan:
    """A mechanism beside the same noise with equal shares, and with all for the finest margin.

    >>> from isotone.counts.breakdown import read_breakdown
    >>> from isotone.order import Poset
    >>> lists = {"region": ["n", "e", "s", "w"], "sex": ["f", "m"]}
    >>> breakdown = read_breakdown(["region", "sex"], lists, ["", "region", "*"], "drop")
    >>> best = margins_mechanism(Setting(Poset.chain("ab")), breakdown, Guarantee.zcdp("0.5"))
    >>> [row.name for row in plan_margins(best)]
    ['best shares', 'equal shares', 'region × sex only']
    """
    breakdown, number = best.breakdown, len(best.breakdown.margins)
    ways: dict[str, list[Fraction]] = {"equal shares": [Fraction(1, number)] * number}
    finest = breakdown.finest
    if finest is not None and number > 1:
        only = [Fraction(int(margin == finest)) for margin in breakdown.margins]
        ways[f"{breakdown.label(finest)} only"] = only
    rho = best.guarantee.rho if best.squares_add and best.base.guarantee.kind == "pure" else None
    weights = list(zip(map(breakdown.names, breakdown.margins), best.importance, strict=True))
    rows = [MarginsRow.of("best shares", best)]
    for name, shares in ways.items():
        rows.append(MarginsRow.of(name, MarginsMechanism(best.base, breakdown, weights, shares, rho)))
    return MarginsPlan(tuple(sorted(rows, key=lambda row: row.rmse)), breakdown, best.guarantee)
