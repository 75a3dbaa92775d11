"""The plan of a breakdown, with several ways to share the budget between margins. Nothing is read and nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from isotone.counts.breakdowns.cells import Breakdown, read_breakdown
from isotone.counts.breakdowns.choosing import margins_mechanism
from isotone.counts.breakdowns.margins import MarginsMechanism
from isotone.counts.candidates import Setting
from isotone.counts.caring import Care
from isotone.counts.sampling.relaxation import Relaxation
from isotone.order import Poset
from isotone.planning.plan import Column, Plan, Row
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee, Unit

__all__ = ["MarginsPlan", "MarginsRow", "plan_breakdown", "plan_margins"]


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
        errors = ", ".join(f"{breakdown.label(margin)} ± {error:.3g}" for margin, error in pairs)
        return f"Errors with {self.rows[0].name}: {errors}. Noise of a cell: {type(best.base).__name__}."

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


def plan_breakdown(
    P: Poset,
    by: Sequence[str],
    groups: Mapping[str, Any],
    margins: Sequence[Any] | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    *,
    importance: Any = None,
    unlisted: str = "drop",
    max_size: int | None = None,
    neighbours: Neighbours = "add-remove",
    contributions: int = 1,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
) -> MarginsPlan:
    """Compare ways to share a budget between the margins of a breakdown of counts over ``P``.

    The parameters are those of :func:`isotone.release_counts`. Only public things enter.

    >>> from isotone.order import Poset
    >>> lists = {"region": ["n", "e", "s", "w"], "sex": ["f", "m"]}
    >>> p = plan_breakdown(Poset.chain("ab"), ["region", "sex"], lists, ["", "region", "*"], rho="0.5")
    >>> [row.name for row in p]
    ['best shares', 'equal shares', 'region × sex only']
    """
    guarantee = Unit(neighbours=neighbours).guarantee(epsilon, delta, rho)
    setting = Setting(P, contributions, max_size, relaxation, care)
    breakdown = read_breakdown(by, groups, margins, unlisted)
    return plan_margins(margins_mechanism(setting, breakdown, guarantee, importance=importance))


def plan_margins(best: MarginsMechanism) -> MarginsPlan:
    """A mechanism beside the same noise with equal shares, and with all for the finest margin."""
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
