"""What one unit can change in a table, exactly, from its rows to the noise: heavy units, two columns, every promise."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from tests.support import flat

import isotone as iso
from isotone.noise import UnevenLine
from isotone.privacy.draws import SeededDraws
from isotone.privacy.guarantee import Guarantee
from isotone.reading.categories import count_categories, count_pairs
from isotone.release.manifest import Stated
from isotone.release.pipeline import Job
from isotone.tables import thresholds
from isotone.tables import two_stage as gaussian_noise

PLACES = ("a", "b")
CELLS = [(place, kind) for place in (*PLACES, "?") for kind in ("x", "y")]
OTHERS = [("q", "a", "x"), ("q", "b", "x"), ("r", "a", "y"), ("r", "a", "x")]
UNITS = [[], CELLS, [("a", "y"), ("b", "x")], [("b", "y"), ("b", "y"), ("?", "x")]]  # of one more person
PROMISES = [
    (Guarantee.pure("1/2"), Fraction(1, 2)),
    (Guarantee.pure("1/2", neighbours="replace"), Fraction(1, 2)),
    (Guarantee.zcdp("1/10"), Fraction(2, 10)),
    (Guarantee.zcdp("1/10", neighbours="replace"), Fraction(2, 10)),
]


class Recorder(SeededDraws):
    """Adds no noise, and keeps what was asked for."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0))
        self.rate: Fraction | None = None
        self.line: UnevenLine | None = None
        self.variances: list[Fraction] = []

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        self.rate = rate
        return np.zeros(size, np.int64)

    def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
        self.line = line
        return values.copy()

    def discrete_gaussians(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        self.variances.append(variance)
        return np.zeros(size, np.int64)


def cost(mechanism: Any, first: NDArray[np.int64], second: NDArray[np.int64]) -> Fraction:
    """The largest loss between two strata: the sum of rates times distances, or of squares over variances."""
    measurement = mechanism.measurement(len(first))
    (below, counts, draws), (other_below, other_counts, _) = (
        (*measurement.measure(np.minimum(table, mechanism.upper), drawn)[1:], drawn)
        for table, drawn in ((first, Recorder()), (second, Recorder()))
    )
    moved, changed = np.abs(below - other_below), np.abs(counts - other_counts)
    if draws.line is None:
        cumulative, each = draws.variances
        return int(np.sum(moved**2)) / cumulative + int(np.sum(changed**2)) / each
    assert draws.rate is not None
    place = draws.line.positions
    apart = int(np.abs(place[counts] - place[other_counts]).sum())
    return draws.rate * int(moved.sum()) + draws.line.unit * apart


@pytest.mark.parametrize("columns", [1, 2])
def test_no_unit_costs_more_than_is_promised(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every two of the units, whatever their rows; the most that is promised is reached by some of them under pure ε."""
    for module in (thresholds, gaussian_noise):
        monkeypatch.setattr(module, "SMALL", 1)  # so that two categories are measured like many

    def query(promise: Guarantee, data: Any) -> Any:
        pair: Any = {} if columns == 1 else {"counts": ["x", "y"], "kind": "kind"}
        options: Any = {"unit": "who", "contributions": 2, "emphasis": "distribution", **pair}
        described, _ = flat.split(options)
        return Job.of(iso.Table("place", PLACES, upper=4, **described), data, promise, Stated())

    def read(unit: list[tuple[str, str]]) -> list[NDArray[np.int64]]:
        rows = OTHERS + [("p", *cell) for cell in unit for _ in range(2)]
        data = pl.DataFrame(rows, schema=["who", "place", "kind"], orient="row")
        source = query(PROMISES[0][0], data).source
        count: Any = count_categories if columns == 1 else count_pairs
        return np.split(count(source, source.open(), b"salt"), columns)

    tables = [read(unit) for unit in UNITS]
    for promise, most in PROMISES:
        mechanism = query(promise, None).mechanism
        replaced = promise.neighbours == "replace"
        pairs = itertools.combinations(tables, 2) if replaced else ((tables[0], each) for each in tables[1:])
        costs = [sum(map(cost, itertools.repeat(mechanism), *pair), Fraction(0)) for pair in pairs]
        assert max(costs) <= most
        assert max(costs) > most * Fraction(1, 5)
        if promise.kind == "pure" and not replaced:
            assert max(costs) == most
