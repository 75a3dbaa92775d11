"""What a release of a distribution can be expected to tell, from public numbers alone. Simulated on stated shapes.

No data are read and nothing is spent. The number of records is a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.distribution.band import band_for_records
from isotone.distribution.estimate import bin_counts, shares_below
from isotone.distribution.mechanism import LEAST, DistributionMechanism, MeasuredLine
from isotone.distribution.survival import band_for_survival, kaplan_meier, survival_at, survival_counts
from isotone.errors import InputError
from isotone.planning import Column, Plan, Row
from isotone.privacy.checks import whole_number
from isotone.privacy.guarantee import Guarantee

USUAL = 10_000
_ASK = (
    "About how many records are there? The error depends on it, and this is for 10,000: give a guess, which is not read from the data "
    "(plan(…, guess=300), or isotone plan --records 300). "
)
QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
REPETITIONS = 3
_MOST_RECORDS, _LARGE = 10**9, 10**6
"""Of more records times ε than the second, one release of each shape takes seconds, and others would be much like it."""


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
TIMES: dict[str, Callable[[Floats], Floats]] = {
    "even risk": lambda x: np.exp(-1.5 * x),
    "late": lambda x: x * np.exp(-3 * x**2),
    "early": lambda x: np.exp(-20 * x) + 0.05,
    "few": lambda x: np.exp(-0.1 * x),
}
"""Densities of the time of events. A tenth of the records, and half of them where events are few, last longer than the line."""
_CENSORED, _BEYOND = 0.3, {"few": 0.5}


def _first(x: Floats) -> Any:
    """Whether a cell is the first of its twentieth."""
    twentieth = np.arange(x.size) * 20 // x.size
    return np.diff(twentieth, prepend=-1) > 0


def share_in_words(statuses: int) -> str:
    """What a distribution, or survival, is a list of."""
    return "share at or below a value" if statuses == 1 else "share that lasts longer than a time"


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
    guarantee: Guarantee | None = None
    """The guarantee in the words of a release, which name the unit."""

    @property
    def title(self) -> str:
        """The guarantee and the guess."""
        mechanism = self.rows[0].mechanism
        where = "" if mechanism.groups == 1 else f" in {mechanism.groups:,} groups"
        return f"{self.guarantee or mechanism.guarantee}, about {self.n:,} records{where}"

    @property
    def remark(self) -> str:
        """What the numbers are, and whether such a release is of any use."""
        text = "" if self.guessed else _ASK
        mechanism = self.rows[0].mechanism
        what = share_in_words(mechanism.statuses)
        text += (
            f"distance: the largest error of a {what}; quantiles: how far the share at an estimated quantile is from what it should be; "
            "band: the mean width of the 95 % band for the records."
        )
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


@np.errstate(all="ignore")
def plan(
    mechanism: DistributionMechanism, n: int, repetitions: int = REPETITIONS, *, guessed: bool = True
) -> DistributionPlan:
    """What to expect of a mechanism for about ``n`` records, a like share of them in each group.

    The simulation is seeded, so the same question has the same answer.
    """
    records = whole_number(n, "the number of records", 1, _MOST_RECORDS)
    shapes = SHAPES if mechanism.statuses == 1 else TIMES
    if records * mechanism.strength >= _LARGE:
        repetitions = 1
    rows = tuple(_row(name, mechanism, records, repetitions) for name in shapes)
    return DistributionPlan(rows, records, guessed)


def _row(name: str, mechanism: DistributionMechanism, n: int, repetitions: int) -> ShapeRow:
    errors: list[tuple[float, float, float]] = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, n, len(name)])
        cells = np.zeros((mechanism.groups, mechanism.statuses, mechanism.cells), np.int64)
        cells[0] = _drawn(name, mechanism, max(n // mechanism.groups, 1), rng)
        errors.append(_errors(mechanism, cells[0], mechanism.simulate(cells, rng)[0]))
    distance, quantile, width = np.mean(errors, axis=0)
    return ShapeRow(name, mechanism, float(distance), float(quantile), float(width))


def _drawn(name: str, mechanism: DistributionMechanism, n: int, rng: np.random.Generator) -> Ints:
    """Records of a stated shape by status and cell."""
    size = mechanism.cells - mechanism.apart
    middles = (np.arange(size) + 0.5) / size
    if mechanism.statuses == 1:
        law = SHAPES[name](middles)
        return rng.multinomial(n, law / law.sum())[None]
    law = TIMES[name](middles)
    beyond = _BEYOND.get(name, 0.1)
    events, censored = (1 - beyond) * (1 - _CENSORED) * law / law.sum(), (1 - beyond) * _CENSORED / size
    parts = [events, [0.0], np.full(size, censored), [beyond]]
    return rng.multinomial(n, np.concatenate(parts)).reshape(2, -1)


def _errors(mechanism: DistributionMechanism, cells: Ints, line: MeasuredLine) -> tuple[float, float, float]:
    """Distance, error of quantiles and width of the band, of shares at or below a value or of those that have ended."""
    if mechanism.statuses == 1:
        truth = np.concatenate([[0.0], np.cumsum(cells)]) / cells.sum()
        estimate = shares_below(line.edges, bin_counts(mechanism, line).sum(axis=0), mechanism.cells)
        band = band_for_records(mechanism, line, 0.95)
    else:
        truth = np.concatenate([[0.0], 1 - kaplan_meier(*cells)[0]])
        estimate = 1 - survival_at(line.edges, survival_counts(mechanism, line))[0]
        band = band_for_survival(mechanism, line, 0.95).ended
    reached = QUANTILES[min(truth[-2], estimate[-2]) >= QUANTILES]
    at = np.clip(np.searchsorted(estimate, reached - 1e-12), 1, mechanism.cells)
    missed = np.maximum(np.maximum(truth[at - 1] - reached, reached - truth[at]), 0.0)
    inside = (band.high - band.low)[1:-1]
    width = float(inside.mean()) if inside.size else 1.0
    return float(np.abs(estimate - truth)[:-1].max()), float(missed.mean()) if missed.size else 0.0, width


def least_budget(
    make: Callable[[Fraction], DistributionMechanism], error: float, n: int, most: Fraction = Fraction(100)
) -> Fraction:
    """The least budget, in three digits and to about 5 %, whose expected distance for about ``n`` records is at most ``error`` on all stated shapes."""
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
        middle = Fraction(f"{(float(low) * float(high)) ** 0.5:.2e}")
        low, high = (low, middle) if plan(make(middle), n, 1).distance <= error else (middle, high)
    return high
