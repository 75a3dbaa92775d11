"""What the experiments on tables share: the data sets, the frameworks compared, and their errors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common import DATA, read_table
from isotone.published.tables.row_by_row import PUBLISHED
from isotone.tables import Distribution, fixed_point, simulate_distribution

SYNTHETIC = ("uniform", "left-skewed", "right-skewed", "bimodal", "zero-inflated", "top-inflated")
HELD_OUT = ("binomial", "crime", "schools")
EPSILONS = tuple(float(e) for e in np.geomspace(0.1, 5, 11))
COLOURS = {"published": "#8c564b", "rows": "#1f77b4", "table": "#d62728", "baseline": "#7f7f7f"}


@dataclass(frozen=True)
class Table:
    """A table of counts and the public bound of its counts."""

    name: str
    counts: NDArray[np.int64]
    upper: int


@dataclass(frozen=True)
class Errors:
    """Distances between a published table and the true one."""

    count: float
    wasserstein: float
    kolmogorov: float
    variation: float


def load(name: str) -> Table:
    """A data set by its name; homicides are top-coded at 50 and teachers at 80, as published."""
    if name == "crime":
        return top_coded_homicides(50)
    if name == "schools":
        return top_coded_schools(80)
    rows = read_table(DATA / "hists" / ("binom.csv" if name == "binomial" else f"{name}.csv"))
    values = [int(row["value"]) for row in rows]
    return Table(name, np.repeat(values, [int(row["categories"]) for row in rows]), values[-1])


def top_coded_schools(upper: int) -> Table:
    """The schools with another bound."""
    rows = read_table(DATA / "hists" / "schools_full_time_teachers.csv")
    counts = np.repeat([int(row["teachers"]) for row in rows], [int(row["schools"]) for row in rows])
    return Table("schools", np.minimum(counts, upper), upper)


def top_coded_homicides(upper: int) -> Table:
    """The homicides with another bound."""
    counts = np.array([int(row["homicides"]) for row in read_table(DATA / "us_counties_homicides.csv")])
    return Table("crime", np.minimum(counts, upper), upper)


def top_coded_flu(upper: int) -> Table:
    """Human cases of bird flu in 50 states."""
    counts = np.array([int(row["cases"]) for row in read_table(DATA / "bird_flu_by_state.csv")])
    return Table("bird flu", np.minimum(counts, upper), upper)


def errors(published: NDArray[np.int64], table: Table) -> Errors:
    """How far a published table is from the true one, in its counts and in their distribution."""
    n, size = table.upper + 1, len(table.counts)
    found = np.asarray(published).view(np.ndarray)
    change = (np.bincount(found, minlength=n) - np.bincount(table.counts, minlength=n)) / size
    gap = np.abs(np.cumsum(change))
    return Errors(
        float(np.mean(np.abs(found - table.counts))),
        float(gap.sum()),
        float(gap.max()),
        float(np.abs(change).sum() / 2),
    )


def average(found: list[Errors]) -> Errors:
    """The mean of each error."""
    return Errors(
        float(np.mean([e.count for e in found])),
        float(np.mean([e.wasserstein for e in found])),
        float(np.mean([e.kolmogorov for e in found])),
        float(np.mean([e.variation for e in found])),
    )


def published_distribution(
    table: Table, epsilon: float, rng: np.random.Generator, split: float | None = None
) -> tuple[Distribution, Fraction]:
    """The published first stage: cyclic Laplace, clipped and rescaled; and the ε that is left."""
    total = Fraction(repr(float(epsilon)))
    share = PUBLISHED(total) if split is None else Fraction(repr(float(split)))
    z = simulate_distribution(
        table.counts, table.upper, share * total, "cyclic-laplace", post="clip", rng=rng
    )
    return z, total - share * total


def as_published(
    table: Table,
    epsilon: float,
    rng: np.random.Generator,
    split: float | None = None,
    constructor: Literal["optimal", "heuristic"] = "optimal",
) -> NDArray[np.int64]:
    """Kohli and Laskowski's framework: cyclic Laplace, clipped, then a fixed-point mechanism."""
    z, rest = published_distribution(table, epsilon, rng, split)
    return fixed_point(z, rest, constructor=constructor, selector="sandwich").simulate(table.counts, rng)
