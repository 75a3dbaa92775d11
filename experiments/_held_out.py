"""Tables made to judge the table release, which were seen while its last constants were chosen.

Their rule is another than that of the tables in ``data/``: mixtures, hurdles, heaps and power laws, each with a seed of
its own, sizes from 200 to 20,000 categories and counts up to 15 to 250. Three tables are real: how many courses a course needs,
how many need it, and on how many of 200 packages a package depends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _tables import Table
from common import DATA, read_table

__all__ = ["SHAPES", "held_out", "packages", "real"]

Make = Callable[[np.random.Generator, int], NDArray[np.floating] | NDArray[np.integer]]


def _beta_binomial(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return rng.binomial(30, rng.beta(0.4, 0.6, size))


def _lognormal_rates(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return rng.poisson(rng.lognormal(1.2, 1.1, size))


def _half_empty(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return np.where(rng.random(size) < 0.5, 0, rng.geometric(0.12, size))


def _three_bells(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    centre, width = np.array([12, 45, 90]), np.array([3, 8, 5])
    which = rng.choice(3, size, p=[0.5, 0.35, 0.15])
    return rng.normal(centre[which], width[which])


def _stairs(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return rng.choice(40, size, p=np.repeat([0.055, 0.03, 0.01, 0.005], 10))


def _hurdle(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return np.where(rng.random(size) < 0.3, 0, 5 + rng.negative_binomial(2, 0.15, size))


def _heaps(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    plain = rng.lognormal(3.0, 0.6, size)
    return np.where(rng.random(size) < 0.4, 5 * np.round(plain / 5), plain)


def _left_tail(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return 60 - rng.gumbel(8, 6, size)


SHAPES: dict[str, tuple[Make, int, int, int]] = {  # how, seed, categories, largest count
    "negative binomial": (lambda rng, size: rng.negative_binomial(1.5, 0.15, size), 101, 2500, 60),
    "lognormal rates": (_lognormal_rates, 102, 5000, 80),
    "half empty": (_half_empty, 103, 2500, 60),
    "u-shaped": (_beta_binomial, 104, 1200, 30),
    "zeta": (lambda rng, size: rng.zipf(1.7, size) - 1, 105, 8000, 120),
    "triangle": (lambda rng, size: rng.triangular(0, 10, 70, size), 106, 3000, 70),
    "weibull": (lambda rng, size: 25 * rng.weibull(0.7, size), 107, 1000, 150),
    "three bells": (_three_bells, 108, 6000, 110),
    "stairs": (_stairs, 109, 20000, 39),
    "hurdle": (_hurdle, 110, 800, 50),
    "heaps of five": (_heaps, 111, 4000, 100),
    "left tail": (_left_tail, 112, 200, 70),
    "nearly all zero": (lambda rng, size: rng.poisson(0.08, size), 113, 3000, 15),
    "wide": (lambda rng, size: rng.gamma(3, 25, size), 114, 1500, 250),
}


def held_out(name: str, size: int | None = None) -> Table:
    """A table by its name, with another number of categories if asked for."""
    make, seed, usual, upper = SHAPES[name]
    drawn = np.floor(make(np.random.default_rng(seed), size or usual))
    return Table(name, np.clip(drawn, 0, upper).astype(np.int64), upper)


def real() -> list[Table]:
    """Real tables, seen as well."""
    rows = read_table(DATA / "orders" / "course_prerequisites.csv")
    needs, needed = (Counter(row[column] for row in rows) for column in ("course", "prereq"))
    courses = sorted({*needs, *needed})
    return [
        _topped("needs of courses", np.array([needs[each] for each in courses]), 20),
        _topped("courses needed", np.array([needed[each] for each in courses]), 40),
        _topped("needs of packages", packages().sum(axis=1), 150),
    ]


def real_unseen() -> list[Table]:
    """Real tables on which nothing had run before everything was chosen."""
    titles = [len(row["title"].split()) for row in read_table(DATA / "orders" / "naics.csv")]
    months = [int(row["months"]) for row in read_table(DATA / "times" / "returns_to_prison.csv")]
    flights = [int(row["flights"]) for row in read_table(DATA / "times" / "flight_delays.csv")]
    return [
        _topped("words of titles", np.array(titles), 20),
        _topped("months until a return", np.array(months), 81),
        _topped("flights of a minute", np.array(flights), 60),
    ]


def packages() -> NDArray[np.int64]:
    """For 5,000 packages, whether they depend on each of 200, from the most needed one on."""
    from pyarrow import parquet

    table = parquet.read_table(DATA / "orders" / "debian_records_sample.parquet").drop_columns(["package"])
    answers = np.column_stack([table.column(name).to_numpy() for name in table.column_names]).astype(np.int64)
    return answers[:, np.argsort(-answers.sum(axis=0), kind="stable")]


def _topped(name: str, counts: NDArray[np.int64], upper: int) -> Table:
    return Table(name, np.minimum(counts, upper).astype(np.int64), upper)
