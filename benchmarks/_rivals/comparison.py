"""What is compared with what: ratios to isotone's error, what chance leaves open about them, and who wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from benchmarks._rivals.rows import Row

__all__ = ["EVEN", "MARK", "Comparison", "Ratio", "comparisons", "ratio"]

MARK = "◆"
EVEN, BEYOND = 1.005, 2
"""Closer to isotone's error than this factor, or than so many standard errors of the ratio, is as good."""


@dataclass(frozen=True)
class Ratio:
    """The error of a rival as a multiple of isotone's, and its standard error, 0 where both are exact."""

    value: float
    error: float
    rival: str

    @property
    def outcome(self) -> str:
        """Whether isotone won, drew or lost."""
        if abs(self.value - 1) <= BEYOND * self.error or 1 / EVEN <= self.value <= EVEN:
            return "drawn"
        return "won" if self.value > 1 else "lost"

    @property
    def doubt(self) -> str:
        """The standard error in words, nothing where there is none."""
        if not self.error:
            return ""
        return f" ± {self.error:.2f}" if self.error >= 0.005 else f" ± {self.error:.1g}"


def ratio(row: Row, ours: Row, kind: str) -> Ratio:
    """The ratio of a rival by its public rule, or with what is best in hindsight if that is better."""
    if kind == "hindsight" and not math.isnan(row.hindsight) and not row.hindsight >= row.public:
        value = row.hindsight / ours.public
        known = row.hindsight_paired, _apart(row.hindsight_error / row.hindsight, ours)
    else:
        value = row.public / ours.public
        known = _paired(row, ours), row.paired, _apart(row.error / row.public, ours)
    return Ratio(value, value * next(each for each in known if not math.isnan(each)), row.rival)


def _apart(relative: float, ours: Row) -> float:
    """The relative standard error of a ratio of independent errors."""
    return math.hypot(*(0.0 if math.isnan(each) else each for each in (relative, ours.error / ours.public)))


def _paired(row: Row, ours: Row) -> float:
    """The same where both saw the same draws, NaN where they are not kept."""
    if not row.draws or len(row.draws) != len(ours.draws):
        return math.nan
    theirs, own = np.array(row.draws), np.array(ours.draws)
    differences = row.power * (theirs / theirs.mean() - own / own.mean())
    return float(differences.std(ddof=1) / len(differences) ** 0.5)


class Comparison:
    """All rows of one case, guarantee and measure; isotone's first row, or the named one, is what the others are compared with."""

    def __init__(self, rows: Sequence[Row], ours: str = "isotone") -> None:
        self.rows = rows
        self.ours = next(row for row in rows if row.rival.startswith(ours))
        self.rivals = [row for row in rows if not row.ours and not math.isnan(row.best)]

    @property
    def name(self) -> str:
        """The case in words."""
        case, guarantee, measure = self.ours.key
        return f"{case}: {guarantee}, {measure}" + (f" {MARK}" if self.ours.seen else "")

    def best(self, kind: str) -> Ratio:
        """The ratio of the best rival to isotone, by its public rule or also in hindsight."""
        found = [ratio(row, self.ours, kind) for row in self.rivals]
        return min((each for each in found if not math.isnan(each.value)), key=lambda each: each.value)


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    """The rows by what is compared with what, in the order in which comparisons first come."""
    place: dict[tuple[str, str, str], int] = {}
    for row in rows:
        place.setdefault(row.key, len(place))
    ordered = sorted(rows, key=lambda row: place[row.key])
    return [Comparison(list(group)) for _, group in groupby(ordered, key=lambda row: row.key)]
