"""A second set of tables on which no constant of the table release was chosen.

The tables of ``_held_out`` had been seen when the last constants were chosen. These were written after all constants of that time
were final, and committed before any release of them was measured. Constants that came later were chosen on other tables. Their rules are others: compound and mixed laws from the literature
on counts, each with a seed of its own, 200 to 5,000 categories, counts up to 10 to 200, from nearly empty to far from 0. Two
tables are real: how many words the title of an industry has, and how many of 200 packages each of them needs directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _tables import Table
from common import DATA, read_table

__all__ = ["SECOND", "real_again", "second"]

Rng = np.random.Generator
Make = Callable[[Rng, int], NDArray[np.floating] | NDArray[np.integer]]


def _yule_simon(rng: Rng, size: int) -> NDArray[np.int64]:
    return rng.geometric(np.exp(-rng.exponential(1 / 1.4, size))) - 1


def _sichel(rng: Rng, size: int) -> NDArray[np.int64]:
    return rng.poisson(rng.wald(7, 5, size))


def _far_group(rng: Rng, size: int) -> NDArray[np.int64]:
    return np.where(rng.random(size) < 0.92, rng.poisson(3, size), rng.poisson(75, size))


def _zero_or_lognormal(rng: Rng, size: int) -> NDArray[np.float64]:
    return np.where(rng.random(size) < 0.45, 0, np.rint(rng.lognormal(2.3, 0.9, size)))


def _conway_maxwell(rng: Rng, size: int) -> NDArray[np.int64]:
    """Proportional to λ^k/(k!)^ν with ν = 2.2: narrower than Poisson."""
    steps = np.log(np.arange(1, 41))
    logs = 2.2 * np.concatenate([[0.0], np.cumsum(np.log(18) - steps)])
    law = np.exp(logs - logs.max())
    return rng.choice(41, size, p=law / law.sum())


def _zipf_with_offset(rng: Rng, size: int) -> NDArray[np.int64]:
    law = (np.arange(151) + 6.0) ** -2.3
    return rng.choice(151, size, p=law / law.sum())


def _two_camps(rng: Rng, size: int) -> NDArray[np.float64]:
    return np.rint(np.where(rng.random(size) < 0.35, rng.logistic(8, 1.5, size), rng.logistic(28, 2.5, size)))


def _by_size(rng: Rng, size: int) -> NDArray[np.int64]:
    """Events in proportion to populations with the tail of towns, at rates that differ a little."""
    people = 2000 * (1 + rng.pareto(1.1, size))
    return rng.poisson(people * rng.gamma(4, 1e-4, size))


def _nearly_constant(rng: Rng, size: int) -> NDArray[np.int64]:
    return np.where(rng.random(size) < 0.02, rng.integers(0, 31, size), 7)


def _rare_clusters(rng: Rng, size: int) -> NDArray[np.int64]:
    return np.where(rng.random(size) < 0.03, rng.geometric(0.25, size), 0)


def _gap(rng: Rng, size: int) -> NDArray[np.int64]:
    drawn = rng.integers(0, 80, size)
    return np.where(drawn < 40, drawn, drawn + 21)


def _in_pairs(rng: Rng, size: int) -> NDArray[np.int64]:
    return 2 * rng.negative_binomial(3, 0.25, size) + (rng.random(size) < 0.15)


def _gompertz(rng: Rng, size: int) -> NDArray[np.float64]:
    """Ages at death."""
    return np.log1p(-np.log(rng.random(size)) * 0.09 / 4e-5) / 0.09


SECOND: dict[str, tuple[Make, int, int, int]] = {  # how, seed, categories, largest count
    "yule-simon": (_yule_simon, 301, 3000, 60),
    "sichel": (_sichel, 302, 2000, 50),
    "far group": (_far_group, 303, 1000, 110),
    "zero or lognormal": (_zero_or_lognormal, 304, 1500, 80),
    "rounded gamma": (lambda rng, size: np.rint(rng.gamma(5, 4, size)), 305, 700, 60),
    "conway-maxwell": (_conway_maxwell, 306, 400, 40),
    "zipf with offset": (_zipf_with_offset, 307, 5000, 150),
    "two camps": (_two_camps, 308, 2500, 45),
    "by size": (_by_size, 309, 3500, 100),
    "nearly constant": (_nearly_constant, 310, 600, 30),
    "rare clusters": (_rare_clusters, 311, 4000, 20),
    "folded differences": (
        lambda rng, size: np.abs(rng.poisson(4, size) - rng.poisson(4, size)),
        312,
        5000,
        10,
    ),
    "gap": (_gap, 313, 1200, 100),
    "in pairs": (_in_pairs, 314, 250, 50),
    "far from zero": (lambda rng, size: np.rint(rng.laplace(140, 12, size)), 315, 300, 200),
    "gompertz": (_gompertz, 316, 900, 110),
}


def second(name: str) -> Table:
    """A table of the second held-out set by its name."""
    make, seed, size, upper = SECOND[name]
    drawn = np.floor(make(np.random.default_rng(seed), size))
    return Table(name, np.clip(drawn, 0, upper).astype(np.int64), upper)


def real_again() -> list[Table]:
    """Two more real tables that nothing was tuned on."""
    titles = [row["title"] for row in read_table(DATA / "orders" / "naics.csv")]
    rows = read_table(DATA / "orders" / "debian_top200_covers.csv")
    needs = Counter(row["package"] for row in rows)
    packages = sorted({row[column] for row in rows for column in ("package", "requires")})
    return [
        _topped("words of titles", [len(title.split()) for title in titles], 20),
        _topped("direct needs", [needs[package] for package in packages], 15),
    ]


def _topped(name: str, counts: list[int], upper: int) -> Table:
    return Table(name, np.minimum(np.array(counts, np.int64), upper), upper)
