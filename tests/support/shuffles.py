"""The same records in shuffled orders: exact aggregation must not notice, floating-point sums do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from isotone.order import Poset
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.grids import PointSource, count_points
from isotone.reading.records import RecordRules, RecordSource, count_records
from tests.support.record_rules import SALT

P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
COUNTIES = tuple(f"county {k}" for k in range(20))


def people(size: int, rng: np.random.Generator) -> pa.Table:
    """Records with answers, a category, and real numbers of very different sizes."""
    return pa.table(
        {
            "person": rng.integers(0, max(1, size * 3 // 4), size),
            "hyp": rng.random(size) < 0.5,
            "twice": rng.random(size) < 0.3,
            "meds": rng.random(size) < 0.2,
            "county": pa.array(np.array(COUNTIES)[rng.integers(0, 20, size)]),
            "cases": rng.integers(0, 5, size),
            "age": rng.normal(50, 20, size),
            "risk": rng.random(size) * 10.0 ** rng.integers(-12, 1, size),
        }
    )


def shuffled(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """The rows in another order."""
    return table.take(pa.array(rng.permutation(table.num_rows)))


def statistics(table: pa.Table, unit: str | None) -> list[Any]:
    """What the three kinds of release would add noise to."""
    rules = RecordRules(unit=unit)
    records = RecordSource(table)
    counts = count_records(records, records.open(P, rules, None), P, rules, None, SALT)
    categories = CategorySource(table, "county", COUNTIES, 10**6, unit=unit)
    summed = CategorySource(table, "county", COUNTIES, 10**6, count="cases")
    bounds = (Fraction(0), Fraction(100)), (Fraction(0), Fraction(1))
    points = PointSource(table, "age", "risk", *bounds, 100, 1000, unit, 1)
    drawn = count_points(points, points.open(), SALT)
    tables = [count_categories(source, source.open(), SALT) for source in (categories, summed)]
    return [*counts, *tables, drawn.x, drawn.y, drawn.count]
