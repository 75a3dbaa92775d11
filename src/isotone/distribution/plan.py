"""What a release of a distribution can be expected to tell, from public numbers alone. Simulated on stated shapes.

No data are read and nothing is spent. The number of records is a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from isotone.array_types import Floats
from isotone.distribution.band import band_for_records
from isotone.distribution.estimate import bin_counts, shares_below
from isotone.distribution.mechanism import LEAST, DistributionMechanism
from isotone.errors import InputError
from isotone.planning import Column, Plan, Row
from isotone.privacy.checks import whole_number

__all__ = ["SHAPES", "DistributionPlan", "ShapeRow", "least_budget", "plan"]

USUAL = 10_000
_ASK = (
    "About how many records are there? The error depends on it, and this is for 10,000: give a guess, which is not read from the data "
    "(plan(…, guess=300), or isotone plan --records 300). "
)
QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
REPETITIONS = 3
_MOST_RECORDS = 10**9


def _skewed(x: Floats) -> Floats:
    return np.exp(-((np.log(np.maximum(x, 1e-9)) - np.log(0.05)) ** 2) / (2 * 0.8**2)) / np.maximum(x, 1e-9)


SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "even": np.ones_like,
    "bell": lambda x: np.exp(-((x - 0.5) ** 2) / (2 * 0.1**2)),
    "skewed": _skewed,
    "heaps": lambda x: np.where(
        np.isin(np.arange(x.size) * 20 // x.size, (2, 3, 7, 15)) & _first(x), 1.0, 1e-6
    ),
}
"""Densities over the line from 0 to 1, by the middle of each cell."""


def _first(x: Floats) -> Any:
    """Whether a cell is the first of its twentieth."""
    twentieth = np.arange(x.size) * 20 // x.size
    return np.diff(twentieth, prepend=-1) > 0


@dataclass(frozen=True)
class ShapeRow(Row):
    """One stated shape: the largest distance of the estimate, the mean error of five quantiles in shares, and the width of the band."""

    columns: ClassVar[tuple[Column, ...]] = (
        Column("distance", "distance", "{:.3g}".format, marker="o"),
        Column("quantile", "quantiles", "{:.2g}".format, marker="<"),
        Column("width", "band", "{:.3g}".format, marker=">"),
    )

    mechanism: DistributionMechanism = field(repr=False, compare=False)
    distance: float
    quantile: float
    width: float


@dataclass(frozen=True)
class DistributionPlan(Plan[ShapeRow]):
    """What to expect for about ``n`` records, by shape. Distances and widths are shares of the records."""

    n: int
    guessed: bool = True
    method: str = "simulated on stated shapes"

    @property
    def title(self) -> str:
        """The guarantee and the guess."""
        return f"{self.rows[0].mechanism.guarantee}, about {self.n:,} records in {self.rows[0].mechanism.groups:,} group(s)"

    @property
    def remark(self) -> str:
        """What the numbers are, and whether such a release is of any use."""
        text = "" if self.guessed else _ASK
        text += (
            "distance: the largest error of a share at or below a value; quantiles: how many records lie between an estimated quantile and the "
            "true one, as a share; band: the mean width of the 95 % band for the records."
        )
        mechanism = self.rows[0].mechanism
        each = self.n / mechanism.groups
        if each * mechanism.strength < LEAST:
            text += (
                f" So few records are of no use at this budget: ε times the records of a group is about {each * mechanism.strength:.3g}, and "
                f"below {LEAST} the noise is as large as the distribution. Ask for a larger budget, or for fewer groups."
            )
        return text

    @property
    def distance(self) -> float:
        """The largest distance over the shapes."""
        return max(row.distance for row in self.rows)

    def lines(self) -> list[tuple[str, ...]]:
        """Rows are shapes."""
        first, *rest = super().lines()
        return [("shape", *first[1:]), *rest]


def plan(
    mechanism: DistributionMechanism, n: int, repetitions: int = REPETITIONS, *, guessed: bool = True
) -> DistributionPlan:
    """What to expect of a mechanism for about ``n`` records, a like share of them in each group.

    The simulation is seeded, so the same question has the same answer.
    """
    records = whole_number(n, "the number of records", 1, _MOST_RECORDS)
    rows = tuple(_row(name, mechanism, records, repetitions) for name in SHAPES)
    return DistributionPlan(rows, records, guessed)


def _row(name: str, mechanism: DistributionMechanism, n: int, repetitions: int) -> ShapeRow:
    middles = (np.arange(mechanism.cells) + 0.5) / mechanism.cells
    law = SHAPES[name](middles)
    found: list[tuple[float, float, float]] = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, n, len(name)])
        cells = rng.multinomial(max(n // mechanism.groups, 1), law / law.sum())
        found.append(_errors(mechanism, cells, rng))
    distance, quantile, width = np.mean(found, axis=0)
    return ShapeRow(name, mechanism, float(distance), float(quantile), float(width))


def _errors(
    mechanism: DistributionMechanism, cells: Any, rng: np.random.Generator
) -> tuple[float, float, float]:
    one = np.zeros((mechanism.groups, mechanism.statuses, mechanism.cells), np.int64)
    one[0, 0] = cells
    line = mechanism.simulate(one, rng)[0]
    truth = np.concatenate([[0.0], np.cumsum(cells)]) / cells.sum()
    estimate = shares_below(line.edges, bin_counts(mechanism, line).sum(axis=0), mechanism.cells)
    at = np.clip(np.searchsorted(estimate, QUANTILES - 1e-12), 1, mechanism.cells)
    missed = np.maximum(np.maximum(truth[at - 1] - QUANTILES, QUANTILES - truth[at]), 0.0)
    band = band_for_records(mechanism, line, 0.95)
    inside = (band.high - band.low)[1:-1]
    width = float(inside.mean()) if inside.size else 1.0
    return float(np.abs(estimate - truth)[:-1].max()), float(missed.mean()), width


def least_budget(
    make: Callable[[Fraction], DistributionMechanism], error: float, n: int, most: Fraction = Fraction(100)
) -> Fraction:
    """The least budget, to about 5 %, whose expected distance for about ``n`` records is at most ``error`` on all stated shapes."""
    if not 0 < error < 1:
        raise InputError(
            f"The error of a distribution is a share of the records between 0 and 1, not {error:g}."
        )
    low, high = Fraction(1, 10**4), most
    if plan(make(high), n, 1).distance > error:
        raise InputError(
            f"No budget up to {float(high):g} keeps the distance below {error:g} for about {n:,} records."
        )
    while high > low * Fraction(21, 20):
        middle = Fraction(round((float(low) * float(high)) ** 0.5, 6)).limit_denominator(10**6)
        low, high = (low, middle) if plan(make(middle), n, 1).distance <= error else (middle, high)
    return high
